#!/usr/bin/env python3
"""Seeds for the fuzz targets: seeds.py CORPUS_FOLDER [CONFORMANCE_FOLDER]

Small ones of our own always; with a folder of conformance sets (JSON lines) their inputs too. Nothing of the sets is
kept in the repository: the corpus folder is ignored by git.
"""
import base64
import gzip
import hashlib
import json
import pathlib
import sys
import zlib

corpus = pathlib.Path(sys.argv[1])
sets = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
here = pathlib.Path(__file__).resolve().parent.parent


def seed(target, *parts):
    data = b"\n".join(part if isinstance(part, bytes) else str(part).encode() for part in parts)
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def rows(name):
    file = sets / f"{name}.jsonl" if sets else None
    if file and file.exists():
        for line in file.read_text(encoding="utf-8").split("\n"):
            if not line:
                continue
            yield json.loads(line)


def field(row, name):
    if row.get(f"{name}_b64") is not None:
        return base64.b64decode(row[f"{name}_b64"])
    return (row.get(name) or "").encode("utf-8", "surrogatepass")


seed("robots", "/a/b?c", "User-agent: *\nDisallow: /a*b$\nAllow: /a\nCrawl-delay: 2\nSitemap: http://a.test/s.xml\n")
seed("answers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r", "\r\nHTTP/1.0 404\r\nContent-Length: 1\r\n\r\nx")
text = b"<a href=x>y</a>" * 50
raw = zlib.compressobj(9, zlib.DEFLATED, -15)
for coding, body in [
    ("gzip", gzip.compress(text)),
    ("gzip, gzip", gzip.compress(gzip.compress(text))),
    ("deflate", zlib.compress(text)),
    ("deflate", raw.compress(text) + raw.flush()),
    ("gzip", gzip.compress(b"\0" * 200_000)),
    ("br", b"\x0b\x02\x80hello\x03"),
    ("zstd", bytes.fromhex("28b52ffd2005290000") + b"hello"),
]:
    seed("decode", coding, body)
seed("normalize", "http://a.test:80/b/../c?d#e", "//\u00fc.test/%7e")
seed("srcset", "a.png 1x, b.png 2x, data:,c 3w")
seed("headers", '<a>; rel="next"; title="b, c", <d>; rel=stylesheet')
seed("json", '{"@context": "https://schema.org", "url": "/a", "image": ["/b", {"url": "http://c.test/d"}]}')
seed("json", '{"icons": [{"src": "a.png"}], "start_url": "/", "shortcuts": [{"url": "/b", "icons": []}]}')
seed("json", '{"version": "https://jsonfeed.org/version/1", "items": [{"url": "/a", "attachments": [{"url": "b"}]}]}')
seed("playlist", '#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF:9,\na.ts\n')
seed("playlist", "<MPD><BaseURL>http://a.test/</BaseURL><Period><SegmentList><SegmentURL media='b'/></SegmentList></Period></MPD>")
objects = zlib.compress(b"1 0 <</S/URI/URI(http://a.test/b)>>")
seed("pdf", b"%PDF-1.5\n2 0 obj <</Type/ObjStm/Filter/FlateDecode>> stream\n" + objects + b"\nendstream endobj\n%%EOF")
seed("pdf", b"%PDF-1.4\n1 0 obj <</S/URI/URI(http://a.test/\\(b\\)\\101)>> endobj <</URI <68747470>>>\n%%EOF")
seed("guesses", "// don't\nfetch('/a/b?c'); x = \"https:\\/\\/d.test\"; `e.html`")
seed("guesses", "# mine\nhttp://a.test/\nhttps://b.test/c\n")
seed("charset", "text/html", '<meta charset="shift_jis">')
seed("mime", "text/html; charset=utf-8", "<!doctype html>")
record = b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\r\n\r\n"
seed("warc", b"\0" + gzip.compress(record) * 2)
seed("warc", b"\1" + record)
seed("snapshot", b"\1\0\0\0")
seed("config", (here / "crawler.toml").read_bytes())
seed("cookies", "http://www.a.test/b", "c=d; Domain=a.test; Path=/; Max-Age=60\ne=f; Expires=Wed, 01 Dec 2027 10:00:00 GMT; HttpOnly")
seed("cookies", "https://a.test/", ".a.test\tTRUE\t/\tFALSE\t0\tname\tvalue\n#HttpOnly_a.test\tFALSE\t/b\tTRUE\t1900000000\tx\t")
seed("traps", "http://a.test/calendar/2026/12/01?view=day", "<title>1 December</title><p>Monday 12 nothing here")
seed("traps", "http://a.test/a/b/a/b/a/b/a/b?x=1&x=2", "<script>var a</script><p>text<!-- c -->")
seed("row", b"\x13http://example.com/" + b"\0" * 12)
for page in (here / "tests/data/extract").glob("*.html"):
    seed("html", page.read_bytes())

for row in rows("robots"):
    seed("robots", row.get("url") or "", field(row, "robots_txt"))
for row in rows("robots_real"):
    seed("robots", row["checks"][0]["url"], field(row, "robots_txt"))
for row in rows("url_parse"):
    seed("normalize", row.get("base") or "http://a.test/", (row["input"] or "").encode("utf-8", "replace"))
for row in rows("url_equiv"):
    seed("normalize", row["a"], row["b"])
for row in rows("html_links"):
    seed("html", field(row, "html"))
for row in rows("css_links"):
    seed("css", row["css"])
for row in rows("sitemaps"):
    seed("sitemap", field(row, "content"))
for row in rows("srcset"):
    seed("srcset", row["srcset"].encode("utf-8", "replace"))
for row in rows("link_header"):
    seed("headers", row["value"])
for row in rows("meta_refresh"):
    seed("headers", row.get("content") or "")
for row in rows("dates"):
    seed("headers", row["value"])
for row in rows("charset"):
    seed("charset", row.get("content_type") or "", field(row, "body"))
for row in rows("content_type"):
    seed("mime", row.get("input") or row.get("content_type") or "", row.get("body") or "")
if sets:
    for file in (sets / "warc").iterdir():
        if file.stat().st_size < 1 << 16:
            seed("warc", b"\0" + file.read_bytes())
