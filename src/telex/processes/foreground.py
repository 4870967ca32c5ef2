"""The foreground processes of a terminal: whether one of them waits for the terminal's input.

The kernel shows in which system call each thread is blocked, with its arguments, to the user who
owns the process (`proc.blocked_call`). A blocked `read` names its descriptor, `poll` and `select`
their sets, which are read out of the process's memory, and `epoll` its members. So a thread that
waits for the terminal is recognised whatever the program is, and so is one that waits for anything
else.

    InputWait.timeout   None: it waits until input comes. Otherwise it wakes by itself, too.
    InputWait.alone     nothing but input of the terminal can wake the process
    InputWait.passive   the terminal is a member of its epoll set, where it may have been forgotten
    Foreground.running  a process or thread of the group works meanwhile

Programs such as `script` and `sudo` give their command a terminal of its own and copy between the
two. Such a terminal is `Foreground.inner`, and the caller looks there again; `server_of` finds the
one behind `tmux` and `screen`. The facts are read one after another; the caller checks before that
no input is left to be read, so that a process that waits has nothing more to do.

Linux only: elsewhere `look` returns None. Used by `terminal.session`.
"""

from __future__ import annotations

import os
import stat as file_stat
import struct
import time
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from telex.processes import proc
from telex.processes.limits import FOREGROUND_PROCESSES, FOREGROUND_THREADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from telex.processes.proc import BlockedCall, Stat

Call = Literal[
    "read", "poll", "ppoll", "select", "epoll", "epoll2", "futex", "signal", "child", "other"
]

_X86_64: Final[dict[int, Call]] = {
    **dict.fromkeys((0, 17, 19, 295, 327), "read"),
    7: "poll",
    271: "ppoll",
    **dict.fromkeys((23, 270), "select"),
    **dict.fromkeys((232, 281), "epoll"),
    441: "epoll2",
    202: "futex",
    **dict.fromkeys((34, 128, 130), "signal"),
    **dict.fromkeys((61, 247), "child"),
}
_GENERIC: Final[dict[int, Call]] = {
    **dict.fromkeys((63, 65, 67, 69, 286), "read"),
    73: "ppoll",
    72: "select",
    22: "epoll",
    441: "epoll2",
    98: "futex",
    **dict.fromkeys((133, 137), "signal"),
    **dict.fromkeys((95, 260), "child"),
}
"""The numbers of 64-bit ARM and RISC-V."""
_CALLS: Final = {"x86_64": _X86_64, "aarch64": _GENERIC, "riscv64": _GENERIC}.get(
    os.uname().machine
)

_POLLIN: Final = 0x001 | 0x040 | 0x080
"""POLLIN, POLLRDNORM, POLLRDBAND, which epoll spells alike."""
_FUTEX_WAIT: Final = 0
_OLD_SELECT: Final = 23
"""The number of `select` on x86_64, whose time is in microseconds; pselect6 has nanoseconds."""
_LONG_SECONDS: Final = 30.0
"""A thread that wakes less often than this only tidies up, as the one of Go's runtime does."""
_DEV_TTY: Final = (5, 0)
_PTMX: Final = (5, 2)
_SERVERS: Final = (b"tmux: server", b"screen")
_POLLED: Final = 1024
"""Descriptors read of one set."""


@dataclass(frozen=True, slots=True)
class InputWait:
    """A thread that waits for input of the terminal."""

    pid: int
    name: str
    """The name of the program, as in `vim`."""
    timeout: float | None
    """After how many seconds it wakes by itself; None: never."""
    alone: bool
    """Whether nothing else can wake the process: it waits for the terminal, and no thread of it for
    anything else."""
    passive: bool
    """Whether it waits by epoll: a library may have left the terminal there."""
    size: int
    """How many bytes it reads at most; 0 if it polls."""
    shell: bool
    """Whether it is a shell with job control, at its prompt or in a builtin that reads."""


@dataclass(frozen=True, slots=True)
class Foreground:
    """The processes of a terminal's foreground group at one moment."""

    group: int
    names: tuple[str, ...]
    """The names of their programs; of the group's leader first."""
    stopped: bool
    """Whether a signal has stopped all of them."""
    told: bool
    """Whether the kernel told about all of them."""
    waits: tuple[InputWait, ...]
    inner: str | None
    """The path of the terminal that they copy from, if they do."""
    inner_root: int = 0
    """The process that has this terminal's other end."""
    running: bool = False
    """Whether a thread of them runs, or is about to: of other users' programs, too."""
    processor_ticks: int = 0
    """The processor time that they have used."""


NOBODY: Final = Foreground(0, (), False, True, (), None)
"""The foreground of a terminal whose program has exited."""


