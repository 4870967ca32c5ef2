"""The sessions that verbs use: their names, what was last seen of them, until when they are held.

A session of `telex open` ends when nobody has used it for its time: no input, no read, no wait and
no attachment, by whichever way. Sessions that other clients created are found by their ids and are
never ended here.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from telex.automation.limits import QUOTED_CHARS
from telex.automation.screen_text import cut, one_line
from telex.automation.verb_requests import is_session_name
from telex.server import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from telex.automation.screen_text import ScreenRows
    from telex.automation.server import AutomationService
    from telex.terminal.session import PtySession
    from telex.terminal.waits.matchers import Since
    from telex.terminal.waits.since import Mark

log = logging.getLogger("telex.server")


class NoSuchName(LookupError):
    """No session has the name, or there is no single session to choose; the message lists them."""


class NameInUse(ValueError):
    """Another session has the name."""


@dataclass(eq=False)
class VerbSession:
    """A session as verbs see it."""

    name: str
    id: str
    session: PtySession
    program: str
    """The command line, masked and as one line."""
    opened_by: str | None = None
    """The caller of `telex open`; None for a session of another client."""
    ttl: float | None = None
    """Seconds that the session is held without being used; None for no end."""
    used: float = 0.0
    """When the session was last used, by the clock of the verbs."""
    adapter: str | None = None
    screens: deque[ScreenRows] = field(default_factory=lambda: deque(maxlen=limits.SCREENS_KEPT))
    """The screens that `see` printed, for `--since`."""
    _looked: bool = False
    _inputs: Mark | None = None
    timer: asyncio.TimerHandle | None = None
    ending: bool = False

    @property
    def state(self) -> str:
        """Whether the program runs, or how it ended."""
        ended = self.session.exit
        if ended is None:
            return "running"
        return f"exited {ended.code}" if ended.code is not None else str(ended)

    def note_input(self, mark: str) -> None:
        """Note that a verb typed. The first input after a look begins the time in which `wait`
        looks for new text; the lines typed later are echoed too."""
        found = self.session.marks.find(mark)
        if found is None:
            return
        if self._looked or self._inputs is None:
            self._inputs, self._looked = found, False
        else:
            whole_lines = self._inputs.typed[: self._inputs.typed.rfind("\n") + 1]
            self._inputs = replace(self._inputs, typed=whole_lines + found.typed)

    def note_look(self) -> None:
        """Note that a verb showed the screen, or waited for something on it."""
        self._looked = True

    def unseen(self) -> Since | None:
        """Return the moment before the inputs that no look followed yet; None if there are none. A
        new session begins with such a moment: its program will draw something."""
        return None if self._looked else self.inputs() or 0

    def inputs(self) -> str | None:
        """Return the mark before the last inputs, for `since`."""
        return None if self._inputs is None else self.session.marks.add_named(self._inputs)


class VerbSessions:
    """All sessions by the names of the verbs."""

    def __init__(self, service: AutomationService, clock: Callable[[], float]) -> None:
        self._service = service
        self._clock = clock
        self._known: dict[str, VerbSession] = {}
        self._ending: set[asyncio.Task[None]] = set()
        service.closers.add(self._forget)

    def held(self) -> list[VerbSession]:
        """Return the sessions of `telex open`."""
        return [one for one in self.all() if one.opened_by is not None]

    def all(self) -> list[VerbSession]:
        """Return every session of the server, those of `telex open` first."""
        there = self._service.session_ids()
        for id in there:
            if id not in self._known:
                self._meet(id)
        known = [self._known[id] for id in there if not self._known[id].ending]
        return sorted(known, key=lambda one: one.opened_by is None)

    def find(self, name: str | None) -> VerbSession:
        """Return the session of that name or id; without a name, the only one. Raises
        NoSuchName."""
        self.end_unused()
        there = self.all()
        if name is not None:
            named = {one.id: one for one in there} | {one.name: one for one in there}
            if name not in named:
                raise NoSuchName(
                    f"there is no session {cut(name, QUOTED_CHARS)!r}; {_listed(there)}"
                )
            return named[name]
        candidates = self.held() or there
        if len(candidates) == 1:
            return candidates[0]
        if not candidates:
            raise NoSuchName("there is no session; telex open -- PROGRAM opens one")
        raise NoSuchName(f"which session? {_listed(there)}; choose by -s NAME or TELEX_SESSION")

    def check_free(self, name: str) -> None:
        """Raise NameInUse if a session has that name."""
        self.end_unused()
        for one in self.all():
            if one.name == name:
                raise NameInUse(
                    f"there is a session {name!r} already ({one.program}, {one.state}); choose "
                    f"another name, or end it: telex close {name}"
                )

    def free_name(self, program: str) -> str:
        """Return a name for a session with that program, which no session has."""
        self.end_unused()
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePath(program).name).lstrip("._-")[:60]
        taken = {name for one in self.all() for name in (one.name, one.id)}
        names = [base if is_session_name(base) else "session"]
        while names[-1] in taken:
            names.append(f"{names[0]}-{len(names) + 1}")
        return names[-1]

    def add(
        self,
        name: str,
        id: str,
        argv: Sequence[str],
        *,
        opened_by: str,
        ttl: float | None,
    ) -> VerbSession:
        """Hold a new session."""
        session = self._service.find(id)[0]
        held = VerbSession(name, id, session, self._shown(argv), opened_by, ttl)
        self._known[id] = held
        self._service.name_session(id, name)
        self._use(held)
        session.use_listeners.add(lambda: self._use(held))
        self._set_timer(held)
        return held

    def idle_seconds(self, one: VerbSession) -> float | None:
        """Return for how long nobody has used a session; None if that is not known."""
        if one.opened_by is None:
            return None
        return 0.0 if one.session.followers else max(0.0, self._clock() - one.used)

    def seconds_left(self, one: VerbSession) -> float | None:
        """Return how long a session is still held if nobody uses it; None for no end."""
        if one.ttl is None:
            return None
        return max(0.0, one.ttl - (self.idle_seconds(one) or 0.0))

    def end_unused(self) -> None:
        """End the sessions whose time is over. Timers call this, and each verb, as the clock may
        have jumped."""
        for one in self.held():
            if self.seconds_left(one) == 0.0:
                self._end(one)

    async def close(self) -> None:
        """Stop the timers. The sessions end with their server."""
        self._service.closers.discard(self._forget)
        for one in self._known.values():
            if one.timer is not None:
                one.timer.cancel()
        if self._ending:
            await asyncio.wait(self._ending)

    def _use(self, one: VerbSession) -> None:
        one.used = self._clock()

    def _set_timer(self, one: VerbSession) -> None:
        if (left := self.seconds_left(one)) is not None:
            # The clock of the loop may be slightly ahead of ours: never set a timer of 0.
            loop = asyncio.get_running_loop()
            one.timer = loop.call_later(max(left, 0.001), self._time_over, one)

    def _time_over(self, one: VerbSession) -> None:
        self.end_unused()
        if one.id in self._known and not one.ending:  # it was used meanwhile
            self._set_timer(one)

    def _end(self, one: VerbSession) -> None:
        one.ending = True
        log.info("the session %s was not used for %g s: ended", one.name, one.ttl)
        task = asyncio.create_task(self._service.end_session(one.id))
        self._ending.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an unused session could not be ended", exc_info=error)

    def _forget(self, id: str) -> None:
        if (one := self._known.pop(id, None)) is not None and one.timer is not None:
            one.timer.cancel()

    def _meet(self, id: str) -> None:
        """Add a session that another client created."""
        session = self._service.find(id)[0]
        self._known[id] = one = VerbSession(id, id, session, self._shown(session.program.argv))
        one.note_look()

    def _shown(self, argv: Sequence[str]) -> str:
        words = [PurePath(argv[0]).name, *argv[1:]]
        line = one_line(self._service.redactor.redact(shlex.join(words)))
        return line if len(line) <= 60 else line[:59] + "…"


def _listed(sessions: list[VerbSession]) -> str:
    if not sessions:
        return "there are none; telex open -- PROGRAM opens one"
    names = [one.name for one in sessions]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"there {'is' if len(names) == 1 else 'are'} {', '.join(names[:12])}{more}"
