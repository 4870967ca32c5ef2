"""How a client calls the methods of automation: in this process, or on a server.

`AsyncTerminal` and `AsyncServer` of `client` know only the `Caller` protocol, so that the same
classes drive both.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import inspect
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from telex.automation import protocol as spec
from telex.automation.errors import Refused, ServerGone, SessionProblem, to_session_problem
from telex.automation.portal import Closable, hides_frames
from telex.rpc.errors import PeerGone, RpcError
from telex.rpc.identity import IN_PROCESS, Identity
from telex.rpc.methods import Methods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.automation.notices import CheckInput
    from telex.automation.server import AutomationService
    from telex.rpc.peer import Peer
    from telex.terminal.session import PtySession

T = TypeVar("T")
__tracebackhide__ = hides_frames


class OutputChunk(msgspec.Struct, frozen=True):
    """A piece of a session's output, as an attachment sends it.

    `data` has the bytes. `reset` is true when the reader must clear its screen first: `data` then
    draws the whole screen. `more` is true when the next piece follows at once.
    """

    data: bytes
    reset: bool = False
    more: bool = False

    def __repr__(self) -> str:
        """Return its facts without the bytes: a repr gets into logs."""
        flags = [name for name in ("reset", "more") if getattr(self, name)]
        return f"<{' '.join(['OutputChunk', f'{len(self.data)} bytes', *flags])}>"


class ChunkRouter:
    """Sorts the output chunks of one connection into a queue for each attachment.

    A chunk may arrive before the answer of `session.attach` has named its attachment: it is kept
    while such an answer is expected. A chunk that arrives after the attachment was ended is
    dropped.
    """

    def __init__(self) -> None:
        self._queues: dict[str, asyncio.Queue[OutputChunk | None]] = {}
        self._early: dict[str, asyncio.Queue[OutputChunk | None]] = {}
        self._expected = 0

    @contextlib.contextmanager
    def expected(self) -> Iterator[None]:
        """Keep chunks of unknown attachments in this block, which calls `session.attach`."""
        self._expected += 1
        try:
            yield
        finally:
            self._expected -= 1
            if not self._expected:
                self._early.clear()

    def queue(self, attachment: str) -> asyncio.Queue[OutputChunk | None]:
        """Return the queue of a new attachment. None in it means that the program has ended."""
        queue = self._early.pop(attachment, None) or asyncio.Queue()
        self._queues[attachment] = queue
        return queue

    def put(self, attachment: str, chunk: OutputChunk) -> None:
        if (queue := self._queues.get(attachment)) is not None:
            queue.put_nowait(chunk)
        elif self._expected:
            self._early.setdefault(attachment, asyncio.Queue()).put_nowait(chunk)

    def forget(self, attachment: str) -> None:
        self._queues.pop(attachment, None)

    def receive(self, got: spec.SessionBytes) -> None:
        """Handle the notification `session.bytes`."""
        chunk = OutputChunk(base64.b64decode(got.data64), got.reset, got.more)
        self.put(got.attachment, chunk)


class Caller(Closable, Protocol):
    """Calls the methods of automation, in this process or on a server."""

    chunks: ChunkRouter

    async def call(self, method: str, params: object, returns: type[T]) -> T:
        """Call a method and return its result. Raises SessionProblem."""
        ...

    async def notify(self, method: str, params: object) -> None:
        """Call a method without waiting for its result. Errors are dropped."""
        ...

    def step(self, kind: str, words: str) -> contextlib.AbstractContextManager[None]:
        """Return a block whose calls are one step of a trace, described by these words."""
        ...


class LocalCaller:
    """Calls a service in this process, without a wire between."""

    def __init__(
        self,
        service: AutomationService,
        then: Closable | None = None,
        identity: Identity = IN_PROCESS,
        check_input: CheckInput | None = None,
    ) -> None:
        """`then` is closed after the service; the service needs it. `identity` is that of the
        process for which this one calls. `check_input` is that of `notices.Connection`."""
        from telex.automation.notices import Connection  # the server's side, not for a remote one

        self._service = service
        self._then = then
        self.chunks = ChunkRouter()
        self._connection = Connection(
            None,
            service.redactor,
            deliver=self._deliver,
            identity=identity,
            check_input=check_input,
        )

    async def call(self, method: str, params: object, returns: type[T]) -> T:
        try:
            answer: Any = self._service.handlers[method](_validated(params), self._connection)
            return await answer if inspect.isawaitable(answer) else answer  # type: ignore[no-any-return]  # as the table has it
        except RpcError as error:
            raise to_session_problem(error) from None  # the cause adds nothing for the caller

    async def notify(self, method: str, params: object) -> None:
        with contextlib.suppress(SessionProblem):
            await self.call(method, params, object)

    def step(self, kind: str, words: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def session(self, id: str) -> PtySession:
        """Return a session itself, for code of this process that follows it."""
        return self._service.find(id)[0]

    def leave(self) -> None:
        """End the connection to a service that others use too, with its leases."""
        self._service.forget(self._connection)

    async def close(self) -> None:
        """End the service, which was started for this caller."""
        self.leave()
        try:
            await self._service.close()
        finally:
            if self._then is not None:
                await self._then.close()

    async def _deliver(self, attachment: str, data: bytes, reset: bool, more: bool) -> None:
        self.chunks.put(attachment, OutputChunk(data, reset, more))


class SharedCaller(LocalCaller):
    """Calls a service in this process that others use too. Its end is that of a connection: it
    ends its leases and attachments, and no session."""

    async def close(self) -> None:
        self.leave()


class RemoteCaller:
    """Calls a server, over a peer."""

    def __init__(self, peer: Peer, chunks: ChunkRouter | None = None) -> None:
        """`chunks` receives the notifications `session.bytes` of that peer."""
        self._peer = peer
        self.chunks = chunks or ChunkRouter()

    async def call(self, method: str, params: object, returns: type[T]) -> T:
        try:
            checked = _validated(params)
            return await self._peer.call(method, checked, returns=returns, timeout=None)
        except RpcError as error:
            raise to_session_problem(error) from None  # the cause adds nothing for the caller
        except PeerGone as error:
            raise ServerGone(f"the connection to the server is closed: {error}", {}) from error

    async def notify(self, method: str, params: object) -> None:
        with contextlib.suppress(PeerGone):
            await self._peer.notify(method, params)

    def step(self, kind: str, words: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    async def close(self) -> None:
        """Close the connection. The sessions of the server stay."""
        await self._peer.close()


async def dial_caller(address: str, token: str | None = None) -> RemoteCaller:
    """Connect to a server. Raises CannotConnect."""
    from telex.automation.dialer import dial

    chunks = ChunkRouter()
    methods = Methods()
    methods.add("session.bytes", chunks.receive)
    return RemoteCaller(await dial(address, token, methods), chunks)


def _validated(params: object) -> object:
    """Check the parameters as a server would. Raises Refused, for a size of 0 for example."""
    try:
        plain = msgspec.to_builtins(params, builtin_types=(bytes, bytearray))  # not as base64
        return msgspec.convert(plain, type(params))
    except (msgspec.ValidationError, TypeError) as error:
        raise Refused(f"The parameters are not valid. {error}", {}) from error
