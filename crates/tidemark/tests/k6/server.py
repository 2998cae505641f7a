#!/usr/bin/env python3
"""A server that writes down every request, a line each, and answers as its path says.

    server.py FILE      listens on a free port of loopback, prints it, and appends to FILE

Used by the tests of k6 scripts, and by `record`, which has k6 itself run the same scripts.
"""

import base64
import hashlib
import json
import os
import re
import socket
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = open(sys.argv[1], "a", buffering=1)
# what says something of the script, and nothing of who runs it
HEADERS = {"content-type", "cookie", "authorization", "accept", "content-encoding", "x-token", "x-sign", "x-name", "x-data", "referer"}
HEADERS |= {"upgrade", "sec-websocket-protocol", "sec-websocket-version"}
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
NAMES = {TEXT: "text", BINARY: "binary", CLOSE: "close", PING: "ping", PONG: "pong"}
# most bytes that a flood sends
FLOOD_BYTES = 200 << 20


class WebSocket:
    """The server's side of a WebSocket, which does as the path says: /ws/DOES or /ws/DOES/ARGUMENT."""

    def __init__(self, handler):
        self.path = handler.path.split("?")[0]
        self.reader, self.connection = handler.rfile, handler.connection
        self.log = lambda opcode, shown: LOG.write(f"WS\t{self.path}\t{NAMES[opcode]}\t{shown}\n")

    def send(self, opcode, payload, first=0x80):
        length = len(payload)
        head = bytes([first | opcode, length]) if length < 126 else struct.pack(">BBH", first | opcode, 126, length)
        self.connection.sendall(head + payload)

    def receive(self):
        """The next frame: what it is, and its payload."""
        first, second = self.reader.read(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", self.reader.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.reader.read(8))
        key = self.reader.read(4)
        payload = bytes(byte ^ key[at % 4] for at, byte in enumerate(self.reader.read(length)))
        return first & 0x0F, payload

    def hear(self):
        """The next frame, written down. Pings are answered."""
        opcode, payload = self.receive()
        shown = payload.decode("utf-8", "backslashreplace")
        if opcode == BINARY:
            shown = f"{payload.hex()}" if len(payload) < 100 else f"{len(payload)} bytes"
        if opcode == CLOSE:
            shown = f"{int.from_bytes(payload[:2], 'big')} {payload[2:].decode()}"
        self.log(opcode, shown)
        if opcode == PING:
            self.send(PONG, payload)
        return opcode, payload

    def close(self, code, reason=b""):
        """Closes it, and waits until the other side has."""
        self.send(CLOSE, code.to_bytes(2, "big") + reason)
        while self.hear()[0] != CLOSE:
            pass

    def serve(self):
        try:
            _, _, does, *argument = self.path.split("/")
            argument = argument[0] if argument else ""
            if does == "push":
                for at in range(int(argument)):
                    self.send(TEXT, f"message {at}".encode())
                self.close(1000, b"done")
            elif does == "flood":
                for _ in range(FLOOD_BYTES // 1024):
                    self.send(BINARY, bytes(1024))
            elif does == "ping":
                self.send(PING, b"are you there")
                self.hear()
                self.close(1000)
            elif does == "silent":
                while self.hear()[0] != CLOSE:
                    pass
            elif does == "early":
                # whatever it is, it ends before anything came
                self.close(int(argument), b"early")
            else:
                while True:
                    opcode, payload = self.hear()
                    if opcode == CLOSE:
                        self.send(CLOSE, payload)
                        return
                    if opcode not in (TEXT, BINARY):
                        continue
                    if does == "echo":
                        self.send(opcode, payload)
                    elif does == "close":
                        return self.close(int(argument), b"as asked")
                    elif does == "drop":
                        return
                    elif does == "reset":
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return os.close(self.connection.detach())
                    elif does == "broken":
                        self.send(TEXT, b"?", first=0xF0)
                        self.receive()
        except (OSError, ValueError):
            pass


# requests that are answered together, by how many: each line waits for the others
TOGETHER = {}
RELEASED = threading.Event()
CHANGED = threading.Condition()
PATIENCE_S = 20


def answered_together(many, line):
    with CHANGED:
        wave = TOGETHER.setdefault(many, [])
        wave.append(line)
        if len(wave) == many:
            LOG.write("".join(sorted(TOGETHER.pop(many))))
            wave.append("")
            CHANGED.notify_all()
        return CHANGED.wait_for(lambda: len(wave) > many, PATIENCE_S)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *words):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        shown = body.decode("utf-8", "backslashreplace")
        # one that came twice shows
        kept = {name.lower(): " & ".join(self.headers.get_all(name)) for name in self.headers if name.lower() in HEADERS}
        host = self.headers.get("Host", "")
        if host != f"127.0.0.1:{SERVER.server_address[1]}":
            kept["host"] = host.split(":")[0]
        boundary = re.search(r"boundary=(\S+)", kept.get("content-type", ""))
        if boundary:
            shown = shown.replace(boundary.group(1), "BOUNDARY")
            kept["content-type"] = kept["content-type"].replace(boundary.group(1), "BOUNDARY")
        if kept.get("authorization", "").startswith("Digest"):
            kept["authorization"] = "Digest, right: " + str(self.is_digest(kept["authorization"]))
        if kept.get("content-encoding"):
            shown = "encoded"
        line = [self.command, self.path, json.dumps(kept, sort_keys=True), shown]
        line = "\t".join(line).replace("\r", "\\r").replace("\n", "\\n") + "\n"
        path = self.path.split("?")[0]
        if path.startswith("/together/"):
            is_whole = answered_together(int(path.split("/")[2]), line)
            return self.answer(200 if is_whole else 503, path.encode())
        LOG.write(line)
        if path.startswith("/ws/") and kept.get("upgrade", "").lower() == "websocket":
            return self.upgrade(path)
        json_type = ("Content-Type", "application/json")
        if path == "/login":
            self.answer(201, json.dumps({"token": "t-17", "user": {"id": 9, "tags": ["a", "b"]}}).encode(), [json_type])
        elif path == "/items":
            items = [{"id": 3, "name": "pen", "price": 2.5}, {"id": 5, "name": "ink", "price": 9}]
            self.answer(200, json.dumps({"items": items, "next": "/items/3"}).encode(), [json_type])
        elif path.startswith("/status/"):
            status = int(path.split("/")[2])
            self.answer(status, b"" if status == 204 else b"as asked")
        elif path == "/set":
            self.answer(200, b"set", [("Set-Cookie", "sid=abc; Path=/"), ("Set-Cookie", "deep=1; Path=/deep")])
        elif path == "/broken":
            self.close_connection = True
        elif path == "/heads":
            heads = {name.lower(): value for name, value in self.headers.items()}
            self.answer(200, json.dumps({"heads": heads, "port": self.client_address[1]}).encode(), [json_type])
        elif path == "/hold":
            self.answer(200 if RELEASED.wait(PATIENCE_S) else 503)
            RELEASED.clear()
        elif path == "/release":
            RELEASED.set()
            self.answer(200)
        elif path == "/gone":
            self.answer(200, b"gone", [("Set-Cookie", "sid=; Path=/; Max-Age=0")])
        elif path.startswith("/to/"):
            _, _, status, left = path.split("/")
            more = int(left) - 1
            self.answer(int(status), b"", [("Location", f"/to/{status}/{more}" if more > 0 else "/end?x=1")])
        elif path.startswith("/away/"):
            self.answer(302, b"", [("Location", f"http://localhost:{path.split('/')[2]}/from-away")])
        elif path == "/digest" and not kept.get("authorization", "").startswith("Digest"):
            self.answer(401, b"", [("WWW-Authenticate", 'Digest realm="r", nonce="n1", qop="auth", opaque="o"')])
        elif path == "/page":
            page = """<html><body><h1 id="t" class="big">Shop</h1><ul><li>one<li>two</ul>
<form action="/order" method="post"><input name="id" value="7"><input type="hidden" name="csrf" value="z&amp;9">
<select name="size"><option value="s">S</option><option value="m" selected>M</option></select>
<input type="checkbox" name="gift" value="yes" checked><textarea name="note">hi there</textarea>
<input type="submit" name="go" value="Buy"></form><a class="next" href="/items?page=2">next</a></body></html>"""
            self.answer(200, page.encode(), [("Content-Type", "text/html")])
        else:
            self.answer(200, b"fine")

    def upgrade(self, path):
        if path == "/ws/deny":
            return self.answer(403, b"not for you", [("X-Why", "denied")])
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        if offered := self.headers.get("Sec-WebSocket-Protocol"):
            self.send_header("Sec-WebSocket-Protocol", offered.split(",")[-1].strip())
        if "cookie" in path:
            self.send_header("Set-Cookie", "room=7; Path=/")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        WebSocket(self).serve()

    def is_digest(self, said):
        part = dict(re.findall(r'(\w+)="?([^",]*)"?', said))
        md5 = lambda text: hashlib.md5(text.encode()).hexdigest()
        first, second = md5(f"{part['username']}:r:secret"), md5(f"{self.command}:{part['uri']}")
        return part["response"] == md5(f"{first}:n1:{part['nc']}:{part['cnonce']}:auth:{second}")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_HEAD = handle_any


SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(SERVER.server_address[1], flush=True)
SERVER.serve_forever()
