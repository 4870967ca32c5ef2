"""The environment in which a judged command means what it was judged to mean. Pure but for
`FileLookup`.

A variable may give a program options, a pager, or a file to run first. Whoever runs a command that
nobody was asked about gives it this environment; one that the person approved may have the whole.

A shell has one environment for all its commands. `git status` and `rg` only read while theirs says
so: else a hook of the repository, or a `.ignore` file, has them do more. A command that a rule of
the person allows by its words, as `git push`, is to be a whole one: without its hooks it would be
another. Where a line has both kinds, neither environment is right (`environment_conflict`), and it
asks. Used by `judge` and `confirmation`.
"""

from __future__ import annotations

import posixpath
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.disk import DiskLookup
from telex.agent.permissions.path_walk import CachedLookup, is_below_any
from telex.agent.permissions.read_only_programs import READERS, program_name, word_set
from telex.agent.permissions.repeatable import runs_nothing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.agent.permissions.path_walk import FileLookup
    from telex.agent.permissions.shell_commands import JudgedPiece
    from telex.agent.permissions.tool_rules import ToolRule


ACTING: Final = re.compile(
    r"BASH_ENV|BASH_FUNC_.*|BASHOPTS|SHELLOPTS|ENV|CDPATH|IFS|GLOBIGNORE|PS4|PROMPT_COMMAND|POSIXLY_CORRECT"
    r"|LD_.*|DYLD_.*|GIT_.*|.*PAGER|LESS.*|.*EDITOR|VISUAL|BROWSER|RIPGREP_CONFIG_PATH|GREP_.*|LS_OPTIONS"
    r"|PYTHON(?:PATH|STARTUP|HOME|INSPECT)|PERL5.*|RUBYOPT|RUBYLIB|NODE_OPTIONS|NODE_PATH|JAVA_TOOL_OPTIONS"
    r"|GCONV_PATH|LOCPATH|NLSPATH|MAGIC|TMPPREFIX|ZDOTDIR|SSH_ASKPASS|SUDO_ASKPASS"
)
_GIT: Final = {
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "core.askPass": "",
    "gpg.program": "false",
    "grep.fallbackToNoIndex": "false",
    "log.follow": "false",
}
"""Said as on the command line, so that it counts more than what a repository says of itself. A
directory that looks like a repository and has no `.git` is none, and without one `git grep` fails.
Filters and `textconv` are named by the repository's own `config`; that is why writing it asks, and
git needs a trusted workspace."""
_RIPGREP: Final = str(files(__package__).joinpath("ripgreprc"))
"""Without it, a workspace's `.ignore` with `!.env` in it would have rg print hidden files."""
_ADDED: Final = {
    "RIPGREP_CONFIG_PATH": _RIPGREP,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_CONFIG_COUNT": str(len(_GIT)),
    **{f"GIT_CONFIG_KEY_{at}": name for at, name in enumerate(_GIT)},
    **{f"GIT_CONFIG_VALUE_{at}": value for at, value in enumerate(_GIT.values())},
}
_PROGRAMS: Final = frozenset(name.split()[0] for name in READERS)
"""What runs without a question."""
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_NOWHERE: Final = "/nonexistent"
"""An empty PATH is the working directory to a shell, and a missing one may have it at its end."""


def unattended_environment(
    environ: Mapping[str, str],
    root: str,
    looked_up: FileLookup | None = None,
    *,
    only_reads: bool = True,
) -> dict[str, str]:
    """Without what changes a command's meaning. Nor does PATH lead into the root, by a link of a
    directory or of a program that reads, or without one: an agent may have written an `ls` of its
    own there. What is to read only has git run
    nothing else and look for no repository above the root; a `git push` that a rule or the mode
    allows is a whole one."""
    disk = CachedLookup(looked_up or DiskLookup())
    kept = {name: value for name, value in environ.items() if not ACTING.fullmatch(name)}
    found = (
        ":".join(place for place in places.split(":") if _is_elsewhere(place, root, disk))
        for places in (kept.get("PATH", ""), _PATH)
    )
    kept["PATH"] = next(filter(None, found), _NOWHERE)
    if not only_reads:
        return kept
    if disk.glob(posixpath.join(root, ".git")):
        # It was judged to be the root's own; one that is no repository git would pass by.
        kept["GIT_CEILING_DIRECTORIES"] = posixpath.dirname(disk.real(root))
    return {**kept, **_ADDED}


def _is_elsewhere(place: str, root: str, disk: FileLookup) -> bool:
    if not place.startswith("/"):
        return False
    within = (posixpath.normpath(root), disk.real(root))
    links = disk.links(disk.real(place), 1)
    programs = (link for link in links or () if posixpath.basename(link) in _PROGRAMS)
    ways = [disk.resolve(one) for one in (place, *programs)]
    passed = (one for way in ways for one in (*way.passed, way.end))
    leads = map(posixpath.normpath, (place, *passed))
    lost = links is None or any(way.unknown for way in ways)
    return not lost and not any(is_below_any(one, within) for one in leads)


_READ_BY_ENVIRONMENT: Final = word_set("git rg")
"""Readers that only read in the environment of one."""


def needs_reader_environment(pieces: Sequence[JudgedPiece]) -> bool:
    """Whether the line runs in the environment of a reader: where one of its commands needs it, or
    none is allowed by its words."""
    return any(map(_needs_protection, pieces)) or not any(map(_is_by_words, pieces))


def environment_conflict(pieces: Sequence[JudgedPiece]) -> tuple[JudgedPiece, JudgedPiece] | None:
    """A command that only reads in the environment of a reader, and one that needs the person's."""
    reader = next(filter(_needs_protection, pieces), None)
    whole = next(filter(_needs_whole, pieces), None)
    return (reader, whole) if reader and whole else None


def allows_by_words(rule: ToolRule | None) -> bool:
    """Whether it names commands, or all that a tool does; not what is read and written."""
    return rule is not None and (
        rule.command is not None or rule.text is not None or rule.path is None
    )


def _is_by_words(piece: JudgedPiece) -> bool:
    return piece.kind == "command" and allows_by_words(piece.verdict.rule)


def _needs_protection(piece: JudgedPiece) -> bool:
    is_reader = piece.kind == "command" and not _is_by_words(piece)
    return is_reader and program_name(piece.argv[0]) in _READ_BY_ENVIRONMENT


def _needs_whole(piece: JudgedPiece) -> bool:
    return _is_by_words(piece) and not runs_nothing(piece.argv)
