#!/usr/bin/env bash
# `crawler dedup` beside the tools that people use for it: the same list of 70-byte lines, half of them repeats, through
# each in turn on one core, with lines a second by wall and by CPU time, and peak memory. Counts what each lets through.
#
# usage: dedup.sh CRAWLER [LINES] [RUNS]
# Needs GNU time. huniq and runiq are measured if they are in PATH (cargo install huniq runiq).
set -euo pipefail

crawler=$(realpath "${1:?usage: dedup.sh CRAWLER [LINES] [RUNS]}")
lines=${2:-10000000}
runs=${3:-3}
work=$(mktemp -d "${TMPDIR:-/tmp}/dedup.XXXXXX")
trap 'rm -rf "$work"' EXIT
list=$work/list

awk -v lines="$lines" 'BEGIN {
  srand(1); n = 0
  for (i = 0; i < lines; i++) {
    k = i % 2 == 0 ? n++ : int(rand() * n)
    printf "https://www.host-%06d.example.org/section/%04d/article-%08d.html\n", k * 7919 % 1000000, k % 10000, k
  }
}' > "$list"
[ "$(head -1 "$list" | tr -d '\n' | wc -c)" = 70 ]
core=$(awk '/Cpus_allowed_list/ { split($2, a, /[-,]/); print a[1] }' /proc/self/status)

measure() { # NAME COMMAND…: the fastest of the runs by CPU time
  local name=$1 best=
  shift
  for _ in $(seq "$runs"); do
    if ! LC_ALL=C taskset -c "$core" /usr/bin/time -f '%e %U %S %M' -o "$work/time" "$@" < "$list" > "$work/out" 2> "$work/err"; then
      echo "$name failed: $(tail -1 "$work/err")" >&2
      return
    fi
    local now
    now=$(awk '{ print $2 + $3, $1, $4 }' "$work/time")
    if [ -z "$best" ] || awk "BEGIN { exit !(${now%% *} < ${best%% *}) }"; then best=$now; fi
  done
  local kept
  kept=$(wc -l < "$work/out")
  echo "$best" | awk -v name="$name" -v lines="$lines" -v kept="$kept" \
    '{ printf "| %s | %.2f | %.2f | %.1f | %d |\n", name, lines / $1 / 1e6, lines / ($2 + 1e-9) / 1e6, $3 / 1024, kept }'
}

echo "$lines lines of 70 bytes, $(( (lines + 1) / 2 )) different; fastest of $runs, one core; load $(cut -d' ' -f1 /proc/loadavg)"
echo '| tool | M lines a CPU second | M lines a second | MiB at most | lines let through |'
echo '|---|---|---|---|---|'
measure '`crawler dedup` (a pipe: the size is not known)' sh -c "cat | '$crawler' dedup -q"
measure '`crawler dedup`' "$crawler" dedup -q
measure '`crawler dedup --fp 0.001`' "$crawler" dedup -q --fp 0.001
measure '`crawler dedup --kind hashset`' "$crawler" dedup -q --kind hashset
measure '`crawler dedup --exact DIR`' sh -c "rm -rf '$work/table'; '$crawler' dedup -q --exact '$work/table'"
measure '`crawler dedup --normalize`' "$crawler" dedup -q --normalize
if command -v runiq > /dev/null; then
  measure '`runiq -f compact` (Bloom)' runiq -f compact -
  measure '`runiq -f quick`' runiq -f quick -
  measure '`runiq -f simple`' runiq -f simple -
fi
if command -v huniq > /dev/null; then measure '`huniq`' huniq; fi
measure "\`awk '!s[\$0]++'\`" awk '!s[$0]++'
measure '`sort -u` (order is lost)' sort -u
