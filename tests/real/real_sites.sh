#!/usr/bin/env bash
# Crawls real documentation sites (two, or those of CRAWLER_SITES), served by nginx on loopback, whole and without
# delay; compares what was fetched and archived with what is reachable in the files: nothing missing, nothing extra,
# nothing twice.
#
# usage: real_sites.sh CRAWLER [FOLDER_FOR_RESULTS]
# Needs nginx; Debian's python3.11-doc and openjdk-17-doc, installed or unpacked below CRAWLER_DOCS; and, named by
# CRAWLER_TOOLS_PYTHON, a Python with lxml, warcio and cdxj-indexer. `.ci/run` brings all of them. CRAWLER_SITES names
# other folders to serve, with colons between them, each as a site of its own.
set -euo pipefail

crawler=$(realpath "${1:?usage: real_sites.sh CRAWLER [FOLDER_FOR_RESULTS]}")
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${CRAWLER_TOOLS_PYTHON:-python3}
docs=${CRAWLER_DOCS:-/usr/share/doc}
folders=("$docs/python3.11/html" "$docs/openjdk-17-jre-headless")
[ -z "${CRAWLER_SITES:-}" ] || IFS=: read -r -a folders <<< "$CRAWLER_SITES"
hosts=()
for i in "${!folders[@]}"; do hosts+=("127.0.0.$((11 + i))"); done

work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || { kill -QUIT "$server" 2>/dev/null; wait "$server" 2>/dev/null; } || true
  rm -rf "$work"
}
trap stop EXIT

for folder in "${folders[@]}"; do
  [ -d "$folder" ] || { echo "real_sites.sh: no $folder: install python3.11-doc and openjdk-17-doc, or set CRAWLER_DOCS" >&2; exit 2; }
done

free_port='import socket; s = socket.socket(); s.bind(("127.0.0.11", 0)); print(s.getsockname()[1])'
port=$("$python" -c "$free_port")

{
  echo "daemon off; worker_processes 1; pid $work/nginx.pid; error_log $work/error.log warn;"
  [ "$(id -u)" != 0 ] || echo "user root;"
  echo "events { worker_connections 512; }"
  echo "http {"
  echo "  include /etc/nginx/mime.types; default_type application/octet-stream; charset utf-8;"
  echo "  sendfile on; tcp_nodelay on; absolute_redirect off; index index.html;"
  for kind in client_body proxy fastcgi uwsgi scgi; do echo "  ${kind}_temp_path $work/$kind;"; done
  echo "  log_format asked '\$host:\$server_port \$status \$request_uri'; access_log $work/access.log asked;"
  for i in "${!hosts[@]}"; do
    echo "  server { listen ${hosts[$i]}:$port; server_name ${hosts[$i]}; root ${folders[$i]}; }"
  done
  echo "}"
} > "$work/nginx.conf"

nginx -p "$work" -c "$work/nginx.conf" -e "$work/error.log" &
server=$!
for host in "${hosts[@]}"; do
  echo "http://$host:$port/" >> "$work/seeds.txt"
  for _ in $(seq 100); do
    (exec 3<> "/dev/tcp/$host/$port") 2>/dev/null && continue 2
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
  done
  echo "real_sites.sh: nginx does not answer on $host:$port" >&2
  cat "$work/error.log" >&2
  exit 1
done

job=$work/job
timeout 240 "$crawler" --seeds "$work/seeds.txt" --job "$job" --delay 0s --allow-address 127.0.0.0/8 --quiet
"$python" - "$job/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
pages = max(1, report["urls"]["fetched"])
print(f'report: {report["state"]}, {pages} fetched, {report["wall_s"]:.1f} s, {1000 * report["cpu_s"] / pages:.3f} ms of CPU a page, '
      f'{report["peak_rss_bytes"] / 1e6:.0f} MB resident, balanced {report["balanced"]}')
sys.exit(0 if report["balanced"] and report["state"] == "finished" else 1)
PY

sites=()
for i in "${!hosts[@]}"; do sites+=(--site "http://${hosts[$i]}:$port=${folders[$i]}"); done
"$python" "$tests/real/judge.py" "${sites[@]}" --log "$work/access.log" --job "$job"
"$python" "$tests/tools/check_archive.py" "$job"
if [ -n "${2:-}" ]; then
  mkdir -p "$2"
  cp "$job/report.json" "$work/access.log" "$2/"
fi
