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

`restrictions` is data, for `telex plugin describe`; `restricted_command` is what a host runs.
`shim` applies them, by the means of `telex.processes.sandbox`.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.plugins import shim
from telex.plugins.ownership import interpreters
from telex.processes.sandbox import (
    DEVICES,
    PROGRAMS,
    WITH_SCOPES,
    WITH_TCP,
    Access,
    Confinement,
    Kernel,
    PathRule,
    ResourceLimit,
    asked_kernel,
    usual_limits,
)
from telex.processes.syscall_filter import Sockets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from telex.plugins.discovery import FoundPlugin
    from telex.plugins.protocol import Needs

_SYSTEM: Final = (
    *(*PROGRAMS, "/etc", "/run/systemd/resolve"),
    # What runtimes ask at their start. Of other processes they learn no secret: Landlock keeps
    # /proc/PID/environ and its like to a plugin's own, unless it runs as root.
    *("/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup"),
)
_PROGRAMS: Final = ("bin", "sbin", "shims")
"""Names of directories whose programs have their libraries beside it."""


_ESCAPES: Final = (
    "A process that it detaches, with an environment of its own, is not ended with it if the one "
    "that started it is gone."
)
"""A subreaper would find it, and be the parent of every orphan; see decision 0031."""


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What is asked of the kernel for one plugin, and what it can do of that."""

    kernel: Kernel
    limits: tuple[ResourceLimit, ...]
    needs: Needs | None
    rules: tuple[PathRule, ...] = ()
    declared: tuple[PathRule, ...] = ()
    """Those of the manifest; the others everybody gets."""
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
        for verb, access in (("reads", Access.READ), ("writes to", Access.WRITE)):
            paths = [rule.path for rule in self.declared if rule.access is access]
            yield f"It {verb} {', '.join(paths) or 'nothing'} of yours, by its manifest."
        yield "It reads the system's programs and libraries, what runs it, and its own directory."
        if self._no_network and self.kernel.landlock >= WITH_TCP:
            yield "It makes and takes no TCP connections."
        if self.kernel.landlock >= WITH_SCOPES:
            yield "It signals no processes but its own."

    def _beyond_landlock(self) -> Iterator[str]:
        if self._no_network and self.kernel.landlock < WITH_TCP:
            yield "The network is open to it: this kernel's Landlock does not know TCP."
        elif self._no_network:
            yield "UDP and named local sockets are open to it: Landlock does not know them."
        if self.kernel.landlock < WITH_SCOPES:
            yield "It can signal your other processes: this kernel's Landlock cannot see to it."
        yield "It can change the mode, owner and times of your files: Landlock does not know them."
        if os.geteuid() == 0:
            yield "It runs as root, and can read the environment of other processes in /proc."

    @property
    def _no_network(self) -> bool:
        return self.needs is not None and not self.needs.network

    def _words(self) -> Iterator[str]:
        yield from (f"default={number:d}" for number in (signal.SIGPIPE, signal.SIGXFSZ))
        yield from Confinement(
            self.rules if self.held_to_needs else None,
            Sockets.NONE if self._no_network else Sockets.ALL,
            self.limits,
            kernel=self.kernel,
        ).words()


def restricted_command(found: FoundPlugin) -> list[str]:
    """What a host runs for a plugin, in our environment and directory."""
    return restrictions(found).command([str(found.executable)])


def restrictions(
    found: FoundPlugin,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    kernel: Kernel | None = None,
) -> Restrictions:
    """What holds for a plugin. Paths of its needs begin in `cwd`, by default ours."""
    needs = found.manifest.needs if found.manifest else None
    kernel = kernel or asked_kernel()
    if needs is None:
        return Restrictions(kernel, usual_limits(), None)
    declared = list(_declared(needs, environ.get("HOME", "/"), cwd or Path.cwd()))
    rules = [*_given(found, environ), *declared]
    there = tuple(rule for rule in dict.fromkeys(rules) if os.path.exists(rule.path))
    found_there = tuple(rule for rule in declared if rule in there)
    absent = tuple(rule.path for rule in declared if rule not in there)
    return Restrictions(kernel, usual_limits(needs.memory), needs, there, found_there, absent)


def _declared(needs: Needs, home: str, cwd: Path) -> Iterator[PathRule]:
    for paths, access in ((needs.read, Access.READ), (needs.write, Access.WRITE)):
        for path in paths or ():
            at_home = path == "~" or path.startswith("~/")
            yield PathRule(str(cwd / (home + path[1:] if at_home else path)), access)


def _given(found: FoundPlugin, environ: Mapping[str, str]) -> Iterator[PathRule]:
    """What every plugin reaches: the system, the programs it can call, itself, and what runs it."""
    yield from map(PathRule, _SYSTEM)
    yield from (PathRule(device, Access.WRITE) for device in DEVICES)
    yield PathRule(str(found.where))
    # A plugin in Python may be made with telex.plugins.sdk.
    telex = Path(__file__).parents[2]
    yield from map(PathRule, (sys.prefix, sys.base_prefix, str(telex)))
    path = environ.get("PATH", os.defpath).split(os.pathsep)
    home = Path(environ.get("HOME", "/"))
    runs_it = interpreters(found.executable, path)
    places = [*path, *(place for program in runs_it for place in _around(program))]
    yield from (PathRule(place) for place in places if _harmless(place, home))


def _around(program: str) -> Iterator[str]:
    """Where a program's libraries are: where it is called, and where it really is."""
    for directory in {os.path.dirname(program), os.path.dirname(os.path.realpath(program))}:
        yield directory
        if os.path.basename(directory) in _PROGRAMS:
            yield os.path.dirname(directory)


def _harmless(place: str, home: Path) -> bool:
    """Whether a directory can be given without giving all of a home: `~/bin` must not."""
    return os.path.isabs(place) and not home.is_relative_to(place)
