#!/usr/bin/env python3
"""Compares the links of every page below folders with those that lxml sees: none may be missed.

usage: links.py CONFORM FOLDER...        e.g.  links.py target/release/examples/conform /usr/share/doc/rust-doc/html

CONFORM is the example of that name; it answers pages with the product's own scanner. The truth is read by lxml, along
the link kinds that judge.py knows, and shares no code with the crawler. Exit code 0 if no link of any page is missed.
"""

import collections
import json
import os
import subprocess
import sys
import threading
import urllib.parse

from judge import HTML, html_links, same_text

SHOWN = 20
# not crawled, and not resolved the same way by everyone
IDLE = ("javascript:", "data:", "mailto:", "irc:", "news:", "about:", "tel:")


def pages(folders):
    for folder in folders:
        for here, _, names in os.walk(folder, followlinks=True):
            for name in sorted(names):
                if name.endswith(HTML):
                    path = os.path.join(here, name)
                    yield path, "http://site.test/" + urllib.parse.quote(os.path.relpath(path, folder))


def truth(path, url):
    with open(path, "rb") as file:
        data = file.read()
    if not data.strip():
        return set()
    base, links = html_links(data)
    base = urllib.parse.urljoin(url, (base or "").strip())
    found = set()
    for link in links:
        link = link.strip(" \t\r\n\f").replace("\n", "").replace("\r", "").replace("\t", "")
        if not link.lower().startswith(IDLE) and not link.startswith("#") and link:
            try:
                found.add(same_text(urllib.parse.urljoin(base, link)))
            except ValueError:
                pass
    return found


def plain(url):
    """The address as the URL Standard writes it: the host in small letters, an empty path as `/`, `'` escaped in a query."""
    parts = urllib.parse.urlsplit(url)
    query = parts.query.replace("'", "%27")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.lower(), parts.path or "/", query, ""))


def main(conform, folders):
    program = subprocess.Popen([conform, "html_links"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wanted = collections.deque()

    def feed():
        for path, url in pages(folders):
            wanted.append((path, url))
            with open(path, encoding="utf-8", errors="replace") as file:
                case = {"id": path, "base_url": url, "content_type": "text/html; charset=utf-8", "html": file.read()}
            program.stdin.write((json.dumps(case) + "\n").encode())
        program.stdin.close()

    threading.Thread(target=feed, daemon=True).start()
    read = links = missed = 0
    for line in program.stdout:
        answer = json.loads(line)
        path, url = wanted.popleft()
        assert answer["id"] == path, (answer["id"], path)
        ours = {plain(same_text(link)) for link in answer["links"]}
        expected = {plain(link) for link in truth(path, url)}
        read += 1
        links += len(expected)
        lost = expected - ours
        missed += len(lost)
        for link in sorted(lost)[: max(0, SHOWN - missed + len(lost))]:
            print(f"missed on {path}: {link}")
    if program.wait() or not read:
        sys.exit(f"links.py: {conform} answered {read} pages and ended with {program.returncode}")
    print(f"{read} pages, {links} links, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
