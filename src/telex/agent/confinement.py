"""What the kernel holds a command to that nobody was asked about: the second wall behind the judge.

The judge reads a text and says where it leads; the kernel sees where it goes. So what the judge
took for harmless runs where it can do no harm: it reads the root and what programs need of the
system, it writes the files that it was judged to write and a directory of its own for temporary
ones, and in mode minimal it has no network.

Not held is what the person decided: a command they said yes to, one that a rule of theirs or a
remembered yes allows by its words, and all of mode full. They gave it leave to do what it does,
which nobody here can know. A rule about paths is no such leave: it opens those paths in the wall.

`telex.processes.sandbox` has the means. Looks at the disk: blocks.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING, Final

from telex.agent.git_places import git_places
from telex.agent.judging.modes import SHELL_TOOL, Mode
from telex.agent.judging.modes import Access as Touching
from telex.agent.judging.rules import Decision, Rule, matches
from telex.processes.sandbox import (
    DEVICES,
    PROGRAMS,
    WITH_TCP,
    Access,
    Confinement,
    asked_kernel,
    usual_limits,
)
from telex.processes.sandbox import PathRule as Place
from telex.processes.syscall_filter import Sockets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from telex.agent.judging.judge import Judge, Judgement
    from telex.agent.judging.paths import Touched
    from telex.processes.sandbox import Kernel

SEARCH_TOOL: Final = "search"
HELD_TOOLS: Final = {SHELL_TOOL: (), SEARCH_TOOL: ("rg",)}
"""Those that run a program, and which, where that is not among the pieces that were judged."""

_SETTINGS: Final = (
    # What programs need of /etc, one by one: Landlock cannot take a file out of a directory again.
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload"),
    *("passwd", "group", "nsswitch.conf", "localtime", "timezone", "locale.alias", "os-release"),
    *("hosts", "host.conf", "resolv.conf", "gai.conf", "services", "protocols"),
    *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf"),
    *("pki/ca-trust/extracted", "ca-certificates", "crypto-policies"),
    *("gitconfig", "gitattributes", "magic", "magic.mime", "terminfo"),
)
_FACTS: Final = (
    # Of the machine, and of the shell itself or what it becomes; each of its children is another
    # process, and what others were started with is not for everybody.
    "/proc/self",
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg"),
    *("/proc/version", "/proc/filesystems", "/proc/sys/vm/overcommit_memory"),
    "/sys/devices/system/cpu",
)
_LIBRARIES: Final = ("lib", "lib32", "lib64", "libexec", "opt", "Cellar")
"""Beside a directory of programs. `share` too, but in a home: there keyrings are kept in one."""
_DOORS: Final = re.compile(
    r"SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DBUS_.*_ADDRESS|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY"
    r"|DOCKER_.*|CONTAINER_HOST|KUBECONFIG|XDG_RUNTIME_DIR"
)
"""Where others wait who would do what a command may not."""


def confinement(
    judged: Judgement,
    judge: Judge,
    tool: str,
    environment: Mapping[str, str],
    kernel: Kernel | None = None,
) -> Confinement | None:
    """For a call that was allowed without a question; None where nothing holds it."""
    if tool not in HELD_TOOLS or judged.decision is not Decision.ALLOW:
        return None
    if judge.mode is Mode.FULL or (tool == SHELL_TOOL and _is_free(judged, judge)):
        return None
    kernel = kernel or asked_kernel()
    if not kernel.linux:
        return None
    programs = {piece.argv[0] for piece in judged.pieces if piece.kind == "command" and piece.argv}
    places = [
        *map(Place, (*PROGRAMS, *_FACTS, *(f"/etc/{name}" for name in _SETTINGS))),
        *(Place(device, Access.WRITE) for device in DEVICES),
        Place(judge.root),
        *map(Place, _of_programs({*programs, *HELD_TOOLS[tool]}, judge.home, environment)),
        *(place for piece in judged.pieces for one in piece.touched for place in _of(one, judge)),
    ]
    if config := environment.get("RIPGREP_CONFIG_PATH"):
        places.append(Place(config))
    if "git" in programs:
        places += map(Place, git_places(judge.paths, environment))
    return Confinement(
        tuple(place for place in dict.fromkeys(places) if os.path.exists(place.path)),
        Sockets.NONE if judge.mode is Mode.MINIMAL else Sockets.INTERNET,
        usual_limits(),
        filtered=True,
        temporary=tempfile.gettempdir(),
        kernel=kernel,
    )


def without_doors(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not _DOORS.fullmatch(name)}


def described(held: Confinement, root: Path) -> str:
    """For a person, and for a language model: what it may do."""
    made = [rule.path for rule in held.rules or () if rule.access is not Access.READ]
    written = [path for path in made if path not in DEVICES]
    files = (
        f"reads {root} and the system's programs, writes {', '.join(written) or 'nothing'} but "
        "temporary files"
    )
    return (
        f"{files if held.holds_files else 'reads and writes what you do'}, and has {_network(held)}"
    )


def _network(held: Confinement) -> str:
    if held.kernel.machine:
        return "no network" if held.sockets is Sockets.NONE else "no local sockets"
    no_tcp = held.sockets is Sockets.NONE and held.kernel.landlock >= WITH_TCP
    return "no TCP" if no_tcp else "your network"


def _is_free(judged: Judgement, judge: Judge) -> bool:
    """Whether the person allowed the command itself, or all commands."""
    decided = (judged.rule, *(piece.verdict.rule for piece in judged.pieces))
    whole = (rule for rule in judge.rules if rule.decision is Decision.ALLOW and _is_whole(rule))
    return any(_is_for_commands(rule) for rule in (*decided, *whole) if rule)


def _is_for_commands(rule: Rule) -> bool:
    """By its words, or as a whole; not one about what is read and written."""
    named = rule.command is not None or rule.text is not None
    return named or (rule.path is None and matches(rule.tool, SHELL_TOOL))


def _is_whole(rule: Rule) -> bool:
    return (rule.command, rule.text, rule.path, rule.cwd) == (None, None, None, None)


def _of(one: Touched, judge: Judge) -> Iterator[Place]:
    """A path outside the root that a rule lets be read, or one that is to be written."""
    if one.verdict.decision is not Decision.ALLOW:
        return
    by_rule = one.verdict.rule is not None
    if one.access is Touching.READ:
        if by_rule:
            yield Place(one.real)
    elif by_rule or (judge.mode is Mode.TRUSTED and _is_below(one.real, judge.root)):
        there = one.real
        while not os.path.lexists(there):
            there = os.path.dirname(there)
        # A new file has no name yet that a rule could be about.
        yield Place(there, Access.MAKE_FILES)


def _of_programs(names: set[str], home: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Where the command's programs are and what PATH has, with the libraries beside them and no
    more than that: `~/.local` and `~/.cargo` hold secrets as well."""
    path = environment.get("PATH", os.defpath)
    directories = [place for place in path.split(os.pathsep) if os.path.isabs(place)]
    for name in names:
        if found := shutil.which(name, path=path):
            directories += {os.path.dirname(found), os.path.dirname(os.path.realpath(found))}
    for directory in dict.fromkeys(directories):
        places = (directory, *_beside(directory, home))
        yield from (place for place in places if not _is_below(home, place))


def _beside(directory: str, home: str) -> Iterator[str]:
    above, name = os.path.split(directory.rstrip("/"))
    if name == "shims":  # they lead to versions that are kept next to them
        yield above
    elif name in ("bin", "sbin"):
        yield from (os.path.join(above, library) for library in _LIBRARIES)
        if not _is_below(above, home):
            yield os.path.join(above, "share")


def _is_below(path: str, directory: str) -> bool:
    return os.path.join(path, "").startswith(os.path.join(directory, ""))
