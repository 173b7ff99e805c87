"""The Parquet files of a job hold what its JSON lines hold: check_tables.py JOB. Reads both with pyarrow."""

import json
import sys

import pyarrow
import pyarrow.parquet


def lines(path):
    with pyarrow.input_stream(path, compression="zstd") as stream:
        return [json.loads(line) for line in stream.read().decode().splitlines()]


def flat(row):
    """A row of lines as the table has it: counts of links are columns of their own."""
    row = dict(row)
    for name, count in (row.pop("links", None) or {}).items():
        row["links_" + name] = count
    return row


wrong = 0
for name in ["pages", "links"]:
    rows = [flat(row) for row in lines(f"{sys.argv[1]}/{name}.jsonl.zst")]
    table = pyarrow.parquet.read_table(f"{sys.argv[1]}/{name}.parquet")
    read = table.to_pylist()
    for row, other in zip(rows, read, strict=True):
        missing = set(row) - set(other)
        differ = {key: (row.get(key), value) for key, value in other.items() if row.get(key) != value}
        # what a row of lines leaves out is false or nothing
        differ = {key: pair for key, pair in differ.items() if pair != (None, False)}
        if missing or differ:
            wrong += 1
            print(name, missing, differ)
    print(f"{name}: {len(read)} rows, {table.num_columns} columns, {wrong} wrong")
    if not read:
        sys.exit(f"{name}: no rows")
sys.exit(wrong > 0)