def look(root: int, group: int, terminal: tuple[int, int]) -> Foreground | None:
    """Return the facts about the foreground group of a terminal.

    Args:
        root: A process from which all processes on the terminal descend.
        group: The foreground process group.
        terminal: The major and minor number of the terminal.

    Returns:
        None if the kernel does not tell: the processes are hidden from us, or there is no /proc. A
        group without processes is about to be replaced.
    """
    if _CALLS is None or not proc.HAS_PROC:
        return None
    family = [*_family(root, group)]
    members = [(pid, stat) for pid, stat in family if stat.group == group]
    if not members and _is_hidden(group):
        return None
    facts = _Facts(terminal)
    stopped = [stat.state in (b"T", b"t") for _, stat in members]
    for (pid, stat), is_stopped in zip(members, stopped, strict=True):
        if not is_stopped:
            facts.add(pid, stat)
    facts.note_working_children({pid: stat.parent for pid, stat in members})
    if facts.told and not facts.waits and not facts.working and not any(stopped):
        facts.add_detached({pid for pid, _ in members}, family)
    members.sort(key=lambda member: member[0] != group)
    return Foreground(
        group,
        tuple([stat.name for _, stat in members]),
        bool(stopped) and all(stopped),
        facts.told,
        tuple(facts.waits),
        facts.inner,
        facts.inner_root,
        facts.running,
        sum(stat.processor_ticks for _, stat in members),
    )


