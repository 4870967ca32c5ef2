"""The program's side of JSON escapes: `connect()`, and what a terminal that answers can be asked.

    async with escapes.connect() as term:
        term.style(color="#aaaaaa", bold=True)
        place = await term.call("term:report", {"what": "cursor"})

`connect()` takes the terminal (`own_tty`), finds out who answers (`reaching`), and gives it back at
the end of the block. Until then the terminal's input is read here: what a person types comes by
`typed()`, or as events. Helpers and `tell` never wait and are never answered; the rest is awaited.
The same block with a plain `with` gives the blocking twin.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from telex.automation.portal import DualContext, shielded
from telex.escapes import detecting, sending
from telex.escapes.blocking import BlockingAnsweringTerminal
from telex.escapes.catalogue import COMMANDS
from telex.escapes.command import Guard
from telex.escapes.commanding import Commanding
from telex.escapes.listening import UNSUBSCRIBE, Events, Listening
from telex.escapes.lowering import lower
from telex.escapes.own_tty import NoTerminal, NotSupported, OwnTty
from telex.escapes.probing import FIRST_SECONDS
from telex.escapes.reaching import Reached, detected, reach
from telex.protocols import json_escapes as spec
from telex.rpc.errors import CallError, CallTimedOut, RpcError
from telex.rpc.messages import ABSENT, Notification
from telex.rpc.methods import Methods
from telex.rpc.peer import DEFAULT_TIMEOUT
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        AsyncIterator,
        Awaitable,
        Callable,
        Iterator,
        Mapping,
    )

    from telex.rpc.channel import Channel
    from telex.rpc.methods import Handler
    from telex.rpc.peer import Peer

T = TypeVar("T")
Degrade = Literal["ansi", "nothing"]
Data = object
"""What a command takes: a payload of `protocols.json_escapes`, or JSON of the same shape."""

FILE_SECONDS: Final = 4.0 * limits.QUESTION_SECONDS
"""For the next part of a file. The first waits for the person, who may be asked other things."""


class NotTaken(BlockingIOError):
    """More was told than the terminal takes."""


def connect(
    *,
    fd: int | None = None,
    degrade: Degrade | None = None,
    methods: Mapping[str, Handler] | None = None,
    timeout: float = FIRST_SECONDS,
    environ: Mapping[str, str] | None = None,
) -> Connecting:
    """The terminal of this program, if it speaks JSON escapes: `async with`, or `with`.

    Raises `NotSupported` if it does not, unless told how to `degrade`: then helpers become plain
    ANSI, or nothing, and what needs an answer raises it instead. `fd` is a descriptor of another
    terminal than the controlling one. `methods` are what the terminal may call here. `timeout` is
    how long it may take to answer the first question.
    """
    environ = os.environ if environ is None else environ
    take = functools.cache(lambda: OwnTty(fd))

    async def start() -> AnsweringTerminal:
        table = Methods()
        for name, handler in (methods or {}).items():
            table.add(name, handler)
        reached = await reach(take, environ, table, timeout, needed=degrade is None)
        return AnsweringTerminal(reached, table, degrade)

    return Connecting(start, take)


class Connecting(DualContext["AnsweringTerminal", BlockingAnsweringTerminal]):
    """Not connected before it is entered."""

    def __init__(
        self, start: Callable[[], Awaitable[AnsweringTerminal]], take: Callable[[], OwnTty]
    ) -> None:
        super().__init__(start, BlockingAnsweringTerminal)
        self._take = take
        self._tty: OwnTty | None = None

    def __enter__(self) -> BlockingAnsweringTerminal:
        # Here and not in the event loop's thread: only the main one can guard it against signals.
        with contextlib.suppress(NoTerminal):  # which is said, or degraded to, where it is asked
            self._tty = self._take()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        try:
            super().__exit__()
        finally:
            if self._tty is not None:
                self._tty.close()


class AnsweringTerminal(Commanding):
    """A terminal, and what stands in for one that does not answer. Made by `connect`."""

    def __init__(self, reached: Reached, methods: Methods, degrade: Degrade | None) -> None:
        self._reached = reached
        self._degrade = degrade
        self._closed = False
        self._listening = Listening(methods, self.call, self._ended)
        self._loop = asyncio.get_running_loop()
        self._renewal: asyncio.Task[None] | None = None
        if reached.line is not None:
            reached.line.tty.continued = self._continued
            reached.line.tty.stopping = self._stopping
            reached.line.channel.finished = reached.line.tty.stop

    @property
    def via(self) -> str:
        """How it is reached: `terminal`, `tmux`, `screen`, `socket`; `nothing` if it is not."""
        return self._reached.via

    @property
    def capabilities(self) -> dict[str, Any]:
        """What `detect` answered, by system, as it came."""
        found = [self._reached.detected.get(key) for key in detecting.SPELLINGS]
        return next((one for one in found if isinstance(one, dict)), {})

    @property
    def round_trip(self) -> float | None:
        """Seconds that its slowest answer took so far."""
        return self._reached.round_trip.seconds

    @property
    def maxframe(self) -> int:
        """The most bytes of JSON that it takes in one frame."""
        return self._reached.dialect.json_bytes

    @property
    def echoes(self) -> int:
        """How many frames of ours the terminal sent back."""
        return self._reached.line.channel.echoes if self._reached.line else 0

    def supports(self, name: str) -> bool:
        """Whether the terminal has this command, as it said."""
        return detecting.supports(self._reached.detected, name)

    async def detect(self) -> dict[str, Any]:
        """Ask again what the terminal can do."""
        peer = self._peer("detect")
        self._reached = await detected(self._reached, peer, timeout=DEFAULT_TIMEOUT)
        return self.capabilities

    async def call(
        self,
        name: str,
        data: Data = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = DEFAULT_TIMEOUT,
        parts: AsyncIterable[object] | bytes | None = None,
    ) -> T:
        """Ask, and wait for the answer, 5 s unless told; while the person is asked whether they
        allow it, that time does not run. Bytes are sent in as many parts as needed.

        Raises `NotSupported`, a `CallError` (`RpcError` is the terminal's own no, with its code;
        `CallTimedOut` is that nobody answered in time), or `FrameTooLarge`.
        """
        peer = self._peer(name)
        if isinstance(parts, bytes):
            parts = self._reached.dialect.pieces(parts)
        with self._reached.awaiting(), _either_clock(name):
            return await peer.call(
                name, data, returns=returns, timeout=timeout, parts=parts, grace=_grace(name)
            )

    async def stream(
        self,
        name: str,
        data: Data = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = None,
        parts: AsyncIterable[object] | bytes | None = None,
    ) -> AsyncIterator[T]:
        """The same, with the answer in parts as they come."""
        peer = self._peer(name)
        if isinstance(parts, bytes):
            parts = self._reached.dialect.pieces(parts)
        answers = peer.stream(
            name, data, returns=returns, timeout=timeout, parts=parts, grace=_grace(name)
        )
        async with aclosing(cast("AsyncGenerator[T, None]", answers)):
            with self._reached.awaiting(), _either_clock(name):
                async for part in answers:
                    yield part

    async def report(self, what: spec.What) -> spec.Reported:
        """What the terminal knows: where its cursor is, its size, its colours."""
        return await self.call("term:report", spec.Report(what), returns=spec.Reported)

    async def paste(self, *, selection: Literal["clipboard", "primary"] = "clipboard") -> str:
        """What is in the person's clipboard. They are asked whether they allow it."""
        clip: spec.ClipText = await self.call(
            "clip:read",
            spec.ClipRead(selection),
            returns=spec.ClipText,
            timeout=limits.ESCAPE_TIMEOUT_SECONDS,
        )
        return clip.text

    async def send_file(self, path: str | os.PathLike[str], *, name: str | None = None) -> int:
        """Give the person a file, by its own name or another. They are asked whether they want it.

        Returns how many bytes they have then.
        """
        with sending.reading(path, name) as (about, file):
            parts = sending.pieces(file, lambda: self._reached.dialect.piece_bytes)
            kept: spec.FileSaved = await self.call(
                "file:download", about, returns=spec.FileSaved, timeout=FILE_SECONDS, parts=parts
            )
        return kept.size

    async def receive_file(self, name: str, path: str | os.PathLike[str]) -> spec.FileSent:
        """A file of the person's, from where they started telex, into a new one. They are asked.

        Raises `FileExistsError` before that if there is one, and `FileCutShort` if not all came.
        """
        asked = spec.FileUpload(name)
        parts: AsyncIterator[object] = self.stream("file:upload", asked, timeout=FILE_SECONDS)
        async with aclosing(cast("AsyncGenerator[object, None]", parts)):
            return await sending.receive(parts, path)

    def tell(self, name: str, data: Data = ABSENT) -> None:
        """Say it and go on: there is no answer, not even a refusal."""
        reached = self._reached
        if self._as_ansi(name):
            if reached.line is not None:
                _check_room(reached.line.channel)
                reached.line.channel.write(lower(name, None if data is ABSENT else data))
        elif reached.channel is not None:
            _check_room(reached.channel)
            reached.channel.send(reached.dialect.encode(Notification(name, data)))

    async def flushed(self) -> None:
        """Until the terminal has taken what it was told, or enough to go on."""
        if self._reached.channel is not None:
            await self._reached.channel.drained()
        if self._reached.line is not None:
            await self._reached.line.channel.drained()

    def events(self, *names: str) -> Events:
        """What happens at the terminal: `async for`, or `async with` to know that it has begun."""
        return self._listening.to(names)

    async def typed(self) -> bytes:
        """What was typed, at least a byte of it; empty once the terminal is gone."""
        return await self._reached.line.channel.keys.take() if self._reached.line else b""

    async def close(self) -> None:
        """Give the terminal back, as it was. Idempotent."""
        if not self._closed:
            self._closed = True
            await shielded(self._close())

    def _stopping(self) -> bool:
        """From a signal handler: whoever has the terminal next must find no half of a frame on it,
        and no answer to us in it. False while a frame is being written."""
        if (line := self._reached.line) is not None:
            if not line.channel.finish():
                return False
            if line.channel.awaiting:
                line.tty.discard_input()
        return True

    def _continued(self) -> None:
        """From a signal handler: we were stopped, and others had the terminal meanwhile."""
        self._loop.call_soon_threadsafe(self._renew)

    def _renew(self) -> None:
        if self._reached.peer is not None and not self._closed:
            self._reached.peer.renew()
            self._renewal = self._loop.create_task(self._renewed())

    async def _renewed(self) -> None:
        """A terminal forgets who leaves its foreground: what we take, and what we listen to."""
        try:
            await self.detect()
            await self._listening.renew()
        except (CallError, NotSupported) as error:
            self._listening.fail(error)

    async def _close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})
        if names := self._listening.names:
            self.tell(UNSUBSCRIBE, {"events": names})
        await self._listening.close()
        await self._reached.close()

    async def _ended(self) -> None:
        if self._reached.peer is not None:
            await self._reached.peer.closed()

    def _peer(self, name: str) -> Peer:
        if self._reached.peer is None:
            why = f"{name} needs an answer: {self._reached.why}"
            raise NotSupported(why, self._reached.advice)
        return self._reached.peer

    def _as_ansi(self, name: str) -> bool:
        """Whether plain ANSI is what was asked for, and can do it."""
        if self._degrade != "ansi" or (self._reached.peer is not None and self.supports(name)):
            return False
        return name in COMMANDS and COMMANDS[name].lower is not None


def _check_room(channel: Channel) -> None:
    if channel.unsent > limits.OUTBOUND_BYTES:
        raise NotTaken(
            f"the terminal has not taken {channel.unsent} bytes yet; "
            "await term.flushed() before telling it more"
        )


def _grace(name: str) -> float:
    """How long the terminal's person may be asked whether they allow this."""
    command = COMMANDS.get(name)
    asks = command is not None and command.guard is not Guard.FREE
    return limits.QUESTION_SECONDS * (limits.QUESTIONS_WAITING + 1.0) if asks else 0.0


@contextlib.contextmanager
def _either_clock(name: str) -> Iterator[None]:
    """Both sides know the timeout, and whose clock is first is chance: it is one exception."""
    try:
        yield
    except RpcError as error:
        if error.problem.code != spec.ECTIMEOUT:
            raise
        raise CallTimedOut(f"{name}: {error.problem.message}") from error
