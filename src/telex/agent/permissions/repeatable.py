"""Decide which answers may be remembered: those about commands that will do the same later. Pure,
except for `FileLookup`.

A repeatable command runs no other program. It is a read-only program of readers.toml, or one of the
few programs here that change files, with options that name no file and with paths inside the root
that are not guarded and contain no guarded files. Any other program is not repeatable, so no list
of interpreters, wrappers and build tools is needed. Git is not repeatable, because it runs programs
that its repository configures, and neither is a command with a pattern.

Only exact scopes are offered: this text in this directory, these first words followed by plain
names only, this path, this directory, this tool with these arguments. A text is offered as a whole,
and only if each piece of it is repeatable: an agent could change a file that is run, and the same
text would be another program. Nothing that names a secret is offered. `judge` also uses this to
check whether a remembered answer still counts. The answer is stored as the scope's rule.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.limits import AGENT_COMMAND_CHARS
from telex.agent.permissions.display_text import in_quotes
from telex.agent.permissions.path_policy import NOWHERE, is_secret
from telex.agent.permissions.read_only_programs import parse_reader
from telex.agent.permissions.shell_parser import ShellScript, SimpleCommand, UnparsedShell
from telex.agent.permissions.tool_rules import SHELL_TOOL, PathAccess, Permission, ToolRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.agent.permissions.path_policy import PathPolicy, TouchedPath
    from telex.agent.permissions.shell_commands import JudgedPiece


FILE_CHANGING_PROGRAMS: Final = {
    "chmod": "v",
    "cp": "finpPuv",
    "ln": "finsv",
    "mkdir": "pv",
    "mv": "finuv",
    "rm": "dfiv",
    "rmdir": "pv",
    "touch": "achm",
}
"""Programs that change files and run nothing, with the letters of options without a value. Options
that work below a directory are left out, because the files there may be others later."""
_INTO: Final = frozenset({"cp", "ln", "mv"})
"""Programs for which a directory as the last word is the target of the other words."""


def runs_nothing(argv: Sequence[str]) -> bool:
    """Return whether the command is known to run no other program."""
    found = parse_reader(argv)
    return argv[0] in FILE_CHANGING_PROGRAMS if found is None else not found[1].refused


def is_repeatable(argv: Sequence[str], cwd: str, paths: PathPolicy) -> bool:
    """Return whether the command will do the same later."""
    if found := parse_reader(argv):
        reader, used = found
        return not used.refused and not reader.needs_trust
    letters = FILE_CHANGING_PROGRAMS.get(argv[0])
    if letters is None:
        return False
    words = [*argv[1:], *_targets_in_directory(argv, cwd, paths)]
    return all(_is_repeatable_argument(word, letters, cwd, paths) for word in words)


def _targets_in_directory(argv: Sequence[str], cwd: str, paths: PathPolicy) -> list[str]:
    """Return the paths that are written in a target directory: they may be links, or guarded."""
    if argv[0] not in _INTO or not paths.files.is_directory(paths.absolute(argv[-1], cwd)):
        return []
    return [posixpath.join(argv[-1], posixpath.basename(word.rstrip("/"))) for word in argv[1:-1]]


def writes_repeatably(path: str, cwd: str, paths: PathPolicy) -> bool:
    """Return whether a write to the path may be remembered: it is inside the root and not guarded,
    because the content of a guarded file is acted on and may differ later."""
    absolute = paths.absolute(path, cwd)
    return absolute in NOWHERE or (paths.is_inside(absolute) and not paths.is_guarded(absolute))


def _is_repeatable_argument(word: str, letters: str, cwd: str, paths: PathPolicy) -> bool:
    if word.startswith("-"):
        return word[1:] != "" and set(word[1:]) <= set(letters)
    absolute = paths.absolute(word, cwd)
    whole = paths.is_root(absolute) or paths.has_guarded(paths.files.real(absolute))
    return not whole and writes_repeatably(word, cwd, paths)


REMEMBERED_LAYER: Final = "remembered"
"""The name of the layer with the remembered answers."""


class ScopeKind(StrEnum):
    """How wide a remembered answer is."""

    EXACT = "exact"
    PREFIX = "prefix"
    PATH = "path"
    DIRECTORY = "directory"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class RememberScope:
    """A scope that the user may choose to remember. `rule` is stored for a yes, `denying()` for a
    no."""

    kind: ScopeKind
    description: str
    """Shown to the user; foreign text in it is between quotes."""
    rule: ToolRule

    def denying(self) -> ToolRule:
        """Return the rule for an answer of no."""
        return replace(self.rule, decision=Permission.DENY)


BY_FIRST_WORDS: Final = frozenset(
    tuple(line.split())
    for line in """
        mkdir
        touch
    """.strip().splitlines()
)
"""The words after these must be plain: no option, no `NAME=VALUE`, no path outside the root."""


def shell_scopes(
    cwd: str, text: str, script: ShellScript | UnparsedShell, pieces: Sequence[JudgedPiece]
) -> tuple[RememberScope, ...]:
    """Return the scopes for a shell text, the narrowest first; empty if none may be remembered."""
    if isinstance(script, UnparsedShell) or not pieces or not all(map(_is_offered, pieces)):
        return ()
    return (_exact(cwd, text), *_wider_scopes(script, pieces))


def _is_offered(piece: JudgedPiece) -> bool:
    return piece.repeatable and not any(
        path.is_secret or _asks_through_link(path) for path in piece.touched
    )


def _asks_through_link(touched: TouchedPath) -> bool:
    """Return whether a path that asks goes through a link, which may lead elsewhere later."""
    asks = touched.access is PathAccess.READ and touched.verdict.decision is Permission.ASK
    return asks and touched.real != posixpath.normpath(touched.path)


def _exact(cwd: str, text: str) -> RememberScope:
    rule = ToolRule(Permission.ALLOW, SHELL_TOOL, text=text, cwd=cwd)
    return RememberScope(ScopeKind.EXACT, f"exactly this command, in {in_quotes(cwd)}", rule)


def _wider_scopes(script: ShellScript, pieces: Sequence[JudgedPiece]) -> tuple[RememberScope, ...]:
    """Return the wider scopes of a text that is one simple command of plain words."""
    match [pipeline.commands for pipeline in script.pipelines], pieces:
        case [(SimpleCommand(words=words, redirects=()),)], [piece] if all(
            w.is_plain for w in words
        ):
            return (*_prefix(tuple(word.text for word in words)), *_read_paths(piece))
    return ()


def _prefix(argv: tuple[str, ...]) -> tuple[RememberScope, ...]:
    for length in (1, 2):
        words = argv[:length]
        if words in BY_FIRST_WORDS:
            rule = ToolRule(Permission.ALLOW, SHELL_TOOL, command=words, plain=True)
            description = f"{' '.join(words)}, with paths inside the workspace root and no options"
            return (RememberScope(ScopeKind.PREFIX, description, rule),)
    return ()


def _read_paths(piece: JudgedPiece) -> tuple[RememberScope, ...]:
    """Return a scope for the path of a read-only program that asked only because of this path."""
    found = parse_reader(piece.argv)
    asked = [path for path in piece.touched if path.verdict.decision is Permission.ASK]
    if found is None or found[1].refused or len(asked) != 1 or asked[0].is_secret:
        return ()
    if _is_pattern(asked[0].real):
        return ()
    return (_path(PathAccess.READ, asked[0]),)


def path_scopes(tool: str, touched: TouchedPath, paths: PathPolicy) -> tuple[RememberScope, ...]:
    """Return the scopes for a file tool; none for a secret, which asks each time."""
    if touched.is_secret or _is_pattern(touched.real):
        return ()
    return (_path(tool, touched), *_directory(tool, touched, paths))


def _is_pattern(path: str) -> bool:
    """Return whether the path, as the path of a rule, would match other paths too."""
    return "*" in path or "?" in path or not path.isprintable()


def tool_scopes(tool: str, arguments: Mapping[str, object]) -> tuple[RememberScope, ...]:
    """Return the scope for a plugin's tool with exactly these arguments; none if the tool's name
    would match other tools as a pattern of a rule."""
    text = arguments_text(arguments)
    secret = any(isinstance(value, str) and is_secret("/" + value) for value in arguments.values())
    if text is None or secret or not tool.isprintable() or not set("*?[").isdisjoint(tool):
        return ()
    rule = ToolRule(Permission.ALLOW, tool, text=text)
    return (
        RememberScope(
            ScopeKind.TOOL, f"the tool {in_quotes(tool)} with exactly these arguments", rule
        ),
    )


def arguments_text(arguments: Mapping[str, object]) -> str | None:
    """Return arguments as the `text` of a rule: JSON with sorted members. None if they cannot be
    encoded, or are too long for a rule."""
    try:
        text = msgspec.json.encode(arguments, order="sorted").decode()
    except (TypeError, ValueError, RecursionError):  # a lone surrogate, or nested too deeply
        return None
    return text if len(text) <= AGENT_COMMAND_CHARS else None


def _path(tool: str, touched: TouchedPath) -> RememberScope:
    rule = ToolRule(Permission.ALLOW, tool, path=touched.real)
    return RememberScope(ScopeKind.PATH, f"{tool} {in_quotes(touched.real)}", rule)


def _directory(tool: str, touched: TouchedPath, paths: PathPolicy) -> tuple[RememberScope, ...]:
    """Return a scope for the directory of a file inside the root; none for the root itself and for
    a directory with guarded files."""
    directory = posixpath.dirname(touched.real)
    root = paths.files.real(paths.root)
    if directory == root or not paths.is_inside(directory):
        return ()
    if paths.is_guarded(touched.real) or paths.has_guarded(directory):
        return ()
    rule = ToolRule(Permission.ALLOW, tool, path=directory + "/**")
    return (RememberScope(ScopeKind.DIRECTORY, f"{tool} any file in {in_quotes(directory)}", rule),)
