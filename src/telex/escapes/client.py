"""The program's side of JSON escapes: `connect()`, calls, streams, events and files.

    async with escapes.connect() as term:
        term.style(color="#aaaaaa", bold=True)
        place = await term.call("term:report", {"what": "cursor"})

`connect()` takes the terminal (`own_tty`), finds out who answers (`terminal_discovery`), and gives
it back at the end of the block. Until then the terminal's input is read here: keys come from
`typed()`, or as events. Helpers and `tell` never wait and are never answered; the rest is awaited.
The same block with a plain `with` gives the blocking twin (`sync`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, Self, TypeVar, cast

import msgspec

from telex.automation.portal import DualContext
from telex.escapes import limits, protocol
from telex.escapes.capabilities import SPELLINGS, supports
from telex.escapes.client_commands import CommandMethods
from telex.escapes.commands import COMMANDS, EVENTS, core, lower, terminal_extensions
from telex.escapes.commands.terminal_extensions import FileDownload, FileSent
from telex.escapes.errors import FileCutShort, NoTerminal, NotSupported, NotTaken
from telex.escapes.own_tty import OwnTty
from telex.escapes.probe import FIRST_SECONDS
from telex.escapes.protocol import Guard
from telex.escapes.sync import BlockingAnsweringTerminal
from telex.escapes.terminal_discovery import EscapeConnection, discover, with_detected
from telex.processes.shielded import run_shielded
from telex.rpc import limits as rpc_limits
from telex.rpc.errors import CallError, CallTimedOut, PeerGone, RpcError, StreamOverrun
from telex.rpc.inbox import Inbox
from telex.rpc.messages import ABSENT, Notification
from telex.rpc.methods import Methods
from telex.rpc.peer import DEFAULT_TIMEOUT

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
CommandData = object
"""What a command takes: a payload of `escapes.commands`, or JSON of the same shape."""

FILE_SECONDS: Final = 4.0 * limits.QUESTION_SECONDS
"""For the next part of a file. The first waits for the person, who may be asked other things."""


def connect(
    *,
    fd: int | None = None,
    degrade: Degrade | None = None,
    methods: Mapping[str, Handler] | None = None,
    timeout: float = FIRST_SECONDS,
    environ: Mapping[str, str] | None = None,
) -> ConnectingTerminal:
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
        reached = await discover(take, environ, table, timeout, needed=degrade is None)
        return AnsweringTerminal(reached, table, degrade)

    return ConnectingTerminal(start, take)


class ConnectingTerminal(DualContext["AnsweringTerminal", BlockingAnsweringTerminal]):
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


class AnsweringTerminal(CommandMethods):
    """A terminal, and what stands in for one that does not answer. Made by `connect`."""

    def __init__(
        self, reached: EscapeConnection, methods: Methods, degrade: Degrade | None
    ) -> None:
        self._connection = reached
        self._degrade = degrade
        self._closed = False
        self._events = EventSubscriptions(methods, self.call, self._ended)
        self._loop = asyncio.get_running_loop()
        self._renewal: asyncio.Task[None] | None = None
        if reached.line is not None:
            reached.line.tty.continued = self._continued
            reached.line.tty.stopping = self._stopping
            reached.line.channel.finished = reached.line.tty.stop

    @property
    def via(self) -> str:
        """How it is reached: `terminal`, `tmux`, `screen`, `socket`; `nothing` if it is not."""
        return self._connection.via

    @property
    def capabilities(self) -> dict[str, Any]:
        """What `detect` answered, by system, as it came."""
        found = [self._connection.detected.get(key) for key in SPELLINGS]
        return next((one for one in found if isinstance(one, dict)), {})

    @property
    def round_trip(self) -> float | None:
        """Seconds that its slowest answer took so far."""
        return self._connection.round_trip.seconds

    @property
    def maxframe(self) -> int:
        """The most bytes of JSON that it takes in one frame."""
        return self._connection.dialect.json_bytes

    @property
    def echoes(self) -> int:
        """How many frames of ours the terminal sent back."""
        return self._connection.line.channel.echoes if self._connection.line else 0

    def supports(self, name: str) -> bool:
        """Whether the terminal has this command, as it said."""
        return supports(self._connection.detected, name)

    async def detect(self) -> dict[str, Any]:
        """Ask again what the terminal can do."""
        peer = self._peer("detect")
        self._connection = await with_detected(self._connection, peer, timeout=DEFAULT_TIMEOUT)
        return self.capabilities

    async def call(
        self,
        name: str,
        data: CommandData = ABSENT,
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
            parts = self._connection.dialect.pieces(parts)
        with self._connection.awaiting(), _either_clock(name):
            return await peer.call(
                name, data, returns=returns, timeout=timeout, parts=parts, grace=_grace(name)
            )

    async def stream(
        self,
        name: str,
        data: CommandData = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = None,
        parts: AsyncIterable[object] | bytes | None = None,
    ) -> AsyncIterator[T]:
        """The same, with the answer in parts as they come."""
        peer = self._peer(name)
        if isinstance(parts, bytes):
            parts = self._connection.dialect.pieces(parts)
        answers = peer.stream(
            name, data, returns=returns, timeout=timeout, parts=parts, grace=_grace(name)
        )
        async with aclosing(cast("AsyncGenerator[T, None]", answers)):
            with self._connection.awaiting(), _either_clock(name):
                async for part in answers:
                    yield part

    async def report(self, what: core.What) -> core.TermReported:
        """What the terminal knows: where its cursor is, its size, its colours."""
        return await self.call("term:report", core.TermReport(what), returns=core.TermReported)

    async def paste(self, *, selection: Literal["clipboard", "primary"] = "clipboard") -> str:
        """What is in the person's clipboard. They are asked whether they allow it."""
        clip: terminal_extensions.ClipText = await self.call(
            "clip:read",
            terminal_extensions.ClipRead(selection),
            returns=terminal_extensions.ClipText,
            timeout=limits.ESCAPE_TIMEOUT_SECONDS,
        )
        return clip.text

    async def send_file(self, path: str | os.PathLike[str], *, name: str | None = None) -> int:
        """Give the person a file, by its own name or another. They are asked whether they want it.

        Returns how many bytes they have then.
        """
        with open_file_to_send(path, name) as (about, file):
            parts = file_parts(file, lambda: self._connection.dialect.piece_bytes)
            kept: terminal_extensions.FileSaved = await self.call(
                "file:download",
                about,
                returns=terminal_extensions.FileSaved,
                timeout=FILE_SECONDS,
                parts=parts,
            )
        return kept.size

    async def receive_file(
        self, name: str, path: str | os.PathLike[str]
    ) -> terminal_extensions.FileSent:
        """A file of the person's, from where they started telex, into a new one. They are asked.

        Raises `FileExistsError` before that if there is one, and `FileCutShort` if not all came.
        """
        asked = terminal_extensions.FileUpload(name)
        parts: AsyncIterator[object] = self.stream("file:upload", asked, timeout=FILE_SECONDS)
        async with aclosing(cast("AsyncGenerator[object, None]", parts)):
            return await receive_file_parts(parts, path)

    def tell(self, name: str, data: CommandData = ABSENT) -> None:
        """Say it and go on: there is no answer, not even a refusal."""
        reached = self._connection
        if self._as_ansi(name):
            if reached.line is not None:
                _check_room(reached.line.channel)
                reached.line.channel.write(lower(name, None if data is ABSENT else data))
        elif reached.channel is not None:
            _check_room(reached.channel)
            reached.channel.send(reached.dialect.encode(Notification(name, data)))

    async def flushed(self) -> None:
        """Until the terminal has taken what it was told, or enough to go on."""
        if self._connection.channel is not None:
            await self._connection.channel.drained()
        if self._connection.line is not None:
            await self._connection.line.channel.drained()

    def events(self, *names: str) -> TerminalEventStream:
        """What happens at the terminal: `async for`, or `async with` to know that it has begun."""
        return self._events.stream(names)

    async def typed(self) -> bytes:
        """What was typed, at least a byte of it; empty once the terminal is gone."""
        return await self._connection.line.channel.keys.take() if self._connection.line else b""

    async def close(self) -> None:
        """Give the terminal back, as it was. Idempotent."""
        if not self._closed:
            self._closed = True
            await run_shielded(self._close())

    def _stopping(self) -> bool:
        """From a signal handler: whoever has the terminal next must find no half of a frame on it,
        and no answer to us in it. False while a frame is being written."""
        if (line := self._connection.line) is not None:
            if not line.channel.finish():
                return False
            if line.channel.awaiting:
                line.tty.discard_input()
        return True

    def _continued(self) -> None:
        """From a signal handler: we were stopped, and others had the terminal meanwhile."""
        self._loop.call_soon_threadsafe(self._renew)

    def _renew(self) -> None:
        if self._connection.peer is not None and not self._closed:
            self._connection.peer.renew()
            self._renewal = self._loop.create_task(self._renewed())

    async def _renewed(self) -> None:
        """A terminal forgets who leaves its foreground: what we take, and what we listen to."""
        try:
            await self.detect()
            await self._events.renew()
        except (CallError, NotSupported) as error:
            self._events.fail(error)

    async def _close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})
        if names := self._events.names:
            self.tell(UNSUBSCRIBE, {"events": names})
        await self._events.close()
        await self._connection.close()

    async def _ended(self) -> None:
        if self._connection.peer is not None:
            await self._connection.peer.closed()

    def _peer(self, name: str) -> Peer:
        if self._connection.peer is None:
            why = f"{name} needs an answer: {self._connection.why}"
            raise NotSupported(why, self._connection.advice)
        return self._connection.peer

    def _as_ansi(self, name: str) -> bool:
        """Whether plain ANSI is what was asked for, and can do it."""
        if self._degrade != "ansi" or (self._connection.peer is not None and self.supports(name)):
            return False
        return name in COMMANDS and COMMANDS[name].lower is not None


