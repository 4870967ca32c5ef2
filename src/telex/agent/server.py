"""The agent's server: registers the handlers by method name, and serves UI connections.

`AgentServer` gives each handler the types of the protocol's table, and each connection an
`InitializeGuard` and a `HalfCloseChannel`. It maps the exceptions of handlers to wire codes
(`errors`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from telex.agent import handlers
from telex.agent.errors import to_rpc_error
from telex.agent.protocol import METHODS, RESERVED_NAMESPACES
from telex.agent.ui_connection import DIALECT, UiConnection
from telex.rpc.errors import ENDING, Condition, Problem, RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.methods import Method, Methods
from telex.rpc.peer import Peer

if TYPE_CHECKING:
    from telex.agent.runtime import AgentRuntime
    from telex.rpc.channel import Channel, Receiver
    from telex.wire.events import Event


Handler = Callable[..., Any]
FIRST: Final = "initialize"

IMMEDIATE: Final[dict[str, Handler]] = {
    "initialize": handlers.initialize,
    "ui.context.update": handlers.ui_context_update,
}
"""Handlers that run before the next message of the same read is handled."""

ASYNC: Final[dict[str, Handler]] = {
    "run.start": handlers.run_start,
    "run.cancel": handlers.run_cancel,
    "run.attach": handlers.run_attach,
    "run.steer": handlers.run_steer,
    "run.diff": handlers.run_diff,
    "session.list": handlers.session_list,
    "session.history": handlers.session_history,
    "model.list": handlers.model_list,
    "model.set": handlers.model_set,
    "tool.call": handlers.tool_call,
    "permission.explain": handlers.permission_explain,
    "auth.logout": handlers.auth_logout,
    "mcp.list": handlers.mcp_list,
    "skills.list": handlers.skills_list,
    "context.inspect": handlers.context_inspect,
    "shell.exec": handlers.shell_exec,
}


class AgentServer:
    """Serves one runtime to any number of connections. `close` also closes the runtime."""

    def __init__(self, runtime: AgentRuntime) -> None:
        self.runtime = runtime
        self._connections: dict[Peer, UiConnection] = {}
        self._closing = False
        self.methods = Methods("log")
        for name, handler in IMMEDIATE.items():
            self.methods.add(name, self._immediate(name, handler))
        for name, handler in ASYNC.items():
            self.methods.add(name, self._async(name, handler))

    async def converse(self, channel: Channel) -> None:
        """Serve one connection until it closes."""
        half_close = HalfCloseChannel(channel)
        guard = InitializeGuard(self.methods, lambda: self._connections[peer].initialized)
        peer = Peer(half_close, DIALECT, guard, redact=self.runtime.context.redactor.redact)
        connection = self._connections[peer] = UiConnection(peer)
        half_close.start()
        # Created after `start`: requests that were read by then are counted as in progress when
        # this task first checks.
        watching_input = asyncio.create_task(self._drain(half_close, connection))
        try:
            if self._closing:  # the connection was opened while `close` ran
                await peer.close(problem=ENDING)
            await peer.closed()
        finally:
            watching_input.cancel()
            self.runtime.subscriptions.disconnect(connection)
            await peer.close()
            await asyncio.wait({watching_input})
            del self._connections[peer]

    async def close(self) -> None:
        """Suspend every run and send their last messages; then answer all other pending requests
        with the error that the runtime ends."""
        self._closing = True
        await self.runtime.close()
        await asyncio.gather(
            *[peer.close("the server ended", ENDING) for peer in self._connections]
        )

    async def _drain(self, half_close: HalfCloseChannel, connection: UiConnection) -> None:
        """After the end of a UI's input, keep sending its runs until each has ended or asks a
        question; then release the end of input."""
        await half_close.input_ended.wait()
        self.runtime.subscriptions.half_close(connection)
        await connection.wait_idle()
        for run_id, feed in list(connection.feeds.items()):
            if (run := self.runtime.runs.get(run_id)) is not None:
                await run.ended_or_awaiting_answer()
            if not connection.capabilities.supports_run_attach or run_id not in self.runtime.runs:
                await feed.wait_sent()
        half_close.release()

    def _immediate(self, name: str, handler: Handler) -> Handler:
        def served(params: Any, call: CallContext) -> Any:
            try:
                if name == FIRST and call.id is None:
                    raise RpcError(Condition.REQUEST, f"{name!r} is a request and needs an id.")
                return handler(self.runtime, params, self._connections[call.peer])
            except Exception as error:
                raise to_rpc_error(error) from error

        return _typed(name, served)

    def _async(self, name: str, handler: Handler) -> Handler:
        async def served(params: Any, call: CallContext) -> Any:
            connection = self._connections[call.peer]
            try:
                with connection.serving():
                    return await handler(self.runtime, params, connection)
            except Exception as error:
                raise to_rpc_error(error) from error

        return _typed(name, served)


def _typed(name: str, served: Handler) -> Handler:
    """Give a handler the parameter and result types of the protocol's table."""
    params, result = METHODS[name]
    served.__annotations__ = {"params": params, "call": CallContext, "return": result}
    if name == "ui.context.update":
        served.__annotations__["params"] = Raw  # stored as received
    served.__doc__ = f"`{name}`"
    return served


