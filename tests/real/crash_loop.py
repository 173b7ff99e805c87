#!/usr/bin/env python3
"""A crash loop: kills a crawl every two seconds for two minutes, lets it finish, and judges pauses from both sides.

    tests/real/crash_loop.py CRAWLER [--seconds 120] [--every 2] [--hosts 24] [--pages 400]

Each host is an address of 127.78.0.0/16 with a name of its own. A third of them ask for a Crawl-delay above the crawl's own
delay, one in eight for a Retry-After now and then. Good is: by the server's clock no host was asked before its pause was
over and none had two requests at once, every page came home, each is archived once, and `crawler audit` finds nothing.
"""
import argparse
import collections
import http.server
import json
import pathlib
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

DELAY = 0.05
# between the arrival of a request's first byte and its being read; kept for rounding
SLACK = 0.0005


def crawl_delay(host):
    return {0: 0.3, 3: 0.12, 6: 0.6}.get(host % 9, 0)


class Log:
    def __init__(self):
        self.lock = threading.Lock()
        self.ends = {}
        self.owed = collections.defaultdict(float)
        self.flying = collections.Counter()
        self.served = collections.Counter()
        self.faults = []

    def begin(self, host, path, now):
        with self.lock:
            end = self.ends.get(host)
            if end is not None and now - end < self.owed[host] - SLACK:
                self.faults.append(f"host {host}: {path} came {now - end:.4f} s after an answer, {self.owed[host]:.4f} s were due")
            self.flying[host] += 1
            if self.flying[host] > 1:
                self.faults.append(f"host {host}: {self.flying[host]} requests at once")

    def end(self, host, owed, path):
        with self.lock:
            self.flying[host] -= 1
            self.owed[host] = owed
            self.served[(host, path)] += 1


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        now = time.monotonic()
        host = int(self.headers["Host"].split(".")[0][1:])
        log, delay = self.server.log, max(DELAY, crawl_delay(host))
        log.begin(host, self.path, now)
        status, extra, owed = 200, {}, delay
        if self.path == "/robots.txt":
            body = f"User-agent: *\nCrawl-delay: {crawl_delay(host)}\n" if crawl_delay(host) else "User-agent: *\nAllow: /\n"
            kind = "text/plain"
        elif self.path.startswith("/busy") and log.served[(host, self.path)] == 0:
            status, extra, body, kind, owed = 429, {"Retry-After": "1"}, "later", "text/plain", max(1.0, delay)
        else:
            n = 0 if self.path == "/" else int("".join(c for c in self.path if c.isdigit()) or 0)
            links = range(10 * n + 1, 10 * n + 11) if n < self.server.pages // 10 else []
            busy = host % 8 == 1
            name = lambda m: f"/busy{m}" if busy and m % 40 == 7 else f"/page{m}"
            body = f"<p>{host} {n} {self.path}</p>" + "".join(f"<a href='{name(m)}'>{m}</a> " for m in links if m < self.server.pages)
            kind = "text/html"
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for key, value in extra.items():
            self.send_header(key, value)
        self.end_headers()
        # the end is noted just before the last bytes go: a gap is never measured shorter than the client's own
        log.ends[host] = time.monotonic()
        log.end(host, owed, self.path)
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):
        pass  # a client that was killed


def archived(job):
    """How often each address is in the archive."""
    counts = collections.Counter()
    for line in (job / "indexes/index.cdxj").read_text().splitlines():
        entry = json.loads(line.split(" ", 2)[2])
        if entry["status"] == "200":
            counts[entry["url"]] += 1
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("crawler")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--every", type=float, default=2)
    parser.add_argument("--hosts", type=int, default=24)
    parser.add_argument("--pages", type=int, default=400)
    asked = parser.parse_args()
    server = Server(("0.0.0.0", 0), Site)
    server.log, server.pages = Log(), asked.pages
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        job = folder / "job"
        (folder / "seeds.txt").write_text("".join(f"http://h{n}.crash.test:{port}/\n" for n in range(asked.hosts)))
        command = [asked.crawler, "--seeds", "seeds.txt", "--job", "job", "--delay", f"{int(DELAY * 1000)}ms", "--delay-factor", "0",
                   "--allow-address", "127.0.0.0/8", "--traps", "no", "--quiet", "--checkpoint-every", "3s"]
        for n in range(asked.hosts):
            command += ["--resolve", f"h{n}.crash.test:{port}:127.78.0.{n + 1}"]
        begun, kills, code = time.monotonic(), 0, None
        while time.monotonic() - begun < asked.seconds and code is None:
            process = subprocess.Popen(command, cwd=folder)
            try:
                code = process.wait(asked.every)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
                with server.log.lock:
                    server.log.flying.clear()
        if code is None:
            code = subprocess.run(command, cwd=folder).returncode
        faults = list(server.log.faults)
        if code != 0:
            faults.append(f"exit code {code}")
        report = json.loads((job / "report.json").read_text())
        if not report["balanced"] or report["urls"]["pending"] or report["urls"]["failed"]:
            faults.append(f"accounts: {report['urls']}")
        counts = archived(job)
        expected = asked.hosts * asked.pages
        pages = {url: count for url, count in counts.items() if not url.endswith("/robots.txt")}
        twice = [url for url, count in pages.items() if count > 1]
        if len(pages) != expected or twice:
            faults.append(f"{len(pages)} pages in the archive, {expected} expected; twice: {twice[:5]}")
        audit = subprocess.run([asked.crawler, "audit", str(job)], capture_output=True, text=True)
        if audit.returncode != 0:
            faults.append(audit.stdout + audit.stderr)
        for fault in faults[:20]:
            print(fault, file=sys.stderr)
        requests = sum(server.log.served.values())
        print(f"crash loop: {kills} kills in {time.monotonic() - begun:.0f} s, {requests} requests to {asked.hosts} hosts, "
              f"{len(pages)} pages archived once, {len(faults)} faults; {report['runs']} runs counted")
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
