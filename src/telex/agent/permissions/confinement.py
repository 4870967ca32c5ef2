"""Compute the kernel sandbox of a command that runs without a question.

The sandbox is a second line of defence behind the judge. The judge reads the text of a command; the
kernel sees what the command really does. A command that was judged to be harmless may read the root
and the system's programs, write the files that it was judged to write and a temporary directory of
its own, and in mode minimal it has no network.

A command that the user decided about is not confined: one that the user approved, one that a rule
or a remembered answer allows by its words, and every command in mode full. The user permitted it to
do what it does, and telex cannot know what that needs. A rule about paths is different: it only
adds those paths to the sandbox.

Git also needs its repository and the user's settings (`git_read_paths`). The kernel reports a
refusal only to the command, which may print it (`was_refused_by_kernel`).

`telex.processes.sandbox` implements the sandbox. The functions here read the disk and block.
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

from telex.agent.permissions.git_inspector import GitInspector
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
CONFINED_TOOLS: Final = {SHELL_TOOL: (), SEARCH_TOOL: ("rg",)}
"""Tools that run programs, each with the programs that are not among the judged pieces."""

_SETTINGS: Final = (
    # Files of /etc that programs need. They are listed one by one, because Landlock cannot exclude
    # a file from an allowed directory.
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload"),
    *("passwd", "group", "nsswitch.conf", "localtime", "timezone", "locale.alias", "os-release"),
    *("hosts", "host.conf", "resolv.conf", "gai.conf", "services", "protocols"),
    *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf"),
    *("pki/ca-trust/extracted", "ca-certificates", "crypto-policies"),
    *("gitconfig", "gitattributes", "magic", "magic.mime", "terminfo"),
)
_FACTS: Final = (
    # Facts about the machine, and `/proc/self` of the shell or of the program that replaces it. Its
    # children are other processes, whose command lines may contain secrets.
    "/proc/self",
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg"),
    *("/proc/version", "/proc/filesystems", "/proc/sys/vm/overcommit_memory"),
    "/sys/devices/system/cpu",
)
_LIBRARIES: Final = ("lib", "lib32", "lib64", "libexec", "opt", "Cellar")
"""Directories next to a directory of programs. `share` is added too, except in a home directory,
where it contains keyrings."""
_SERVICE_VARIABLES: Final = re.compile(
    r"SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DBUS_.*_ADDRESS|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY"
    r"|DOCKER_.*|CONTAINER_HOST|KUBECONFIG|XDG_RUNTIME_DIR"
)
"""Variables with the address of a service that could do for a command what it may not do itself."""


def confinement(
    judged: Judgement,
    judge: Judge,
    tool: str,
    environment: Mapping[str, str],
    kernel: Kernel | None = None,
) -> Confinement | None:
    """Return the sandbox of a call that is allowed without a question; None if it runs without a
    sandbox."""
    if tool not in CONFINED_TOOLS or judged.decision is not Permission.ALLOW:
        return None
    if judge.mode is Mode.FULL or (tool == SHELL_TOOL and is_allowed_by_user(judged, judge)):
        return None
    kernel = kernel or asked_kernel()
    if not kernel.linux:
        return None
    programs = {piece.argv[0] for piece in judged.pieces if piece.kind == "command" and piece.argv}
    places = [
        *map(Place, (*PROGRAMS, *_FACTS, *(f"/etc/{name}" for name in _SETTINGS))),
        *(Place(device, Access.WRITE) for device in DEVICES),
        Place(judge.root),
        *map(
            Place,
            _program_directories({*programs, *CONFINED_TOOLS[tool]}, judge.home, environment),
        ),
        *(
            place
            for piece in judged.pieces
            for touched in piece.touched
            for place in _allowed_places(touched, judge)
        ),
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
    """Return the environment without the addresses of agents, buses and container engines."""
    return {
        name: value for name, value in environment.items() if not _SERVICE_VARIABLES.fullmatch(name)
    }


def describe_confinement(confined: Confinement, root: Path) -> str:
    """Describe for a user and for a language model what a confined command may do."""
    rules = [rule for rule in confined.rules or () if rule.access is not Access.READ]
    written = [rule.path for rule in rules if rule.path not in DEVICES]
    files = "reads and writes the same files as you"
    if confined.holds_files:
        writes = f"{', '.join(written)} and temporary files" if written else "only temporary files"
        files = f"reads {root} and the system's programs, writes {writes}"
    return f"{files}, and has {_network(confined)}"


def _network(confined: Confinement) -> str:
    if confined.kernel.machine:
        return "no network" if confined.sockets is Sockets.NONE else "no local sockets"
    no_tcp = confined.sockets is Sockets.NONE and confined.kernel.landlock >= WITH_TCP
    return "no TCP" if no_tcp else "your network"


def is_allowed_by_user(judged: Judgement, judge: Judge) -> bool:
    """Return whether a rule of the user allows the command by its words, or all commands."""
    decided = (judged.rule, *(piece.verdict.rule for piece in judged.pieces))
    whole = (rule for rule in judge.rules if rule.decision is Permission.ALLOW and _is_whole(rule))
    return any(_is_for_commands(rule) for rule in (*decided, *whole) if rule)


def _is_for_commands(rule: ToolRule) -> bool:
    """Return whether a rule matches commands by their words or as a whole, not only paths."""
    named = rule.command is not None or rule.text is not None
    return named or (rule.path is None and matches_pattern(rule.tool, SHELL_TOOL))


def _is_whole(rule: ToolRule) -> bool:
    return (rule.command, rule.text, rule.path, rule.cwd) == (None, None, None, None)


def _allowed_places(touched: TouchedPath, judge: Judge) -> Iterator[Place]:
    """Yield a path that a rule allows to read, or that the command is allowed to write."""
    if touched.verdict.decision is not Permission.ALLOW:
        return
    by_rule = touched.verdict.rule is not None
    if touched.access is PathAccess.READ:
        if by_rule:
            yield Place(touched.real)
    elif by_rule or (judge.mode is Mode.TRUSTED and _is_below(touched.real, judge.root)):
        existing = touched.real
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        # A Landlock rule needs an existing path, so a new file gets a rule for its directory.
        yield Place(existing, Access.MAKE_FILES)


def _program_directories(
    names: set[str], home: str, environment: Mapping[str, str]
) -> Iterator[str]:
    """Yield the directories of the command's programs and of PATH, with the libraries next to them,
    and nothing else: `~/.local` and `~/.cargo` also contain secrets."""
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
    if name == "shims":  # the program versions are next to the shims
        yield above
    elif name in ("bin", "sbin"):
        yield from (os.path.join(above, library) for library in _LIBRARIES)
        if not _is_below(above, home):
            yield os.path.join(above, "share")


def _is_below(path: str, directory: str) -> bool:
    return os.path.join(path, "").startswith(os.path.join(directory, ""))


_INCLUDE_DEPTH: Final = 5
"""Levels of files that include each other."""
_NAMES_A_FILE: Final = re.compile(
    r'^\s*(?:path|excludesfile|attributesfile)\s*=\s*"?([^"\n]+?)"?\s*$',
    re.IGNORECASE | re.MULTILINE,
)


def git_read_paths(paths: PathPolicy, environment: Mapping[str, str]) -> list[str]:
    """Return the paths that git reads besides the root: the user's settings, and its repository if
    that is elsewhere. Git fails if one of these exists and it may not read it. Some may not exist.
    A repository that git may not read without a question is left out."""
    home = paths.home
    xdg = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    in_xdg = [os.path.join(xdg, "git", name) for name in ("config", "ignore", "attributes")]
    settings = [os.path.join(home, ".gitconfig"), in_xdg[0]]
    included = [path for file in settings for path in _named_in(file, home, _INCLUDE_DEPTH)]
    return [*settings, *in_xdg[1:], *included, *GitInspector(paths).directories()]


def _named_in(settings: str, home: str, depth: int) -> Iterator[str]:
    """Yield the files that a settings file includes or names. The file is searched and not parsed:
    a path too many is still one that the user wrote there."""
    if depth == 0:
        return
    for name in _NAMES_A_FILE.findall(_read(settings)):
        path = os.path.join(os.path.dirname(settings), re.sub(r"^~(?=/)", lambda _: home, name))
        if os.path.isfile(path):
            yield path
            yield from _named_in(path, home, depth - 1)


def _read(path: str) -> str:
    """Return the content of a file; empty if it does not exist, or git could not read it either."""
    try:
        return os.fsdecode(read_file(Path(path)) or b"")
    except ConfigError:
        return ""


_TRANSLATIONS: Final = "/usr/share/locale"
_BAD_CALL: Final = "SIGSYS"
"""The signal with which the system call filter ends a program built for another architecture."""


def was_refused_by_kernel(
    ran: CommandResult, environment: Mapping[str, str], translations: str = _TRANSLATIONS
) -> bool:
    """Return whether the output has the C library's message for a refusal, in the language of the
    command's environment. Standard output counts only if the command failed: otherwise it may be
    the content of a file that has the same words."""
    output = ran.stderr if ran.exit_code == 0 else ran.stderr + ran.stdout
    messages = _refusal_messages(tuple(_languages(environment)), translations)
    return ran.signal == _BAD_CALL or any(text in output for text in messages)


def _languages(environment: Mapping[str, str]) -> list[str]:
    names = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    locale = next(filter(None, names), "C")
    return [*filter(None, environment.get("LANGUAGE", "").split(":")), locale]


@lru_cache(maxsize=8)
def _refusal_messages(languages: tuple[str, ...], translations: str) -> frozenset[str]:
    catalogue = gettext.translation("libc", translations, languages, fallback=True)
    plain = [os.strerror(number) for number in (errno.EACCES, errno.EPERM)]
    return frozenset([*plain, *map(catalogue.gettext, plain)])
