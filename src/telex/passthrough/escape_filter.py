"""The filter for JSON escapes between a program and the person's terminal.

The program's output passes `program_output`, and the terminal's input `person_input`. Before the
first frame the filter does little: it searches the output for a frame, and keeps the output for a
model of the screen (`OutputBacklog`) and for a later search for queries (`UnscannedOutput`). Both
may never be used. The rest is `escape_responder`, which is imported while the program is idle, so
that the first response does not wait for the import.

Programs can reach the same service in two other ways: by a socket, named in TELEX_SOCKET, for
programs behind another program that swallows escapes; and by the listeners that the person asked
for.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from telex.config.limits import SOCKET_PATH_BYTES
from telex.passthrough.foreground_history import ForegroundHistory
from telex.passthrough.output_backlog import OutputBacklog
from telex.passthrough.query_replies import AttributeFilter, TerminalQueries, UnscannedOutput
from telex.terminal import limits
from telex.terminal.background_import import load_module
from telex.wire import htty_chunk, json_escape
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Event, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager

    from telex.escapes.policy import Policy
    from telex.passthrough.escape_responder import EscapeResponder
    from telex.passthrough.joined_terminals import JoinedTerminals
    from telex.passthrough.page_opener import PageOpener
    from telex.rpc.channel import Channel
    from telex.terminal.cells import Size


# The filter for pages under `telex run`, which costs nothing until a program serves one.
#
# The demux that finds JSON escapes also takes chunks out of the program's output. The first chunk
# imports the rest (`page_opener`, HTTP/2), so a program without a page does not pay for the
# import. If pages are switched off, chunks are dropped all the same: a screen must not show them.


VARIABLE: Final = "HTTY"


class PageOpening(StrEnum):
    """Whether a page is opened in the person's browser."""

    ALWAYS = "always"
    ASK = "ask"
    NEVER = "never"
    """The address is shown, and nothing is sent to the program before a browser opens it."""


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How a program's pages are shown."""

    open: PageOpening = PageOpening.ASK
    port: int = 0
    """The port of the gateway; 0 stands for any free port."""
    eager: bool = False
    """Send the first bytes, for programs that wait for the terminal to begin."""


class PageFilter:
    """Takes the chunks of one program out of its events.

    Args:
        options: How pages are shown; None drops all chunks.
        make_opener: Makes the `PageOpener`, with the first chunk.
    """

    def __init__(
        self, options: PageOptions | None, make_opener: Callable[[PageOptions], PageOpener]
    ) -> None:
        self._options = options
        self._make_opener = make_opener
        self._opener: PageOpener | None = None
        self.swallowed = 0

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for the program."""
        return {} if self._options is None else {VARIABLE: htty_chunk.VERSION.decode()}

    def begin(self) -> None:
        """Start with an eager opener, if that is wanted: the program runs."""
        if self._options is not None and self._options.eager:
            self._opener = self._make_opener(self._options)

    def filter_events(self, events: list[Event]) -> list[Event]:
        """Handle the chunks. Return the other events."""
        chunks = [event for event in events if _is_chunk(event)]
        for chunk in chunks:
            self._handle(chunk)
        if self._opener is not None:
            self._opener.side.poke()
        return [event for event in events if not _is_chunk(event)] if chunks else events

    def _handle(self, chunk: Event) -> None:
        if self._options is None or not isinstance(chunk, Claimed | Fault):
            self.swallowed += 1
            return
        if self._opener is None:
            self._opener = self._make_opener(self._options)
        if chunk.claim == htty_chunk.CHUNK:
            self._opener.side.receive_chunk(chunk)
        elif isinstance(chunk, Claimed):
            self._opener.raw_form()

    async def close(self) -> None:
        """Close the opener. The program has exited; its terminal is still open."""
        if self._opener is not None:
            await self._opener.close()


def _is_chunk(event: Event) -> bool:
    """Whether this is a chunk, or the announcement of the raw form, after which no chunk comes."""
    return isinstance(event, Claimed | Fault) and event.claim in (htty_chunk.CHUNK, htty_chunk.RAW)


SOCKET: Final = "TELEX_SOCKET"
_ATTRIBUTE: Final = 23198
"""The same as `escapes.protocol.ATTRIBUTE`, a module that is slow to import."""
_RESPONDER: Final = "telex.passthrough.escape_responder"
_UNSEEN: Final = "unseen"
_SLICE_BYTES: Final = 3 * limits.TURN_BYTES
"""An emulator parses this in about 4 ms."""
_SWITCH_SECONDS: Final = 0.00005
_USUAL_SECONDS: Final = sys.getswitchinterval()
IDLE_SECONDS: Final = 0.1
"""Without output for so long, the program counts as idle."""

ServeChannel = Callable[["Channel"], Awaitable[None]]
ExtraListener = Callable[[ServeChannel], "AbstractAsyncContextManager[None]"]


@dataclass(frozen=True, slots=True)
class EscapeOptions:
    """How a program may use JSON escapes and pages."""

    policy: Policy | None = None
    """The person's rules; None stands for the defaults."""
    listeners: tuple[ExtraListener, ...] = ()
    pages: PageOptions | None = None
    """How pages of programs are shown; None if they are not shown."""


