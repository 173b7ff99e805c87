#!/usr/bin/env python3
"""A soak: crawls a web of misbehaving servers, round after round, and judges from the server's side.

    tests/real/soak.py CRAWLER [--minutes 30] [--hosts 200] [--pages 150] [--ceiling-mib 256] [--seed 1] [--keep DIR]

Each of the hosts is an address of 127.77.0.0/16 with a name of its own. What a page does is a function of the seed, its
host and its path: most are pages with links, the others break HTTP, codings, time or size in one of many ways. A round
is one crawl from its seeds to its end. It is good if

- the process ends with code 0 and its peak memory stays below the ceiling,
- the report's accounts add up and nothing is pending,
- every address that a readable page links to has a line in crawl.log,
- no host had two requests at once, and none was asked again before its pause was over (by the server's clock).
"""
import argparse
import asyncio
import gzip
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib

DELAY_S = 0.05
# what the arrival at the server may be earlier than the crawler's own start of the request: nothing; kept for rounding
SLACK_S = 0.0005

READABLE = "page page page page gzip deflate raw_deflate gzip_twice label_only chunked chunk_extensions trailers bad_trailer " \
    "http10 until_close no_reason bare_lf no_colon folded many_headers cookies informational latin1 drop_next big wide " \
    "slow_head length_twice space_before_colon".split()
ODD = "cut reset_body gone silent drip flood bomb broken_gzip unknown_coding bad_chunk short long_body not_http garbage empty_answer " \
    "no_content not_modified loop chain away private busy retry_later forbidden missing error head_flood deep binary teapot " \
    "length_differs refresh_away nul_head".split()
# what a client may give up before the server is done with it: the server's clock then knows no end
LEFT_EARLY = "silent drip flood head_flood long_body bomb".split()


class Web:
    def __init__(self, seed, hosts, pages, port):
        self.seed, self.pages, self.port = seed, pages, port
        self.hosts = [(f"h{n}.soak.test", f"127.77.{n // 250}.{n % 250 + 1}") for n in range(hosts)]
        self.by_address = {address: name for name, address in self.hosts}

    def random(self, *what):
        digest = hashlib.sha256(repr((self.seed, *what)).encode()).digest()
        return random.Random(digest)

    def robots(self, host):
        return self.random(host, "robots").choices(
            ["rules", "none", "empty", "error", "silent", "huge", "redirect", "garbage"], [30, 30, 10, 3, 1, 3, 3, 3]
        )[0]

    def kind(self, host, path):
        if not path.startswith("/p/"):
            return "extra"
        dice = self.random(host, path)
        return dice.choice(READABLE) if dice.random() < 0.75 else dice.choice(ODD)

    def links(self, host, path):
        """The addresses that a readable page links to."""
        dice = self.random(host, path, "links")
        links = []
        for _ in range(dice.randint(3, 12)):
            there = host if dice.random() < 0.8 else dice.choice(self.hosts)[0]
            links.append(f"http://{there}:{self.port}/p/{dice.randrange(self.pages)}")
        if self.kind(host, path) == "wide":
            links += [f"http://{host}:{self.port}/p/{n}" for n in range(self.pages)] * 40
        return links

    def html(self, host, path):
        links = "".join(f'<a href="{link}">{link}</a>\n' for link in self.links(host, path))
        title = f"<title>{host}{path}</title>"
        filler = f"<p>{'words and words ' * self.random(host, path, 'size').randint(1, 400)}</p>"
        if self.kind(host, path) == "big":
            filler += "<!-- " + "x" * 3_000_000 + " -->"
        return f"<!doctype html>{title}{links}{filler}".encode()


def head(status="200 OK", *lines, kind="text/html"):
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {kind}", *lines, "", ""]).encode("latin-1")


def whole(body, *lines, status="200 OK", kind="text/html"):
    return head(status, f"Content-Length: {len(body)}", *lines, kind=kind) + body


def chunked(body, extension=b"", trailer=b"\r\n"):
    out = []
    for at in range(0, len(body), 4_000):
        piece = body[at : at + 4_000]
        out.append(b"%x%s\r\n%s\r\n" % (len(piece), extension, piece))
    return b"".join(out) + b"0\r\n" + trailer


