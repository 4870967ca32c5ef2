"""A conversation with a runtime that outlives its channel.

`RuntimeConnection` dials, sends `initialize`, and watches the channel. When the channel is lost it
dials again, with growing pauses, until the time for that is over. Requests that only read are
repeated on the new channel. A request that may have had an effect is not: it raises
`ConnectionLost`, because only its caller can decide whether to repeat it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET

from telex.agent import limits, protocol
from telex.agent.errors import (
    AgentError,
    ConnectionLost,
    InvalidParams,
    RuntimeFailed,
    UnsupportedVersion,
    to_agent_error,
)
from telex.agent.protocol.runs import (
    InitializeParams,
    PeerInfo,
    ServerCapabilities,
    WorkspaceInfo,
)
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import CallTimedOut, PeerGone, RpcError, UnexpectedReply
from telex.rpc.peer import MessageTooLarge, Peer
from telex.transports.errors import CannotConnect, NoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.rpc.channel import Channel
    from telex.rpc.methods import Methods

T = TypeVar("T")

DIALECT: Final = JsonRpc(codes=protocol.CODES, null_ids=False)

REPEATED: Final = frozenset(
    {
        *("session.list", "session.history", "model.list", "model.set", "mcp.list", "skills.list"),
        *("context.inspect", "permission.explain", "run.diff", "run.cancel"),
        *("workspace.list", "workspace.read", "workspace.search", "artifact.read"),
        *("history.export", "todos.get", "todos.set", "commands.list"),
    }
)
"""Requests that are sent again after a reconnect: a second one has the effect of the first."""

_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds before each attempt to reconnect; the last one is repeated."""


async def _nothing() -> None: ...


@dataclass(frozen=True, slots=True)
class Dialer:
    """How to reach a runtime: `dial` opens a channel, each time it is called."""

    dial: Callable[[], Awaitable[Channel]]
    close: Callable[[], Awaitable[None]] = _nothing
    """Called once, after the last channel is closed."""


class _Initialized(msgspec.Struct, frozen=True):
    """The answer to `initialize`. Capabilities that a runtime does not name are ones it lacks."""

    protocol_version: str
    server: PeerInfo
    server_capabilities: dict[str, Any] | None = None
    workspace: WorkspaceInfo | None = None


