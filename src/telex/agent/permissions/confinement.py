"""The kernel's sandbox for a command that nobody was asked about: the second wall behind the judge.

The judge reads a text and says where it leads; the kernel sees where it goes. So what the judge
took for harmless runs where it can do no harm: it reads the root and what programs need of the
system, it writes the files that it was judged to write and a directory of its own for temporary
ones, and in mode minimal it has no network.

Not held is what the person decided: a command they said yes to, one that a rule of theirs or a
remembered yes allows by its words, and all of mode full. They gave it leave to do what it does,
which nobody here can know. A rule about paths is no such leave: it opens those paths in the wall.

Git also needs its repository and the person's settings (`git_read_paths`). The kernel tells a
refusal to the command alone, which may print it (`was_refused_by_kernel`).

`telex.processes.sandbox` has the means. Looks at the disk: blocks.
"""

from __future__ import annotations

import errno
import gettext
import os
import re
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.git_repository import GitInspector
from telex.agent.permissions.tool_rules import (
    SHELL_TOOL,
    Mode,
    PathAccess,
    Permission,
    ToolRule,
    matches_pattern,
)
from telex.config.errors import ConfigError
from telex.config.places import read_file
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

    from telex.agent.command_runner import CommandResult
    from telex.agent.permissions.judge import Judge, Judgement
    from telex.agent.permissions.path_policy import PathPolicy, TouchedPath
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
_SERVICE_VARIABLES: Final = re.compile(
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
    if tool not in HELD_TOOLS or judged.decision is not Permission.ALLOW:
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
        places += map(Place, git_read_paths(judge.paths, environment))
    return Confinement(
        tuple(place for place in dict.fromkeys(places) if os.path.exists(place.path)),
        Sockets.NONE if judge.mode is Mode.MINIMAL else Sockets.INTERNET,
        usual_limits(),
        filtered=True,
        temporary=tempfile.gettempdir(),
        kernel=kernel,
    )


def without_service_sockets(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if not _SERVICE_VARIABLES.fullmatch(name)
    }


def describe_confinement(held: Confinement, root: Path) -> str:
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
    whole = (rule for rule in judge.rules if rule.decision is Permission.ALLOW and _is_whole(rule))
    return any(_is_for_commands(rule) for rule in (*decided, *whole) if rule)


def _is_for_commands(rule: ToolRule) -> bool:
    """By its words, or as a whole; not one about what is read and written."""
    named = rule.command is not None or rule.text is not None
    return named or (rule.path is None and matches_pattern(rule.tool, SHELL_TOOL))


def _is_whole(rule: ToolRule) -> bool:
    return (rule.command, rule.text, rule.path, rule.cwd) == (None, None, None, None)


def _of(one: TouchedPath, judge: Judge) -> Iterator[Place]:
    """A path outside the root that a rule lets be read, or one that is to be written."""
    if one.verdict.decision is not Permission.ALLOW:
        return
    by_rule = one.verdict.rule is not None
    if one.access is PathAccess.READ:
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


_DEEP: Final = 5
"""As many files that include each other."""
_NAMES_A_FILE: Final = re.compile(
    r'^\s*(?:path|excludesfile|attributesfile)\s*=\s*"?([^"\n]+?)"?\s*$',
    re.IGNORECASE | re.MULTILINE,
)


def git_read_paths(paths: PathPolicy, environment: Mapping[str, str]) -> list[str]:
    """What git reads besides the root: its repository, if that is elsewhere, and the person's
    settings. Git ends with an error where it finds one of these and may not read it. Some may not
    be there; of a repository that git may not read without a question, there are none."""
    home = paths.home
    xdg = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    own = [os.path.join(xdg, "git", name) for name in ("config", "ignore", "attributes")]
    settings = [os.path.join(home, ".gitconfig"), own[0]]
    included = [path for file in settings for path in _named_in(file, home, _DEEP)]
    return [*settings, *own[1:], *included, *GitInspector(paths).places()]


def _named_in(settings: str, home: str, depth: int) -> Iterator[str]:
    """Files that a file of settings includes or names. Read without understanding: one too many is
    still a file that the person named there."""
    if depth == 0:
        return
    for name in _NAMES_A_FILE.findall(_read(settings)):
        path = os.path.join(os.path.dirname(settings), re.sub(r"^~(?=/)", lambda _: home, name))
        if os.path.isfile(path):
            yield path
            yield from _named_in(path, home, depth - 1)


def _read(path: str) -> str:
    """Nothing where there is no such file, or git could not read it either."""
    try:
        return os.fsdecode(read_file(Path(path)) or b"")
    except ConfigError:
        return ""


_TRANSLATIONS: Final = "/usr/share/locale"
_BAD_CALL: Final = "SIGSYS"
"""By which a filter ends a program that was built for another machine."""


def was_refused_by_kernel(
    ran: CommandResult, environment: Mapping[str, str], translations: str = _TRANSLATIONS
) -> bool:
    """Whether its output has what the C library says of a refusal, in the language of its
    environment. Standard output counts only where it failed: it may be a file about something
    else."""
    output = ran.stderr if ran.exit_code == 0 else ran.stderr + ran.stdout
    said = _refusals(tuple(_languages(environment)), translations)
    return ran.signal == _BAD_CALL or any(text in output for text in said)


def _languages(environment: Mapping[str, str]) -> list[str]:
    names = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    locale = next(filter(None, names), "C")
    return [*filter(None, environment.get("LANGUAGE", "").split(":")), locale]


@lru_cache(maxsize=8)
def _refusals(languages: tuple[str, ...], translations: str) -> frozenset[str]:
    spoken = gettext.translation("libc", translations, languages, fallback=True)
    plain = [os.strerror(number) for number in (errno.EACCES, errno.EPERM)]
    return frozenset([*plain, *map(spoken.gettext, plain)])
