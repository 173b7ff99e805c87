"""Fields and link texts of a crawl over a folder of pages, against lxml: check_fields.py JOB FOLDER."""

import json
import sys
import urllib.parse

import lxml.html
import pyarrow

INLINE = set(
    "a abbr acronym b bdi bdo big blink cite code data del dfn em embed font i img ins kbd label mark math meter nobr"
    " output picture progress q rb rt rtc ruby s samp script small source span strike strong sub sup svg time tt u var"
    " wbr".split()
)
UNSEEN = set(
    "head script style template noscript iframe noframes noembed object audio video canvas datalist svg math".split()
)
BESIDE = set("td th input button select textarea option".split())
RAW = set("script style textarea title iframe noembed noframes xmp".split())


def fold(text):
    return " ".join(text.split())


def walk(element, part, skip, out):
    """Texts of an element and its children, with a mark where a tag parts words."""
    if not isinstance(element.tag, str) or skip(element):
        return
    out.append(part(element.tag))
    out.append(element.text or "")
    for inner in element:
        walk(inner, part, skip, out)
        out.append(inner.tail or "")
    out.append(part(element.tag))


def visible(root):
    def part(tag):
        return " " if tag in BESIDE else "" if tag in INLINE else "\0"

    def skip(element):
        style = "".join((element.get("style") or "").split()).lower()
        hidden = element.get("hidden") is not None
        return element.tag in UNSEEN or hidden or any(rule.startswith("display:none") for rule in style.split(";"))

    out = []
    walk(root, part, skip, out)
    parts = [fold(line) for line in "".join(out).split("\0")]
    return "\n".join(line for line in parts if line)


def text_of(element):
    out = []
    walk(element, lambda tag: "" if tag in INLINE else " ", lambda child: child.tag in RAW, out)
    return fold("".join(out))


class Ended(Exception):
    pass


def link_text(anchor):
    """Its text; libxml2 lets links stand in one another, where HTML ends the outer one."""
    out = []
    pictures = []

    def skip(child):
        if child.tag == "a" and child is not anchor:
            raise Ended
        if child.tag == "img":
            pictures.append(child.get("alt") or "")
        return child.tag in RAW

    try:
        walk(anchor, lambda tag: "" if tag in INLINE else " ", skip, out)
    except Ended:
        pass
    return fold("".join(out)) or fold(" ".join(pictures))


def is_link(anchor):
    href = anchor.get("href")
    href = "#" if href is None else href.strip()
    return not href.startswith("#") and not href.lower().startswith(("javascript:", "data:"))


def rows(name):
    with pyarrow.input_stream(f"{sys.argv[1]}/{name}.jsonl.zst", compression="zstd") as stream:
        for line in stream.read().decode().splitlines():
            yield json.loads(line)


texts = {}
for row in rows("links"):
    if row.get("element") == "a" and row.get("attribute") == "href":
        texts.setdefault(row["from"], []).append(row["text"])

counts = {"pages": 0, "title": 0, "h1": 0, "lang": 0, "text": 0, "text_length": 0, "links": 0, "link texts": 0}
shown = 0


def differ(what, url, ours, theirs):
    global shown
    counts[what] += 1
    if shown < 40:
        shown += 1
        print(f"{what} {url}\n  ours   {str(ours)[:300]!r}\n  theirs {str(theirs)[:300]!r}")


for row in rows("pages"):
    if row["status"] != 200:
        continue
    path = urllib.parse.unquote(urllib.parse.urlsplit(row["url"]).path)
    with open(sys.argv[2] + path, "rb") as file:
        page = file.read()
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
    root = lxml.html.document_fromstring(page, parser=parser)
    counts["pages"] += 1
    title = root.find(".//title")
    title = None if title is None else fold(title.text or "") or None
    if row["title"] != title:
        differ("title", row["url"], row["title"], title)
    h1 = next((text for text in map(text_of, root.iter("h1")) if text), None)
    if row["h1"] != h1:
        differ("h1", row["url"], row["h1"], h1)
    if row["lang"] != root.get("lang"):
        differ("lang", row["url"], row["lang"], root.get("lang"))
    text = visible(root)
    if row["text"] != text[:100_000]:
        at = next((n for n, pair in enumerate(zip(row["text"], text)) if pair[0] != pair[1]), 0)
        differ("text", row["url"], row["text"][max(0, at - 60) :], text[max(0, at - 60) :])
    if row["text_length"] != len(text):
        differ("text_length", row["url"], row["text_length"], len(text))
    own = texts.get(row["url"], [])
    theirs = [link_text(anchor)[:1000] for anchor in root.iter("a") if is_link(anchor)]
    counts["links"] += len(theirs)
    if own != theirs:
        wrong = [pair for pair in zip(own, theirs) if pair[0] != pair[1]]
        differ("link texts", row["url"], [len(own)] + [w[0] for w in wrong], [len(theirs)] + [w[1] for w in wrong])

print(f"{sys.argv[2]}: {counts}")
wrong = sum(counts[what] for what in ["title", "h1", "lang", "text", "text_length", "link texts"])
sys.exit(wrong > 0 or counts["pages"] == 0)
