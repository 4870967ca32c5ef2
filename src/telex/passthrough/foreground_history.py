"""Samples the foreground process group of a terminal, to know where recent output came from.

A program may have exited before its output is read: `ssh` prints bytes from another machine, exits,
and a local shell is in the foreground. So the foreground is sampled at intervals while output
arrives, and the origin of a request is the least trusted one of the recent samples.

A sample does not become old by the clock alone. While a question is shown, or the person's terminal
takes no output, telex does not read, and the next read may be as old as the pause. So samples are
kept until a read has emptied the terminal after them: only then no older output can follow.

Reads /proc. Without it the requester is unknown, and the less trusted origin (remote) is assumed.
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
"""Between two samples while the same process group is in the foreground."""
LATELY_SECONDS: Final = 2.0
_KERNEL_BYTES: Final = 64 * 1024
"""More than the kernel's buffers of a terminal hold."""
_MOST: Final = 64
"""The most processes to examine: a foreground job is a pipeline, not a build of a thousand."""


@dataclass(frozen=True, slots=True)
class ForegroundSample:
    """The foreground process group at one time."""

    time: float
    group: int | None
    names: tuple[str, ...]
    """The names of its processes, the leader's first; empty if they are not known."""
    run: tuple[int, int] | None
    job: tuple[int, int] | None = None


class ForegroundHistory:
    """Keeps foreground samples of one terminal; `origin` evaluates them."""

    def __init__(self) -> None:
        self._samples: deque[ForegroundSample] = deque()
        self._fresh = False
        """Whether the last sample was verified since the last read: an exec may have replaced the
        program, or another process may have its number.
        """
        self._read, self._since = 0, float("-inf")
        self._emptied = self._emptied_before = self._noted = float("-inf")

    def sample(self, pty: Pty, now: float) -> None:
        """Sample the foreground before output is handled, unless a recent sample is the same."""
        self._fresh = False
        group = pty.foreground()
        last = self._samples[-1] if self._samples else None
        if last is None or last.group != group or now >= last.time + LOOK_SECONDS:
            self._add_sample(pty, group, now)

    def note_read(self, count: int, now: float) -> None:
        """Note a read of so many bytes, after its requests were begun."""
        self._read += count
        if count <= limits.OUTPUT_BYTES // 2:
            emptied = now  # a short read: the terminal had no more
        elif self._read > _KERNEL_BYTES:
            emptied = self._since
        else:
            return
        self._read, self._since = 0, now
        if now >= self._noted + LOOK_SECONDS:
            self._emptied_before, self._emptied, self._noted = self._emptied, emptied, now

    def origin(self, pty: Pty, now: float) -> RequestOrigin:
        """Return the origin of a request that was just read: the least trusted recent one."""
        from telex.escapes.policy import origin_of  # slow to import

        if not self._fresh:
            self._verify(pty, now)
        samples = reversed(self._samples)
        found = [origin_of(*sample.names, run=sample.run, job=sample.job) for sample in samples]
        return next((one for one in found if one.kind == "remote"), found[0])

    def _verify(self, pty: Pty, now: float) -> None:
        """Sample again if the process has become another program since the last sample."""
        self._fresh = True
        group = pty.foreground()
        last = self._samples[-1] if self._samples else None
        if last is None or last.group != group or last.run != _run(group):
            self._add_sample(pty, group, now)

    def _add_sample(self, pty: Pty, group: int | None, now: float) -> None:
        names = () if group is None else _names(pty.child.pid, group)
        run = _run(group)
        if names == () and proc.HAS_PROC:
            names, run = self._exited(pty, group)
        self._samples.append(ForegroundSample(now, group, names or (), run, _job(group)))
        # A request is served a moment after the read that brought it.
        settled = now >= self._noted + LOOK_SECONDS
        oldest = self._emptied if settled else self._emptied_before
        while self._samples[0].time < oldest - LATELY_SECONDS and len(self._samples) > 1:
            self._samples.popleft()

    def _exited(
        self, pty: Pty, group: int | None
    ) -> tuple[tuple[str, ...] | None, tuple[int, int] | None]:
        """Return names and run for a group that exited before it could be sampled.

        The names are those of the previous sample. The run is the previous one only for the same
        group: another group has no claim to answers that the person gave. Before the first sample,
        the names are those of all processes on the terminal, and all words of the command, because
        `sh -c "ssh host"` prints remote bytes too.
        """
        if self._samples:
            last = self._samples[-1]
            return last.names, last.run if last.group == group else None
        words = [word for argument in program_argv(pty.argv) for word in argument.split()]
        running = _names(pty.child.pid, None)
        return None if running is None else (*words, *running), None


def _run(leader: int | None) -> tuple[int, int] | None:
    """Identify the program of a group's leader, so that neither another process with the same
    number nor another program in the same process is taken for it. None if /proc denies it.
    """
    if leader is None or (started := proc.started(leader)) is None:
        return None
    try:
        program, row = proc.executable(leader), proc.stat(leader)
    except OSError:
        return None
    # Each exec chooses a new start of the stack, also an exec of the same interpreter.
    return leader, hash((started, program.st_dev, program.st_ino, row.name, row.stack_start))


def _job(leader: int | None) -> tuple[int, int] | None:
    if leader is None or (started := proc.started(leader)) is None:
        return None
    return leader, started


def _names(leader: int, group: int | None) -> tuple[str, ...] | None:
    """Return the names of the processes of a group, or of all processes without a group; None if
    there are too many. `leader` leads the terminal's session, and all its processes descend from
    it.
    """
    names: list[str] = []
    unseen, count = [(leader, group is None)], 0
    while unseen and count < _MOST:
        pid, within = unseen.pop()
        count += 1
        name, own_group, children = _read_process(pid)
        # Descendants of a member count too: `sudo ssh` runs in a group and terminal of its own.
        within = within or own_group == group
        if within and name:
            names = [name, *names] if pid == group else [*names, name]
        unseen += [(child, within) for child in children]
    return None if unseen else tuple(names)


def _read_process(pid: int) -> tuple[str, int | None, list[int]]:
    try:
        row, children = proc.stat(pid), proc.children(pid)
    except OSError:  # the process has exited, or there is no /proc
        return "", None, []
    return row.name, row.group, children
