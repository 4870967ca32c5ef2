"""The other ends of the rpc and plugin benchmarks: processes that answer `ping`.

python -m benchmarks.ping_servers unix PATH | stdio | mcp | sdk | pygls

Each imports only what it needs, since its start may be measured.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telex.rpc.channel import Channel
    from telex.rpc.peer import Peer


def ping() -> dict[str, object]:
    return {}


def _peer(channel: Channel) -> Peer:
    from telex.rpc.dialects.json_rpc import JsonRpc
    from telex.rpc.methods import Methods
    from telex.rpc.peer import Peer

    methods = Methods()
    methods.add("ping", ping)
    return Peer(channel, JsonRpc(), methods)


async def over_unix(path: Path) -> None:
    import asyncio

    from telex.transports import unix

    gone = asyncio.Event()

    def serve(channel: Channel) -> None:
        peer = _peer(channel)
        task = asyncio.create_task(peer.closed())
        task.add_done_callback(lambda _: gone.set())

    async with unix.listen(path, serve):
        print("ready", flush=True)
        await gone.wait()


async def over_stdio() -> None:
    from telex.transports.stdio import open_stdio

    async with open_stdio() as channel:
        await _peer(channel).closed()


def with_the_mcp_sdk() -> None:
    from mcp.server import MCPServer

    server = MCPServer("bench")

    @server.tool()
    def echo(text: str) -> str:
        """Return the text."""
        return text

    server.run("stdio")


def with_our_sdk() -> None:
    from telex.plugins.sdk import Plugin

    plugin = Plugin("pinging")
    plugin.tool("ping")(_ping_in_the_loop)
    plugin.tool("ping_in_a_thread")(ping)
    plugin.run()


async def _ping_in_the_loop() -> dict[str, object]:
    return {}


def with_pygls() -> None:
    from pygls.lsp.server import LanguageServer

    server = LanguageServer("pinging", "1")

    @server.feature("ping")  # type: ignore[untyped-decorator]  # pygls is not always installed
    def answer(_: object, __: object) -> dict[str, object]:
        return {}

    server.start_io()


def main() -> None:
    match sys.argv[1:]:
        case ["unix", path]:
            _run(over_unix(Path(path)))
        case ["stdio"]:
            _run(over_stdio())
        case ["mcp"]:
            with_the_mcp_sdk()
        case ["sdk"]:
            with_our_sdk()
        case ["pygls"]:
            with_pygls()


def _run(work: object) -> None:
    import asyncio

    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