class Server:
    """Speaks for all hosts; one log of (host, path, arrival, end)."""

    def __init__(self, web):
        self.web, self.log, self.open, self.complaints = web, {}, {}, []
        self.tries = {}

    async def serve(self, ready, stop):
        servers = [
            await asyncio.start_server(self.connection, address, self.web.port, limit=1 << 20, backlog=64)
            for _, address in self.web.hosts
        ]
        ready.set()
        await stop.wait()
        for server in servers:
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def connection(self, reader, writer):
        host = self.web.by_address[writer.get_extra_info("sockname")[0]]
        try:
            keep = True
            while keep:
                request = await reader.readuntil(b"\r\n\r\n")
                path = request.split(b" ", 2)[1].decode("latin-1")
                arrived = time.monotonic()
                if self.open.get(host) and not self.left_early(host, self.open[host]):
                    self.complaints.append(f"{host}{path}: a second request while {self.open[host]} is open")
                self.open[host] = path
                visit = [path, arrived, None]
                self.log.setdefault(host, []).append(visit)
                try:
                    keep = await self.answer(host, path, writer, visit)
                finally:
                    if visit[2] is None:
                        visit[2] = time.monotonic()
                    if self.open.get(host) == path:
                        self.open[host] = None
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass # the client went, or the round is over
        finally:
            writer.close()

    def left_early(self, host, path):
        return path == "/robots.txt" and self.web.robots(host) in ("silent", "huge") or self.web.kind(host, path) in LEFT_EARLY

    async def send(self, writer, visit, data):
        """The end is noted before the last bytes leave: the gap that is measured is never longer than it was."""
        visit[2] = time.monotonic()
        writer.write(data)
        await writer.drain()

    def reset(self, writer):
        writer.transport.abort()

    async def answer(self, host, path, writer, visit):
        if path == "/robots.txt":
            return await self.robots(host, writer, visit)
        web = self.web
        kind, body = web.kind(host, path), web.html(host, path)
        tries = self.tries[host, path] = self.tries.get((host, path), 0) + 1
        send = lambda data: self.send(writer, visit, data)
        length = f"Content-Length: {len(body)}"
        match kind:
            case "page" | "big" | "wide":
                await send(whole(body))
            case "gzip":
                await send(whole(gzip.compress(body, 1), "Content-Encoding: gzip"))
            case "deflate":
                await send(whole(zlib.compress(body), "Content-Encoding: deflate"))
            case "raw_deflate":
                raw = zlib.compressobj(1, zlib.DEFLATED, -15)
                await send(whole(raw.compress(body) + raw.flush(), "Content-Encoding: deflate"))
            case "gzip_twice":
                await send(whole(gzip.compress(gzip.compress(body, 1), 1), "Content-Encoding: gzip", "Content-Encoding: gzip"))
            case "label_only":
                await send(whole(body, "Content-Encoding: gzip"))
            case "chunked":
                await send(head("200 OK", "Transfer-Encoding: chunked") + chunked(body))
            case "chunk_extensions":
                await send(head("200 OK", "Transfer-Encoding: chunked") + chunked(body, b';a="b;c"'))
            case "trailers":
                await send(head("200 OK", "Transfer-Encoding: chunked") + chunked(body, b"", b"X-A: b\r\nX-C: d\r\n\r\n"))
            case "bad_trailer":
                await send(head("200 OK", "Transfer-Encoding: chunked") + chunked(body, b"", b"no colon here\r\n\r\n"))
                return False
            case "http10":
                await send(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + body)
                return False
            case "until_close":
                await send(head("200 OK", "Connection: close") + body)
                return False
            case "no_reason":
                await send(whole(body).replace(b" 200 OK", b" 200", 1))
            case "bare_lf":
                await send(head("200 OK", length).replace(b"\r\n", b"\n") + body)
            case "no_colon":
                await send(head("200 OK", "this line has none", length) + body)
            case "folded":
                await send(head("200 OK", "X-Long: a", "\tb", length) + body)
            case "many_headers":
                await send(head("200 OK", *[f"X-{n}: {n}" for n in range(300)], length) + body)
            case "cookies":
                await send(head("200 OK", *[f"Set-Cookie: c{n}={'v' * 1000}" for n in range(60)], length) + body)
            case "informational":
                await send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" * 3 + whole(body))
            case "latin1":
                await send(head("200 Tr\xe8s bien", "X-Name: Andr\xe9", length) + body)
            case "drop_next":
                # the connection is closed when the next request arrives, without an answer
                await send(whole(body))
                self.reset_at_next(writer)
                return False
            case "slow_head":
                writer.write(b"HTTP/1.1 200 OK\r\n")
                await asyncio.sleep(0.3)
                await send(whole(body).split(b"\r\n", 1)[1])
            case "length_twice":
                await send(head("200 OK", length, length) + body)
            case "space_before_colon":
                await send(head("200 OK", f"Content-Length : {len(body)}") + body)
                return False
            # from here on, what is no readable page
            case "cut" | "gone" if tries > 1 and self.web.random(host, path, "again").random() < 0.5:
                await send(whole(body))
            case "cut":
                await send(head("200 OK", f"Content-Length: {len(body) + 500}") + body)
                return False
            case "reset_body":
                await send(head("200 OK", length) + body[: len(body) // 2])
                await asyncio.sleep(0.01)
                self.reset(writer)
                return False
            case "gone":
                self.reset(writer)
                return False
            case "silent":
                await asyncio.sleep(30)
                return False
            case "drip":
                writer.write(head("200 OK", "Content-Length: 100000"))
                for _ in range(300):
                    await asyncio.sleep(0.1)
                    await send(b"x")
                return False
            case "flood":
                writer.write(head("200 OK", kind="application/octet-stream"))
                for _ in range(200):
                    await send(b"y" * 500_000)
                return False
            case "bomb":
                await send(whole(BOMB, "Content-Encoding: gzip"))
            case "broken_gzip":
                await send(whole(gzip.compress(body, 1)[:-30], "Content-Encoding: gzip"))
            case "unknown_coding":
                await send(whole(body, "Content-Encoding: sdch"))
            case "bad_chunk":
                await send(head("200 OK", "Transfer-Encoding: chunked") + b"5\r\nhello\r\nzz\r\nrest")
                return False
            case "short":
                await send(head("200 OK", f"Content-Length: {len(body) // 2}") + body)
                return False
            case "long_body":
                await send(head("200 OK", f"Content-Length: {30_000_000}", kind="image/png") + b"\x89PNG\r\n\x1a\n" + os.urandom(100) * 300_000)
                return False
            case "not_http":
                await send(b"SSH-2.0-OpenSSH_9.2\r\n")
                return False
            case "garbage":
                await send(self.web.random(host, path, "noise").randbytes(5_000))
                return False
            case "empty_answer":
                return False
            case "no_content":
                await send(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello")
            case "not_modified":
                await send(b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n")
            case "loop":
                await send(whole(b"", f"Location: {path}", status="302 Found"))
            case "chain":
                await send(whole(b"", "Location: /chain/0", status="301 Moved Permanently"))
            case "away":
                await send(whole(b"", "Location: mailto:a@b.test", status="301 Moved"))
            case "private":
                await send(whole(b"", "Location: http://10.1.2.3/", status="302 Found"))
            case "busy":
                await send(whole(b"later", "Retry-After: 1", status="503 Service Unavailable"))
            case "retry_later":
                await send(whole(b"slower", f"Retry-After: {10**30}" if tries > 1 else "Retry-After: 0.5", status="429 Too Many Requests"))
            case "forbidden":
                await send(whole(b"no", status="403 Forbidden"))
            case "missing":
                await send(whole(b"no", status="404 Not Found"))
            case "error":
                await send(whole(b"no", status="500 Oops"))
            case "head_flood":
                writer.write(b"HTTP/1.1 200 OK\r\n")
                for n in range(20_000):
                    await send(b"X-Flood-%d: %s\r\n" % (n, b"z" * 200))
                return False
            case "deep":
                await send(whole(b"<div>" * 300_000))
            case "binary":
                await send(whole(os.urandom(50_000), kind="text/html"))
            case "teapot":
                await send(whole(b"short and stout", status="418 I'm a teapot"))
            case "length_differs":
                await send(head("200 OK", length, f"Content-Length: {len(body) + 7}") + body)
                return False
            case "refresh_away":
                await send(whole(b"<meta http-equiv=refresh content='0;url=ftp://a.test/'>"))
            case "nul_head":
                await send(head("200 OK", "X-Nul: a\0b", length) + body)
            case "extra" if path.startswith("/chain/"):
                step = int(path.rsplit("/", 1)[1])
                await send(whole(b"", f"Location: /chain/{step + 1}", status="302 Found"))
            case "extra":
                await send(whole(b"nothing here", status="404 Not Found"))
        return True

    def reset_at_next(self, writer):
        async def later():
            await asyncio.sleep(DELAY_S / 2)
            self.reset(writer)

        asyncio.get_running_loop().create_task(later())

    async def robots(self, host, writer, visit):
        send = lambda data: self.send(writer, visit, data)
        match self.web.robots(host):
            case "rules":
                await send(whole(b"User-agent: *\nDisallow: /p/1\nAllow: /p/1$\nSitemap: nonsense\n", kind="text/plain"))
            case "none":
                await send(whole(b"none", status="404 Not Found"))
            case "empty":
                await send(whole(b"", kind="text/plain"))
            case "error":
                await send(whole(b"oops", status="500 Oops"))
            case "silent":
                await asyncio.sleep(30)
                return False
            case "huge":
                await send(whole(b"# padding\n" * 600_000, kind="text/plain"))
            case "redirect":
                await send(whole(b"", "Location: /robots.txt", status="301 Moved"))
            case "garbage":
                await send(whole(self.web.random(host, "noise").randbytes(9_000), kind="text/plain"))
        return True


BOMB = gzip.compress(b"\0" * 300_000_000, 9)


def expected(web, fetched):
    """Addresses that must have a line: what readable pages that were fetched link to, and the seeds."""
    wanted = {f"http://{name}:{web.port}/p/0" for name, _ in web.hosts}
    for url in fetched:
        host, path = url.split("//", 1)[1].split(":", 1)[0], "/" + url.split("/", 3)[3]
        if path.startswith("/p/") and web.kind(host, path) in READABLE:
            wanted.update(web.links(host, path))
    return wanted


def play(args, number, folder):
    web = Web(args.seed * 1_000 + number, args.hosts, args.pages, args.port)
    server, loop = Server(web), asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve(ready, stop)), daemon=True)
    thread.start()
    ready.wait(10)
    job = folder / f"round-{number}"
    seeds = folder / f"seeds-{number}.txt"
    seeds.write_text("".join(f"http://{name}:{web.port}/p/0\n" for name, _ in web.hosts))
    command = [args.crawler, "--seeds", seeds, "--job", job, "--delay", f"{int(DELAY_S * 1000)}ms", "--concurrency", "100",
               "--header-timeout", "3s", "--timeout", "8s", "--max-wait", "2s", "--retries", "1", "--max-body", "20MiB",
               "--allow-address", "127.0.0.0/8", "--max-host-failures", "10", "--quiet", *args.flag]
    for name, address in web.hosts:
        command += ["--resolve", f"{name}:{web.port}:{address}"]
    began = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], cwd=folder)
    peak = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))])
        except (OSError, ValueError):
            pass
        time.sleep(0.1)
    took = time.monotonic() - began
    loop.call_soon_threadsafe(stop.set)
    thread.join(5)

    faults = list(server.complaints)
    report = json.loads((job / "report.json").read_text())
    lines = [line.split() for line in (job / "logs/crawl.log").read_text(errors="replace").splitlines()]
    logged = {line[3] for line in lines}
    fetched = {line[3] for line in lines if line[1].isdigit() and int(line[1]) == 200}
    missing = expected(web, fetched) - logged
    if process.returncode != 0:
        faults.append(f"exit code {process.returncode}")
    if not report["balanced"] or report["urls"]["pending"] != 0:
        faults.append(f"the accounts do not add up, or something waits: {report['links']} {report['urls']}")
    if report["politeness"]["violations"]:
        faults.append(f"{report['politeness']['violations']} violations by the crawler's own account")
    if missing:
        faults.append(f"{len(missing)} addresses without an answer: {sorted(missing)[:5]}")
    if peak > args.ceiling_mib * 1024:
        faults.append(f"{peak / 1024:.0f} MiB of memory")
    requests = 0
    for host, visits in server.log.items():
        requests += len(visits)
        for before, after in zip(visits, visits[1:]):
            # a request repeated because its kept connection was closed under it is no second request
            repeated = before[0] == after[0]
            if not repeated and not server.left_early(host, before[0]) and after[1] - before[2] < DELAY_S - SLACK_S:
                faults.append(f"{host}: {after[0]} came {after[1] - before[2]:.3f} s after {before[0]}")
    urls = report["urls"]
    print(f"round {number}: {took:.0f} s, {requests} requests, {urls['admitted']} URLs = {urls['fetched']} fetched + "
          f"{urls['failed']} failed + {urls['robots']} robots, peak {peak / 1024:.0f} MiB, "
          f"{len(faults)} faults", flush=True)
    for fault in faults[:20]:
        print(f"  {fault}", flush=True)
    if not faults and not args.keep:
        shutil.rmtree(job, ignore_errors=True)
    return faults, requests, urls["admitted"], peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crawler")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--pages", type=int, default=150)
    parser.add_argument("--ceiling-mib", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=18_777)
    parser.add_argument("--keep", help="a folder for the jobs, which then stay")
    parser.add_argument("--flag", action="append", default=[], help="a further flag for the crawler; repeatable")
    args = parser.parse_args()
    args.crawler = pathlib.Path(args.crawler).resolve()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    folder = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    until, number, bad, total, urls, peak = time.monotonic() + args.minutes * 60, 0, 0, 0, 0, 0
    began = time.monotonic()
    while number == 0 or time.monotonic() < until:
        faults, requests, admitted, highest = play(args, number, folder)
        bad, total, urls, peak, number = bad + len(faults), total + requests, urls + admitted, max(peak, highest), number + 1
    print(f"{number} rounds in {(time.monotonic() - began) / 60:.1f} min: {total} requests, {urls} URLs, "
          f"highest peak {peak / 1024:.0f} MiB of {args.ceiling_mib}, {bad} faults")
    if not args.keep and not bad:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
