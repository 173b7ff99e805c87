"""A server whose bodies are made as they are sent, many at once and in step: none has more than its share before all have theirs.

usage: flood.py BODIES BYTES STEPS PAUSE_MS
Prints its port. Every path but /robots.txt is answered by BYTES bytes in STEPS pieces; piece n of any body waits until
all BODIES are under way, and PAUSE_MS after each. A path that ends in .html is text, any other a film.
"""
import asyncio
import random
import sys

bodies, length, steps, pause = (int(argument) for argument in sys.argv[1:5])
ROUND = 65_521  # a prime: no two pieces of a round length are equal
noise = random.Random(7).randbytes(ROUND) * 17
letters = bytes(97 + byte % 26 for byte in noise[:ROUND]) * 17
under_way = 0
all_are = asyncio.Event()


async def serve(reader, writer):
    global under_way
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ", 2)[1]
            if target == b"/robots.txt":
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            text = target.endswith(b".html")
            kind = b"text/html" if text else b"video/mp4"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, length))
            under_way += 1
            if under_way >= bodies:
                all_are.set()
            source, sent = letters if text else noise, 0
            for step in range(1, steps + 1):
                while sent < length * step // steps:
                    part = min(length * step // steps - sent, 1 << 20, len(source) - sent % ROUND)
                    writer.write(memoryview(source)[sent % ROUND : sent % ROUND + part])
                    await writer.drain()
                    sent += part
                await all_are.wait()
                await asyncio.sleep(pause / 1000)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
