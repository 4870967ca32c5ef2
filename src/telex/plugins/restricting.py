"""What a plugin is kept from, where Linux can see to it.

Every plugin: no privileges beyond ours (`no_new_privs`: a setuid program it runs gains nothing),
and limits on memory, open files, processes, the size of a file, no core dumps. One whose manifest
has `needs` is held to them by Landlock: it reads the system's programs and libraries, its own
directory, what runs it, and what it declared; it writes where it declared to; it signals only its
own; and without `network` it makes no TCP connections. What Landlock does not cover is said: UDP
and named local sockets.

A plugin whose restrictions cannot be applied starts all the same, and that is said: by `telex
plugin describe` where the kernel lacks them, on its standard error where they fail. They are no
licence to run strangers' programs: a plugin was installed by its user, or trusted, and without them
is as free as any other program. To refuse would make the same plugin work on one kernel and not on
another, and teach people to leave `needs` out.

`restrictions` is data for whoever describes; `command` is what a host runs. `shim` does it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.plugins import shim
from telex.plugins.interpreter import interpreters
from telex.protocols.plugin_v0 import Needs
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from telex.plugins.finding import Found

_MIB: Final = 1024 * 1024
_ALL_MEMORY_MIB: Final = 1 << 40
"""More than there is anywhere, and still a number for the kernel."""
_CREATE_RULESET, _ASK_VERSION = 444, 1

# Access rights of landlock(7), by the version of the kernel's interface that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST_RIGHTS: Final = (1 << 13) - 1
_READING: Final = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP: Final = 1 << 0 | 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1
_WITH_TCP, _WITH_SCOPES = 4, 6

_SYSTEM: Final = (
    *("/bin", "/sbin", "/usr", "/opt", "/nix/store", "/gnu/store"),
    *("/lib", "/lib32", "/lib64", "/libx32", "/etc", "/run/systemd/resolve"),
    # What runtimes ask at their start. Of other processes they learn no secret: Landlock keeps
    # /proc/PID/environ and its like to a plugin's own, unless it runs as root.
    *("/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup"),
)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PROGRAMS: Final = ("bin", "sbin", "shims")
"""Names of directories whose programs have their libraries beside it."""


_ESCAPES: Final = (
    "A process that it detaches, with an environment of its own, is not ended with it if the one "
    "that started it is gone."
)
"""A subreaper would find it, and be the parent of every orphan; see decision 0031."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What this system offers."""

    linux: bool
    landlock: int
    """The version of its interface; 0 is none."""


