"""The restrictions that the kernel can enforce on a child, and their encoding for the child.

Linux has three mechanisms, and each covers what the others do not:

- Landlock: which files can be opened, created, renamed and removed; TCP; signals to other
processes.
- A seccomp filter: which system calls can be made at all. It covers what Landlock does not: other
  kinds of sockets, changes of a file's mode, owner, times and attributes, the keyring, shared
  memory, queues and limits of other processes, and `io_uring`, which opens sockets in another way.
- Capabilities, resource limits and `no_new_privs`: root's other powers are dropped, and no setuid
  program gives them back.

`Confinement` describes the restrictions, `Confinement.words` encodes them as far as this kernel
supports them, and `restrict` applies them, in the child. Neither the child nor its descendants can
remove them.

Used for plugins (`telex.plugins.restrictions`) and for commands of an agent that ran without a
question (`telex.agent.permissions.confinement`). Imports little, because the doctor uses it too.
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
"""More memory than any machine has, and still a valid number for the kernel."""

# landlock(7): access rights, by the version of the kernel interface that added them.
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
"""The versions of Landlock that added TCP, and signals with abstract sockets."""

_GET_SECCOMP: Final = 21
_KEPT_CAPABILITIES: Final = 1 << 1 | 1 << 2
"""The capabilities to read and write files of any owner (DAC_OVERRIDE, DAC_READ_SEARCH)."""

PROGRAMS: Final = (
    *("/bin", "/sbin", "/usr", "/opt", "/nix/store", "/gnu/store"),
    *("/lib", "/lib32", "/lib64", "/libx32"),
)
"""The directories of the system's programs and libraries."""
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class Kernel:
    """The sandbox mechanisms that this system offers."""

    linux: bool
    landlock: int
    """The version of the Landlock interface; 0 means none."""
    machine: str = ""
    """The architecture whose system calls a filter names; empty if filters are not supported."""

    @property
    def is_whole(self) -> bool:
        """Whether both files and sockets can be restricted."""
        return bool(self.landlock and self.machine)


class Access(Enum):
    """The rights of a child at or beneath a path."""

    READ = _READING
    """Read files, and run them."""
    MAKE_FILES = _READING | _MAKE_FILE | _WRITE_FILE | _TRUNCATE
    """READ, and write files, also new ones. No removing and no renaming."""
    WRITE = -1 & ~_MAKE_DEVICES
    """Everything except creating devices."""


@dataclass(frozen=True, slots=True)
class PathRule:
    path: str
    access: Access = Access.READ

    def rights(self, version: int) -> int:
        """Return the rights as a number for the kernel, without those that a file cannot have."""
        every = all_rights(version)
        return self.access.value & every & (-1 if os.path.isdir(self.path) else _OF_FILES)


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    number: int
    value: int
    sentence: str


@cache
def asked_kernel() -> Kernel:
    """Return what the kernel offers. It does not change while we run."""
    if sys.platform != "linux":
        return Kernel(linux=False, landlock=0)
    import ctypes  # here, because most processes confine nothing

    libc = ctypes.CDLL(None)
    version = max(0, libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))
    filters = libc.prctl(_GET_SECCOMP, *map(ctypes.c_ulong, (0, 0, 0, 0))) >= 0
    machine = platform.machine() if filters and sys.maxsize > 2**32 else ""
    return Kernel(linux=True, landlock=version, machine=machine if machine in MACHINES else "")


def lacking(kernel: Kernel) -> list[str]:
    """Return sentences for a person: the restrictions that this kernel cannot enforce."""
    if not kernel.linux:
        return ["there is no kernel sandbox on this system: telex has one on Linux only"]
    found = []
    if not kernel.landlock:
        found.append("this kernel has no Landlock, or it is off: access to files is not restricted")
    if not kernel.machine:
        found.append("this kernel has no seccomp filter: access to local sockets is not restricted")
    if kernel.landlock < WITH_SCOPES:
        found.append("this kernel lets commands signal your other processes")
    return found


@dataclass(frozen=True, slots=True)
class Confinement:
    """The restrictions of a child and all its descendants."""

    rules: tuple[PathRule, ...] | None = None
    """The files that it can reach; None means all."""
    sockets: Sockets = Sockets.ALL
    limits: tuple[ResourceLimit, ...] = ()
    filtered: bool = False
    """Whether a seccomp filter applies and root's capabilities are dropped. Otherwise only TCP can
    be denied."""
    temporary: str | None = None
    """Where a private temporary directory is created: it becomes TMPDIR and is removed after the
    child. Only a child behind a reaper has one."""
    kernel: Kernel = field(default_factory=asked_kernel)

    @property
    def holds_files(self) -> bool:
        return self.rules is not None and self.kernel.landlock > 0

    def words(self) -> list[str]:
        """Return the words for `restrict`, as far as this kernel supports them; else none."""
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
        """Return struct landlock_ruleset_attr, as far as this kernel supports it."""
        version = self.kernel.landlock
        handled = [all_rights(version)]
        if version >= WITH_TCP:
            handled.append(_TCP if self.sockets is Sockets.NONE else 0)
        if version >= WITH_SCOPES:
            handled.append(_SIGNALS | (0 if self.sockets is Sockets.ALL else _ABSTRACT_SOCKETS))
        return handled


def all_rights(version: int) -> int:
    """Return all rights about files that a version of Landlock knows."""
    added = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
    return _FIRST_RIGHTS | sum(right for since, right in added.items() if version >= since)


def usual_limits(memory: int | None = None) -> tuple[ResourceLimit, ...]:
    """Return the default limits. RLIMIT_DATA and not RLIMIT_AS, because Node and others reserve
    much more address space than they use."""
    mib = min(memory or limits.PLUGIN_MEMORY_MIB, _ALL_MEMORY_MIB)
    files, processes = limits.PLUGIN_OPEN_FILES, limits.PLUGIN_PROCESSES
    size = limits.PLUGIN_FILE_BYTES
    return (
        ResourceLimit(resource.RLIMIT_CORE, 0, "It writes no core dumps."),
        ResourceLimit(resource.RLIMIT_NOFILE, files, f"Each process has up to {files} open files."),
        ResourceLimit(
            resource.RLIMIT_NPROC, processes, f"You and it have up to {processes} processes."
        ),
        ResourceLimit(resource.RLIMIT_FSIZE, size, f"It writes files of up to {size // _MIB} MiB."),
        ResourceLimit(
            resource.RLIMIT_DATA, mib * _MIB, f"Each process has up to {mib} MiB of memory."
        ),
    )
