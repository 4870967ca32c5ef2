"""The system's processes: one look at all of them, and a signal that cannot miss.

Everything here touches the world; what it means is `tree`'s business. On Linux a look is one pass
over /proc and a grip is a pidfd. Elsewhere `ps` and plain pids do, best effort: start times have
whole seconds, exits are noticed by looking again, and cookies are read with `ps -E`.

This is the one reader of /proc/PID. `read`, `stat`, `children`, `link` and `descriptors` raise
OSError when the process has ended, is hidden from us, or where there is no /proc.

Imported by the guardian, so it imports little and never asyncio.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from telex.processes.child_environment import COOKIE
from telex.processes.launch import clear_of_stdio, dup, launch
from telex.processes.tree import Process, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

HAS_PROC: Final = os.path.exists("/proc/self/stat")
_EXITING: Final = 0x4
"""PF_EXITING of the kernel."""
_LISTINGS: Final = 4
"""Enough for a quiet system; on another it is better to act on what was seen and look again."""
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)
"""It ended while we looked, or it is another user's and hidden from us: not ours either way."""


def scan(accounted: Collection[int] = ()) -> Table:
    """The table as it is now; `accounted` as in `tree.Table`."""
    rows, settled = _proc_rows() if HAS_PROC else (list(ps_rows()), True)
    cookie = _proc_cookie if HAS_PROC else _ps_cookie
    return Table(rows, observer=os.getpid(), cookie=cookie, accounted=accounted, settled=settled)


def started(pid: int) -> int | None:
    """When the process of that number started; None if there is none."""
    row = _proc_row(pid) if HAS_PROC else next(ps_rows("-p", str(pid)), None)
    return row.started if row else None


def now() -> int:
    """The present, on the clock that `started` uses."""
    if HAS_PROC:
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    return int(time.time())


class Stat(NamedTuple):
    """/proc/PID/stat: the program's name, which may hold anything, and the fields after it."""

    name: str
    fields: list[bytes]

    @property
    def group(self) -> int:
        """Its process group."""
        return int(self.fields[2])

    @property
    def foreground(self) -> int:
        """The process group in the foreground of its terminal; -1 without one."""
        return int(self.fields[5])

    @property
    def is_exiting(self) -> bool:
        """Whether it is inside exit(2), though nobody was notified yet."""
        return bool(int(self.fields[6]) & _EXITING)

    @property
    def stack_start(self) -> int:
        """Where its stack begins: chosen anew by each exec. 0 if we may not know."""
        return int(self.fields[25])

    @classmethod
    def parse(cls, text: bytes) -> Stat:
        head, _, rest = text.rpartition(b")")
        return cls(head.partition(b"(")[2].decode("utf-8", "replace"), rest.split())


def stat(pid: int) -> Stat:
    """The process's row."""
    return Stat.parse(read(pid, "stat"))


def open_stat(pid: int) -> int | None:
    """A descriptor of its row, to be read again by `Stat.parse(os.pread(...))` while it lives."""
    try:
        return os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def read(pid: int, name: str) -> bytes:
    """A file of /proc/PID, whole: `comm`, `cmdline`, `status`."""
    return _read(f"/proc/{pid}/{name}")


def link(pid: int, name: str) -> str:
    """Where a link of /proc/PID leads: `exe`, `cwd`, `fd/N`."""
    return os.readlink(f"/proc/{pid}/{name}")


def executable(pid: int) -> os.stat_result:
    """The file that it runs, also when that was removed."""
    return os.stat(f"/proc/{pid}/exe")


def descriptors(pid: int) -> list[str]:
    """The numbers of its open files."""
    return os.listdir(f"/proc/{pid}/fd")


def children(pid: int) -> list[int]:
    """Its children, whichever of its threads started them."""
    found: list[bytes] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):  # that thread ended
            found += _read(f"/proc/{pid}/task/{thread}/children").split()
    return [int(child) for child in found]


_SHELLS: Final = frozenset({
    b"sh", b"bash", b"rbash", b"dash", b"ash", b"busybox", b"zsh", b"fish", b"ksh", b"ksh93",
    b"mksh", b"oksh", b"lksh", b"yash", b"posh", b"csh", b"tcsh", b"rc", b"es", b"nu", b"elvish",
    b"xonsh", b"pwsh",
})  # fmt: skip
_IGNORED: Final = re.compile(rb"^SigIgn:\s*([0-9a-f]+)", re.MULTILINE)
_JOB_CONTROL: Final = sum(1 << (number - 1) for number in (signal.SIGTSTP, signal.SIGTTOU))
_TMUX: Final = b"Name:\ttmux: client\n"


def is_shell(pid: int) -> bool:
    """Whether its program has a shell's name, at a prompt or running a script."""
    try:
        return read(pid, "comm").strip() in _SHELLS
    except OSError:
        return False


def is_idle_shell(pid: int) -> bool:
    """Whether a process is a shell at its prompt: what is typed now is its command line.

    A shell with job control, of any name, is known by the signals it ignores: SIGTSTP and SIGTTOU,
    both (bash and zsh SIGTTIN too, fish and dash not). It is not idle while something else runs in
    its own process group, as in `$(telex detect)`. tmux ignores the same signals, and is known by
    the name that it sets itself.
    """
    try:
        status = read(pid, "status")
        found = _IGNORED.search(status)
        if found is None or int(found[1], 16) & _JOB_CONTROL != _JOB_CONTROL:
            return False
        if status.startswith(_TMUX):
            return False
        below = _read(f"/proc/{pid}/task/{pid}/children").split()
    except OSError:  # it is gone and others of its group are left, or there is no /proc
        return False
    return not any(_group_of(int(child)) == pid for child in below)