@dataclass(frozen=True, slots=True)
class Limit:
    number: int
    value: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Rule:
    """What lies at or beneath a path may be read, or also written."""

    path: str
    write: bool = False
    declared: bool = False
    """By the manifest; the others everybody gets."""


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What is asked of the kernel for one plugin, and what it can do of that."""

    kernel: Kernel
    limits: tuple[Limit, ...]
    needs: Needs | None
    rules: tuple[Rule, ...] = ()
    absent: tuple[str, ...] = ()
    """Declared, and not there."""

    @property
    def held_to_needs(self) -> bool:
        return self.needs is not None and self.kernel.landlock > 0

    def command(self, argv: Sequence[str]) -> list[str]:
        """What to run, so that this program runs restricted. `argv[0]` is its path."""
        if not self.kernel.linux:
            return list(argv)
        words = [*self._words(), "--", argv[0], *argv]
        return [sys.executable, "-I", "-S", shim.__file__, *words]

    def enforced(self) -> list[str]:
        """Sentences for a person: what the plugin is kept from here."""
        if not self.kernel.linux:
            return []
        said = ["It gains no privileges by programs that are setuid."]
        said += (limit.sentence for limit in self.limits)
        return [*said, *self._held()] if self.held_to_needs else said

    def lacking(self) -> list[str]:
        """And what it is not kept from, with the reason."""
        if not self.kernel.linux:
            return ["Nothing restricts it: telex restricts plugins on Linux only."]
        return [*self._unheld(), _ESCAPES]

    def _unheld(self) -> Iterator[str]:
        if self.needs is None:
            yield "It reaches every file and the network, as you do: its manifest has no `needs`."
        elif not self.kernel.landlock:
            yield "Its `needs` are not enforced: this kernel has no Landlock, or it is off."
        else:
            for path in self.absent:
                yield f"It needs {path}, which is not there; make it first."
            yield from self._beyond_landlock()

    def _held(self) -> Iterator[str]:
        for verb, write in (("reads", False), ("writes to", True)):
            paths = [rule.path for rule in self.rules if rule.declared and rule.write is write]
            yield f"It {verb} {', '.join(paths) or 'nothing'} of yours, by its manifest."
        yield "It reads the system's programs and libraries, what runs it, and its own directory."
        if self._no_network and self.kernel.landlock >= _WITH_TCP:
            yield "It makes and takes no TCP connections."
        if self.kernel.landlock >= _WITH_SCOPES:
            yield "It signals no processes but its own."

    def _beyond_landlock(self) -> Iterator[str]:
        if self._no_network and self.kernel.landlock < _WITH_TCP:
            yield "The network is open to it: this kernel's Landlock does not know TCP."
        elif self._no_network:
            yield "UDP and named local sockets are open to it: Landlock does not know them."
        if self.kernel.landlock < _WITH_SCOPES:
            yield "It can signal your other processes: this kernel's Landlock cannot see to it."
        yield "It can change the mode, owner and times of your files: Landlock does not know them."
        if os.geteuid() == 0:
            yield "It runs as root, and can read the environment of other processes in /proc."

    @property
    def _no_network(self) -> bool:
        return self.needs is not None and not self.needs.network

    def _words(self) -> Iterator[str]:
        yield from (f"default={number:d}" for number in (signal.SIGPIPE, signal.SIGXFSZ))
        if self.held_to_needs:
            yield "landlock=" + ",".join(map(str, self._handled()))
            yield from (f"path={self._access(rule)}={rule.path}" for rule in self.rules)
        yield from (f"limit={limit.number}={limit.value}" for limit in self.limits)

    def _handled(self) -> list[int]:
        """struct landlock_ruleset_attr, as far as this kernel knows it."""
        version = self.kernel.landlock
        handled = [_rights(version)]
        if version >= _WITH_TCP:
            handled.append(_TCP if self._no_network else 0)
        if version >= _WITH_SCOPES:
            handled.append(_SIGNALS | (_ABSTRACT_SOCKETS if self._no_network else 0))
        return handled

    def _access(self, rule: Rule) -> int:
        every = _rights(self.kernel.landlock)
        wanted = every & ~_MAKE_DEVICES if rule.write else _READING
        return wanted & every & (-1 if os.path.isdir(rule.path) else _OF_FILES)


def command(found: Found) -> list[str]:
    """What a host runs for a plugin, in our environment and directory."""
    return restrictions(found).command([str(found.executable)])


def restrictions(
    found: Found,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    kernel: Kernel | None = None,
) -> Restrictions:
    """What holds for a plugin. Paths of its needs begin in `cwd`, by default ours."""
    needs = found.manifest.needs if found.manifest else None
    kernel = kernel or asked_kernel()
    if needs is None:
        return Restrictions(kernel, _limits(None), None)
    declared = list(_declared(needs, environ.get("HOME", "/"), cwd or Path.cwd()))
    rules = [*_given(found, environ), *declared]
    there = tuple(rule for rule in dict.fromkeys(rules) if os.path.exists(rule.path))
    absent = tuple(rule.path for rule in declared if rule not in there)
    return Restrictions(kernel, _limits(needs.memory), needs, there, absent)


@cache
def asked_kernel() -> Kernel:
    """What the kernel says. It does not change while we run."""
    if sys.platform != "linux":
        return Kernel(linux=False, landlock=0)
    import ctypes  # here: whoever starts no plugin should not pay for it

    call = ctypes.CDLL(None).syscall
    return Kernel(linux=True, landlock=max(0, call(_CREATE_RULESET, None, 0, _ASK_VERSION)))


def _rights(version: int) -> int:
    added = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
    return _FIRST_RIGHTS | sum(right for since, right in added.items() if version >= since)


def _limits(memory: int | None) -> tuple[Limit, ...]:
    """RLIMIT_DATA and not RLIMIT_AS: Node and others reserve much more space than they use."""
    mib = min(memory or limits.PLUGIN_MEMORY_MIB, _ALL_MEMORY_MIB)
    files, processes = limits.PLUGIN_OPEN_FILES, limits.PLUGIN_PROCESSES
    size = limits.PLUGIN_FILE_BYTES
    return (
        Limit(resource.RLIMIT_CORE, 0, "It leaves no core dumps."),
        Limit(resource.RLIMIT_NOFILE, files, f"Each process has up to {files} open files."),
        Limit(resource.RLIMIT_NPROC, processes, f"You and it have up to {processes} processes."),
        Limit(resource.RLIMIT_FSIZE, size, f"It writes files of up to {size // _MIB} MiB."),
        Limit(resource.RLIMIT_DATA, mib * _MIB, f"Each process has up to {mib} MiB of memory."),
    )


def _declared(needs: Needs, home: str, cwd: Path) -> Iterator[Rule]:
    for paths, write in ((needs.read, False), (needs.write, True)):
        for path in paths or ():
            at_home = path == "~" or path.startswith("~/")
            yield Rule(str(cwd / (home + path[1:] if at_home else path)), write, declared=True)


def _given(found: Found, environ: Mapping[str, str]) -> Iterator[Rule]:
    """What every plugin reaches: the system, the programs it can call, itself, and what runs it."""
    yield from map(Rule, _SYSTEM)
    yield from (Rule(device, write=True) for device in _DEVICES)
    yield Rule(str(found.where))
    # A plugin in Python may be made with telex.plugins.sdk.
    telex = Path(__file__).parents[2]
    yield from map(Rule, (sys.prefix, sys.base_prefix, str(telex)))
    path = environ.get("PATH", os.defpath).split(os.pathsep)
    home = Path(environ.get("HOME", "/"))
    runs_it = interpreters(found.executable, path)
    places = [*path, *(place for program in runs_it for place in _around(program))]
    yield from (Rule(place) for place in places if _harmless(place, home))


def _around(program: str) -> Iterator[str]:
    """Where a program's libraries are: where it is called, and where it really is."""
    for directory in {os.path.dirname(program), os.path.dirname(os.path.realpath(program))}:
        yield directory
        if os.path.basename(directory) in _PROGRAMS:
            yield os.path.dirname(directory)


def _harmless(place: str, home: Path) -> bool:
    """Whether a directory can be given without giving all of a home: `~/bin` must not."""
    return os.path.isabs(place) and not home.is_relative_to(place)
