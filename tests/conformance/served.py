"""Servers that a check starts, and ends whatever becomes of it."""

import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

PATIENCE_S = 60


class Served:
    """A server, at the address that it prints first."""

    def __init__(self, *command: str):
        self.command = command

    def __enter__(self) -> "Served":
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        line = self.process.stdout.readline().decode()
        found = re.search(r"//(\S+)", line)
        if not found:
            self.process.kill()
            sys.exit(f"{self.command[0]} did not start: {line!r}")
        self.address = found[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit(f"{self.command} does not stop")

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"

    def is_running(self) -> bool:
        return self.process.poll() is None


def system(tidemark: str, name: str, *arguments: str) -> Served:
    """A shipped system on a free port."""
    return Served(tidemark, "serve", name, "--listen", "127.0.0.1:0", *arguments)


def ask(url: str, body: bytes | None = None, timeout_s: float = PATIENCE_S):
    """Status, headers and body of an answer, whatever its status."""
    try:
        with urllib.request.urlopen(url, body, timeout_s) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def wait_ready(served: Served) -> None:
    began = time.monotonic()
    while ask(served.url("/health"))[0] != 200:
        if time.monotonic() - began > PATIENCE_S:
            sys.exit("the system does not become ready")
        time.sleep(0.05)
