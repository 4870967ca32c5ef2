"""Watches what the program of a session waits for: gathers the facts, and calls back on a change.

`state` looks now, and costs a few reads of /proc; nothing is kept ready. Only while there are
listeners (a wait for input, a subscription) does it look by itself: after output, input, a resize
or the exit, and again when the session has been quiet for a moment, because a program that prints a
prompt begins to read just after it. A program may also begin to read without a word. So a state
that may change silently is looked at again, each time after twice as long, up to
`limits.INPUT_LOOKS` times, and for as long as somebody waits for it. A program that waits for
nothing but input cannot change by itself and is not looked at again: an idle session costs nothing.

Used by `session`.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.processes import foreground, proc
from telex.terminal import limits, line_discipline
from telex.terminal.input_state import EXITED, InputFacts, InputState, decide
from telex.terminal.screen_prompts import numbered_choices, read_shape
from telex.terminal.status_escapes import StatusReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from telex.processes.foreground import Foreground
    from telex.terminal.line_discipline import LineSettings
    from telex.terminal.session import PtySession
    from telex.terminal.status_escapes import ProgramStatus

_FIRST_LOOK_SECONDS: Final = 0.004
"""After an event: the program usually reads by then."""
_PACE_SECONDS: Final = 0.016
"""Between two looks while the program prints."""
_WAITED_SECONDS: Final = 0.25
"""The longest time between two looks while somebody waits."""
_SURE: Final = 0.9
"""The confidence from which a waiting program cannot change without an event."""
_LINE_ENDS: Final = (b"\r", b"\n", b"\x03", b"\x04")
_SELF_DRAWN_SECONDS: Final = 0.02
"""Output later than this after other output is a new change."""
_LATE_SECONDS: Final = 2.0
"""How late a busy machine may make a program that draws by itself."""
_COMPUTING_SECONDS: Final = 0.3
_COMPUTING: Final = 0.1
"""The part of this time for which a program must use the processor to count as computing."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MULTIPLEXERS: Final = ("tmux: client", "screen")
_DEPTH: Final = 4
"""Terminals within terminals that are followed."""
_WINDOWS: Final = 16
"""The windows of a multiplexer that are looked at, each for as long as a terminal of its own."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The foreground processes of the innermost terminal, and its settings."""

    foreground: Foreground | None
    line: LineSettings
    unread: bool = False
    behind: str | None = None


