#!/usr/bin/env bash
# CPU time a page of a whole crawl, with and without the archive: the OpenJDK 17 API documentation, served by nginx on
# loopback without compression. Tells three runs of each, for the machine's other work moves them.
#
# usage: speed.sh CRAWLER [RUNS]
# Needs nginx, Python 3, and Debian's openjdk-17-doc, installed or unpacked below CRAWLER_DOCS.
set -euo pipefail

crawler=$(realpath "${1:?usage: speed.sh CRAWLER [RUNS]}")
runs=${2:-3}
docs=${CRAWLER_DOCS:-/usr/share/doc}/openjdk-17-jre-headless
[ -f "$docs/api/index.html" ] || { echo "speed.sh: no $docs: install openjdk-17-doc, or set CRAWLER_DOCS" >&2; exit 2; }

work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || { kill -QUIT "$server" 2>/dev/null; wait "$server" 2>/dev/null; } || true
  rm -rf "$work"
}
trap stop EXIT

host=127.0.1.12
port=$(python3 -c "import socket; s = socket.socket(); s.bind(('$host', 0)); print(s.getsockname()[1])")
cat > "$work/nginx.conf" <<CONF
worker_processes 1; daemon off; pid $work/nginx.pid; error_log $work/error.log;
events { worker_connections 1024; }
http {
  types { text/html html; text/css css; text/javascript js; }
  access_log off; sendfile on; keepalive_requests 1000000; open_file_cache max=20000;
  server { listen $host:$port; root $docs; }
}
CONF
nginx -p "$work" -c "$work/nginx.conf" -e "$work/error.log" &
server=$!
until python3 -c "import socket; socket.create_connection(('$host', $port)).close()" 2>/dev/null; do
  kill -0 "$server" || { cat "$work/error.log" >&2; exit 2; }
  sleep 0.1
done

lscpu | sed -n 's/^Model name: */machine: /p'
for archive in "" --no-archive; do
  for _ in $(seq "$runs"); do
    rm -rf "$work/job"
    "$crawler" --seed "http://$host:$port/api/index.html" --job "$work/job" --concurrency 64 --per-host-connections 64 \
      --delay 0s --no-robots --page-requisites no --allow-address 127.0.0.0/8 --quiet $archive
    python3 - "$work/job/report.json" "${archive:-with the archive}" <<'REPORT'
import json, sys
report = json.load(open(sys.argv[1]))
pages = report["urls"]["fetched"]
cpu_ms, resident_mb = report["cpu_s"] * 1000 / pages, report["peak_rss_bytes"] / 1e6
print(f"{sys.argv[2]}: {cpu_ms:.3f} ms of CPU a page, {pages} pages, {resident_mb:.0f} MB resident at most")
REPORT
  done
done