def _is_hidden(pid: int) -> bool:
    """Whether a process exists that /proc does not show."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        pass
    return False


def server_of(group: int, terminal: tuple[int, int]) -> tuple[int, list[str]] | None:
    """Return the server behind a client of `tmux` or `screen`, and the terminals of its windows.

    The client does nothing; the server has the client's terminal open and reads it. None if no
    server is found. The kernel does not tell which window is shown.
    """
    for pid in proc.pids():
        try:
            if pid == group or not proc.read(pid, "comm").strip().startswith(
                (b"tmux: se", b"screen")
            ):
                continue
            devices = [(fd, _device(pid, int(fd))) for fd in proc.descriptors(pid)]
        except OSError:  # it has exited, or is another user's
            continue
        if any(device == terminal for _, device in devices):
            masters = [int(fd) for fd, device in devices if device == _PTMX]
            return pid, [path for fd in masters if (path := _master_path(pid, fd)) is not None]
    return None


def _device(pid: int, fd: int) -> tuple[int, int] | None:
    try:
        status = proc.descriptor_status(pid, fd)
    except OSError:
        return None
    if not file_stat.S_ISCHR(status.st_mode):
        return None
    return os.major(status.st_rdev), os.minor(status.st_rdev)


def _master_path(pid: int, fd: int) -> str | None:
    for line in proc.descriptor_facts(pid, fd).splitlines():
        name, _, value = line.partition(b":")
        if name == b"tty-index":
            return f"/dev/pts/{int(value)}"
    return None


def foreground_of(root: int, terminal: tuple[int, int]) -> int | None:
    """Return the foreground group of a terminal on which a descendant of a process runs."""
    for _, stat in _family(root):
        if stat.terminal == terminal and stat.foreground > 0:
            return stat.foreground
    return None


def _family(root: int, leader: int | None = None) -> Iterator[tuple[int, Stat]]:
    """Yield a process, its descendants and the leader of a group, those alive."""
    queue = [root] if leader in (None, root) else [root, leader]
    seen: set[int] = set()
    while queue and len(seen) < FOREGROUND_PROCESSES:
        pid = queue.pop(0)
        if pid in seen:
            continue
        seen.add(pid)
        try:
            stat = proc.stat(pid)
            if stat.state not in (b"Z", b"X"):
                yield pid, stat
            queue += proc.children(pid)
        except OSError:  # it has exited
            continue


class _ThreadWait(NamedTuple):
    """The things that a blocked thread waits for."""

    terminal: bool
    others: bool
    """Something outside the process."""
    timeout: float | None
    size: int
    passive: bool

    @property
    def is_active(self) -> bool:
        """Whether the process does something besides waiting for input in this thread."""
        soon = self.timeout is not None and self.timeout < _LONG_SECONDS
        return not self.terminal and (self.others or soon)


class _Facts:
    """The facts of one look, collected process by process."""

    def __init__(self, terminal: tuple[int, int]) -> None:
        self._terminal = terminal
        self.waits: list[InputWait] = []
        self.told = True
        self.working: list[int] = []
        """Processes that do not wait for input, and run or wait for something else."""
        self.running = False
        self.inner: str | None = None
        self.inner_root = 0

    def add(self, pid: int, stat: Stat) -> None:
        """Add a process."""
        try:
            threads = proc.threads(pid)
            self.told &= len(threads) <= FOREGROUND_THREADS
            own = stat.terminal == self._terminal
            found = [self._thread(pid, one, own) for one in threads[:FOREGROUND_THREADS]]
            shell = proc.has_job_control(pid) and not _runs_command(pid)
        except (FileNotFoundError, ProcessLookupError):  # it has exited
            return
        except OSError:  # it is another user's; but so are the files of one that exits
            self.told &= _is_exiting(pid)
            self.running |= stat.state == b"R"
            return
        reading = [one for one in found if isinstance(one, _ThreadWait) and one.terminal]
        self.running |= None in found
        active = None in found or any(one is not None and one.is_active for one in found)
        if active and not reading:
            self.working.append(pid)
        for one in reading:
            alone = not active and not one.others
            self.waits.append(
                InputWait(pid, stat.name, one.timeout, alone, one.passive, one.size, shell)
            )

    def add_detached(self, below: set[int], family: list[tuple[int, Stat]]) -> None:
        """Add the descendants of these processes that have a session without a terminal: `su` and
        `setsid` start their commands so, and these still read the descriptor they inherit."""
        for pid, stat in family:
            if stat.parent in below and stat.terminal == (0, 0):
                below.add(pid)
                self.add(pid, stat)

    def note_working_children(self, parents: dict[int, int]) -> None:
        """A process that reads while a child of it works may wait for the child as well. The parts
        of a pipeline are no children of each other."""
        above: set[int] = set()
        for pid in self.working:
            while (pid := parents.get(pid, 0)) and pid not in above:
                above.add(pid)
        self.waits = [
            one if one.shell or one.pid not in above else replace(one, alone=False)
            for one in self.waits
        ]

    def _thread(self, pid: int, thread: int, own_terminal: bool) -> _ThreadWait | None:
        """Return what a thread waits for; None while it runs."""
        if (call := proc.blocked_call(pid, thread)) is None:
            return None
        sources = _Sources(pid, self._terminal, own_terminal)
        timeout: float | None = None
        size = 0
        kind = (_CALLS or {}).get(call.number, "other")
        first, second, third, fourth, fifth, _ = call.arguments
        match kind:
            case "read":
                sources.add(first)
                size = third
            case "poll":
                sources.add_all(_polled(pid, first, second))
                timeout = _milliseconds(third)
            case "ppoll":
                sources.add_all(_polled(pid, first, second))
                timeout = _timespec(pid, third)
            case "select":
                sources.add_all(_selected(pid, first, second))
                timeout = _timespec(pid, fifth, micro=call.number == _OLD_SELECT)
            case "epoll":
                sources.add_all(_epolled(pid, first))
                timeout = _milliseconds(fourth)
            case "epoll2":
                sources.add_all(_epolled(pid, first))
                timeout = _timespec(pid, fourth)
            case "futex":
                timeout = _futex_timeout(pid, call)
            case "signal" | "child":
                pass  # a child in the foreground is looked at itself
            case "other":
                sources.others = True
        if sources.terminal and sources.masters:
            self.inner, self.inner_root = _master_path(pid, sources.masters[0]), pid
        soonest = _sooner(timeout, sources.timer)
        passive = kind in ("epoll", "epoll2")
        return _ThreadWait(sources.terminal, sources.others, soonest, size, passive)


def _runs_command(pid: int) -> bool:
    """Whether a shell was started for one command: then it has no prompt, and only `read` asks."""
    _, *words = proc.read(pid, "cmdline").split(b"\0")
    options = list(takewhile(lambda word: word.startswith(b"-"), words))
    return b"-c" in options and b"-i" not in options


def _is_exiting(pid: int) -> bool:
    try:
        stat = proc.stat(pid)
    except OSError:
        return True
    return stat.is_exiting or stat.state in (b"Z", b"X")


def _sooner(one: float | None, other: float | None) -> float | None:
    times = [timeout for timeout in (one, other) if timeout is not None]
    return min(times, default=None)


class _Sources:
    """The files that one thread waits for, of one process."""

    def __init__(self, pid: int, terminal: tuple[int, int], own_terminal: bool) -> None:
        self._pid, self._terminal, self._own_terminal = pid, terminal, own_terminal
        self.terminal = False
        """Whether the terminal is among them."""
        self.others = False
        """Whether something outside the process may wake it."""
        self.timer: float | None = None
        self.masters: list[int] = []
        """Descriptors of the other end of a terminal."""

    def add_all(self, descriptors: Iterable[int]) -> None:
        for fd in descriptors:
            self.add(fd)

    def add(self, fd: int) -> None:
        try:
            status = proc.descriptor_status(self._pid, fd)
            if file_stat.S_ISCHR(status.st_mode):
                self._add_device((os.major(status.st_rdev), os.minor(status.st_rdev)), fd)
            elif file_stat.S_ISFIFO(status.st_mode) or file_stat.S_ISSOCK(status.st_mode):
                self.others |= not self._is_internal(fd, status.st_ino)
            else:
                self._add_anonymous(fd)
        except FileNotFoundError:  # closed, as far as we can see
            return

    def _add_device(self, device: tuple[int, int], fd: int) -> None:
        if device == self._terminal or (device == _DEV_TTY and self._own_terminal):
            self.terminal = True
        elif device == _PTMX:
            self.masters.append(fd)
            self.others = True
        else:
            self.others = True

    def _add_anonymous(self, fd: int) -> None:
        kind = proc.link(self._pid, f"fd/{fd}")
        if kind == "anon_inode:[timerfd]":
            self.timer = _sooner(self.timer, _timer(proc.descriptor_facts(self._pid, fd)))
        elif kind == "anon_inode:[eventpoll]":
            self.add_all(_epolled(self._pid, fd))
        elif kind not in ("anon_inode:[eventfd]", "anon_inode:[signalfd]"):
            self.others = True

    def _is_internal(self, fd: int, inode: int) -> bool:
        """Whether both ends of a pipe or a pair of sockets are in this process alone: event loops
        have one to wake themselves, and fish a named pipe. The sockets of a pair have neighbouring
        numbers."""
        pair = {inode}
        if proc.link(self._pid, f"fd/{fd}").startswith("socket"):
            if not proc.socket_protocol(self._pid, fd).startswith("UNIX"):
                return False
            pair = {inode - 1, inode + 1}
        elif _is_read_and_written(proc.descriptor_facts(self._pid, fd)):
            return True
        if not pair & set(_inodes(self._pid, fd)):
            return False
        children = proc.children(self._pid)
        return not any(pair & set(_inodes(child)) for child in children)


def _inodes(pid: int, besides: int = -1) -> Iterator[int]:
    """Yield the numbers of a process's pipes and sockets."""
    for fd in proc.descriptors(pid):
        kind, _, number = proc.link(pid, f"fd/{fd}").partition(":[")
        if kind in ("pipe", "socket") and int(fd) != besides:
            yield int(number.rstrip("]"))


