"""JSON escapes between a program and the person's terminal: the joint in `run`.

The program's output comes through `printed`, and what the person's terminal sends through `heard`.
As long as no frame is in the output hardly anything is done: a search for the beginning of one, and
the output is kept, for a model of the screen (`backlog`) and for questions to the terminal in it
(`overlooked`, `attributes`), both of which may never be looked at. `answering` is the rest. It is
loaded once there is a pause, so that the first answer does not wait for that.

Beside the program's own terminal there are doors to the same: a socket, told in TELEX_SOCKET, for
programs behind something that swallows escapes, and those that the person opened.
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

from telex.host import own_socket
from telex.host.asking import Asking
from telex.host.attributes import Attributes
from telex.host.backlog import Backlog
from telex.host.overlooked import Overlooked
from telex.host.paging import PagesWanted, Paging
from telex.host.whereabouts import Whereabouts
from telex.terminal.background_import import load_module
from telex.wire import htty_chunk, json_escape, limits
from telex.wire.demux import Demux
from telex.wire.events import Event, Visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from contextlib import AbstractAsyncContextManager

    from telex.escapes.policy import Policy
    from telex.host.answering import Answering
    from telex.host.page_showing import PageShowing
    from telex.rpc.channel import Channel
    from telex.terminal.cells import Size
    from telex.terminal.pty import Pty

SOCKET: Final = "TELEX_SOCKET"
_ATTRIBUTE: Final = 23198
"""As `protocols.json_escapes.ATTRIBUTE`, which takes a while to load."""
_ANSWERING: Final = "telex.host.answering"
_UNSEEN: Final = "unseen"
_SLICE_BYTES: Final = 3 * limits.TURN_BYTES
"""Some 4 ms of an emulator's time."""
_SWITCH_SECONDS: Final = 0.00005
_USUAL_SECONDS: Final = sys.getswitchinterval()
IDLE_SECONDS: Final = 0.1
"""So long without output, and there is time for other things."""

Converse = Callable[["Channel"], Awaitable[None]]
Door = Callable[[Converse], "AbstractAsyncContextManager[None]"]


@dataclass(frozen=True, slots=True)
class Escapes:
    """That a program may use JSON escapes, and how."""

    policy: Policy | None = None
    """Rules of the person's; without, what is usual."""
    doors: tuple[Door, ...] = ()
    pages: PagesWanted | None = None
    """How the pages of programs are shown; None if they are not."""


class Terminals(Protocol):
    """The two terminals that are joined: `run.Host`."""

    @property
    def pty(self) -> Pty: ...

    @property
    def size(self) -> Size: ...

    @property
    def person(self) -> bool:
        """Whether there is a terminal, and somebody at it."""
        ...

    def show(self, data: bytes) -> None:
        """To the person: what the program shows them."""
        ...

    def say(self, data: bytes) -> None:
        """To the person's terminal: what nobody sees."""
        ...

    def enter(self, data: bytes) -> None:
        """To the program."""
        ...

    def carried(self, data: bytes) -> None:
        """A page's, and written to the program just now."""
        ...

    def typed_on(self, data: bytes) -> None:
        """What was held back, of what the person's terminal sent, goes on."""
        ...

    async def flushed(self) -> None:
        """Until the person's terminal has all of it."""
        ...

    def hold(self, why: str) -> None:
        """Read no more of the program's output, until `go_on` for the same reason."""
        ...

    def go_on(self, why: str) -> None: ...


