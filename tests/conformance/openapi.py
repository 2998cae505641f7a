"""schemathesis against each system's OpenAPI document: what it takes is taken, what it refuses is refused, and every
answer is one of those that it names, in the form that it says.

usage: openapi.py TIDEMARK SCHEMATHESIS    (two programs)
"""

import concurrent.futures
import os
import subprocess
import sys
import tempfile
import urllib.parse

from served import ask, system, wait_ready

# the same requests each time
SEED = 1
EXAMPLES = 20
# on a busy machine
PATIENCE_S = 500
# its session is ended by one operation, and made of as many customers as are asked for, ten million at most, by another
AIRLINE_APART = ["logout", "load", "info.load"]
# it never ends
NEWSFEED_APART = ["--exclude-operation-id", "inboundStream"]
# it opens a WebSocket, which schemathesis does not speak
TRADE_APART = ["--exclude-operation-id", "rpc"]
APART = {"newsfeed": NEWSFEED_APART, "trade": TRADE_APART}
CONFIG = '[auth.openapi.session]\napi_key = "${SESSION}"\n'


def held(schemathesis: str, served, directory: str, *arguments: str, session: str = "") -> tuple[bool, str]:
    config = os.path.join(directory, "schemathesis.toml")
    with open(config, "w") as file:
        file.write(CONFIG if session else "")
    command = [schemathesis, "--config-file", config, "run", served.url("/openapi.json"), "--seed", str(SEED)]
    command += ["--max-examples", str(EXAMPLES), "--phases", "examples,coverage,fuzzing", "--warnings", "off"]
    command += arguments
    environment = {**os.environ, "SESSION": session, "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, cwd=directory
    )
    return done.returncode == 0, done.stdout + done.stderr


def login(served) -> str:
    form = urllib.parse.urlencode({"login": "uid0@email.com", "password": "password"}).encode()
    status, headers, _ = ask(served.url("/rest/api/login"), form)
    if status != 200:
        sys.exit(f"the login was answered with {status}")
    return headers["set-cookie"].split(";")[0].removeprefix("sessionid=")


def airline(schemathesis: str, served, directory: str) -> list[tuple[bool, str]]:
    apart = [argument for operation in AIRLINE_APART for argument in ("--exclude-operation-id", operation)]
    logout = ["--include-operation-id", "logout"]
    return [
        held(schemathesis, served, directory, *apart, session=login(served)),
        held(schemathesis, served, directory, *logout),
    ]


def check(tidemark: str, schemathesis: str, name: str) -> bool:
    arguments = [] if name == "trade" else ["--durability", "memory"]
    with tempfile.TemporaryDirectory() as directory, system(tidemark, name, *arguments) as served:
        wait_ready(served)
        if name == "airline":
            outcomes = airline(schemathesis, served, directory)
        else:
            outcomes = [held(schemathesis, served, directory, *APART.get(name, []))]
        is_there = served.is_running()
    good = is_there and all(is_held for is_held, _ in outcomes)
    last = [text.strip().splitlines()[-1].strip("= ") if text.strip() else "nothing" for _, text in outcomes]
    print(f"{name}: {'held' if good else 'NOT held'}: {', '.join(last)}{'' if is_there else '; the system died'}")
    for is_held, text in outcomes:
        if not is_held:
            print(text)
    return good


def main(tidemark: str, schemathesis: str) -> bool:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return all(list(pool.map(lambda name: check(tidemark, schemathesis, name), ["airline", "ingest", "newsfeed", "trade"])))


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:]) else 1)
