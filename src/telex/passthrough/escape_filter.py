"""The filter for JSON escapes between a program and the person's terminal.

The program's output passes `program_output`, and the terminal's input `person_input`. As long as
the output has no frame, little is done: a search for the beginning of one, and the output is kept,
for a model of the screen (`OutputBacklog`) and for queries to the terminal in it
(`UnscannedOutput`), which may never be looked at. The rest is `escape_responder`. It is imported
during a pause, so that the first answer does not wait for that.

Beside the program's own terminal there are other ways to the same service: a socket, named in
TELEX_SOCKET, for programs behind something that swallows escapes, and the listeners that the
person asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from telex.passthrough import run_socket
from telex.passthrough.foreground_history import ForegroundHistory
from telex.passthrough.output_backlog import OutputBacklog
from telex.passthrough.page_filter import PageFilter, PageOptions
from telex.passthrough.query_replies import AttributeFilter, TerminalQueries, UnscannedOutput
from telex.terminal import limits
from telex.terminal.background_import import load_module
from telex.wire import htty_chunk, json_escape
from telex.wire.demux import Demux
from telex.wire.events import Event, Visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from contextlib import AbstractAsyncContextManager

    from telex.escapes.policy import Policy
    from telex.passthrough.escape_responder import EscapeResponder
    from telex.passthrough.page_opener import PageOpener
    from telex.rpc.channel import Channel
    from telex.terminal.cells import Size
    from telex.terminal.pty import Pty

SOCKET: Final = "TELEX_SOCKET"
_ATTRIBUTE: Final = 23198
"""As `escapes.protocol.ATTRIBUTE`, which takes a while to load."""
_RESPONDER: Final = "telex.passthrough.escape_responder"
_UNSEEN: Final = "unseen"
_SLICE_BYTES: Final = 3 * limits.TURN_BYTES
"""Some 4 ms of an emulator's time."""
_SWITCH_SECONDS: Final = 0.00005
_USUAL_SECONDS: Final = sys.getswitchinterval()
IDLE_SECONDS: Final = 0.1
"""So long without output, and there is time for other things."""

ServeChannel = Callable[["Channel"], Awaitable[None]]
ExtraListener = Callable[[ServeChannel], "AbstractAsyncContextManager[None]"]


@dataclass(frozen=True, slots=True)
class EscapeOptions:
    """Whether and how a program may use JSON escapes and pages."""

    policy: Policy | None = None
    """Rules of the person's; without, what is usual."""
    listeners: tuple[ExtraListener, ...] = ()
    pages: PageOptions | None = None
    """How the pages of programs are shown; None if they are not."""


class JoinedTerminals(Protocol):
    """The person's terminal and the program's, joined: `program_run.ProgramRun`."""

    @property
    def pty(self) -> Pty: ...

    @property
    def size(self) -> Size: ...

    @property
    def person(self) -> bool:
        """Whether there is a terminal, and somebody at it."""
        ...

    def write_to_terminal(self, data: bytes) -> None:
        """Output for the person to see."""
        ...

    def write_control(self, data: bytes) -> None:
        """Queries and mode switches for the person's terminal: nothing to see, or to record."""
        ...

    def write_to_program(self, data: bytes) -> None:
        """Input for the program."""
        ...

    def page_input_written(self, data: bytes) -> None:
        """A page's bytes were written to the program just now."""
        ...

    async def flushed(self) -> None:
        """Until the person's terminal has all of it."""
        ...

    def pause_output(self, why: str) -> None:
        """Read no more of the program's output, until `resume_output` for the same reason."""
        ...

    def resume_output(self, why: str) -> None: ...


