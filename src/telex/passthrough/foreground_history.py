"""Who is in the foreground of a terminal, and who was a moment ago.

A program may be gone before its output is read: `ssh` shows what another machine sent, ends, and a
shell on this machine is in the foreground. So the foreground is sampled now and then while
something is printed, and a request counts as coming from the worst of those sampled lately.

Lately is not by the clock alone. While a question stands, or the person's terminal takes nothing,
the output is not read, and what is read then may be as old as the pause. So samples are kept until
a read has emptied the terminal after them: only that shows that nothing older is to come.

Reads /proc. Without one nobody is known to have asked, and then the worse is assumed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.passthrough.session_leader import program_argv
from telex.processes import proc
from telex.terminal import limits

if TYPE_CHECKING:
    from telex.escapes.policy import RequestOrigin
    from telex.terminal.pty import Pty

LOOK_SECONDS: Final = 0.2
"""Between two looks while the same process group is in the foreground."""
LATELY_SECONDS: Final = 2.0
_KERNEL_BYTES: Final = 64 * 1024
"""More than a terminal's buffers hold."""
_MOST: Final = 64
"""Processes looked at: a terminal's foreground is a pipeline, and not a build of a thousand."""


@dataclass(frozen=True, slots=True)
class ForegroundSample:
    """The foreground at one time."""

    time: float
    group: int | None
    names: tuple[str, ...]
    """Of the processes in the foreground, the leader's first; none if they are not known."""
    run: tuple[int, int] | None
    job: tuple[int, int] | None = None


class ForegroundHistory:
    """The foreground samples of one terminal."""

    def __init__(self) -> None:
        self._samples: deque[ForegroundSample] = deque()
        self._fresh = False
        """Whether it was made sure, since the last read, that nobody else runs by that number."""
        self._read, self._since = 0, float("-inf")
        self._emptied = self._emptied_before = self._noted = float("-inf")

    def sample(self, pty: Pty, now: float) -> None:
        """Something was printed: who is there, if that was not looked at just now?"""
        self._fresh = False
        group = pty.foreground()
        last = self._samples[-1] if self._samples else None
        if last is None or last.group != group or now >= last.time + LOOK_SECONDS:
            self._see(pty, group, now)

    def note_read(self, count: int, now: float) -> None:
        """So many bytes were read, and all that they ask was begun."""
        self._read += count
        if count <= limits.OUTPUT_BYTES // 2:
            emptied = now  # else there had been more to read
        elif self._read > _KERNEL_BYTES:
            emptied = self._since
        else:
            return
        self._read, self._since = 0, now
        if now >= self._noted + LOOK_SECONDS:
            self._emptied_before, self._emptied, self._noted = self._emptied, emptied, now

    def origin(self, pty: Pty, now: float) -> RequestOrigin:
        """Where a request comes from that was just read."""
        from telex.escapes.policy import origin_of  # takes a while to load

        if not self._fresh:
            self._make_sure(pty, now)
        samples = reversed(self._samples)
        found = [origin_of(*sample.names, run=sample.run, job=sample.job) for sample in samples]
        return next((one for one in found if one.kind == "remote"), found[0])

    def _make_sure(self, pty: Pty, now: float) -> None:
        """A process may have become another program since the last sample."""
        self._fresh = True
        group = pty.foreground()
        last = self._samples[-1] if self._samples else None
        if last is None or last.group != group or last.run != _run(group):
            self._see(pty, group, now)

    def _see(self, pty: Pty, group: int | None, now: float) -> None:
        names = () if group is None else _names(pty.child.pid, group)
        run = _run(group)
        if names == () and proc.HAS_PROC:
            names, run = self._ended(pty, group)
        self._samples.append(ForegroundSample(now, group, names or (), run, _job(group)))
        # What was asked in a read is served a moment after it.
        settled = now >= self._noted + LOOK_SECONDS
        oldest = self._emptied if settled else self._emptied_before
        while self._samples[0].time < oldest - LATELY_SECONDS and len(self._samples) > 1:
            self._samples.popleft()

    def _ended(
        self, pty: Pty, group: int | None
    ) -> tuple[tuple[str, ...] | None, tuple[int, int] | None]:
        """Who ended before a look is who was there at the last one; its run only if it was the same
        group, as another has no claim to the answers it got. Before the first look, what is there
        decides: all that runs on the terminal now, and what was started on it, word for word, for
        `sh -c "ssh host"` has shown what is elsewhere too."""
        if self._samples:
            last = self._samples[-1]
            return last.names, last.run if last.group == group else None
        words = [word for argument in program_argv(pty.argv) for word in argument.split()]
        running = _names(pty.child.pid, None)
        return None if running is None else (*words, *running), None


def _run(leader: int | None) -> tuple[int, int] | None:
    """Who the leader of a group is, so that neither another process by its number nor another
    program in the same process is taken for it. None if we may not know."""
    if leader is None or (started := proc.started(leader)) is None:
        return None
    try:
        program, row = proc.executable(leader), proc.stat(leader)
    except OSError:
        return None
    # Where its stack begins is chosen anew by each exec, of the same interpreter too.
    return leader, hash((started, program.st_dev, program.st_ino, row.name, row.stack_start))


def _job(leader: int | None) -> tuple[int, int] | None:
    if leader is None or (started := proc.started(leader)) is None:
        return None
    return leader, started


def _names(leader: int, group: int | None) -> tuple[str, ...] | None:
    """`leader` leads the terminal's session; everything on the terminal descends from it. Without a
    group, all of it. None if there are too many to look at."""
    names: list[str] = []
    unseen, count = [(leader, group is None)], 0
    while unseen and count < _MOST:
        pid, within = unseen.pop()
        count += 1
        name, own_group, children = _look(pid)
        # What a member started is meant too: `sudo ssh` runs in a group and terminal of its own.
        within = within or own_group == group
        if within and name:
            names = [name, *names] if pid == group else [*names, name]
        unseen += [(child, within) for child in children]
    return None if unseen else tuple(names)


def _look(pid: int) -> tuple[str, int | None, list[int]]:
    try:
        row, children = proc.stat(pid), proc.children(pid)
    except OSError:  # it ended, or there is no /proc
        return "", None, []
    return row.name, row.group, children
