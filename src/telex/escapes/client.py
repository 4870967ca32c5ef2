"""The program's side of JSON escapes: `connect()`, calls, streams, events and files.

    async with escapes.connect() as term:
        term.style(color="#aaaaaa", bold=True)
        place = await term.call("term:report", {"what": "cursor"})

`connect()` takes the terminal (`own_tty`), finds the peer (`terminal_discovery`), and restores the
terminal at the end of the block. Until then the terminal's input is read here: `typed()` returns
keys, or they come as events. Command methods and `tell` send without waiting for a response; all
other methods are awaited. The same block with a plain `with` gives the blocking twin (`sync`).
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
from telex.escapes.sync import AnsweringTerminal
from telex.escapes.terminal_discovery import EscapeConnection, discover, with_detected
from telex.processes.shielded import run_shielded
from telex.rpc import limits as rpc_limits
from telex.rpc.errors import CallError, CallTimedOut, PeerGone, RpcError, StreamOverrun
from telex.rpc.messages import ABSENT, Notification
from telex.rpc.methods import Methods
from telex.rpc.outgoing_calls import Inbox
from telex.rpc.peer import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping

    from telex.rpc.channel import Channel
    from telex.rpc.methods import Handler
    from telex.rpc.peer import Peer


T = TypeVar("T")
Degrade = Literal["ansi", "nothing"]
CommandData = object
"""The data of a command: a payload of `escapes.commands`, or JSON of the same shape."""

FILE_SECONDS: Final = 4.0 * limits.QUESTION_SECONDS
"""Timeout of each part of a file. The first part waits for the person's answer, perhaps after
answers to other questions."""


def connect(
    *,
    fd: int | None = None,
    degrade: Degrade | None = None,
    methods: Mapping[str, Handler] | None = None,
    timeout: float = FIRST_SECONDS,
    environ: Mapping[str, str] | None = None,
) -> ConnectingTerminal:
    """Connect to the terminal of this program by JSON escapes. Use `async with`, or `with`.

    Args:
        fd: A descriptor of another terminal than the controlling one.
        degrade: Without JSON escapes, send commands as plain ANSI (`"ansi"`) or drop them
            (`"nothing"`). Methods that need a response then raise `NotSupported`.
        methods: Methods that the terminal may call in this program.
        timeout: Seconds that the terminal may take to reply to the first query.
        environ: The environment; None stands for `os.environ`.

    Raises:
        NotSupported: The terminal has no JSON escapes, and `degrade` is None. Raised on entering.

    Example:
        with telex.escapes.connect(degrade="ansi") as term:
            term.title("building")
            term.progress(0.4)
    """
    environ = os.environ if environ is None else environ
    take = functools.cache(lambda: OwnTty(fd))

    async def start() -> AsyncAnsweringTerminal:
        table = Methods()
        for name, handler in (methods or {}).items():
            table.add(name, handler)
        connection = await discover(take, environ, table, timeout, needed=degrade is None)
        return AsyncAnsweringTerminal(connection, table, degrade)

    return ConnectingTerminal(start, take)


class ConnectingTerminal(DualContext["AsyncAnsweringTerminal", AnsweringTerminal]):
    """A context manager that connects when it is entered. Made by `connect`."""

    def __init__(
        self, start: Callable[[], Awaitable[AsyncAnsweringTerminal]], take: Callable[[], OwnTty]
    ) -> None:
        super().__init__(start, AnsweringTerminal, "telex.escapes.connect()", "term")
        self._take = take
        self._tty: OwnTty | None = None

    def __enter__(self) -> AnsweringTerminal:
        # Here and not in the event loop's thread: only the main thread can set signal handlers.
        with contextlib.suppress(NoTerminal):  # `discover` takes it again, and handles the error
            self._tty = self._take()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        try:
            super().__exit__()
        finally:
            if self._tty is not None:
                self._tty.close()


class AsyncAnsweringTerminal(CommandMethods):
    """The terminal of this program. Made by `connect`, which says what happens if the terminal has
    no JSON escapes.
    """

    __module__ = "telex.escapes"

    def __init__(
        self, connection: EscapeConnection, methods: Methods, degrade: Degrade | None
    ) -> None:
        self._connection = connection
        self._degrade = degrade
        self._closed = False
        self._events = EventSubscriptions(methods, self.call, self._disconnected)
        self._loop = asyncio.get_running_loop()
        self._renewal: asyncio.Task[None] | None = None
        if connection.line is not None:
            connection.line.tty.continued = self._continued
            connection.line.tty.stopping = self._stopping
            connection.line.channel.finished = connection.line.tty.stop

    @property
    def via(self) -> str:
        """The way to the peer: `terminal`, `tmux`, `screen`, `socket`; `nothing` without one."""
        return self._connection.via

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities in the response to `detect`, by system, unchecked."""
        found = [self._connection.detected.get(key) for key in SPELLINGS]
        return next((one for one in found if isinstance(one, dict)), {})

    @property
    def round_trip(self) -> float | None:
        """Seconds of the slowest response so far."""
        return self._connection.round_trip.seconds

    @property
    def maxframe(self) -> int:
        """The most bytes of JSON that the terminal reads in one frame."""
        return self._connection.dialect.json_bytes

    @property
    def echoes(self) -> int:
        """How many frames of ours the terminal has echoed."""
        return self._connection.line.channel.echoes if self._connection.line else 0

    def supports(self, name: str) -> bool:
        """Whether the terminal supports a command or event, by its response to `detect`.

        Args:
            name: The name, such as "image:show".
        """
        return supports(self._connection.detected, name)

    async def detect(self) -> dict[str, Any]:
        """Detect the terminal's capabilities again."""
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
        """Send a request and wait for the response.

        Args:
            name: The command.
            data: Its data.
            returns: The type of the result.
            timeout: Seconds to wait, 5 by default. The clock is paused while the person is asked
                to allow the command.
            parts: Further parts of the request. Bytes are cut into as many parts as needed.

        Raises:
            NotSupported: There is no peer.
            RpcError: The terminal refused, with its code.
            CallTimedOut: No response came in time.
            CallError: The base of these two, and of other failures of a call.
            FrameTooLarge: The request is larger than the terminal's limit.
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
        """Send a request like `call`, and yield the parts of the response as they arrive.

        Args:
            name: The command.
            data: Its data.
            returns: The type of a part.
            timeout: Seconds to wait for each part; None waits without a limit.
            parts: Further parts of the request, as for `call`.

        Raises:
            NotSupported: There is no peer.
            CallError: The terminal refused, or the call failed.
        """
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
        """Query the terminal: the position of its cursor, its size, its colours.

        Args:
            what: The value to report, such as "cursor" or "size-cells".

        Raises:
            NotSupported: There is no peer.
            CallError: The terminal does not report it, or the call failed.
        """
        return await self.call("term:report", core.TermReport(what), returns=core.TermReported)

    async def paste(self, *, selection: Literal["clipboard", "primary"] = "clipboard") -> str:
        """Read the person's clipboard. The person is asked to allow it.

        Args:
            selection: The clipboard, or the primary selection of X11.

        Raises:
            NotSupported: There is no peer.
            CallError: The person did not allow it, or the call failed.
        """
        clip: terminal_extensions.ClipText = await self.call(
            "clip:read",
            terminal_extensions.ClipRead(selection),
            returns=terminal_extensions.ClipText,
            timeout=limits.ESCAPE_TIMEOUT_SECONDS,
        )
        return clip.text

    async def send_file(self, path: str | os.PathLike[str], *, name: str | None = None) -> int:
        """Send the person a file. The person is asked to allow it.

        Args:
            path: The file.
            name: Its name for the person; by default its own.

        Returns:
            The number of bytes that were saved.

        Raises:
            OSError: The file cannot be read.
            CallError: The person did not allow it, or the call failed.
        """
        with open_file_to_send(path, name) as (about, file):
            parts = file_parts(file, lambda: self._connection.dialect.piece_bytes)
            saved: terminal_extensions.FileSaved = await self.call(
                "file:download",
                about,
                returns=terminal_extensions.FileSaved,
                timeout=FILE_SECONDS,
                parts=parts,
            )
        return saved.size

    async def receive_file(
        self, name: str, path: str | os.PathLike[str]
    ) -> terminal_extensions.FileSent:
        """Receive a file of the person into a new file at `path`. The person is asked to allow it.

        Args:
            name: The name of the file in the directory where the person started telex.
            path: The new file.

        Raises:
            FileExistsError: `path` exists. The person is not asked then.
            FileCutShort: The file was received incompletely. `path` is removed.
        """
        asked = terminal_extensions.FileUpload(name)
        parts: AsyncIterator[object] = self.stream("file:upload", asked, timeout=FILE_SECONDS)
        async with aclosing(cast("AsyncGenerator[object, None]", parts)):
            return await receive_file_parts(parts, path)

    def tell(self, name: str, data: CommandData = ABSENT) -> None:
        """Send a command as a notification: there is no response, not even an error.

        Args:
            name: The command.
            data: Its data.

        Raises:
            NotTaken: The terminal has not read earlier commands; await `flushed()` first.
        """
        connection = self._connection
        if self._as_ansi(name):
            if connection.line is not None:
                _check_room(connection.line.channel)
                connection.line.channel.write(lower(name, None if data is ABSENT else data))
        elif connection.channel is not None:
            _check_room(connection.channel)
            connection.channel.send(connection.dialect.encode(Notification(name, data)))

    async def flushed(self) -> None:
        """Wait until the terminal has read enough that more can be sent."""
        if self._connection.channel is not None:
            await self._connection.channel.drained()
        if self._connection.line is not None:
            await self._connection.line.channel.drained()

    def events(self, *names: str) -> AsyncTerminalEventStream:
        """Subscribe to events. Use `async for`; or `async with` first, to know when the
        subscription has begun.

        Args:
            names: Names of events, such as "event:resize".
        """
        return self._events.stream(names)

    async def typed(self) -> bytes:
        """Wait for keys. Returns at least one byte; empty once the terminal has hung up."""
        return await self._connection.line.channel.keys.take() if self._connection.line else b""

    async def close(self) -> None:
        """Restore the terminal. Idempotent."""
        if not self._closed:
            self._closed = True
            await run_shielded(self._close())

    def _stopping(self) -> bool:
        """Prepare for a stop, in a signal handler: the next program must find neither half a frame
        on the terminal nor a response to us in its input. False while a frame is being written.
        """
        if (line := self._connection.line) is not None:
            if not line.channel.finish():
                return False
            if line.channel.awaiting:
                line.tty.discard_input()
        return True

    def _continued(self) -> None:
        """Renew everything after a stop, in a signal handler: other programs had the terminal."""
        self._loop.call_soon_threadsafe(self._renew)

    def _renew(self) -> None:
        if self._connection.peer is not None and not self._closed:
            self._connection.peer.renew()
            self._renewal = self._loop.create_task(self._renewed())

    async def _renewed(self) -> None:
        """Detect and subscribe again: a terminal forgets the frame size and the subscriptions of a
        program that leaves its foreground.
        """
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

    async def _disconnected(self) -> None:
        if self._connection.peer is not None:
            await self._connection.peer.closed()

    def _peer(self, name: str) -> Peer:
        if self._connection.peer is None:
            why = f"{name} needs a response: {self._connection.why}"
            raise NotSupported(why, self._connection.advice)
        return self._connection.peer

    def _as_ansi(self, name: str) -> bool:
        """Whether to send a command as plain ANSI."""
        if self._degrade != "ansi" or (self._connection.peer is not None and self.supports(name)):
            return False
        return name in COMMANDS and COMMANDS[name].lower is not None


def _check_room(channel: Channel) -> None:
    if channel.unsent > rpc_limits.OUTBOUND_BYTES:
        raise NotTaken(
            f"the terminal has not read {channel.unsent} bytes yet; "
            "await term.flushed() before sending more"
        )


def _grace(name: str) -> float:
    """Return how long the person may be asked to allow a command."""
    command = COMMANDS.get(name)
    asks = command is not None and command.guard is not Guard.FREE
    return limits.QUESTION_SECONDS * (limits.QUESTIONS_WAITING + 1.0) if asks else 0.0


@contextlib.contextmanager
def _either_clock(name: str) -> Iterator[None]:
    """Raise `CallTimedOut` for a timeout on either side: chance decides which clock is first."""
    try:
        yield
    except RpcError as error:
        if error.problem.code != protocol.ECTIMEOUT:
            raise
        raise CallTimedOut(f"{name}: {error.problem.message}") from error


SUBSCRIBE, UNSUBSCRIBE = "term:subscribe", "term:unsubscribe"


@dataclass(frozen=True, slots=True)
class TerminalEvent:
    """An event of the terminal, such as a key or a new size."""

    __module__ = "telex.escapes"

    name: str
    data: Any
    """Of the type in `escapes.commands`; plain JSON for an event that is not there."""


SendRequest = Callable[..., Awaitable[object]]
"""`AsyncAnsweringTerminal.call`."""


class EventSubscriptions:
    """Keeps the event streams of one terminal. It subscribes with the first stream of an event, and
    unsubscribes after the last.

    Args:
        methods: Gets a handler for each event.
        call: Sends a request to the terminal.
        disconnected: Returns when the connection is lost.
    """

    def __init__(
        self,
        methods: Methods,
        call: SendRequest,
        disconnected: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._methods = methods
        self._call = call
        self._disconnected = disconnected
        self._watch: asyncio.Task[None] | None = None
        self._streams: set[AsyncTerminalEventStream] = set()
        self._names: Counter[str] = Counter()

    def stream(self, names: tuple[str, ...]) -> AsyncTerminalEventStream:
        for name in names:
            if self._methods.get(name) is None:
                self._methods.add(name, self._handler(name))
        return AsyncTerminalEventStream(self, names)

    @property
    def names(self) -> list[str]:
        """The events that are subscribed to now."""
        return sorted(+self._names)

    async def subscribe(self, events: AsyncTerminalEventStream) -> None:
        self._watch = self._watch or asyncio.create_task(self._watched())
        self._streams.add(events)
        new = [name for name in events.names if not self._names[name]]
        self._names.update(events.names)
        try:
            if new:
                await self._send_subscribe(new)
        except BaseException:
            await self.unsubscribe(events)
            raise

    async def unsubscribe(self, events: AsyncTerminalEventStream) -> None:
        if unused := self._remove(events):
            with contextlib.suppress(CallError):  # a terminal that does not respond sends nothing
                await self._call(UNSUBSCRIBE, {"events": unused})

    async def renew(self) -> None:
        """Subscribe again to all events."""
        if self.names:
            await self._send_subscribe(self.names)

    def fail(self, error: Exception) -> None:
        """End all streams with an error."""
        for events in self._streams:
            events.end(error)

    async def close(self) -> None:
        """End all streams."""
        for events in self._streams:
            events.end()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})

    async def _watched(self) -> None:
        await self._disconnected()
        self.fail(PeerGone("the connection to the terminal was lost, so no more events will come"))

    async def _send_subscribe(self, names: list[str]) -> None:
        # The person may be asked, and takes longer than a terminal does.
        patience = limits.ESCAPE_TIMEOUT_SECONDS
        answer = await self._call(SUBSCRIBE, {"events": names}, timeout=patience)
        subscribed = answer.get("events") if isinstance(answer, dict) else None
        if isinstance(subscribed, list) and (missing := sorted(set(names) - set(subscribed))):
            raise NotSupported(f"this terminal does not send {', '.join(missing)}")

    def _remove(self, events: AsyncTerminalEventStream) -> list[str]:
        """Remove a stream. Return the events that have no stream any more."""
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


class AsyncTerminalEventStream:
    """The events that one reader subscribed to. Made by `AsyncAnsweringTerminal.events`.

        async with term.events("event:key", "event:resize") as events:
            async for event in events:
                ...

    It subscribes on entering and unsubscribes on leaving; a plain `async for` does both. A reader
    that is too slow gets `StreamOverrun` and loses the subscription, instead of missing keys.
    """

    def __init__(self, subscriptions: EventSubscriptions, names: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        self._subscriptions = subscriptions
        self._inbox: Inbox[TerminalEvent] = Inbox()
        self._entered = False

    def put(self, event: TerminalEvent) -> None:
        if not self._inbox.put(event):
            self._inbox.end(StreamOverrun(f"{event.name}: too many events have not been read"))

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
        """End the stream after the events that have arrived."""
        self._inbox.end(error)


@contextmanager
def open_file_to_send(
    path: str | os.PathLike[str], name: str | None
) -> Iterator[tuple[FileDownload, BinaryIO]]:
    """Open a file. Yields the payload that announces it, and the file."""
    with open(path, "rb") as file:
        yield FileDownload(name or Path(path).name, os.fstat(file.fileno()).st_size), file


async def file_parts(file: BinaryIO, piece: Callable[[], int]) -> AsyncIterator[bytes]:
    """Yield the content of a file in parts that fit into a frame."""
    while data := file.read(piece()):
        yield data


async def receive_file_parts(
    parts: AsyncIterator[object], path: str | os.PathLike[str]
) -> FileSent:
    """Write the parts into a new file. An incomplete file is removed."""
    with _new(path) as file:
        about = msgspec.convert(await anext(parts), FileSent)
        async for part in parts:
            file.write(part if isinstance(part, bytes) else b"")
        file.flush()  # here, so that an error of a full disk still removes the file
        if (received := file.tell()) != about.size:
            raise FileCutShort(f"received {received} bytes of {about.size}; request the file again")
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
