"""What the kernel can hold a child to, and the words by which a child is told.

Linux has three means, and each covers what the others do not:

- Landlock: which files are opened, made, renamed and removed; TCP; signals to other processes.
- A seccomp filter: which system calls are made at all. It closes what Landlock does not know:
  sockets of other kinds, changes of a file's mode, owner, times and attributes, the keyring, shared
  memory, queues and limits of other processes, and `io_uring`, which opens sockets in another way.
- Capabilities, resource limits and `no_new_privs`: what root could do beside all that is dropped,
  and no setuid program gives anything back.

`Confinement` says what is wanted, `Confinement.words` puts it as this kernel understands it, and
`restrict` does it, in the child. What was done cannot be taken off again, by it or its children.

Used for plugins (`telex.plugins.restrictions`) and for commands of an agent that nobody was asked
about (`telex.agent.permissions.confinement`). Imports little: the doctor uses it too.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final

from telex.processes import limits
from telex.processes.syscall_filter import MACHINES, Sockets, filter_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIB: Final = 1024 * 1024
_ALL_MEMORY_MIB: Final = 1 << 40
"""More than there is anywhere, and still a number for the kernel."""

# landlock(7): access rights, by the version of the kernel's interface that brought them.
_CREATE_RULESET, _ASK_VERSION = 444, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_FILE: Final = 1 << 8
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST_RIGHTS: Final = (1 << 13) - 1
_READING: Final = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP: Final = 1 << 0 | 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1
WITH_TCP, WITH_SCOPES = 4, 6
"""Versions of Landlock that know TCP, and signals with abstract sockets."""

_GET_SECCOMP: Final = 21
_KEPT_CAPABILITIES: Final = 1 << 1 | 1 << 2
"""To read and write files of any owner, as root does (DAC_OVERRIDE, DAC_READ_SEARCH)."""

PROGRAMS: Final = (
    *("/bin", "/sbin", "/usr", "/opt", "/nix/store", "/gnu/store"),
    *("/lib", "/lib32", "/lib64", "/libx32"),
)
"""The system's programs and libraries."""
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class Kernel:
    """What this system offers."""

    linux: bool
    landlock: int
    """The version of its interface; 0 is none."""
    machine: str = ""
    """Whose system calls a filter would name; empty where there are no filters, or none of ours."""

    @property
    def is_whole(self) -> bool:
        """Whether files and sockets are both held."""
        return bool(self.landlock and self.machine)


class Access(Enum):
    """What may be done at or beneath a path."""

    READ = _READING
    """Read, and run."""
    MAKE_FILES = _READING | _MAKE_FILE | _WRITE_FILE | _TRUNCATE
    """The same, and write files, also new ones. Nothing is removed or renamed."""
    WRITE = -1 & ~_MAKE_DEVICES
    """Everything but making devices."""


@dataclass(frozen=True, slots=True)
class PathRule:
    path: str
    access: Access = Access.READ

    def rights(self, version: int) -> int:
        """As a number for the kernel. Of a file some rights make no sense, and are refused."""
        every = all_rights(version)
        return self.access.value & every & (-1 if os.path.isdir(self.path) else _OF_FILES)


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    number: int
    value: int
    sentence: str


@cache
def asked_kernel() -> Kernel:
    """What the kernel says. It does not change while we run."""
    if sys.platform != "linux":
        return Kernel(linux=False, landlock=0)
    import ctypes  # here: whoever confines nothing should not pay for it

    libc = ctypes.CDLL(None)
    version = max(0, libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))
    filters = libc.prctl(_GET_SECCOMP, *map(ctypes.c_ulong, (0, 0, 0, 0))) >= 0
    machine = platform.machine() if filters and sys.maxsize > 2**32 else ""
    return Kernel(linux=True, landlock=version, machine=machine if machine in MACHINES else "")


def lacking(kernel: Kernel) -> list[str]:
    """Sentences for a person: what of this it cannot hold a command to."""
    if not kernel.linux:
        return ["there is no kernel sandbox on this system: telex has one on Linux only"]
    found = []
    if not kernel.landlock:
        found.append("this kernel has no Landlock, or it is off: it keeps commands from no file")
    if not kernel.machine:
        found.append("there is no seccomp filter here: it keeps commands from no local socket")
    if kernel.landlock < WITH_SCOPES:
        found.append("this kernel lets commands signal your other processes")
    return found


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a child and everything that comes of it are held to."""

    rules: tuple[PathRule, ...] | None = None
    """The files it reaches; None is all."""
    sockets: Sockets = Sockets.ALL
    limits: tuple[ResourceLimit, ...] = ()
    filtered: bool = False
    """By a seccomp filter, and without root's capabilities. If not, only TCP is kept from it."""
    temporary: str | None = None
    """Where a directory of its own is made for it, to be TMPDIR and to be gone with it. Only a
    child behind a reaper has one."""
    kernel: Kernel = field(default_factory=asked_kernel)

    @property
    def holds_files(self) -> bool:
        return self.rules is not None and self.kernel.landlock > 0

    def words(self) -> list[str]:
        """For `restrict`, as far as this kernel knows it; none where it knows nothing."""
        return list(self._words()) if self.kernel.linux else []

    def _words(self) -> Iterator[str]:
        version = self.kernel.landlock
        if self.rules is not None and version:
            yield "landlock=" + ",".join(map(str, self._handled()))
            yield from (f"path={rule.rights(version)}={rule.path}" for rule in self.rules)
        if self.temporary is not None:
            yield f"temporary={Access.WRITE.value & all_rights(version)}={self.temporary}"
        yield from (f"limit={limit.number}={limit.value}" for limit in self.limits)
        if self.filtered:
            yield f"capabilities={_KEPT_CAPABILITIES}"
        if self.filtered and self.kernel.machine:
            yield f"filter={filter_of(self.kernel.machine, self.sockets).hex()}"

    def _handled(self) -> list[int]:
        """struct landlock_ruleset_attr, as far as this kernel knows it."""
        version = self.kernel.landlock
        handled = [all_rights(version)]
        if version >= WITH_TCP:
            handled.append(_TCP if self.sockets is Sockets.NONE else 0)
        if version >= WITH_SCOPES:
            handled.append(_SIGNALS | (0 if self.sockets is Sockets.ALL else _ABSTRACT_SOCKETS))
        return handled


def all_rights(version: int) -> int:
    """Those about files that a version of Landlock knows."""
    added = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
    return _FIRST_RIGHTS | sum(right for since, right in added.items() if version >= since)


def usual_limits(memory: int | None = None) -> tuple[ResourceLimit, ...]:
    """RLIMIT_DATA and not RLIMIT_AS: Node and others reserve much more space than they use."""
    mib = min(memory or limits.PLUGIN_MEMORY_MIB, _ALL_MEMORY_MIB)
    files, processes = limits.PLUGIN_OPEN_FILES, limits.PLUGIN_PROCESSES
    size = limits.PLUGIN_FILE_BYTES
    return (
        ResourceLimit(resource.RLIMIT_CORE, 0, "It leaves no core dumps."),
        ResourceLimit(resource.RLIMIT_NOFILE, files, f"Each process has up to {files} open files."),
        ResourceLimit(
            resource.RLIMIT_NPROC, processes, f"You and it have up to {processes} processes."
        ),
        ResourceLimit(resource.RLIMIT_FSIZE, size, f"It writes files of up to {size // _MIB} MiB."),
        ResourceLimit(
            resource.RLIMIT_DATA, mib * _MIB, f"Each process has up to {mib} MiB of memory."
        ),
    )
