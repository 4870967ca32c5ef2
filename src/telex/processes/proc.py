"""The system's processes: a scan of all of them, and signals that cannot hit a recycled pid.

This module does the system calls; `tree` interprets the results. On Linux a scan is one pass over
/proc and a handle is a pidfd. Elsewhere `ps` and plain pids are used, best effort: start times have
whole seconds, exits are noticed by scanning again, and cookies are read with `ps -E`.

This is the only reader of /proc, also for our own process and for the system; the two exceptions
run without telex (`restrict`, `reaper`). `read`, `stat`, `children`, `link` and `descriptors` raise
OSError when the process has exited, is hidden from us, or where there is no /proc.

The guardian imports it, so it imports little and never asyncio.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
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
"""Enough for a quiet system; on a busy one it is better to act on the result and scan again."""
_MOUNTS: Final = "/proc/self/mountinfo"
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
"""A space, tab, newline or backslash in a path of mountinfo."""
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)
"""It exited during the scan, or it is another user's and hidden: in either case not ours."""


def scan(accounted: Collection[int] = ()) -> Table:
    """Scan the process table now; `accounted` as in `tree.Table`."""
    rows, settled = _proc_rows() if HAS_PROC else (list(ps_rows()), True)
    cookie = _proc_cookie if HAS_PROC else _ps_cookie
    return Table(rows, observer=os.getpid(), cookie=cookie, accounted=accounted, settled=settled)


def started(pid: int) -> int | None:
    """Return the start time of the process with that pid; None if there is none."""
    row = _proc_row(pid) if HAS_PROC else next(ps_rows("-p", str(pid)), None)
    return row.started if row else None


def now() -> int:
    """Return the current time, on the clock that `started` uses."""
    if HAS_PROC:
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    return int(time.time())


def boot() -> str:
    """Return a name of the time since the machine started: pids and start times repeat after it."""
    if HAS_PROC:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    return "any"  # start times are times of day there


class Stat(NamedTuple):
    """/proc/PID/stat: the program's name, which may contain any bytes, and the fields after it."""

    name: str
    fields: list[bytes]

    @property
    def parent(self) -> int:
        """The pid of its parent."""
        return int(self.fields[1])

    @property
    def group(self) -> int:
        """The process group of the process."""
        return int(self.fields[2])

    @property
    def state(self) -> bytes:
        """The letter of its state: R runs, S and D wait, T and t are stopped, Z has exited."""
        return self.fields[0]

    @property
    def terminal(self) -> tuple[int, int]:
        """The major and minor number of its terminal; 0, 0 without one."""
        number = int(self.fields[4])
        return number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00

    @property
    def foreground(self) -> int:
        """The foreground process group of its terminal; -1 without a terminal."""
        return int(self.fields[5])

    @property
    def processor_ticks(self) -> int:
        """The processor time that it has used, in ticks of the clock."""
        return int(self.fields[11]) + int(self.fields[12])

    @property
    def is_exiting(self) -> bool:
        """Whether it is inside exit(2), although no process was notified yet."""
        return bool(int(self.fields[6]) & _EXITING)

    @property
    def stack_start(self) -> int:
        """The address of its stack: each exec chooses a new one. 0 if we may not read it."""
        return int(self.fields[25])

    @classmethod
    def parse(cls, text: bytes) -> Stat:
        head, _, rest = text.rpartition(b")")
        return cls(head.partition(b"(")[2].decode("utf-8", "replace"), rest.split())


def stat(pid: int) -> Stat:
    """Return the fields of /proc/PID/stat."""
    return Stat.parse(read(pid, "stat"))


def open_stat(pid: int) -> int | None:
    """Open its stat file, to be read repeatedly by `Stat.parse(os.pread(...))` while it lives."""
    try:
        return os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def read(pid: int, name: str) -> bytes:
    """Return the whole content of a file of /proc/PID: `comm`, `cmdline`, `status`."""
    return _read(f"/proc/{pid}/{name}")


def link(pid: int, name: str) -> str:
    """Return the target of a link of /proc/PID: `exe`, `cwd`, `fd/N`."""
    return os.readlink(f"/proc/{pid}/{name}")


def executable(pid: int) -> os.stat_result:
    """Return the status of the file that it runs, even if the file was removed."""
    return os.stat(f"/proc/{pid}/exe")


def descriptors(pid: int) -> list[str]:
    """Return the numbers of its open files."""
    return os.listdir(f"/proc/{pid}/fd")


def children(pid: int) -> list[int]:
    """Return its children, whichever of its threads started them."""
    found: list[bytes] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):  # that thread has exited
            found += _read(f"/proc/{pid}/task/{thread}/children").split()
    return [int(child) for child in found]


