"""The one server for the tests, and a client of its automation, by each of the four ways to it.

The server and the transports are the real ones, in the test's own process, where a test costs
milliseconds; `tests/automation/test_serve.py` runs the same server as a process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

import web
from linking import TRANSPORTS, Opening
from telex.adapters.lua_plugin import LuaPlugin
from telex.adapters.plugin_registry import builtin_plugins
from telex.automation.protocol import DIALECT
from telex.processes import proc
from telex.redaction import Redactor
from telex.rpc.channel import Channel
from telex.rpc.errors import RpcError
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.server.telex_server import ServerOptions, TelexServer

WAYS: dict[str, Opening] = {
    transport.name: transport.open
    for transport in TRANSPORTS
    if transport.name in ("stdio, ndjson", "stdio, lsp", "unix, ndjson", "websocket")
}
TOLD = (
    "session.changed",
    "session.output",
    "session.input_state",
    "session.exited",
    "session.bytes",
    "session.escape",
    "session.page",
    "session.recording_failed",
)
SECRET = "password=hunter2secret"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error that a call brought."""

    code: int
    message: str
    data: Any


class Client:
    """One connection. It keeps what the server tells it unasked, in order."""

    def __init__(self, channel: Channel, server: Served | None = None) -> None:
        self.told: list[tuple[str, Any]] = []
        self.frames: list[bytes] = []
        self._news = asyncio.Event()
        self._server = server
        methods = Methods()
        for name in TOLD:
            methods.add(name, self._ear(name))
        self.peer = Peer(channel, DIALECT, methods, on_binary=self._frame)

    async def another(self) -> Client:
        """A second connection to the same server."""
        assert self._server is not None
        return await self._server.connect()

    async def leave(self) -> None:
        """Close this connection, and wait until the server has noticed."""
        assert self._server is not None
        await self.peer.close()
        await self._server.one_left()

    async def call(self, method: str, **params: Any) -> Any:
        return await self.peer.call(method, params, timeout=60)

    async def refused(self, method: str, **params: Any) -> Refusal:
        """The error that this call must bring. Every one has a sentence, not a name."""
        with pytest.raises(RpcError) as caught:
            await self.call(method, **params)
        problem = caught.value.problem
        assert isinstance(problem.code, int)
        assert " " in problem.message
        data = problem.data
        return Refusal(
            problem.code,
            problem.message,
            None if data is UNSET else data,
        )

    async def start(self, *argv: str, **params: Any) -> str:
        """A session with this program, or with a shell that runs this script."""
        program, *args = argv if len(argv) > 1 else ("sh", "-c", *argv)
        created = await self.call("session.create", program=program, args=args, **params)
        assert list(created) == ["session"]
        return str(created["session"])

    async def shows(self, session: str, text: str, **params: Any) -> Any:
        """Wait until this stands on the screen."""
        matcher = {"type": "contains_text", "value": text}
        params = {"cells": "none", "timeout_ms": 15_000, **params}
        return await self.call("session.wait", session=session, matcher=matcher, **params)

    async def over(self, session: str) -> Any:
        """Wait until the program ended."""
        matcher = {"type": "process_exited"}
        return await self.call("session.wait", session=session, matcher=matcher, cells="none")

    async def act(self, session: str, kind: str, value: Any = None) -> Any:
        action = {"type": kind} if value is None else {"type": kind, "value": value}
        return await self.call("session.input", session=session, action=action)

    async def screen(self, session: str, **params: Any) -> str:
        params = {"cells": "none", **params}
        return str((await self.call("session.snapshot", session=session, **params))["plain_text"])

    async def transcript(self, session: str, **params: Any) -> str:
        return str((await self.call("session.transcript", session=session, **params))["text"])

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait for what the server tells unasked. Answers what made the condition true."""
        async with asyncio.timeout(60):
            while not (found := condition()):
                self._news.clear()
                await self._news.wait()
        return found

    def output(self, session: str) -> str:
        """All the output that was told of a session so far."""
        told = (params for method, params in self.told if method == "session.output")
        return "".join(params["output"] for params in told if params["session"] == session)

    def exits(self, session: str) -> list[Any]:
        told = (params for method, params in self.told if method == "session.exited")
        return [params for params in told if params["session"] == session]

    def sessions_told(self) -> set[str]:
        return {params["session"] for _, params in self.told}

    def _ear(self, name: str) -> Callable[[dict[str, Any]], None]:
        def hear(params: dict[str, Any]) -> None:
            self.told.append((name, params))
            self._news.set()

        return hear

    def _frame(self, data: bytes) -> None:
        self.frames.append(data)
        self._news.set()


def _no_agent() -> Any:
    raise AssertionError("nobody asked for the agent")


class Served:
    """A server, and its connections, all by one way."""

    def __init__(
        self,
        way: Opening,
        directory: Path,
        serial: bool,
        plugins: tuple[LuaPlugin, ...],
        **how: Any,
    ) -> None:
        options = ServerOptions((*builtin_plugins(), *plugins), serial=serial, **how)
        self._server = TelexServer(options, Redactor(), _no_agent, lambda: None)
        self.service = self._server.automation
        self._way = way
        self._directory = directory
        self._conversations: list[_Conversation] = []
        self._left: asyncio.Queue[object] = asyncio.Queue()
        self._clients: list[Client | web.Ear] = []
        self._links = AsyncExitStack()

    def serve(self, channel: Channel) -> _Conversation:
        on_socket = self._way is WAYS["unix, ndjson"]
        converse: Any = (
            self._server.converse_on_socket if on_socket else self._server.converse_automation
        )
        task = asyncio.create_task(converse(channel))
        task.add_done_callback(self._left.put_nowait)
        self._conversations.append(_Conversation(task))
        return self._conversations[-1]

    async def one_left(self) -> None:
        """Until one conversation more is over."""
        async with asyncio.timeout(60):
            await self._left.get()

    async def connect(self) -> Client:
        client = Client(await self._channel(), self)
        self._clients.append(client)
        return client

    async def listen(self) -> web.Ear:
        """A connection that sends and hears plain frames."""
        ear = web.Ear(await self._channel())
        self._clients.append(ear)
        return ear

    async def close(self) -> None:
        for client in self._clients:
            await (client.peer if isinstance(client, Client) else client.channel).close()
        await asyncio.gather(*(conversation.closed() for conversation in self._conversations))
        await self._server.close()
        await self._links.aclose()

    async def _channel(self) -> Channel:
        directory = self._directory / str(len(self._clients))
        directory.mkdir()
        # The openings of `linking` ask of a server only that it serves a channel.
        return await self._links.enter_async_context(self._way(self, directory))  # type: ignore[arg-type]


class _Conversation:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    async def closed(self) -> None:
        await asyncio.shield(self._task)


class Serving:
    """What the fixtures give: `async with automation() as client:`."""

    def __init__(self, way: str, directory: Path) -> None:
        self.way = way
        self._directory = directory

    @asynccontextmanager
    async def server(
        self, *plugins: LuaPlugin, serial: bool = False, **how: Any
    ) -> AsyncIterator[Served]:
        served = Served(WAYS[self.way], self._directory, serial, plugins, **how)
        try:
            yield served
        finally:
            await served.close()

    @asynccontextmanager
    async def __call__(
        self, *plugins: LuaPlugin, serial: bool = False, **how: Any
    ) -> AsyncIterator[Client]:
        async with self.server(*plugins, serial=serial, **how) as served:
            yield await served.connect()


def request(id: object, method: str, **params: object) -> bytes:
    """One request as a frame."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def alive(pid: int) -> bool:
    """Whether a process runs. A zombie does not."""
    return any(process.alive for process in proc.ps_rows("-p", str(pid)))
