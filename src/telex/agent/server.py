"""The door between a connection and the runtime: the methods by name, and their refusals by number.

What the runtime raises becomes, here and nowhere else, the number that the spec has for it (§9).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from telex.agent.connection import DIALECT, Connection
from telex.agent.gate import FIRST, Gate
from telex.agent.leaving import Staying
from telex.agent.methods import attaching, permitting, running, sessions, surroundings
from telex.agent.methods.attaching import NotThatFar
from telex.agent.runtime import NoSuchModel, TooManyRuns
from telex.agent.sandbox import OutsideSandbox
from telex.agent.shell_exec import BadShellParams
from telex.agent.store import (
    NotKept,
    RunNotOurs,
    StoreProblem,
    ThreadBusy,
    UnknownRun,
    UnknownThread,
)
from telex.agent.tools.registry import BadArguments, UnknownTool
from telex.processes.spawn import StartFailed
from telex.processes.termination import TreeSurvived
from telex.protocols.agent_ui import METHODS, codes
from telex.rpc.errors import ENDING, Condition, RpcError
from telex.rpc.handler_tasks import Call
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer

if TYPE_CHECKING:
    from telex.agent.runtime import Runtime
    from telex.rpc.channel import Channel

Handler = Callable[..., Any]

AT_ONCE: Final[dict[str, Handler]] = {
    "initialize": running.initialize,
    "ui.context.update": running.ui_context_update,
}
"""Answered on the spot: what comes behind them in the same read is served after them."""

WAITING: Final[dict[str, Handler]] = {
    "run.start": running.run_start,
    "run.cancel": running.run_cancel,
    "run.attach": attaching.run_attach,
    "run.steer": running.run_steer,
    "run.diff": running.run_diff,
    "session.list": sessions.session_list,
    "session.history": sessions.session_history,
    "model.list": sessions.model_list,
    "model.set": sessions.model_set,
    "tool.call": permitting.tool_call,
    "permission.explain": permitting.permission_explain,
    "auth.logout": permitting.auth_logout,
    "mcp.list": surroundings.mcp_list,
    "skills.list": surroundings.skills_list,
    "context.inspect": surroundings.context_inspect,
    "shell.exec": surroundings.shell_exec,
}

_NUMBERS: Final[tuple[tuple[int | Condition, tuple[type[Exception], ...]], ...]] = (
    (codes.SESSION_NOT_FOUND, (UnknownThread,)),
    (codes.RUN_NOT_FOUND, (UnknownRun,)),
    (codes.BUSY, (ThreadBusy, TooManyRuns, RunNotOurs)),
    (Condition.PARAMS, (UnknownTool, BadArguments, BadShellParams, OutsideSandbox, NoSuchModel)),
    (Condition.PARAMS, (NotKept, NotThatFar, msgspec.DecodeError)),
    (codes.INTERNAL, (StoreProblem, StartFailed, TreeSurvived, OSError)),
)


class AgentServer:
    """Serves one runtime to any number of connections. Close it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._connections: dict[Peer, Connection] = {}
        self._leaving = False
        self.methods = Methods()
        for name, handler in AT_ONCE.items():
            self.methods.add(name, self._at_once(name, handler))
        for name, handler in WAITING.items():
            self.methods.add(name, self._waiting(name, handler))

    async def converse(self, channel: Channel) -> None:
        """Serve one connection until it is over."""
        staying = Staying(channel)
        gate = Gate(self.methods, lambda: self._connections[peer].initialized)
        peer = Peer(staying, DIALECT, gate, redact=self.runtime.surroundings.redactor.redact)
        connection = self._connections[peer] = Connection(peer)
        staying.begin()
        # After it: what was read by then is being served when this task looks for the first time.
        listening = asyncio.create_task(self._last_words(staying, connection))
        try:
            if self._leaving:  # it came while the others were told
                await peer.close(tell=ENDING)
            await peer.closed()
        finally:
            listening.cancel()
            self.runtime.listening.left(connection)
            await peer.close()
            await asyncio.wait({listening})
            del self._connections[peer]

    async def close(self) -> None:
        """Every run is suspended and told so; then what else is pending is answered with an error
        that says that the runtime ends."""
        self._leaving = True
        await self.runtime.close()
        await asyncio.gather(
            *[peer.close("the server ended", ENDING) for peer in self._connections]
        )

    async def _last_words(self, staying: Staying, connection: Connection) -> None:
        """They say no more, and may still listen: their runs go on, as long as nobody is asked."""
        await staying.said_all.wait()
        self.runtime.listening.deafened(connection)
        await connection.served()
        for run_id, feed in list(connection.feeds.items()):
            if (run := self.runtime.runs.get(run_id)) is not None:
                await run.ended_or_waits()
            if not connection.can.supports_run_attach or run_id not in self.runtime.runs:
                await feed.sent()
        staying.pass_on()

    def _at_once(self, name: str, handler: Handler) -> Handler:
        def served(params: Any, call: Call) -> Any:
            try:
                if name == FIRST and call.id is None:
                    raise RpcError(Condition.REQUEST, f"{name!r} is a request: it needs an id.")
                return handler(self.runtime, params, self._connections[call.peer])
            except Exception as error:
                raise answered(error) from error

        return _typed(name, served)

    def _waiting(self, name: str, handler: Handler) -> Handler:
        async def served(params: Any, call: Call) -> Any:
            connection = self._connections[call.peer]
            try:
                with connection.serving():
                    return await handler(self.runtime, params, connection)
            except Exception as error:
                raise answered(error) from error

        return _typed(name, served)


def _typed(name: str, served: Handler) -> Handler:
    """The protocol's table says what a method takes and gives."""
    params, result = METHODS[name]
    served.__annotations__ = {"params": params, "call": Call, "return": result}
    if name == "ui.context.update":
        served.__annotations__["params"] = Raw  # kept as it came
    served.__doc__ = f"`{name}`"
    return served


def answered(error: Exception) -> Exception:
    """An error as the wire has it; what nobody expected stays what it is, and goes to the log."""
    if isinstance(error, RpcError):
        return error
    for code, kinds in _NUMBERS:
        if isinstance(error, kinds):
            text = f"{code.value} {error}" if isinstance(code, Condition) else str(error)
            return RpcError(code, text)
    return error