def pids() -> list[int]:
    """Return the pids of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def threads(pid: int) -> list[int]:
    """Return the ids of its threads, the first one first."""
    return sorted(map(int, os.listdir(f"/proc/{pid}/task")), key=lambda thread: thread != pid)


class BlockedCall(NamedTuple):
    """The system call in which a thread is blocked."""

    number: int
    arguments: tuple[int, ...]


def blocked_call(pid: int, thread: int) -> BlockedCall | None:
    """Return the system call in which a thread is blocked; None while it runs. Raises OSError also
    for a process of another user, and for one that has changed its user."""
    words = _read(f"/proc/{pid}/task/{thread}/syscall").split()
    if words[0] == b"running" or (number := int(words[0])) < 0:
        return None
    return BlockedCall(number, tuple(int(word, 16) for word in words[1:7]))


def memory(pid: int, address: int, size: int) -> bytes:
    """Return bytes of its memory, or fewer. Raises OSError also where `blocked_call` does."""
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, size, address)
    finally:
        os.close(fd)


def descriptor_status(pid: int, fd: int) -> os.stat_result:
    """Return the status of the file that one of its descriptors has open."""
    return os.stat(f"/proc/{pid}/fd/{fd}")


def socket_protocol(pid: int, fd: int) -> str:
    """Return the protocol of a socket, as in `TCP` and `UNIX`."""
    return os.getxattr(f"/proc/{pid}/fd/{fd}", "system.sockprotoname").rstrip(b"\0").decode()


def descriptor_facts(pid: int, fd: int) -> bytes:
    """Return the kernel's facts about one of its descriptors, such as the members of an epoll."""
    return _read(f"/proc/{pid}/fdinfo/{fd}")


def reopen(fd: int, flags: int) -> int:
    """Open the file of one of our descriptors again. The new one has its own status flags.

    Raises OSError for a socket, for another user's file, and where there is no /proc.
    """
    return os.open(f"/proc/self/fd/{fd}", flags)


def descriptor_path(fd: int) -> str:
    """Return the path of the file that one of our descriptors has open."""
    if get_path := getattr(fcntl, "F_GETPATH", None):  # macOS has this instead of /proc
        return os.fsdecode(fcntl.fcntl(fd, get_path, bytes(1024)).rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{fd}")


def address_space() -> int:
    """Return the size of our address space in bytes."""
    return int(_read("/proc/self/statm").split()[0]) * os.sysconf("SC_PAGE_SIZE")


class Mount(NamedTuple):
    """A line of /proc/self/mountinfo."""

    point: str
    file_system: str


def mounts() -> list[Mount]:
    """Return the mounted file systems that we see. Raises OSError where there is no /proc."""
    found = []
    for line in os.fsdecode(_read(_MOUNTS)).rstrip("\n").split("\n"):
        fields = line.split(" ")
        point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[4])
        found.append(Mount(point, fields[fields.index("-") + 1]))
    return found


def most_ptys() -> int | None:
    """Return how many pseudo-terminals the system allows; None if it does not say."""
    return _number("/proc/sys/kernel/pty/max")


def ptys_in_use() -> int | None:
    """Return how many pseudo-terminals are open; None if the system does not say."""
    return _number("/proc/sys/kernel/pty/nr")


def _number(path: str) -> int | None:
    try:
        return int(_read(path))
    except (OSError, ValueError):  # no such file outside Linux, and in some containers
        return None


_SHELLS: Final = frozenset({
    b"sh", b"bash", b"rbash", b"dash", b"ash", b"busybox", b"zsh", b"fish", b"ksh", b"ksh93",
    b"mksh", b"oksh", b"lksh", b"yash", b"posh", b"csh", b"tcsh", b"rc", b"es", b"nu", b"elvish",
    b"xonsh", b"pwsh",
})  # fmt: skip
_IGNORED: Final = re.compile(rb"^SigIgn:\s*([0-9a-f]+)", re.MULTILINE)
_JOB_CONTROL: Final = sum(1 << (number - 1) for number in (signal.SIGTSTP, signal.SIGTTOU))
_KSH_JOB_CONTROL: Final = sum(1 << (number - 1) for number in (signal.SIGTTIN, signal.SIGTTOU))
_TMUX: Final = b"Name:\ttmux: client\n"


def is_shell(pid: int) -> bool:
    """Whether its program has the name of a shell, at a prompt or running a script."""
    try:
        return read(pid, "comm").strip() in _SHELLS
    except OSError:
        return False