def _check_room(channel: Channel) -> None:
    if channel.unsent > rpc_limits.OUTBOUND_BYTES:
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
        if error.problem.code != protocol.ECTIMEOUT:
            raise
        raise CallTimedOut(f"{name}: {error.problem.message}") from error


SUBSCRIBE, UNSUBSCRIBE = "term:subscribe", "term:unsubscribe"


@dataclass(frozen=True, slots=True)
class TerminalEvent:
    """Something happened at the terminal."""

    name: str
    data: Any
    """Of the type the catalogue has for it; plain JSON for an event that it does not know."""


Ask = Callable[..., Awaitable[object]]
"""How the terminal is asked."""


class EventSubscriptions:
    """The event streams of one terminal. It subscribes with the first stream of an
    event, and unsubscribes after the last.
    """

    def __init__(
        self, methods: Methods, ask: Ask, ended: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._methods = methods
        self._ask = ask
        self._ended = ended
        """Returns when the terminal is gone."""
        self._watch: asyncio.Task[None] | None = None
        self._streams: set[TerminalEventStream] = set()
        self._names: Counter[str] = Counter()

    def stream(self, names: tuple[str, ...]) -> TerminalEventStream:
        for name in names:
            if self._methods.get(name) is None:
                self._methods.add(name, self._handler(name))
        return TerminalEventStream(self, names)

    @property
    def names(self) -> list[str]:
        """What is subscribed to now."""
        return sorted(+self._names)

    async def subscribe(self, events: TerminalEventStream) -> None:
        self._watch = self._watch or asyncio.create_task(self._watched())
        self._streams.add(events)
        new = [name for name in events.names if not self._names[name]]
        self._names.update(events.names)
        try:
            if new:
                await self._subscribed(new)
        except BaseException:
            await self.unsubscribe(events)
            raise

    async def unsubscribe(self, events: TerminalEventStream) -> None:
        if gone := self._forget(events):
            with contextlib.suppress(CallError):  # who does not even answer tells nothing more
                await self._ask(UNSUBSCRIBE, {"events": gone})

    async def renew(self) -> None:
        """Subscribe once more to all of it."""
        if self.names:
            await self._subscribed(self.names)

    def fail(self, error: Exception) -> None:
        """Whoever listens hears nothing more but this."""
        for events in self._streams:
            events.end(error)

    async def close(self) -> None:
        """Nobody is told anything any more."""
        for events in self._streams:
            events.end()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})

    async def _watched(self) -> None:
        await self._ended()
        self.fail(PeerGone("the terminal is gone, and tells of nothing more"))

    async def _subscribed(self, names: list[str]) -> None:
        # The person may be asked, and takes longer than a terminal does.
        patience = limits.ESCAPE_TIMEOUT_SECONDS
        answer = await self._ask(SUBSCRIBE, {"events": names}, timeout=patience)
        subscribed = answer.get("events") if isinstance(answer, dict) else None
        if isinstance(subscribed, list) and (never := sorted(set(names) - set(subscribed))):
            raise NotSupported(f"this terminal does not tell of {', '.join(never)}")

    def _forget(self, events: TerminalEventStream) -> list[str]:
        """What nobody listens to any more."""
        if events not in self._streams:
            return []
        self._streams.discard(events)
        self._names.subtract(events.names)
        return [name for name in events.names if not self._names[name]]

    def _handler(self, name: str) -> Callable[[Any], None]:
        def deliver(data: Any) -> None:
            for events in self._streams:
                if name in events.names:
                    events.put(TerminalEvent(name, data))

        known = EVENTS.get(name)
        deliver.__annotations__["data"] = Any if known is None else known.payload
        return deliver