def answerable_group(group: int | None) -> int | None:
    """A terminal's foreground process group, unless it is an idle shell.

    When `cat` has shown a file full of requests and ended, the shell is back in the foreground
    before the requests are read, and answers would land on its command line. Without /proc (macOS)
    a shell is answered like any other program.
    """
    return None if group is None or is_idle_shell(group) else group


def _group_of(pid: int) -> int | None:
    try:
        return stat(pid).group
    except OSError:  # it ended
        return None


def pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is none to have.

    Raises ProcessLookupError if there is no such process.
    """
    try:
        return os.pidfd_open(pid)
    except AttributeError:
        return None
    except OSError as error:
        if error.errno == errno.ESRCH:
            raise
        return None  # an old kernel, a sandbox that forbids it, or no descriptor left


class Grip:
    """A hold on one process, so that a signal never reaches another one that got its number."""

    def __init__(self, process: Process) -> None:
        """Raises ProcessLookupError if the process has ended."""
        self._process = process
        self.fd = pidfd(process.pid)
        try:
            self._verify()
        except OSError:
            self.release()
            raise

    def _verify(self) -> None:
        # After the pidfd was opened, on purpose: if the number is still this process's now, it
        # was then, and the pidfd holds it for good.
        if started(self._process.pid) != self._process.started:
            raise ProcessLookupError(errno.ESRCH, "that process has ended")

    def send(self, number: signal.Signals) -> None:
        """Raises ProcessLookupError if it has ended, PermissionError if we may not signal it."""
        if self.fd is not None:
            signal.pidfd_send_signal(self.fd, number)
        else:
            self._verify()
            os.kill(self._process.pid, number)

    def release(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def _proc_rows() -> tuple[list[Process], bool]:
    """Everyone alive at the last of a few listings, and whether it found nobody new.

    Whoever ends between being listed and being read may have forked just before, and the child is
    in no listing yet: one pass would overlook both, and a chain of such processes for ever.
    """
    rows: list[Process] = []
    seen: set[str] = set()
    for _ in range(_LISTINGS):
        new = [name for name in os.listdir("/proc") if name.isdigit() and name not in seen]
        if not new:
            return rows, True
        seen.update(new)
        found = map(_proc_row, map(int, new))
        rows.extend(row for row in found if row is not None)
    return rows, False


def _proc_row(pid: int) -> Process | None:
    try:
        fields = stat(pid).fields
    except _GONE:
        return None
    # A process whose first thread has ended shows as a zombie while the others run on.
    alive = fields[0] not in (b"Z", b"X") or int(fields[17]) > 1
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), alive)


def _proc_cookie(pid: int) -> str | None:
    try:
        environment = _read(f"/proc/{pid}/environ")
        if not environment and not _is_empty_for_good(pid):
            return None
    except PermissionError:
        return ""
    except (FileNotFoundError, ProcessLookupError):
        return None
    name = COOKIE.encode() + b"="
    found = (entry[len(name) :] for entry in environment.split(b"\0") if entry.startswith(name))
    return next(found, b"").decode("ascii", "replace")


def _is_empty_for_good(pid: int) -> bool:
    """Whether its environment has no room in memory; in exec and exit it only has no memory."""
    begins, ends = map(int, stat(pid).fields[47:49])
    return begins == ends > 0


def _read(path: str) -> bytes:
    # Not `open()`: a look reads hundreds of these, and a file object doubles the cost of each.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while piece := os.read(fd, 65536):
            data += piece
        return data
    finally:
        os.close(fd)


def ps_rows(*which: str) -> Iterator[Process]:
    """The same rows by way of `ps`, for systems without /proc."""
    import calendar  # only here: the guardian imports this module

    fields = "pid=,ppid=,pgid=,stat=,lstart="
    for line in _ps(*(which or ("-ax",)), "-o", fields).splitlines():
        pid, ppid, pgid, state, *begun = line.split()
        when = calendar.timegm(time.strptime(" ".join(begun), "%a %b %d %H:%M:%S %Y"))
        yield Process(int(pid), int(ppid), int(pgid), _sid(int(pid)), when, state[0] != "Z")


def _sid(pid: int) -> int:
    # Not from `ps`: what it prints for a session is an address on some systems and 0 on others,
    # and a 0 shared by all would make everyone a member.
    try:
        return os.getsid(pid)
    except _GONE:
        return 0


def _ps_cookie(pid: int) -> str:
    words = _ps("-p", str(pid), "-E", "-ww", "-o", "command=").split()
    found = (word.partition("=")[2] for word in words if word.startswith(COOKIE + "="))
    return next(found, "")


def _ps(*arguments: str) -> str:
    """What `ps` prints. It ends by itself at once, so it needs neither owner nor event loop."""
    reading, writing = map(clear_of_stdio, os.pipe())
    with open(reading, encoding="utf-8", errors="replace") as output:
        try:
            environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
            pid = launch("/bin/ps", ["ps", *arguments], environment, [dup(writing, 1)])
        finally:
            os.close(writing)
        text = output.read()
    os.waitpid(pid, 0)
    return text
