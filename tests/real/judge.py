#!/usr/bin/env python3
"""Compares a crawl of sites served from folders with what is reachable in the folders.

usage: judge.py --site ORIGIN=FOLDER [--site ...] --log ACCESS_LOG --job JOB_FOLDER

The truth is a breadth-first search over the files, read by lxml (which shares no code with the crawler), along the link
kinds that the crawler follows. The server is modelled: index.html of a folder, the redirect to a folder's closing
slash, 403 for a folder without an index, 404. The server's own log says what was fetched; the job's index says what
was archived. Exit code 0 if both are exactly the truth, each address once.
"""

import argparse
import collections
import json
import multiprocessing
import os
import re
import sys
import time
import urllib.parse

import lxml.html

SHOWN = 10
HTML = (".html", ".htm")
# attributes that hold one address; forms are followed if they are GET forms
ONE = {
    "a": ["href"], "area": ["href"], "link": ["href"], "script": ["src"], "img": ["src", "data-src", "longdesc"],
    "iframe": ["src"], "frame": ["src"], "embed": ["src"], "object": ["data"], "source": ["src"], "track": ["src"],
    "video": ["src", "poster"], "audio": ["src"], "input": ["src"], "form": ["action"], "blockquote": ["cite"],
    "q": ["cite"], "del": ["cite"], "ins": ["cite"], "body": ["background"], "table": ["background"],
    "td": ["background"], "th": ["background"], "html": ["manifest"],
}
CSS_URL = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^"')\s]*))\s*\)""")
CSS_IMPORT = re.compile(r"""@import\s+(?:"([^"]*)"|'([^']*)')""")
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.S)
REFRESH = re.compile(r"""^\s*[\d.]*\s*[;,\s]\s*url\s*=\s*["']?([^"']*)""", re.I)
SAFE = "%/:?#[]@!$&'()*+,;=~-._|"


def css_links(text):
    text = CSS_COMMENT.sub("", text)
    for found in CSS_URL.findall(text) + CSS_IMPORT.findall(text):
        yield next((part for part in found if part), "")


def srcset_links(text):
    for candidate in text.split(","):
        if candidate.split():
            yield candidate.split()[0]


def html_links(data):
    """(base, links) of a page, as written."""
    root = lxml.html.document_fromstring(data, parser=lxml.html.HTMLParser(encoding="utf-8", huge_tree=True))
    base, links = None, []
    for element in root.iter():
        tag = element.tag
        if not isinstance(tag, str):
            continue
        get = element.attrib.get
        if tag == "base" and base is None:
            base = get("href")
        if tag == "form" and (get("method") or "get").lower() != "get":
            continue
        for name in ONE.get(tag, ()):
            if get(name) is not None:
                links.append(get(name))
        for name in ("srcset", "imagesrcset"):
            if get(name):
                links.extend(srcset_links(get(name)))
        if get("style"):
            links.extend(css_links(get("style")))
        if tag == "style":
            links.extend(css_links(element.text or ""))
        if tag == "meta" and (get("http-equiv") or "").lower() == "refresh":
            found = REFRESH.match(get("content") or "")
            if found:
                links.append(found.group(1))
    return base, links


def same_text(url):
    """One spelling for one address: the fragment gone, escapes in capitals, what must be escaped escaped."""
    url = url.split("#", 1)[0]
    url = urllib.parse.quote(url, safe=SAFE)
    return re.sub(r"%[0-9a-fA-F]{2}", lambda m: m.group().upper(), url)


