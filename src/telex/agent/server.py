"""The agent's server: registers the handlers by method name, and serves UI connections.

`AgentServer` gives each handler the types of the protocol's table, and each connection an
`InitializeGuard` and a `HalfCloseChannel`. It maps the exceptions of handlers to wire codes
(`errors`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from telex.agent import handlers, ui_handlers
from telex.agent.errors import to_rpc_error
from telex.agent.protocol import METHODS, RESERVED_NAMESPACES
from telex.agent.protocol.ui_requests import CONFIRM, UiConfirmRequestParams, UiConfirmResult
from telex.agent.ui_connection import DIALECT, UiConnection
from telex.rpc.errors import ENDING, CallError, Condition, Problem, RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.methods import Method, Methods
from telex.rpc.peer import Peer

if TYPE_CHECKING:
    from telex.agent.runtime import AgentRuntime
    from telex.rpc.channel import Channel, Receiver
    from telex.rpc.identity import Identity
    from telex.wire.events import Event


Handler = Callable[..., Any]
FIRST: Final = "initialize"
CONTEXT: Final = "ui.context.update"

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
    "workspace.list": ui_handlers.workspace_list,
    "workspace.read": ui_handlers.workspace_read,
    "workspace.search": ui_handlers.workspace_search,
    "artifact.read": ui_handlers.artifact_read,
    "history.export": ui_handlers.history_export,
    "history.undo": ui_handlers.history_undo,
    "todos.get": ui_handlers.todos_get,
    "todos.set": ui_handlers.todos_set,
    "commands.list": ui_handlers.commands_list,
    "terminal.list": ui_handlers.terminal_list,
}


class AgentServer:
    """Serves one runtime to any number of connections, each in its own workspace. `close` also
    closes the runtime.

    The `identity` of a channel decides the workspaces that the connection may choose
    (`telex.agent.workspace`).
    """

    def __init__(self, runtime: AgentRuntime) -> None:
        self.runtime = runtime
        self._connections: dict[Peer, UiConnection] = {}
        self._closing = False
        self.methods = Methods("log")
        plain: dict[str, Handler] = {
            FIRST: lambda params, call: self._initialize(params, call),
            CONTEXT: lambda params, call: self._update_context(params, call),
        }
        waiting = {name: self._async(name, handler) for name, handler in ASYNC.items()}
        for name, handler in (plain | waiting).items():
            self.methods.add(name, _typed(name, handler))

    async def converse(self, channel: Channel) -> None:
        """Serve one connection until it closes."""
        half_close = HalfCloseChannel(channel)
        guard = InitializeGuard(self.methods, lambda: self._connections[peer].initialized)
        peer = Peer(half_close, DIALECT, guard, redact=lambda text: connection.redact(text))
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

    async def confirm(self, title: str, message: str) -> bool | None:
        """Ask a question that belongs to no run at every connected UI. The first answer counts;
        None if no UI can answer."""
        question = UiConfirmRequestParams(title, message, danger_level="danger")

        async def ask(ui: UiConnection) -> bool:
            answer: UiConfirmResult = await ui.peer.call(
                CONFIRM, question, returns=UiConfirmResult, timeout=None
            )
            return answer.ok

        answers = {
            asyncio.create_task(ask(one))
            for one in self._connections.values()
            if one.initialized and one.can_be_asked(CONFIRM)
        }
        try:
            for answer in asyncio.as_completed(answers):
                with contextlib.suppress(CallError):
                    return await answer
        finally:
            for task in answers:
                task.cancel()
            if answers:
                await asyncio.wait(answers)
        return None

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

    def _initialize(self, params: Any, call: CallContext) -> Any:
        """Begin to open the workspace before the next message of the same read is handled; respond
        when it is open."""
        if call.id is None:
            raise RpcError(Condition.REQUEST, f"{FIRST!r} is a request and needs an id.")
        connection = self._connections[call.peer]
        opening = self.runtime.open_workspace(params.workspace, connection.identity)
        connection.initialize(params, opening)
        return self._respond(FIRST, handlers.initialize, params, connection)

    def _update_context(self, params: Any, call: CallContext) -> None:
        """Update before the next message of the same read is handled."""
        try:
            handlers.ui_context_update(self.runtime, params, self._connections[call.peer])
        except Exception as error:
            raise to_rpc_error(error) from error

    def _async(self, name: str, handler: Handler) -> Handler:
        async def served(params: Any, call: CallContext) -> Any:
            return await self._respond(name, handler, params, self._connections[call.peer])

        return served

    async def _respond(
        self, name: str, handler: Handler, params: Any, connection: UiConnection
    ) -> Any:
        try:
            with connection.serving():
                await self._wait_opened(name, connection)
                return await handler(self.runtime, params, connection)
        except Exception as error:
            raise to_rpc_error(error) from error

    async def _wait_opened(self, name: str, connection: UiConnection) -> None:
        try:
            await connection.wait_opened()
        except Exception as error:
            if name == FIRST:
                raise
            raise RpcError(Condition.REQUEST, _only_after_first(name)) from error


def _only_after_first(name: str) -> str:
    return f"{name!r} is allowed only after {FIRST!r}."


def _typed(name: str, served: Handler) -> Handler:
    """Give a handler the parameter and result types of the protocol's table."""
    params, result = METHODS[name]
    served.__annotations__ = {"params": params, "call": CallContext, "return": result}
    if name == CONTEXT:
        served.__annotations__["params"] = Raw  # stored as received
    served.__doc__ = f"`{name}`"
    return served


_HINTS: Final = {
    "shell": "use `shell.exec`",
    "todos": "use `todos.get` and `todos.set`",
    "history": "use `history.export`, `history.undo` and `session.history`",
    "workspace": "use `workspace.list`, `workspace.read` and `workspace.search`",
    "artifact": "use `artifact.read`",
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
            once = f"{name!r} is allowed only once."
            why = once if self._is_open() else _only_after_first(name)
            return _refusing_method(name, Problem.of(Condition.REQUEST, why))
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

    @property
    def identity(self) -> Identity:
        return self._channel.identity

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