class RuntimeConnection:
    """Open it, call and notify, close it."""

    def __init__(
        self,
        dialer: Dialer,
        hello: InitializeParams,
        methods: Methods,
        *,
        reconnect: float,
        on_connected: Callable[[], Awaitable[None]],
        on_lost: Callable[[], None],
        on_ended: Callable[[ConnectionLost], None],
    ) -> None:
        """`on_connected` is called after each reconnect, `on_lost` when a channel is lost, and
        `on_ended` when no further attempt to reconnect is made."""
        self._dialer = dialer
        self._hello = hello
        self._methods = methods
        self._reconnect = reconnect
        self._on_connected = on_connected
        self._on_lost = on_lost
        self._on_ended = on_ended
        self._peer: Peer | None = None
        self._changed = asyncio.Event()
        self._ended: ConnectionLost | None = None
        self._watcher: asyncio.Task[None] | None = None
        self.server = PeerInfo("", "")
        self.capabilities = ServerCapabilities()
        self.workspace: WorkspaceInfo | None = None

    @property
    def state(self) -> Literal["connected", "connecting", "lost"]:
        """`connecting` before the first connection and while a lost one is dialled again."""
        if self._ended is not None:
            return "lost"
        return "connected" if self._peer is not None and not self._peer.why_ended else "connecting"

    async def open(self) -> None:
        """Connect for the first time. Raises `CannotConnect` or an `AgentError`."""
        try:
            self._peer = await self._dial()
        except BaseException:
            await self._dialer.close()
            raise
        self._watcher = asyncio.create_task(self._watch(self._peer))

    async def call(self, method: str, params: msgspec.Struct, returns: type[T]) -> T:
        """Send a request and return its result. Raises an `AgentError`."""
        while True:
            peer = await self._connected()
            try:
                return await peer.call(method, _given(params), returns=returns, timeout=None)
            except MessageTooLarge as error:
                raise InvalidParams(str(error)) from error
            except UnexpectedReply as error:
                raise RuntimeFailed(f"the runtime sent an invalid result: {error}") from error
            except RpcError as error:
                problem = to_agent_error(error)
                if not isinstance(problem, ConnectionLost):
                    raise problem from None  # what it came from says nothing more
            except PeerGone as error:
                problem = ConnectionLost(
                    f"the connection to the runtime was lost ({error}); whether {method} was "
                    "carried out is not known"
                )
            await peer.closed()
            if not self._repeats(method):
                raise problem

    async def notify(self, method: str, params: msgspec.Struct) -> None:
        """Send a notification. Raises `ConnectionLost`."""
        peer = await self._connected()
        try:
            await peer.notify(method, _given(params))
        except PeerGone as error:
            raise ConnectionLost(f"the connection to the runtime was lost: {error}") from error

    async def close(self) -> None:
        """Close the channel, and wait until nothing of the conversation is left. Idempotent."""
        self._end(ConnectionLost("this client was closed"))
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait({self._watcher})
        if self._peer is not None:
            await self._peer.close()
        await self._dialer.close()

    def _repeats(self, method: str) -> bool:
        return self._reconnect > 0 and method in REPEATED

    async def connected(self) -> None:
        """Wait until there is a connection. Raises `ConnectionLost` where none will be."""
        await self._connected()

    async def _connected(self) -> Peer:
        """The peer of the current channel; waits while there is none."""
        while True:
            if self._ended is not None:
                raise ConnectionLost(*self._ended.args)
            if self._peer is not None and not self._peer.why_ended:
                return self._peer
            self._changed.clear()
            await self._changed.wait()

    async def _dial(self) -> Peer:
        """A channel on which `initialize` was answered."""
        peer = Peer(await self._dialer.dial(), DIALECT, self._methods, repeats=True)
        try:
            await self._initialize(peer)
        except BaseException:
            await peer.close()
            raise
        return peer

    async def _initialize(self, peer: Peer) -> None:
        try:
            answer: _Initialized = await peer.call(
                "initialize",
                self._hello,
                returns=_Initialized,
                timeout=limits.AGENT_CLIENT_INITIALIZE_SECONDS,
            )
        except RpcError as error:
            raise to_agent_error(error) from None  # what it came from says nothing more
        except (PeerGone, CallTimedOut, UnexpectedReply) as error:
            raise ConnectionLost(f"the runtime did not answer: {error}") from error
        if answer.protocol_version != protocol.VERSION:
            raise UnsupportedVersion(
                f"{answer.server.name} speaks version {answer.protocol_version} of the protocol; "
                f"this client speaks version {protocol.VERSION}"
            )
        if self._hello.workspace is not None and answer.workspace is None:
            raise InvalidParams(
                f"{answer.server.name} does not let a client choose its workspace; leave it out, "
                "and start the runtime in the right directory"
            )
        said = answer.server_capabilities or {}
        names = ServerCapabilities.__struct_fields__
        self.server = answer.server
        self.workspace = answer.workspace
        self.capabilities = ServerCapabilities(**{name: said.get(name) is True for name in names})

    async def _watch(self, peer: Peer) -> None:
        """Dial again whenever the channel is lost, until that fails for good."""
        resuming: asyncio.Task[None] | None = None
        try:
            while True:
                await peer.closed()
                await _cancelled(resuming)
                await peer.close()
                self._on_lost()
                peer = self._peer = await self._dial_again(peer.why_ended)
                self._changed.set()
                resuming = asyncio.create_task(self._resume())
        except ConnectionLost as error:
            self._end(error)
        except Exception as error:
            self._end(ConnectionLost(f"the connection to the runtime was lost: {error!r}"))
            raise
        finally:
            await _cancelled(resuming)

    async def _resume(self) -> None:
        """A task of its own, so that the loss of the connection is noticed meanwhile."""
        with contextlib.suppress(ConnectionLost):  # the next connection resumes
            await self._on_connected()

    async def _dial_again(self, why: str) -> Peer:
        lost = f"the connection to the runtime was lost: {why}"
        if self._reconnect <= 0:
            raise ConnectionLost(lost)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._reconnect
        for pause in _pauses():
            await asyncio.sleep(pause)
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._dial()
            except (NoServer, ConnectionLost, OSError) as error:  # TimeoutError is an OSError
                if loop.time() + pause > deadline:
                    raise ConnectionLost(f"{lost}; reconnecting failed: {error}") from error
            except (CannotConnect, AgentError) as error:
                raise ConnectionLost(f"{lost}; reconnecting failed: {error}") from error
        raise AssertionError("the pauses have no end")

    def _end(self, error: ConnectionLost) -> None:
        if self._ended is None:
            self._ended = error
            self._changed.set()
            self._on_ended(error)


def _given(params: msgspec.Struct) -> dict[str, Any]:
    """The members that have a value. The others may be null too, but not every runtime knows."""
    members = ((name, getattr(params, name)) for name in params.__struct_fields__)
    return {name: value for name, value in members if value is not None and value is not UNSET}


async def _cancelled(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait({task})


def _pauses() -> Iterator[float]:
    yield from _PAUSES
    while True:
        yield _PAUSES[-1]