def links_of_file(path):
    """Links of a page or style sheet as written, with the page's base; nothing for other files."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(HTML):
        return html_links(data) if data.strip() else (None, [])
    if path.endswith(".css"):
        return None, list(css_links(data.decode("utf-8", "replace")))
    return None, []


class Site:
    def __init__(self, origin, folder):
        self.origin, self.folder = origin, os.path.realpath(folder)

    def answer(self, path):
        """(status, file to read or None, redirect target or None) for a path of this site."""
        name = urllib.parse.unquote(path.split("?", 1)[0])
        full = os.path.normpath(self.folder + "/" + name)
        if "\0" in name or not (full == self.folder or full.startswith(self.folder + "/")):
            return 404, None, None
        if os.path.isdir(full):
            if not name.endswith("/"):
                return 301, None, path.split("?", 1)[0] + "/"
            index = os.path.join(full, "index.html")
            return (200, index, None) if os.path.isfile(index) else (403, None, None)
        if os.path.isfile(full) and not name.endswith("/"):
            return 200, full, None
        return 404, None, None


def resolve(page, base, raw):
    raw = re.sub(r"[\t\r\n]", "", raw).strip(" \f")
    try:
        start = urllib.parse.urljoin(page, base) if base else page
        return same_text(urllib.parse.urljoin(start, raw))
    except ValueError:
        return None


def reachable(sites, workers):
    """Address -> status of everything reachable from the sites' roots."""
    truth, read = {}, {}
    wave = [site.origin + "/" for site in sites.values()]
    with multiprocessing.Pool(workers) as pool:
        while wave:
            answers = {}
            for url in wave:
                parts = urllib.parse.urlsplit(url)
                path = url[len(parts.scheme) + 3 + len(parts.netloc):] or "/"
                answers[url] = sites[parts.netloc].answer(path)
                truth[url] = answers[url][0]
            files = sorted({file for _, file, _ in answers.values() if file and file not in read})
            read.update(zip(files, pool.imap(links_of_file, files, chunksize=16)))
            found = set()
            for url, (_, file, target) in answers.items():
                base, links = read[file] if file else (None, [target] if target else [])
                for raw in set(links):
                    to = resolve(url, base, raw)
                    if to and urllib.parse.urlsplit(to).netloc in sites and to.startswith("http://"):
                        found.add(to)
            wave = sorted(found - truth.keys())
    return truth


def served(log):
    """Address -> how often it was answered, robots.txt aside. Lines are `host status request-target`."""
    counts = collections.Counter()
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            host, _, target = line.rstrip("\n").split(" ", 2)
            if target != "/robots.txt":
                counts[same_text("http://" + host + target)] += 1
    return counts


def archived(job):
    """Address -> [how often it is in the index, status], robots.txt aside."""
    counts, status = collections.Counter(), {}
    with open(os.path.join(job, "indexes", "index.cdxj"), encoding="utf-8") as lines:
        for line in lines:
            fields = json.loads(line.split(" ", 2)[2])
            if not fields["url"].endswith("/robots.txt"):
                url = same_text(fields["url"])
                counts[url] += 1
                status[url] = int(fields["status"])
    return counts, status


def compare(name, truth, counts):
    missing = sorted(truth.keys() - counts.keys())
    extra = sorted(counts.keys() - truth.keys())
    twice = sorted(url for url, count in counts.items() if count > 1)
    print(f"{name}: {len(counts)} of {len(truth)} reachable, {len(missing)} missing, {len(extra)} extra, {len(twice)} twice")
    for word, urls in (("missing", missing), ("extra", extra), ("twice", twice)):
        for url in urls[:SHOWN]:
            print(f"  {word} {url}")
    return not (missing or extra or twice)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--site", action="append", required=True, metavar="ORIGIN=FOLDER")
    parser.add_argument("--log", required=True)
    parser.add_argument("--job")
    args = parser.parse_args()
    sites = {}
    for pair in args.site:
        origin, folder = pair.split("=", 1)
        sites[urllib.parse.urlsplit(origin).netloc] = Site(origin, folder)
    began = time.monotonic()
    truth = reachable(sites, os.cpu_count() or 1)
    statuses = collections.Counter(truth.values())
    print(f"truth: {len(truth)} addresses {dict(sorted(statuses.items()))}, {time.monotonic() - began:.0f} s")
    good = compare("fetched", truth, served(args.log))
    if args.job:
        counts, status = archived(args.job)
        good &= compare("archived", truth, counts)
        wrong = sorted(url for url in truth.keys() & status.keys() if truth[url] != status[url])
        for url in wrong[:SHOWN]:
            print(f"  status {status[url]} where {truth[url]} is served: {url}")
        good &= not wrong
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