class InputWatch:
    """The input state of one session, and who is told of its changes."""

    def __init__(self, session: PtySession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._status = StatusReader()
        self._status_group: int | None = None
        """The foreground group that printed the last status."""
        self._printed_at = self._drawn_at = self._line_at = -1.0
        """When something was last printed, was printed without input before, and a line was ended
        by an input."""
        self._interval: float | None = None
        """The time between the last two changes that no input caused."""
        self._ticks: tuple[object, int, float] = (None, 0, 0.0)
        """The processor time of the program at a look, and what had happened until then."""
        self._computes = False
        self._hint: tuple[int, InputState] | None = None
        self.ask_adapter: Callable[[], None] | None = None
        """Begins to ask the adapter about the screen; the answer comes by `set_hint`."""
        self._listeners: set[Callable[[], None]] = set()
        self._waiters = 0
        self.noted: InputState | None = None
        """The state of the last look, with listeners; None if something has happened since."""
        self.last: InputState | None = None
        """The same, whatever has happened since."""
        self._timer: asyncio.TimerHandle | None = None
        self._delay = 0.0
        self._looks = 0

    # Facts.

    def state(self) -> InputState:
        """Look what the program waits for now."""
        session = self._session
        if session.exit is not None or session.closed:
            return EXITED
        screen, cursor = session.screen, session.screen.cursor
        # Before the look: a program that is seen waiting after this has read all that was typed.
        unread = session.pty.has_unread()
        seen = self._look()
        now = self._loop.time()
        quiet = now - max(session.last_output, session.last_input)
        if session.pty.has_output():  # this loop is late, and not the program silent
            quiet = 0.0
        hint = None
        if self._hint is not None and self._hint[0] == session.sequence:
            hint = self._hint[1]
        elif self.ask_adapter is not None:
            self.ask_adapter()
        facts = InputFacts(
            unread=unread or seen.unread,
            line=seen.line,
            foreground=seen.foreground,
            behind=seen.behind,
            shape=lambda: read_shape(screen.rows(), cursor),
            numbered=lambda: numbered_choices(screen.rows(), cursor),
            full_screen=screen.alternate_screen or not cursor.visible,
            bracketed_paste=screen.bracketed_paste,
            status=self._program_status(),
            hint=hint,
            quiet=quiet,
            answered=session.last_output >= self._line_at,
            drawing=self._drawing(quiet),
            computes=self._has_computed(seen.foreground, now),
        )
        return decide(facts)

    def _look(self) -> _Seen:
        """Return the foreground processes, of the inner terminal where there is one."""
        pty = self._session.pty
        line, device = pty.line_settings(), pty.device()
        if (group := pty.foreground()) is None or device is None:
            return _Seen(foreground.NOBODY, line)
        seen = _Seen(foreground.look(pty.child.pid, group, device), line)
        for _ in range(_DEPTH):
            if (now := seen.foreground) is None or now.stopped or not now.names:
                break
            copies = now.inner is not None and not line.signals and not line.formats_output
            inner = (now.inner_root, [now.inner] if now.inner else []) if copies else None
            if now.names[0] in _MULTIPLEXERS:
                inner = foreground.server_of(now.group, device)
            elif not copies:
                break
            found = None if inner is None else _inner_terminal(*inner)
            if found is None:
                return _Seen(now, line, behind=now.names[0].partition(":")[0])
            seen, device = found
            line = seen.line
        return seen

    def _program_status(self) -> ProgramStatus | None:
        """Return what the foreground program says: not what another one said before it."""
        if self._status_group != self._session.pty.foreground():
            return None
        return self._status.status

    def _drawing(self, quiet: float) -> float | None:
        """Return the time between changes without input, until three of them were left out."""
        if self._interval is None or quiet > 3 * self._interval + _LATE_SECONDS:
            return None
        return self._interval

    def _has_computed(self, seen: Foreground | None, now: float) -> bool:
        """Whether the program used the processor between two looks, without output or input."""
        if seen is None:
            return False
        happened = seen.group, self._session.last_output, self._session.last_input
        before, ticks, since = self._ticks
        if before != happened:
            self._computes = False
        elif now - since < _COMPUTING_SECONDS:
            return self._computes
        else:
            used = (seen.processor_ticks - ticks) / _TICKS
            self._computes = used > _COMPUTING * (now - since)
        self._ticks = happened, seen.processor_ticks, now
        return self._computes

    # Events.

    def program_printed(self, data: bytes) -> None:
        """Take output of the program."""
        if self._status.feed(data):
            self._status_group = self._session.pty.foreground()

    def output_ended(self) -> None:
        """Note the time of output."""
        now = self._loop.time()
        if self._printed_at > self._session.last_input and (
            now - self._printed_at > _SELF_DRAWN_SECONDS
        ):
            if self._drawn_at > self._session.last_input:
                self._interval = now - self._drawn_at
            self._drawn_at = now
        self._printed_at = now
        self.event()

    def input_typed(self, data: bytes) -> None:
        """Note an input, or a resize."""
        self._interval = None
        if any(end in data for end in _LINE_ENDS):
            self._line_at = self._loop.time()
            self._status.line_finished()
        self.event()

    def set_hint(self, hint: InputState, sequence: int) -> None:
        """Take what an adapter says about the screen of this sequence."""
        if self._hint != (sequence, hint):
            self._hint = sequence, hint
            self.event()

    def event(self) -> None:
        """Look again soon: something may have changed."""
        self.noted = None
        if not self._listeners:
            return
        self._looks = 0
        if self._timer is None:
            self._arm(_PACE_SECONDS if self._delay < _PACE_SECONDS * 2 else _FIRST_LOOK_SECONDS)
        elif self._delay > _PACE_SECONDS:
            self._timer.cancel()
            self._arm(_FIRST_LOOK_SECONDS)

    # Listeners.

    def listen(self, listener: Callable[[], None]) -> None:
        """Call back when the state has changed. The first look is soon."""
        self._listeners.add(listener)
        self.event()

    def unlisten(self, listener: Callable[[], None]) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @contextmanager
    def waited_for(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call back as `listen`, and look until this block ends, however often."""
        self._waiters += 1
        self.listen(listener)
        try:
            yield
        finally:
            self._waiters -= 1
            if not self._waiters:
                self.unlisten(listener)

    def close(self) -> None:
        """Stop looking."""
        for listener in [*self._listeners]:
            self.unlisten(listener)

    def _arm(self, delay: float) -> None:
        self._delay = delay
        self._timer = self._loop.call_later(delay, self._ring)

    def _ring(self) -> None:
        self._timer = None
        state = self.state()
        changed = state != self.last
        self.noted = self.last = state
        self._looks += 1
        sure = state.state == "exited" or (state.waiting and state.confidence >= _SURE)
        if not sure and (self._waiters or self._looks < limits.INPUT_LOOKS):
            later = self._delay * 2
            self._arm(min(later, _WAITED_SECONDS) if self._waiters else later)
        if changed or self._waiters:
            for listener in [*self._listeners]:
                listener()


def _inner_terminal(root: int, paths: list[str]) -> tuple[_Seen, tuple[int, int]] | None:
    """Look at the terminal on which another process runs its command. Of several, the kernel does
    not tell which is shown: they count where no program waits for any of them."""
    found = [_terminal_of(root, path) for path in paths[:_WINDOWS]]
    if len(found) == 1:
        return found[0]
    if len(paths) > _WINDOWS or not all(one and _is_at_work(one[0].foreground) for one in found):
        return None
    return next(iter(found), None)


def _is_at_work(seen: Foreground | None) -> bool:
    return seen is not None and seen.told and not seen.stopped and not seen.waits


def _terminal_of(root: int, path: str) -> tuple[_Seen, tuple[int, int]] | None:
    try:
        # The process between the terminals must have passed on what was typed.
        passed_on = proc.blocked_call(root, root) is not None
        device = line_discipline.device(path)
        unread = not passed_on or line_discipline.has_unread(path)
        line = line_discipline.settings_of(path)
    except OSError:  # it is another user's, or has just ended
        return None
    group = foreground.foreground_of(root, device)
    seen = None if group is None else foreground.look(root, group, device)
    return None if seen is None else (_Seen(seen, line, unread), device)