class EscapeFilter:
    """The filter of one program."""

    def __init__(self, terminals: JoinedTerminals, wanted: EscapeOptions) -> None:
        self._terminals = terminals
        self._wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._demux = Demux(
            (json_escape.TO_TERMINAL, json_escape.TO_PROGRAM, htty_chunk.CHUNK, htty_chunk.RAW)
        )
        self._pages = PageFilter(wanted.pages, self._page_opener)
        self._unscanned = UnscannedOutput()
        self._attributes = AttributeFilter(_ATTRIBUTE)
        self._query_timer: asyncio.TimerHandle | None = None
        self._attribute_timer: asyncio.TimerHandle | None = None
        self._backlog = OutputBacklog(terminals.size)
        self._foreground = ForegroundHistory()
        self._queries = TerminalQueries()
        self._responder: EscapeResponder | None = None
        self._printed = 0
        self._idle: asyncio.TimerHandle | None = None
        self._catching_up = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun = asyncio.Event()
        self._closed = False

    # The program's output.

    def program_output(self, data: bytes) -> None:
        now = self._loop.time()
        self._foreground.sample(self._terminals.pty, now)
        self._take_events(self._pages.filter_events(self._demux.feed(data)), now)
        self._foreground.note_read(len(data), now)

    def _take_events(self, events: list[Event], now: float) -> None:
        if self._responder is None:
            events = self._write_before_frame(events, now)
        if events:
            responder = self._loaded_responder()
            for event in events:
                if isinstance(event, Visible):
                    self._unscanned.add(event.data, now)
            responder.program_output(events)
        self._printed += 1
        if self._backlog.above_soft_limit and not self._catching_up:
            # Once the model is there, sooner: whoever then looks at it should not have to wait.
            if self._backlog.above_hard_limit or self._responder is not None:
                self._start_catching_up()
            elif self._idle is None:
                self._look_when_idle()
        if self._backlog.full and self._catching_up:
            self._terminals.pause_output(_UNSEEN)

    def _write_before_frame(self, events: list[Event], now: float) -> list[Event]:
        """Writes what stands before the first frame. Returns the rest."""
        for number, event in enumerate(events):
            if not isinstance(event, Visible):
                return events[number:]
            self._terminals.write_to_terminal(event.data)
            self._backlog.add(event.data)
            self._unscanned.add(event.data, now)
        return []

    def _scan_for_queries(self) -> None:
        """For questions of the program's, whose replies may come now."""
        now = self._loop.time()
        if not (printed := self._unscanned.take(now)):
            return
        if self._terminals.person:
            self._attributes.program_output(printed, now)
        if self._responder is None:  # which looks itself
            self._queries.program_output(printed, now)

    def _look_when_idle(self) -> None:
        self._idle = self._loop.call_later(IDLE_SECONDS, self._maybe_idle, self._printed)

    def _maybe_idle(self, printed: int) -> None:
        self._idle = None
        if printed != self._printed:
            self._look_when_idle()
        elif not self._backlog.above_soft_limit:
            if self._responder is None:  # as a daemon, for which no program's end has to wait
                threading.Thread(target=_load_responder, daemon=True).start()
        elif not self._catching_up:
            self._start_catching_up()

    def _start_catching_up(self) -> None:
        self._catching_up = True
        self._start(self._catch_up())

    async def _catch_up(self) -> None:
        """A little in each turn, and more than is read in one, so that this comes to an end while
        keys and output are passed on."""
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
                self._wanted.policy,
                htty=self._wanted.pages is not None,
            )
        return self._responder

    def _page_opener(self, wanted: PageOptions) -> PageOpener:
        from telex.passthrough.page_opener import PageOpener

        return PageOpener(self._terminals, self._foreground, self._loaded_responder, wanted)

    def resized(self, size: Size) -> None:
        (self._backlog if self._responder is None else self._responder).resized(size)

    # The person's input.

    def person_input(self, data: bytes) -> None:
        """Takes out replies to our queries and adds our attribute to DA1 answers."""
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
        self._pass_on(data)

    def _release_attributes(self) -> None:
        self._attribute_timer = None
        self._pass_on(self._attributes.release())

    def _pass_on(self, data: bytes) -> None:
        if self._responder is not None:
            self._responder.person_input(data)
        elif data:
            self._terminals.write_to_program(data)

    def _rearmed(
        self, timer: asyncio.TimerHandle | None, when: float | None, release: Callable[[], None]
    ) -> asyncio.TimerHandle | None:
        """The timer that releases held input at that time."""
        if timer is not None:
            timer.cancel()
        return None if when is None else self._loop.call_at(when, release)

    # Beginnings, stops and ends.

    def begin(self) -> None:
        """The program runs."""
        self._begun.set()
        self._look_when_idle()
        self._pages.begin()

    async def suspend(self) -> None:
        """The terminal will be somebody else's for a while."""
        if self._responder is not None:
            await self._responder.suspend()

    def ask_again(self) -> None:
        """The person came back to a program that was stopped: it may ask them once more."""
        if self._responder is not None:
            self._responder.gate.ask_again()

    def resume(self) -> None:
        if self._responder is not None:
            self._responder.events.check_foreground()

    async def close(self) -> None:
        """The program has ended, and its terminal is still there."""
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
        """While they are open; yields the variables that name them, for the program."""
        async with contextlib.AsyncExitStack() as open_listeners:
            for listener in self._wanted.listeners:
                await open_listeners.enter_async_context(listener(self._serve))
            socket = run_socket.listen_for_run(self._accepted)
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
    """What answers, in a thread: it takes a third of a second, in which output and keys must pass.
    Whoever wants to run then has its turn at once, and not after the usual 5 ms. The collector
    would find nothing, and hold everybody up while it looks."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.disable()
    try:
        load_module(_RESPONDER)
        from telex.terminal.cells import Size
        from telex.terminal.screen import Screen

        Screen(Size(1, 1), scrollback=0).close()  # the first one takes longer than all others
    finally:
        gc.freeze()  # what was loaded stays
        gc.enable()
        sys.setswitchinterval(_USUAL_SECONDS)
