"""Autobahn's WebSocket cases (by kosoku) against our servers: all of them against the codec's echo server, and those that
need no echo against /rpc of a served system, which takes binary frames of calls and nothing else.

usage: websocket_server.py ECHO TIDEMARK    (two programs)
"""

import asyncio
import sys

from kosoku import FailureError, run_fuzzingclient

from served import Served, system

# compression is an extension, and extensions are not spoken
COMPRESSION = ["12.*", "13.*"]
ALL_OTHERS = 301
# what wants its message said back; text of any kind, which is no frame of calls; and the load of 9 and 10
WITH_ECHO = """1.* 3.2 3.3 3.4 4.1.3 4.1.4 4.1.5 4.2.3 4.2.4 4.2.5 5.3 5.4 5.5 5.6 5.7 5.8 5.15 5.19 5.20 6.* 7.1.1
    9.* 10.*""".split()
WITHOUT_ECHO = 66
SUBPROTOCOL = b"tidemark-rpc.1+json"
# on a busy machine
PATIENCE_S = 280


async def read_frame(reader: asyncio.StreamReader) -> None:
    """Passes over one frame of a server."""
    length = (await reader.readexactly(2))[1]
    if length >= 126:
        length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
    await reader.readexactly(length)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hands bytes on until they end."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


def as_caller(address: str):
    """A way to /rpc for a client that knows of no calls: offers the subprotocol for it and takes the greeting."""
    host, port = address.rsplit(":", 1)

    async def serve(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection(host, int(port))
        try:
            head = await client.readuntil(b"\r\n\r\n")
            to_server.write(head[:-2] + b"Sec-WebSocket-Protocol: " + SUBPROTOCOL + b"\r\n\r\n")
            answer = await server.readuntil(b"\r\n\r\n")
            lines = [line for line in answer.split(b"\r\n") if not line.lower().startswith(b"sec-websocket-protocol")]
            await read_frame(server)
            to_client.write(b"\r\n".join(lines))
            await asyncio.gather(pump(client, to_server), pump(server, to_client))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            to_server.close()
            to_client.close()

    return serve


async def held(what: str, url: str, most: int, **selection) -> bool:
    """Runs cases and tells which were not held."""
    try:
        results = await asyncio.wait_for(run_fuzzingclient(url, concurrency=4, **selection), PATIENCE_S)
    except FailureError as failure:
        results = failure.results
    failed = [result for result in results if not result.passed]
    for result in failed:
        print(f"  case {result.case_id}: {result.behavior.value}, close: {result.behavior_close.value}")
        print(f"    {result.description.strip()}\n    {result.result} {result.result_close}")
    print(f"{what}: {len(results) - len(failed)} of {len(results)} of Autobahn's cases held")
    if len(results) < most:
        print(f"  but there should have been {most}: the suite has changed")
    return not failed and len(results) >= most


async def main(echo: str, tidemark: str) -> bool:
    with Served(echo) as server:
        codec = await held("the codec", f"ws://{server.address}/", ALL_OTHERS, exclude_cases=COMPRESSION)
    with system(tidemark, "trade") as server:
        way = await asyncio.start_server(as_caller(server.address), "127.0.0.1", 0)
        port = way.sockets[0].getsockname()[1]
        url = f"ws://127.0.0.1:{port}/rpc"
        calls = await held("/rpc", url, WITHOUT_ECHO, exclude_cases=WITH_ECHO + COMPRESSION)
    return codec and calls


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main(*sys.argv[1:])) else 1)
