#!/usr/bin/env python3
"""Judges a job's archive with the tools of the trade.

usage: check_archive.py DIR          (needs warcio 1.8.1 and cdxj-indexer 1.5.0 beside this python)

DIR holds *.warc.gz and index.cdxj, or archive/*.warc.gz and indexes/index.cdxj as a job folder does. Checked:
- one gzip member per record, and the first record of each file is warcinfo;
- `warcio check -v`: no failure, every record with a digest passes (a revisit's payload is elsewhere and not judged);
- the digests over the raw bytes once more, because `warcio check` gives up silently where a content coding is broken;
- every WARC-Concurrent-To names a record of the archive, and no record id occurs twice;
- `cdxj-indexer --sort` over all files equals index.cdxj line by line.
Exit 0: all well; 1: what differs is printed; 2: usage, or a tool is missing.
"""
import glob
import os
import subprocess
import sys
import zlib

try:
    from warcio.archiveiterator import ArchiveIterator
except ImportError:
    print("warcio is not installed for this python")
    sys.exit(2)

SHOWN = 20  # differences printed per kind
CHUNK = 1 << 16


def tool(name, *arguments):
    """Runs a console script of this very python and gives (exit code, standard output, standard error)."""
    script = os.path.join(os.path.dirname(sys.executable), name)
    run = subprocess.run([script, *arguments], capture_output=True, text=True)
    return run.returncode, run.stdout, run.stderr


def members(path):
    """Offsets at which a gzip member begins, and the fault that ends the file early (or None)."""
    offsets, position = [], 0
    with open(path, "rb") as file:
        rest = b""
        while True:
            data = rest or file.read(CHUNK)
            if not data:
                return offsets, None
            offsets.append(position)
            inflate = zlib.decompressobj(31)
            while not inflate.eof:
                if not data:
                    return offsets, "the member at offset %d is cut off" % offsets[-1]
                try:
                    inflate.decompress(data)
                except zlib.error as error:
                    return offsets, "the member at offset %d: %s" % (offsets[-1], error)
                position += len(data) - len(inflate.unused_data)
                rest = inflate.unused_data
                data = b"" if inflate.eof else file.read(CHUNK)


def check_records(path, ids, links, faults):
    """Reads every record raw; gives how many there are and how many of them `warcio check` must pass."""
    offsets, judged = [], 0
    begins, fault = members(path)
    if fault:
        faults.append("%s: %s" % (path, fault))
        return 0, 0
    with open(path, "rb") as stream:
        records = ArchiveIterator(stream, check_digests=True, verify_http=True)
        for number, record in enumerate(records):
            while record.raw_stream.read(CHUNK):
                pass
            kind = record.rec_type
            offset = records.get_record_offset()
            offsets.append(offset)
            if number == 0 and kind != "warcinfo":
                faults.append("%s: the first record is %s, not warcinfo" % (path, kind))
            problems = record.digest_checker.problems
            if problems or (record.digest_checker.passed is not True and kind != "revisit"):
                faults.append("%s: offset %d: %s: digests %s" % (path, offset, kind, problems or "not checked"))
            judged += kind != "revisit"
            name = record.rec_headers.get_header("WARC-Record-ID")
            if name in ids:
                faults.append("%s: offset %d: record id %s occurs twice" % (path, offset, name))
            ids.add(name)
            link = record.rec_headers.get_header("WARC-Concurrent-To")
            if link:
                links.append((path, offset, link))
    if offsets != begins:
        faults.append("%s: %d records in %d gzip members" % (path, len(offsets), len(begins)))
    return len(offsets), judged


def check_digests(path, judged, faults):
    code, out, err = tool("warcio", "check", "-v", path)
    passed = out.count("digest pass")
    undecoded = out.count("    digest present but not checked\n")
    if code != 0 or passed + undecoded != judged:
        faults.append(
            "warcio check %s: exit %d, %d of %d records pass\n%s%s" % (path, code, passed, judged, out[-2000:], err[-2000:])
        )


def check_index(files, index, faults):
    code, out, err = tool("cdxj-indexer", "--sort", *files)
    if code != 0:
        faults.append("cdxj-indexer: exit %d\n%s" % (code, err[-2000:]))
        return 0
    with open(index, encoding="ascii") as file:
        ours = file.read().splitlines()
    theirs = out.splitlines()
    if ours != sorted(set(ours)):
        faults.append("%s: not sorted, or a line twice" % index)
    if ours != theirs:
        only_ours, only_theirs = set(ours) - set(theirs), set(theirs) - set(ours)
        faults.append("%s differs from cdxj-indexer: %d lines against %d" % (index, len(ours), len(theirs)))
        faults.extend("  only ours:   " + line for line in sorted(only_ours)[:SHOWN])
        faults.extend("  only theirs: " + line for line in sorted(only_theirs)[:SHOWN])
    return len(theirs)


def main(arguments):
    if len(arguments) != 1 or not os.path.isdir(arguments[0]):
        print(__doc__)
        return 2
    folder = arguments[0]
    files = sorted(glob.glob(os.path.join(folder, "*.warc.gz")) or glob.glob(os.path.join(folder, "archive", "*.warc.gz")))
    places = [os.path.join(folder, "index.cdxj"), os.path.join(folder, "indexes", "index.cdxj")]
    index = next((place for place in places if os.path.exists(place)), None)
    if not files or not index:
        print("%s: no *.warc.gz or no index.cdxj" % folder)
        return 1
    faults, ids, links, records = [], set(), [], 0
    for path in files:
        count, judged = check_records(path, ids, links, faults)
        check_digests(path, judged, faults)
        records += count
    faults.extend("%s: offset %d: Concurrent-To %s is nowhere" % link for link in links if link[2] not in ids)
    lines = check_index(files, index, faults)
    for fault in faults:
        print(fault)
    print("%d files, %d records, %d index lines, %d faults" % (len(files), records, lines, len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
