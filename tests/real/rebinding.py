#!/usr/bin/env python3
"""DNS rebinding from outside: names whose answers change between two look-ups, or mix public and private addresses.

    tests/real/rebinding.py CRAWLER        (as root; needs unshare and ip)

In a network of its own (a namespace with nothing but loopback, which also holds a public address) there is a name server
that the system's resolver asks, a web server at the public address, and listeners at private ones. Every link of the
site leads to a name that the name server answers differently each time. Good is: the private listeners hear nothing,
every public answer is fetched, and the crawl ends by itself with its accounts in order.
"""
import http.server
import json
import os
import pathlib
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading

PUBLIC = "93.184.216.34"
PRIVATE = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.7.7"]
# each name: its answers in turn; the last one stays
NAMES = {
    "site.example": [[PUBLIC]],
    "flips.example": [[PUBLIC], ["127.0.0.1"]],
    "flops.example": [["10.0.0.1"], [PUBLIC]],
    "mixed.example": [["192.168.7.7", PUBLIC]],
    "mixed2.example": [[PUBLIC, "169.254.169.254"]],
    "inside.example": [["169.254.169.254"]],
}
NAMES.update({f"turn{n}.example": [[PUBLIC], [PRIVATE[n % 4]], [PUBLIC], [PRIVATE[(n + 1) % 4]]] for n in range(12)})
# every page of these is public at each look-up, or has a public address beside the private one
WHOLE = ["site.example", "mixed.example", "mixed2.example"]
PAGES = 4


def enter():
    """Starts itself again in a network and a mount table of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        conf.flush()
        os.chmod(conf.name, 0o644)
        lines = ["set -e", "ip link set lo up"]
        lines += [f"ip addr add {address}/32 dev lo" for address in [PUBLIC] + PRIVATE[1:]]
        lines += [f"mount --bind {conf.name} /etc/resolv.conf", 'exec "$@"']
        command = ["unshare", "-mn", "bash", "-c", "\n".join(lines), "inside", sys.executable, __file__, sys.argv[1], "--inside"]
        return subprocess.run(command).returncode


class NameServer(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.asked = {}

    def run(self):
        while True:
            question, client = self.socket.recvfrom(512)
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1 : at + 1 + question[at]].decode())
                at += 1 + question[at]
            kind = struct.unpack("!H", question[at + 1 : at + 3])[0]
            answers = self.answers(".".join(labels).lower()) if kind == 1 else []
            head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, len(answers), 0, 0)
            body = question[12 : at + 5]
            for address in answers:
                body += struct.pack("!HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address)
            self.socket.sendto(head + body, client)

    def answers(self, name):
        turns = NAMES.get(name)
        if turns is None:
            return []
        turn = self.asked.get(name, 0)
        self.asked[name] = turn + 1
        return turns[min(turn, len(turns) - 1)]


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []

    def do_GET(self):
        Site.seen.append((self.headers.get("Host", ""), self.path))
        found = self.path == "/" or self.path.startswith("/page")
        links = [f"http://{name}/page{n}" for name in NAMES for n in range(PAGES)] if self.path == "/" else []
        body = "".join(f"<a href='{link}'>on</a>" for link in links).encode() if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        # each page is a connection of its own, so that each needs a look-up
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def listen(address, heard):
    listener = socket.create_server((address, 80))
    while True:
        connection, _ = listener.accept()
        heard.append(address)
        connection.close()


def inside(crawler):
    names = NameServer()
    names.start()
    heard = []
    for address in PRIVATE:
        threading.Thread(target=listen, args=(address, heard), daemon=True).start()
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    site = socketserver.ThreadingTCPServer((PUBLIC, 80), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        job = pathlib.Path(folder) / "job"
        # an answer is believed for 60 seconds at most; the delay spreads the pages of a host over several look-ups
        command = [crawler, "--seed", "http://site.example/", "--scope", "any", "--job", str(job), "--delay", "20s", "--retries", "0", "--quiet"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=400)
        report = json.loads((job / "report.json").read_text())
        log = (job / "logs/crawl.log").read_text()
    faults = []
    if ended.returncode != 0:
        faults.append(f"exit code {ended.returncode}: {ended.stderr}")
    if heard:
        faults.append(f"private addresses were reached: {sorted(set(heard))}, {len(heard)} times")
    if not report["balanced"] or report["urls"]["pending"]:
        faults.append(f"accounts: {report['urls']}")
    for name in WHOLE:
        missing = [n for n in range(PAGES) if (name, f"/page{n}") not in Site.seen]
        if missing:
            faults.append(f"{name}: pages {missing} were not fetched")
    refused = log.count(" -5001 ")
    looked_up = sum(names.asked.values())
    if not refused or looked_up <= len(NAMES):
        faults.append(f"nothing was tried: {refused} refusals, {looked_up} look-ups")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"rebinding: {len(Site.seen)} requests at the public address, {looked_up} look-ups of {len(NAMES)} names, "
          f"{refused} refusals, {len(heard)} connections to private addresses")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(inside(sys.argv[1]) if "--inside" in sys.argv else enter())
