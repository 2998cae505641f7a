#!/usr/bin/env python3
"""A server that writes down every request, a line each, and answers as its path says.

    server.py FILE      listens on a free port of loopback, prints it, and appends to FILE

Used by the tests of k6 scripts, and by `record`, which has k6 itself run the same scripts.
"""

import hashlib
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = open(sys.argv[1], "a", buffering=1)
# what says something of the script, and nothing of who runs it
HEADERS = {"content-type", "cookie", "authorization", "accept", "content-encoding", "x-token", "x-sign", "x-name", "x-data", "referer"}


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
        kept = {name.lower(): value for name, value in self.headers.items() if name.lower() in HEADERS}
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

    def is_digest(self, said):
        part = dict(re.findall(r'(\w+)="?([^",]*)"?', said))
        md5 = lambda text: hashlib.md5(text.encode()).hexdigest()
        first, second = md5(f"{part['username']}:r:secret"), md5(f"{self.command}:{part['uri']}")
        return part["response"] == md5(f"{first}:n1:{part['nc']}:{part['cnonce']}:auth:{second}")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_HEAD = handle_any


SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(SERVER.server_address[1], flush=True)
SERVER.serve_forever()
