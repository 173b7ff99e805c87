#!/usr/bin/env bash
# Runs fuzz targets, each for so many seconds: fuzz/run.sh SECONDS [TARGET ...]
# Needs a nightly toolchain and cargo-fuzz. CRAWLER_CONFORMANCE=FOLDER adds the inputs of conformance sets as seeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=$1
shift
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list)
python3 fuzz/seeds.py fuzz/corpus ${CRAWLER_CONFORMANCE:+"$CRAWLER_CONFORMANCE"}
for target in "${targets[@]}"; do
  cargo +nightly fuzz build -s none "$target"
done
failed=()
for target in "${targets[@]}"; do
  mkdir -p "fuzz/corpus/$target"
  echo "== $target"
  cargo +nightly fuzz run -s none "$target" "fuzz/corpus/$target" -- -max_total_time="$seconds" -max_len=65536 \
    -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 || failed+=("$target")
done
[ ${#failed[@]} -eq 0 ] || { echo "findings in: ${failed[*]}"; exit 1; }