class Escaping:
    """One program's."""

    def __init__(self, terminals: Terminals, wanted: Escapes) -> None:
        self._terminals = terminals
        self._wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._demux = Demux(
            (json_escape.TO_TERMINAL, json_escape.TO_PROGRAM, htty_chunk.CHUNK, htty_chunk.RAW)
        )
        self._paging = Paging(wanted.pages, self._page_showing)
        self._overlooked = Overlooked()
        self._attributes = Attributes(_ATTRIBUTE)
        self._release: asyncio.TimerHandle | None = None
        self._backlog = Backlog(terminals.size)
        self._whereabouts = Whereabouts()
        self._asking = Asking()
        self._answering: Answering | None = None
        self._printed = 0
        self._idle: asyncio.TimerHandle | None = None
        self._catching_up = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun = asyncio.Event()
        self._closed = False

    # The program's output.

    def printed(self, data: bytes) -> None:
        now = self._loop.time()
        self._whereabouts.look(self._terminals.pty, now)
        self._take(self._paging.sift(self._demux.feed(data)), now)
        self._whereabouts.served(len(data), now)

    def _take(self, events: list[Event], now: float) -> None:
        if self._answering is None:
            events = self._show(events, now)
        if events:
            answering = self._answers()
            for event in events:
                if isinstance(event, Visible):
                    self._overlooked.add(event.data, now)
            answering.take(events)
        self._printed += 1
        if self._backlog.large and not self._catching_up:
            # Once the model is there, sooner: whoever then looks at it should not have to wait.
            if self._backlog.pressing or self._answering is not None:
                self._see_on()
            elif self._idle is None:
                self._look_when_idle()
        if self._backlog.full and self._catching_up:
            self._terminals.hold(_UNSEEN)

    def _show(self, events: list[Event], now: float) -> list[Event]:
        """What stands before the first frame. Returns the rest."""
        for number, event in enumerate(events):
            if not isinstance(event, Visible):
                return events[number:]
            self._terminals.show(event.data)
            self._backlog.add(event.data)
            self._overlooked.add(event.data, now)
        return []

    def _look_back(self) -> None:
        """For questions of the program's, of which somebody may now get the answers."""
        now = self._loop.time()
        if not (printed := self._overlooked.take(now)):
            return
        if self._terminals.person:
            self._attributes.printed(printed, now)
        if self._answering is None:  # which looks itself
            self._asking.printed(printed, now)

    def _look_when_idle(self) -> None:
        self._idle = self._loop.call_later(IDLE_SECONDS, self._maybe_idle, self._printed)

    def _maybe_idle(self, printed: int) -> None:
        self._idle = None
        if printed != self._printed:
            self._look_when_idle()
        elif not self._backlog.large:
            if self._answering is None:  # as a daemon, for which no program's end has to wait
                threading.Thread(target=_load, daemon=True).start()
        elif not self._catching_up:
            self._see_on()

    def _see_on(self) -> None:
        self._catching_up = True
        self._start(self._catch_up())

    async def _catch_up(self) -> None:
        """A little in each turn, and more than is read in one, so that this comes to an end while
        keys are heard and output goes on."""
        try:
            if self._answering is None:
                await asyncio.to_thread(_load)
            screen = self._answers().screen
            while self._backlog.waits:
                screen.catch_up(_SLICE_BYTES)
                if not self._backlog.full:
                    self._terminals.go_on(_UNSEEN)
                await asyncio.sleep(0)
        finally:
            self._catching_up = False
            self._terminals.go_on(_UNSEEN)

    def _answers(self) -> Answering:
        if self._answering is None:
            from telex.host.answering import Answering

            self._look_back()
            self._answering = Answering(
                self._terminals,
                self._backlog,
                self._whereabouts,
                self._asking,
                self._wanted.policy,
                htty=self._wanted.pages is not None,
            )
        return self._answering

    def _page_showing(self, wanted: PagesWanted) -> PageShowing:
        from telex.host.page_showing import PageShowing

        return PageShowing(self._terminals, self._whereabouts, self._answers, wanted)

    def resized(self, size: Size) -> None:
        (self._backlog if self._answering is None else self._answering).resized(size)

    # What the person's terminal sends.

    def heard(self, data: bytes) -> None:
        if b"\x1b" in data:
            self._look_back()
        if self._answering is None:
            self.heard_on(self._asking.typed(data, self._loop.time()))
        elif data := self._answering.heard(data):
            self.heard_on(data)

    def heard_on(self, data: bytes) -> None:
        """Answers to us are not in it."""
        if self._terminals.person:
            data = self._attributes.typed(data, self._loop.time())
            self._look_again()
        self._typed(data)

    def _look_again(self) -> None:
        if self._release is not None:
            self._release.cancel()
            self._release = None
        if (when := self._attributes.held_until) is not None:
            self._release = self._loop.call_at(when, self._released)

    def _released(self) -> None:
        self._release = None
        self._typed(self._attributes.release())

    def _typed(self, data: bytes) -> None:
        if self._answering is not None:
            self._answering.typed(data)
        elif data:
            self._terminals.enter(data)

    # Beginnings, stops and ends.

    def begin(self) -> None:
        """The program runs."""
        self._begun.set()
        self._look_when_idle()
        self._paging.begin()

    async def suspend(self) -> None:
        """The terminal will be somebody else's for a while."""
        if self._answering is not None:
            await self._answering.suspend()

    def ask_again(self) -> None:
        """The person came back to a program that was stopped: it may ask them once more."""
        if self._answering is not None:
            self._answering.gate.ask_again()

    def resume(self) -> None:
        if self._answering is not None:
            self._answering.listeners.printed()

    async def close(self) -> None:
        """The program has ended, and its terminal is still there."""
        self._closed = True
        last = self._paging.sift(self._demux.eof())
        await self._paging.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for timer in (self._release, self._idle):
            if timer is not None:
                timer.cancel()
        if self._answering is None:
            self._show(last, self._loop.time())
        else:
            self._answering.take(last)
            await self._answering.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Doors.

    @contextlib.asynccontextmanager
    async def doors(self) -> AsyncIterator[dict[str, str]]:
        """While they are open; what the program is told of them, in its environment."""
        async with contextlib.AsyncExitStack() as doors:
            for door in self._wanted.doors:
                await doors.enter_async_context(door(self._converse))
            path = await doors.enter_async_context(own_socket.listen(self._came))
            told = {} if path is None else {SOCKET: str(path)}
            yield {**self._paging.told, **told}

    def _came(self, channel: Channel) -> None:
        self._start(self._converse(channel))

    async def _converse(self, channel: Channel) -> None:
        await self._begun.wait()
        if not self._closed:
            await self._answers().converse(channel)


def _load() -> None:
    """What answers, in a thread: it takes a third of a second, in which output and keys must pass.
    Whoever wants to run then has its turn at once, and not after the usual 5 ms. The collector
    would find nothing, and hold everybody up while it looks."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.disable()
    try:
        load_module(_ANSWERING)
        from telex.terminal.cells import Size
        from telex.terminal.screen import Screen

        Screen(Size(1, 1), scrollback=0).close()  # the first one takes longer than all others
    finally:
        gc.freeze()  # what was loaded stays
        gc.enable()
        sys.setswitchinterval(_USUAL_SECONDS)
