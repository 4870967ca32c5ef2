"""The environment of commands that run without a question, so that they do what was judged. Pure,
except for `FileLookup`.

A variable may give a program options, a pager, or a file to run first. A command that runs without
a question gets the environment of this module; a command that the user approved gets the user's.

All commands of a shell text share one environment. `git status` and `rg` only read in the
restricted environment: otherwise a hook of the repository or a `.ignore` file makes them do more. A
command that a rule of the user allows by its words, such as `git push`, needs the user's
environment: without hooks and settings it would be another command. If a text has both kinds,
neither environment is right (`environment_conflict`), and it asks. Used by `judge` and
`confirmation`.
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
"""Variables that change what a command does."""
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
"""Settings with the priority of the command line, so that they override those of a repository. With
them, a directory that looks like a repository but has no `.git` is not one, and `git grep` fails
without a repository. Filters and `textconv` are configured in the repository's own `config`; that
is why writing it asks, and why git needs a trusted workspace."""
_RIPGREP: Final = str(files(__package__).joinpath("ripgreprc"))
"""Without this configuration, a `.ignore` file with `!.env` would make rg print hidden files."""
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
"""Programs that may run without a question."""
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_NOWHERE: Final = "/nonexistent"
"""The PATH if no directory is left: a shell reads an empty PATH as the working directory, and a
missing one may end with it."""


def unattended_environment(
    environ: Mapping[str, str],
    root: str,
    looked_up: FileLookup | None = None,
    *,
    only_reads: bool = True,
) -> dict[str, str]:
    """Return the environment without variables that change what a command does.

    PATH gets no directory that is in the root, or that leads there by a link of the directory or of
    a read-only program in it: an agent may have written an `ls` of its own there. With
    `only_reads`, git runs no other programs and searches no repository above the root. Without it,
    a `git push` that a rule or the mode allows runs as usual.
    """
    disk = CachedLookup(looked_up or DiskLookup())
    kept = {name: value for name, value in environ.items() if not ACTING.fullmatch(name)}
    found = (
        ":".join(place for place in places.split(":") if _is_outside_root(place, root, disk))
        for places in (kept.get("PATH", ""), _PATH)
    )
    kept["PATH"] = next(filter(None, found), _NOWHERE)
    if not only_reads:
        return kept
    if disk.glob(posixpath.join(root, ".git")):
        # The judge checked the root's own repository. If it is not valid, git would search above.
        kept["GIT_CEILING_DIRECTORIES"] = posixpath.dirname(disk.real(root))
    return {**kept, **_ADDED}


def _is_outside_root(place: str, root: str, disk: FileLookup) -> bool:
    """Return whether a directory of PATH, and the links of read-only programs in it, lead nowhere
    into the root."""
    if not place.startswith("/"):
        return False
    within = (posixpath.normpath(root), disk.real(root))
    links = disk.links(disk.real(place), 1)
    programs = (link for link in links or () if posixpath.basename(link) in _PROGRAMS)
    resolved = [disk.resolve(path) for path in (place, *programs)]
    passed = (path for each in resolved for path in (*each.passed, each.end))
    spellings = map(posixpath.normpath, (place, *passed))
    is_unknown = links is None or any(each.unknown for each in resolved)
    return not is_unknown and not any(is_below_any(path, within) for path in spellings)


_READ_BY_ENVIRONMENT: Final = word_set("git rg")
"""Programs that only read in the restricted environment."""


def needs_reader_environment(pieces: Sequence[JudgedPiece]) -> bool:
    """Return whether the commands run in the restricted environment: one of them needs it, or no
    rule allows one by its words."""
    return any(map(_needs_protection, pieces)) or not any(map(_is_by_words, pieces))


def environment_conflict(pieces: Sequence[JudgedPiece]) -> tuple[JudgedPiece, JudgedPiece] | None:
    """Return a command that needs the restricted environment and one that needs the user's; None
    unless there are both."""
    reader = next(filter(_needs_protection, pieces), None)
    allowed = next(filter(_needs_user_environment, pieces), None)
    return (reader, allowed) if reader and allowed else None


def allows_by_words(rule: ToolRule | None) -> bool:
    """Return whether a rule allows commands by their words or a whole tool, not only paths."""
    return rule is not None and (
        rule.command is not None or rule.text is not None or rule.path is None
    )


def _is_by_words(piece: JudgedPiece) -> bool:
    return piece.kind == "command" and allows_by_words(piece.verdict.rule)


def _needs_protection(piece: JudgedPiece) -> bool:
    is_reader = piece.kind == "command" and not _is_by_words(piece)
    return is_reader and program_name(piece.argv[0]) in _READ_BY_ENVIRONMENT


def _needs_user_environment(piece: JudgedPiece) -> bool:
    return _is_by_words(piece) and not runs_nothing(piece.argv)