class TerminalEventStream:
    """The events that one reader subscribed to. Made by `AnsweringTerminal.events`.

        async with term.events("event:key", "event:resize") as events:
            async for event in events:
                ...

    Subscribed on entering and unsubscribed on leaving; a plain `async for` does both by itself. A
    reader that is too slow loses the subscription with `StreamOverrun`, instead of missing keys.
    """

    def __init__(self, subscriptions: EventSubscriptions, names: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        self._subscriptions = subscriptions
        self._inbox: Inbox[TerminalEvent] = Inbox()
        self._entered = False

    def put(self, event: TerminalEvent) -> None:
        if not self._inbox.put(event):
            self._inbox.end(StreamOverrun(f"{event.name}: too many events came and were not taken"))

    async def __aenter__(self) -> Self:
        self._entered = True
        await self._subscriptions.subscribe(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._inbox.end()
        await self._subscriptions.unsubscribe(self)

    async def __aiter__(self) -> AsyncIterator[TerminalEvent]:
        if self._entered:
            async for event in self._inbox:
                yield event
        else:
            async with self:
                async for event in self._inbox:
                    yield event

    def end(self, error: Exception | None = None) -> None:
        """Nothing more comes."""
        self._inbox.end(error)


@contextmanager
def open_file_to_send(
    path: str | os.PathLike[str], name: str | None
) -> Iterator[tuple[FileDownload, BinaryIO]]:
    """A file, and what is to be said of it first."""
    with open(path, "rb") as file:
        yield FileDownload(name or Path(path).name, os.fstat(file.fileno()).st_size), file


async def file_parts(file: BinaryIO, piece: Callable[[], int]) -> AsyncIterator[bytes]:
    """All of it, as parts that fit."""
    while data := file.read(piece()):
        yield data


async def receive_file_parts(
    parts: AsyncIterator[object], path: str | os.PathLike[str]
) -> FileSent:
    """Into a new file. What is not whole is removed again."""
    with _new(path) as file:
        about = msgspec.convert(await anext(parts), FileSent)
        async for part in parts:
            file.write(part if isinstance(part, bytes) else b"")
        file.flush()  # here, where a full disk still removes the file
        if (came := file.tell()) != about.size:
            raise FileCutShort(f"{came} bytes of {about.size} came; ask for the file again")
    return about


@contextmanager
def _new(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    with open(path, "xb", opener=_private) as file:
        try:
            yield file
        except BaseException:
            os.unlink(path)
            raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
