"""slowhttptest against the message intake: clients that send heads, bodies, or take answers, too slowly.

Meanwhile others are answered, and in the end the server has closed all slow ones, while they still go on. How fast is
not looked at.

usage: slow_clients.py TIDEMARK
"""

import subprocess
import sys
import time

from served import ask, system, wait_ready

CONNECTIONS = 100
# so long is waited for a head; for a body and for a client that takes nothing it is always 30 s
HEAD_TIMEOUT_S = 3
# then they would give up
LONGEST_S = 180
# a page of the user whose messages fill several megabytes, which no socket's buffer holds
LARGE = "/messages/42"
ATTACKS = {
    "slow heads": ["-H", "-i", "1", "/count"],
    "slow bodies": ["-B", "-i", "2", "-s", "4096", "/m"],
    "slow reading": ["-X", "-w", "10", "-y", "100", "-n", "5", "-z", "5", LARGE],
}
SMALL = ["/count", "/messages/7", "/m?c=00000000071425000000123DEF", "/health"]


def attack(served, arguments: list[str]) -> subprocess.Popen:
    *how, path = arguments
    count = str(CONNECTIONS)
    command = ["slowhttptest", *how, "-c", count, "-r", count, "-l", str(LONGEST_S), "-v", "1", "-u", served.url(path)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def open_connections(served) -> int:
    """As the server counts them, without the one that asks."""
    text = ask(served.url("/metrics"))[2].decode()
    line = next(line for line in text.splitlines() if line.startswith("tidemark_connections_open "))
    return int(float(line.split()[-1])) - 1


def keep_asking(served, attacks: dict) -> list[str]:
    """Asks for what is small until no slow client is connected, and tells what went wrong."""
    failures, answered, most, began = [], 0, 0, time.monotonic()
    while True:
        for path in SMALL:
            try:
                status = ask(served.url(path), timeout_s=30)[0]
            except OSError as error:
                status = error
            answered += status == 200
            if status != 200:
                failures.append(f"{path} was answered with {status} meanwhile")
        is_over = any(attack.poll() not in (None, 0) for attack in attacks.values())
        left, elapsed = open_connections(served), time.monotonic() - began
        most = max(most, left)
        if most >= CONNECTIONS // 2 and left == 0:
            print(f"all of up to {most} slow connections were closed within {elapsed:.0f} s")
            break
        if is_over or elapsed > LONGEST_S:
            failures.append(f"{left} of {most} slow connections were still open after {elapsed:.0f} s")
            break
        time.sleep(0.2)
    print(f"{answered} requests of others were answered meanwhile")
    return failures


def main(tidemark: str) -> bool:
    with system(tidemark, "ingest", "--durability", "memory", "--set", f"head_timeout_s={HEAD_TIMEOUT_S}") as served:
        wait_ready(served)
        for time_ms in range(2200):
            ask(served.url("/m"), b"%010d%013dABC" % (42, time_ms) + b"x" * 4000)
        attacks = {name: attack(served, arguments) for name, arguments in ATTACKS.items()}
        try:
            failures = keep_asking(served, attacks)
        finally:
            for running in attacks.values():
                running.kill()
                running.wait()
    for failure in failures[:20]:
        print(f"  {failure}")
    return not failures


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:]) else 1)