class EscapeFilter:
    """Filters the output and input of one program: a frame loads `escape_responder`.

    `ProgramRun` calls `begin` when the program runs, `suspend` and `resume` around a stop, and
    `close` when the program has exited.
    """

    def __init__(self, terminals: JoinedTerminals, options: EscapeOptions) -> None:
        self._terminals = terminals
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._demux = Demux(
            (json_escape.TO_TERMINAL, json_escape.TO_PROGRAM, htty_chunk.CHUNK, htty_chunk.RAW)
        )
        self._pages = PageFilter(options.pages, self._page_opener)
        self._unscanned = UnscannedOutput()
        self._attributes = AttributeFilter(_ATTRIBUTE)
        self._query_timer: asyncio.TimerHandle | None = None
        self._attribute_timer: asyncio.TimerHandle | None = None
        self._backlog = OutputBacklog(terminals.size)
        self._foreground = ForegroundHistory()
        self._queries = TerminalQueries()
        self._responder: EscapeResponder | None = None
        self._reads = 0
        self._idle: asyncio.TimerHandle | None = None
        self._catching_up = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun = asyncio.Event()
        self._closed = False

    # The program's output.

    def program_output(self, data: bytes) -> None:
        """Remove frames and chunks from the output, and write the rest to the terminal."""
        now = self._loop.time()
        self._foreground.sample(self._terminals.pty, now)
        self._handle_events(self._pages.filter_events(self._demux.feed(data)), now)
        self._foreground.note_read(len(data), now)

    def _handle_events(self, events: list[Event], now: float) -> None:
        if self._responder is None:
            events = self._write_before_frame(events, now)
        if events:
            responder = self._loaded_responder()
            for event in events:
                if isinstance(event, Visible):
                    self._unscanned.add(event.data, now)
            responder.program_output(events)
        self._reads += 1
        if self._backlog.above_soft_limit and not self._catching_up:
            # Earlier if the screen model exists: a question that needs it should not have to wait.
            if self._backlog.above_hard_limit or self._responder is not None:
                self._start_catching_up()
            elif self._idle is None:
                self._check_when_idle()
        if self._backlog.full and self._catching_up:
            self._terminals.pause_output(_UNSEEN)

    def _write_before_frame(self, events: list[Event], now: float) -> list[Event]:
        """Write the output before the first frame. Return the events from that frame on."""
        for number, event in enumerate(events):
            if not isinstance(event, Visible):
                return events[number:]
            self._terminals.write_to_terminal(event.data)
            self._backlog.add(event.data)
            self._unscanned.add(event.data, now)
        return []

    def _scan_for_queries(self) -> None:
        """Search the program's recent output for queries, whose replies may arrive now."""
        now = self._loop.time()
        if not (output := self._unscanned.take(now)):
            return
        if self._terminals.person:
            self._attributes.program_output(output, now)
        if self._responder is None:  # once loaded, the responder scans all output itself
            self._queries.program_output(output, now)

    def _check_when_idle(self) -> None:
        self._idle = self._loop.call_later(IDLE_SECONDS, self._check_idle, self._reads)

    def _check_idle(self, reads: int) -> None:
        self._idle = None
        if reads != self._reads:
            self._check_when_idle()
        elif not self._backlog.above_soft_limit:
            if self._responder is None:  # a daemon thread: the exit of telex does not wait for it
                threading.Thread(target=_load_responder, daemon=True).start()
        elif not self._catching_up:
            self._start_catching_up()

    def _start_catching_up(self) -> None:
        self._catching_up = True
        self._start(self._catch_up())

    async def _catch_up(self) -> None:
        """Parse the backlog in slices, so that input and output pass between them. A slice is more
        than one read brings, so that the backlog shrinks.
        """
        try:
            if self._responder is None:
                await asyncio.to_thread(_load_responder)
            screen = self._loaded_responder().screen
            while self._backlog.pending:
                screen.catch_up(_SLICE_BYTES)
                if not self._backlog.full:
                    self._terminals.resume_output(_UNSEEN)
                await asyncio.sleep(0)
        finally:
            self._catching_up = False
            self._terminals.resume_output(_UNSEEN)

    def _loaded_responder(self) -> EscapeResponder:
        if self._responder is None:
            from telex.passthrough.escape_responder import EscapeResponder

            self._scan_for_queries()
            self._responder = EscapeResponder(
                self._terminals,
                self._backlog,
                self._foreground,
                self._queries,
                self._options.policy,
                htty=self._options.pages is not None,
            )
        return self._responder

    def _page_opener(self, options: PageOptions) -> PageOpener:
        from telex.passthrough.page_opener import PageOpener

        return PageOpener(self._terminals, self._foreground, self._loaded_responder, options)

    def resized(self, size: Size) -> None:
        (self._backlog if self._responder is None else self._responder).resized(size)

    # The person's input.

    def person_input(self, data: bytes) -> None:
        """Remove replies to our queries, add our attribute to a DA1 reply, and pass the rest on."""
        if b"\x1b" in data:
            self._scan_for_queries()
        data = self._queries.person_input(data, self._loop.time())
        self._query_timer = self._rearmed(
            self._query_timer, self._queries.held_until, self._release_query
        )
        if data:
            self._filter_attributes(data)

    def _release_query(self) -> None:
        self._query_timer = None
        self._filter_attributes(self._queries.release())

    def _filter_attributes(self, data: bytes) -> None:
        if self._terminals.person:
            data = self._attributes.person_input(data, self._loop.time())
            self._attribute_timer = self._rearmed(
                self._attribute_timer, self._attributes.held_until, self._release_attributes
            )
        self._forward_input(data)

    def _release_attributes(self) -> None:
        self._attribute_timer = None
        self._forward_input(self._attributes.release())

    def _forward_input(self, data: bytes) -> None:
        if self._responder is not None:
            self._responder.person_input(data)
        elif data:
            self._terminals.write_to_program(data)

    def _rearmed(
        self, timer: asyncio.TimerHandle | None, when: float | None, release: Callable[[], None]
    ) -> asyncio.TimerHandle | None:
        """Replace the timer that releases held input."""
        if timer is not None:
            timer.cancel()
        return None if when is None else self._loop.call_at(when, release)

    # Start, stop and exit of the program.

    def begin(self) -> None:
        """Start serving: the program runs."""
        self._begun.set()
        self._check_when_idle()
        self._pages.begin()

    async def suspend(self) -> None:
        """Remove questions and modes of ours: the program has stopped, and the shell gets the
        terminal.
        """
        if self._responder is not None:
            await self._responder.suspend()

    def ask_again(self) -> None:
        """Allow questions that were refused: the person has continued the stopped program."""
        if self._responder is not None:
            self._responder.gate.ask_again()

    def resume(self) -> None:
        """Set our modes again: the program continues."""
        if self._responder is not None:
            self._responder.events.check_foreground()

    async def close(self) -> None:
        """Write the last output and stop serving. The program has exited; its terminal is open."""
        self._closed = True
        last = self._pages.filter_events(self._demux.eof())
        await self._pages.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for timer in (self._query_timer, self._attribute_timer, self._idle):
            if timer is not None:
                timer.cancel()
        if self._responder is None:
            self._write_before_frame(last, self._loop.time())
        else:
            self._responder.program_output(last)
            await self._responder.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Sockets and other listeners.

    @contextlib.asynccontextmanager
    async def listeners(self) -> AsyncIterator[dict[str, str]]:
        """Open the socket and the listeners. Yields environment variables for the program."""
        async with contextlib.AsyncExitStack() as open_listeners:
            for listener in self._options.listeners:
                await open_listeners.enter_async_context(listener(self._serve))
            socket = listen_for_run(self._accepted)
            path = await open_listeners.enter_async_context(socket)
            variables = {} if path is None else {SOCKET: str(path)}
            yield {**self._pages.environment, **variables}

    def _accepted(self, channel: Channel) -> None:
        self._start(self._serve(channel))

    async def _serve(self, channel: Channel) -> None:
        await self._begun.wait()
        if not self._closed:
            await self._loaded_responder().serve(channel)