def is_idle_shell(pid: int) -> bool:
    """Whether a process is a shell at its prompt, so that typed input is its command line.

    A shell with job control, of any name, is recognised by the signals it ignores: both SIGTSTP and
    SIGTTOU (bash and zsh also SIGTTIN, fish and dash not). ksh93 handles SIGTSTP, and is recognised
    by its name. A shell is not idle while another process
    runs in its own process group, as in `$(telex detect)`. tmux ignores the same signals, and is
    recognised by the name that it sets itself.
    """
    if not has_job_control(pid):
        return False
    try:
        below = _read(f"/proc/{pid}/task/{pid}/children").split()
    except OSError:  # it has exited and others of its group are left, or there is no /proc
        return False
    return not any(_group_of(int(child)) == pid for child in below)


def has_job_control(pid: int) -> bool:
    """Whether a process ignores the signals that a shell with job control ignores."""
    try:
        status = read(pid, "status")
    except OSError:
        return False
    if (found := _IGNORED.search(status)) is None:
        return False
    ignored = int(found[1], 16)
    if ignored & _JOB_CONTROL == _JOB_CONTROL:
        return not status.startswith(_TMUX)
    return ignored & _KSH_JOB_CONTROL == _KSH_JOB_CONTROL and is_shell(pid)


def answerable_group(group: int | None) -> int | None:
    """Return a terminal's foreground process group, unless it is an idle shell.

    When `cat` has printed a file full of requests and exited, the shell is back in the foreground
    before the requests are read, and responses would be typed into its command line. Without /proc
    (macOS) a shell gets responses like any other program.
    """
    return None if group is None or is_idle_shell(group) else group


def _group_of(pid: int) -> int | None:
    try:
        return stat(pid).group
    except OSError:  # it has exited
        return None


def pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process exits; None if not supported.

    Raises ProcessLookupError if there is no such process.
    """
    try:
        return os.pidfd_open(pid)
    except AttributeError:
        return None
    except OSError as error:
        if error.errno == errno.ESRCH:
            raise
        return None  # an old kernel, a sandbox that forbids it, or no free descriptor


class ProcessHandle:
    """A handle on one process, so that a signal never reaches another process with its pid."""

    def __init__(self, process: Process) -> None:
        """Open the handle. Raises ProcessLookupError if the process has exited."""
        self._process = process
        self.fd = pidfd(process.pid)
        try:
            self._verify()
        except OSError:
            self.release()
            raise

    def _verify(self) -> None:
        # Deliberately after the pidfd was opened: if the pid still belongs to this process now, it
        # did then, and the pidfd refers to this process for good.
        if started(self._process.pid) != self._process.started:
            raise ProcessLookupError(errno.ESRCH, "that process has exited")

    def ignores(self, number: signal.Signals) -> bool:
        """Whether it ignores a signal. False where there is no /proc."""
        try:
            found = _IGNORED.search(read(self._process.pid, "status"))
        except OSError:  # it has exited
            return False
        return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)

    def send(self, number: signal.Signals) -> None:
        """Send a signal.

        Raises ProcessLookupError if it has exited, PermissionError if we may not signal it.
        """
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
    """Return all processes alive at the last of a few listings, and whether it had no new ones.

    A process that exits between being listed and being read may have forked just before, and its
    child is in no listing yet: a single pass would miss both, and a chain of such processes
    forever.
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
    # A process whose first thread has exited is shown as a zombie while its other threads run.
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
    """Whether the environment has no memory range; during exec and exit it is only unreadable."""
    begins, ends = map(int, stat(pid).fields[47:49])
    return begins == ends > 0


def _read(path: str) -> bytes:
    # Not `open()`: a scan reads hundreds of files, and a file object doubles the cost of each.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while piece := os.read(fd, 65536):
            data += piece
        return data
    finally:
        os.close(fd)


def ps_rows(*which: str) -> Iterator[Process]:
    """Return the same rows by way of `ps`, for systems without /proc."""
    import calendar  # here, because the guardian imports this module

    fields = "pid=,ppid=,pgid=,stat=,lstart="
    for line in _ps(*(which or ("-ax",)), "-o", fields).splitlines():
        pid, ppid, pgid, state, *begun = line.split()
        when = calendar.timegm(time.strptime(" ".join(begun), "%a %b %d %H:%M:%S %Y"))
        yield Process(int(pid), int(ppid), int(pgid), _sid(int(pid)), when, state[0] != "Z")


def _sid(pid: int) -> int:
    # Not from `ps`: its session field is an address on some systems and 0 on others, and a 0 shared
    # by all would make every process a member.
    try:
        return os.getsid(pid)
    except _GONE:
        return 0


def _ps_cookie(pid: int) -> str:
    words = _ps("-p", str(pid), "-E", "-ww", "-o", "command=").split()
    found = (word.partition("=")[2] for word in words if word.startswith(COOKIE + "="))
    return next(found, "")


def _ps(*arguments: str) -> str:
    """Return the output of `ps`. It exits by itself at once, so it needs no owner or event loop."""
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
