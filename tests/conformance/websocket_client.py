"""Autobahn's WebSocket cases (by kosoku) against our client: `tidemark run` says back what the cases' server says to it.

usage: websocket_client.py TIDEMARK    (the program)
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from kosoku import FailureError, run_fuzzingserver

# compression is an extension, and extensions are not spoken
COMPRESSION = ["12.*", "13.*"]
# whose messages are binary ones, and how many cases these are; what says them back has to know
BINARY = ["1.2.*", "9.2.*", "9.4.*", "9.6.*", "9.8.*"]
BINARY_CASES = 35
TEXT_CASES = 266
PATIENCE_S = 150

SCENARIO = """
name: conformance
system: {{url: "http://127.0.0.1:{port}"}}
feeders:
  cases: {{from: 1, to: {cases}}}
sessions:
  echo:
    steps:
      - take: cases
      - ws connect: /runCase?case=${{cases}}&agent=tidemark
        label: Connect
      - repeat: 2000                  # the one that is left when the server closes ends the session
        steps:
          - ws expect: any
            label: Hear
            extract: {{message: body}}
            timeout: 60s
          - ws send: {{{kind}: "${{message}}"}}
            label: Say
            timeout: 60s
load: {{users: 4, hold: 140s}}
limits: {{sessions: {cases}, body: 64MiB, connections: 4}}
objectives: [errors < 100%]
"""

# the suite's way to say that all cases have been run
LAST_WORD = (
    b"GET /updateReports?agent=tidemark HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


async def held(tidemark: str, kind: str, count: int, **selection) -> bool:
    """Runs cases and tells which were not held."""
    with tempfile.TemporaryDirectory() as place:
        async with run_fuzzingserver(port=0, **selection) as server:
            scenario = Path(place) / "conformance.yaml"
            scenario.write_text(SCENARIO.format(port=server.port, cases=count, kind=kind))
            out = Path(place) / "out"
            with out.open("wb") as told:
                driver = await asyncio.create_subprocess_exec(
                    tidemark, "run", str(scenario), stdin=asyncio.subprocess.DEVNULL, stdout=told, stderr=told, cwd=place
                )
                try:
                    await asyncio.wait_for(driver.wait(), PATIENCE_S)
                finally:
                    if driver.returncode is None:
                        driver.kill()
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(LAST_WORD)
            try:
                results = await asyncio.wait_for(server.get_result(), 10)
            except FailureError as failure:
                results = failure.results
            except asyncio.TimeoutError:
                print(f"  not all {count} {kind} cases were run")
                print(out.read_text()[-3000:])
                return False
            writer.close()
    failed = [result for result in results if not result.passed]
    for result in failed:
        print(f"  case {result.case_id}: {result.behavior.value}, close: {result.behavior_close.value}")
        print(f"    {result.description.strip()}\n    {result.result} {result.result_close}")
    print(f"the driver, {kind}: {len(results) - len(failed)} of {len(results)} of Autobahn's cases held")
    if len(results) < count:
        print(f"  but there should have been {count}: the suite has changed")
    return not failed and len(results) >= count


async def main(tidemark: str) -> bool:
    text = await held(tidemark, "text", TEXT_CASES, exclude_cases=BINARY + COMPRESSION)
    binary = await held(tidemark, "binary", BINARY_CASES, cases=BINARY)
    return text and binary


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main(*sys.argv[1:])) else 1)