_HINTS: Final = {
    "shell": "use `shell.exec`",
    "todos": "use the tool `todo` and the notification `todos.update`",
    "history": "use `session.list` and `session.history`",
    "workspace": "use the tools `list`, `read` and `search` with `tool.call`",
    "artifact": "use the tool `tool_output_cache` with `tool.call`",
}


class InitializeGuard(Methods):
    """The method table of one connection, in front of the shared one.

    Before `initialize` it refuses every other method, and after `initialize` a second one. Methods
    in a reserved namespace (§8) are refused with a hint. `is_open` returns whether `initialize` was
    received.
    """

    def __init__(self, behind: Methods, is_open: Callable[[], bool]) -> None:
        super().__init__()
        self._behind = behind
        self._is_open = is_open

    def get(self, name: str) -> Method | None:
        if self._is_open() == (name == FIRST):
            when = "only once" if self._is_open() else f"only after {FIRST!r}"
            return _refusing_method(
                name, Problem.of(Condition.REQUEST, f"{name!r} is allowed {when}.")
            )
        if (found := self._behind.get(name)) is not None:
            return found
        namespace = name.partition(".")[0]
        if namespace in RESERVED_NAMESPACES:
            hint = f"The namespace {namespace}.* is reserved; {_HINTS[namespace]}."
            return _refusing_method(name, self.unknown(name, hint))
        return None

    def unknown(self, name: str, detail: str = "") -> Problem:
        return self._behind.unknown(name, detail)


def _refusing_method(name: str, problem: Problem) -> Method:
    def refuse() -> None:
        raise RpcError.carrying(problem)

    table = Methods()
    table.add(name, refuse)
    found = table.get(name)
    assert found is not None
    return found


class HalfCloseChannel:
    """Delegates to a channel, but withholds the end of input from the receiver until `release`.

    `printf '…run.start…' | telex agent` ends its input at once. A peer that saw that would answer
    the pending requests and close, before the run has sent anything.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._receiver: Receiver | None = None
        self.input_ended = asyncio.Event()

    def start(self) -> None:
        """Start reading. Call it after the peer is registered: a channel may deliver at once."""
        self._channel.open(self)

    def release(self) -> None:
        """Pass the end of input on to the receiver."""
        if self._receiver is not None:
            self._receiver.finished()

    # As a channel.

    @property
    def unsent(self) -> int:
        return self._channel.unsent

    @property
    def binary(self) -> bool:
        return self._channel.binary

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def send(self, frame: bytes) -> None:
        self._channel.send(frame)

    async def drained(self) -> None:
        await self._channel.drained()

    def pause(self) -> None:
        self._channel.pause()

    def resume(self) -> None:
        self._channel.resume()

    async def close(self) -> None:
        await self._channel.close()

    # As a receiver.

    def received(self, events: list[Event]) -> None:
        if self._receiver is not None:
            self._receiver.received(events)

    def finished(self) -> None:
        self.input_ended.set()

    def lost(self, why: str) -> None:
        if self._receiver is not None:
            self._receiver.lost(why)