# Arguments of system calls.


def _milliseconds(argument: int) -> float | None:
    value = argument & 0xFFFFFFFF
    return None if value & 0x80000000 else value / 1000


def _timespec(pid: int, address: int, *, micro: bool = False) -> float | None:
    if not address:
        return None
    seconds, part = struct.unpack("qq", proc.memory(pid, address, 16))
    return float(seconds + part / (1e6 if micro else 1e9))


def _futex_timeout(pid: int, call: BlockedCall) -> float | None:
    _, operation, _, address, *_ = call.arguments
    if (timeout := _timespec(pid, address)) is None or operation & 0x7F == _FUTEX_WAIT:
        return timeout
    clock = time.CLOCK_REALTIME if operation & 0x100 else time.CLOCK_MONOTONIC
    return max(0.0, timeout - time.clock_gettime(clock))


def _polled(pid: int, address: int, count: int) -> Iterator[int]:
    data = proc.memory(pid, address, 8 * min(count, _POLLED)) if count else b""
    for fd, events, _ in struct.iter_unpack("ihh", data):
        if fd >= 0 and events & _POLLIN:
            yield fd


def _selected(pid: int, count: int, address: int) -> Iterator[int]:
    if not address:
        return
    count = min(count, _POLLED)
    bits = int.from_bytes(proc.memory(pid, address, (count + 63) // 64 * 8), "little")
    yield from (fd for fd in range(count) if bits >> fd & 1)


def _epolled(pid: int, fd: int) -> Iterator[int]:
    for line in proc.descriptor_facts(pid, fd).splitlines():
        words = line.split()
        if words[:1] == [b"tfd:"] and int(words[3], 16) & _POLLIN:
            yield int(words[1])


def _is_read_and_written(facts: bytes) -> bool:
    """Whether a descriptor is open for both."""
    flags = next((line.split()[1] for line in facts.splitlines() if line[:6] == b"flags:"), b"0")
    return int(flags, 8) & os.O_ACCMODE == os.O_RDWR


def _timer(facts: bytes) -> float | None:
    """Return the time until a timerfd fires; None if it is not set."""
    for line in facts.splitlines():
        name, _, value = line.partition(b":")
        if name == b"it_value":
            seconds, nanoseconds = map(int, value.strip(b" ()").split(b","))
            return float(seconds) + nanoseconds / 1e9 or None
    return None
