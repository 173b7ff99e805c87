#!/usr/bin/env bash
# Bodies that memory must not hold: a film and a page of 2 GB, 1,000 bodies of 10 MB and 50 pages of 20 MB under way together. Tells the
# resident memory and the CPU time of each crawl, and fails if a body is missing or memory passes its bound.
#
# usage: large.sh CRAWLER
# Needs Python 3 and 25 GB of disk below TMPDIR.
set -euo pipefail

crawler=$(realpath "${1:?usage: large.sh CRAWLER}")
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; } || true
  server=
}
trap 'stop; rm -rf "$work"' EXIT

# one BODIES BYTES STEPS PAUSE_MS ENDING MOST_MB: a crawl of so many hosts with one body each, every tenth a page if it
# has no ENDING of its own
one() {
  rm -rf "$work"/*
  python3 "$tests/flood.py" "$1" "$2" "$3" "$4" > "$work/port" &
  server=$!
  until [ -s "$work/port" ]; do sleep 0.1; done
  python3 - "$1" "$(cat "$work/port")" "$5" "$work" <<'SEEDS'
import sys
bodies, port, ending, work = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
ends = [ending or ("html" if n % 10 == 0 else "mp4") for n in range(bodies)]
with open(f"{work}/seeds.txt", "w") as seeds:
    seeds.writelines(f"http://h{n}.test:{port}/{n}.{end}\n" for n, end in enumerate(ends))
with open(f"{work}/crawler.toml", "w") as settings:
    names = ", ".join(f'"h{n}.test:{port}:127.0.0.1"' for n in range(bodies))
    settings.write(f"resolve = [{names}]\n")
SEEDS
  "$crawler" --seeds "$work/seeds.txt" --config "$work/crawler.toml" --job "$work/job" --allow-address 127.0.0.0/8 \
    --concurrency "$1" --delay 0s --min-rate 0 --timeout 1h --max-body 3GiB --quiet
  stop
  python3 - "$work/job/report.json" "$@" <<'REPORT'
import json, sys
report = json.load(open(sys.argv[1]))
bodies, length, most = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[7])
resident = report["peak_rss_bytes"] / 1e6
print(f"{bodies} x {length} bytes {sys.argv[6]}: {resident:.0f} MB resident at most, {report['cpu_s']:.0f} s of CPU")
assert report["urls"]["fetched"] == bodies, report["urls"]
assert report["bytes"]["received"] >= bodies * length, report["bytes"]
assert resident < most, f"more than {most} MB"
REPORT
}

one 1 2000000000 100 0 mp4 150
one 1 2000000000 100 0 html 150
one 1000 10000000 1250 200 "" 256
one 50 20000000 2500 50 html 256