def _load_responder() -> None:
    """Import the responder, in a thread, because output and keys must pass during the third of a
    second that it takes.

    The switch interval is shortened, so that the main thread gets its turn at once and not after
    the usual 5 ms. The garbage collector is off: it would find nothing, and block all threads
    while it searches.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.disable()
    try:
        load_module(_RESPONDER)
        from telex.terminal.cells import Size
        from telex.terminal.screen import Screen

        Screen(Size(1, 1), scrollback=0).close()  # the first screen takes longest to make
    finally:
        gc.freeze()  # imported modules stay, so collections need not visit them
        gc.enable()
        sys.setswitchinterval(_USUAL_SECONDS)


# The socket of one `telex run`: in a directory of its own, for this user alone, removed at exit.
#
# A run that is killed cannot remove its directory, so each run removes the directories of killed
# runs. The owner of a directory holds a lock on it, which the kernel releases when the process
# exits in any way: a directory without a lock is not used any more.


_PREFIX: Final = "telex-run-"
_NAME: Final = "escapes"


@contextlib.asynccontextmanager
async def listen_for_run(accepted: Callable[[Channel], None]) -> AsyncIterator[Path | None]:
    """Listen on a new socket. Yields its path; None if no directory can be made."""
    from telex.transports import unix

    place = _place()
    with _held(place) as directory:
        if directory is None:
            yield None
            return
        async with unix.listen(directory / _NAME, accepted):
            yield directory / _NAME


def _place() -> Path:
    """Return the directory for temporary files; /tmp if the socket's path would be too long."""
    usual = Path(tempfile.gettempdir())
    longest = os.fsencode(usual / f"{_PREFIX}12345678" / _NAME)
    return usual if len(longest) <= SOCKET_PATH_BYTES else Path("/tmp")  # noqa: S108


@contextlib.contextmanager
def _held(place: Path) -> Iterator[Path | None]:
    """Make a new directory there, locked until we exit."""
    try:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    except OSError:
        yield None
        return
    with _opened(directory) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        _sweep(place)
        try:
            yield directory
        finally:
            shutil.rmtree(directory)


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[int]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _sweep(place: Path) -> None:
    """Remove the directories that killed runs have left."""
    for directory in place.glob(f"{_PREFIX}*"):
        # Other users' directories cannot be opened; another run may remove one at the same time.
        with contextlib.suppress(OSError), _opened(directory) as fd:
            if os.fstat(fd).st_uid == os.geteuid() and _abandoned(directory, fd):
                shutil.rmtree(directory)


def _abandoned(directory: Path, fd: int) -> bool:
    """Whether the owner of a directory has exited. Without a socket in it, the owner may be about
    to lock it: the socket is made after the lock.
    """
    if not (directory / _NAME).exists():
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
