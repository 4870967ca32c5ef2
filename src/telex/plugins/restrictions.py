"""The restrictions of a plugin's process, on Linux.

Every plugin gets no new privileges (`no_new_privs`: a setuid program that it runs gains nothing),
limits on memory, open files, processes and the size of a file, and no core dumps. A plugin whose
manifest has `needs` is also restricted by Landlock: it can read the system's programs and
libraries, its own directory, its interpreter, and the paths it declared; it can write the paths it
declared for that; it can signal only its own processes; and without `network` it cannot make TCP
connections. Landlock does not cover UDP and named local sockets, which `telex plugin describe`
reports.

A plugin whose restrictions cannot be applied starts all the same, and this is reported: by `telex
plugin describe` if the kernel lacks them, on standard error if applying them fails. The
restrictions are not meant for untrusted programs: a person installed or trusted the plugin, and
without restrictions it can do as much as any other program of that person. To refuse the start
would make the same plugin work on one kernel and not on another, and teach authors to leave out
`needs`.

`restrictions` returns them as data, for `telex plugin describe`; `restricted_command` returns the
command that a host runs. `shim` applies them, by `telex.processes.sandbox`.
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
    # Runtimes read these at their start. A plugin finds no secret of other processes there:
    # Landlock limits /proc/PID/environ and the like to the plugin's own processes, unless it runs
    # as root.
    *("/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup"),
)
_PROGRAMS: Final = ("bin", "sbin", "shims")
"""Names of directories of programs whose libraries are beside this directory."""


_ESCAPES: Final = (
    "A process that it detaches, with another environment, is not ended with the plugin if the "
    "parent of that process has exited."
)
"""A subreaper would find such a process, but would become the parent of every orphan; see decision
0031."""


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The restrictions of one plugin, and the features of the kernel that decide which apply."""

    kernel: Kernel
    limits: tuple[ResourceLimit, ...]
    needs: Needs | None
    rules: tuple[PathRule, ...] = ()
    declared: tuple[PathRule, ...] = ()
    """The rules from the manifest; every plugin gets the other rules."""
    absent: tuple[str, ...] = ()
    """Declared paths that do not exist."""

    @property
    def enforces_needs(self) -> bool:
        return self.needs is not None and self.kernel.landlock > 0

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs this program restricted. `argv[0]` is its path."""
        if not self.kernel.linux:
            return list(argv)
        words = [*self._words(), "--", argv[0], *argv]
        return [sys.executable, "-I", "-S", shim.__file__, *words]

    def enforced(self) -> list[str]:
        """Return the restrictions that apply, as sentences for a person."""
        if not self.kernel.linux:
            return []
        sentences = ["It gains no privileges by programs that are setuid."]
        sentences += (limit.sentence for limit in self.limits)
        return [*sentences, *self._landlock()] if self.enforces_needs else sentences

    def lacking(self) -> list[str]:
        """Return what is not restricted, with the reason, as sentences for a person."""
        if not self.kernel.linux:
            return ["It is not restricted: telex restricts plugins on Linux only."]
        return [*self._not_enforced(), _ESCAPES]

    def _not_enforced(self) -> Iterator[str]:
        if self.needs is None:
            yield "It can use every file and the network, as you can: its manifest has no `needs`."
        elif not self.kernel.landlock:
            yield "Its `needs` are not enforced: this kernel has no Landlock, or it is off."
        else:
            for path in self.absent:
                yield f"It needs {path}, which does not exist; create it first."
            yield from self._beyond_landlock()

    def _landlock(self) -> Iterator[str]:
        for verb, access in (("reads", Access.READ), ("writes to", Access.WRITE)):
            paths = [rule.path for rule in self.declared if rule.access is access]
            yield f"It {verb} {', '.join(paths) or 'nothing'} of yours, by its manifest."
        yield "It reads the system's programs and libraries, its interpreter, its own directory."
        if self._no_network and self.kernel.landlock >= WITH_TCP:
            yield "It makes and accepts no TCP connections."
        if self.kernel.landlock >= WITH_SCOPES:
            yield "It signals no processes but its own."

    def _beyond_landlock(self) -> Iterator[str]:
        if self._no_network and self.kernel.landlock < WITH_TCP:
            yield "It can use the network: this kernel's Landlock does not restrict TCP."
        elif self._no_network:
            yield "It can use UDP and named local sockets: Landlock does not restrict them."
        if self.kernel.landlock < WITH_SCOPES:
            yield "It can signal your other processes: this kernel's Landlock cannot restrict that."
        yield "It can change mode, owner and times of your files: Landlock does not restrict that."
        if os.geteuid() == 0:
            yield "It runs as root, and can read the environment of other processes in /proc."

    @property
    def _no_network(self) -> bool:
        return self.needs is not None and not self.needs.network

    def _words(self) -> Iterator[str]:
        yield from (f"default={number:d}" for number in (signal.SIGPIPE, signal.SIGXFSZ))
        yield from Confinement(
            self.rules if self.enforces_needs else None,
            Sockets.NONE if self._no_network else Sockets.ALL,
            self.limits,
            kernel=self.kernel,
        ).words()


def restricted_command(found: FoundPlugin) -> list[str]:
    """Return the command that starts a plugin restricted, for this environment and directory."""
    return restrictions(found).command([str(found.executable)])


def restrictions(
    found: FoundPlugin,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    kernel: Kernel | None = None,
) -> Restrictions:
    """Return the restrictions of a plugin. Paths in its needs are relative to `cwd`, by default
    the current directory."""
    needs = found.manifest.needs if found.manifest else None
    kernel = kernel or asked_kernel()
    if needs is None:
        return Restrictions(kernel, usual_limits(), None)
    declared = list(_declared(needs, environ.get("HOME", "/"), cwd or Path.cwd()))
    rules = [*_granted_to_all(found, environ), *declared]
    there = tuple(rule for rule in dict.fromkeys(rules) if os.path.exists(rule.path))
    found_there = tuple(rule for rule in declared if rule in there)
    absent = tuple(rule.path for rule in declared if rule not in there)
    return Restrictions(kernel, usual_limits(needs.memory), needs, there, found_there, absent)


def _declared(needs: Needs, home: str, cwd: Path) -> Iterator[PathRule]:
    for paths, access in ((needs.read, Access.READ), (needs.write, Access.WRITE)):
        for path in paths or ():
            at_home = path == "~" or path.startswith("~/")
            yield PathRule(str(cwd / (home + path[1:] if at_home else path)), access)


def _granted_to_all(found: FoundPlugin, environ: Mapping[str, str]) -> Iterator[PathRule]:
    """Yield the rules that every plugin gets: the system, the programs in PATH, its own directory,
    and its interpreters."""
    yield from map(PathRule, _SYSTEM)
    yield from (PathRule(device, Access.WRITE) for device in DEVICES)
    yield PathRule(str(found.where))
    # A plugin in Python may use telex.plugins.sdk.
    telex = Path(__file__).parents[2]
    yield from map(PathRule, (sys.prefix, sys.base_prefix, str(telex)))
    path = environ.get("PATH", os.defpath).split(os.pathsep)
    home = Path(environ.get("HOME", "/"))
    programs = interpreters(found.executable, path)
    places = [*path, *(place for program in programs for place in _library_places(program))]
    yield from (PathRule(place) for place in places if _harmless(place, home))


def _library_places(program: str) -> Iterator[str]:
    """Yield the directories of a program's libraries: beside its path, and beside its target if
    the path is a link."""
    for directory in {os.path.dirname(program), os.path.dirname(os.path.realpath(program))}:
        yield directory
        if os.path.basename(directory) in _PROGRAMS:
            yield os.path.dirname(directory)


def _harmless(place: str, home: Path) -> bool:
    """Return whether a rule for this directory does not include the whole home directory."""
    return os.path.isabs(place) and not home.is_relative_to(place)
