"""Commands that do tomorrow what they do today, and what a person may therefore be offered not to
be asked about again. Pure, but for `FileLookup`.

Repeatable commands run nothing else: readers, as readers.toml has them, and the few here that
change files, with options that name no file and names inside the root that no program obeys and
that hold no such. Nobody has to know all interpreters, wrappers and build tools: what is not here
is not repeatable. Nor is git, which runs what its repository says, nor what a pattern stands for.

Offered are exact scopes only: this text in this directory, these first words followed by nothing
but plain names, this path, this directory, this tool with these arguments. A text is offered as a
whole, and only if each piece of it is repeatable: the agent may change the file that is run, so
that the same text is another program then. Nothing is offered that names a secret. Used by `judge`,
also to see whether what was remembered still holds; the answer is stored as the scope's rule.
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
"""Programs that change files and run nothing, with the letters of options that have no value. None
that goes below a directory: what lies there tomorrow was not seen."""
_INTO: Final = frozenset({"cp", "ln", "mv"})
"""Of these, a directory as the last word is where the others go."""


def runs_nothing(argv: Sequence[str]) -> bool:
    found = parse_reader(argv)
    return argv[0] in FILE_CHANGING_PROGRAMS if found is None else not found[1].refused


def is_repeatable(argv: Sequence[str], cwd: str, paths: PathPolicy) -> bool:
    if found := parse_reader(argv):
        reader, used = found
        return not used.refused and not reader.needs_trust
    letters = FILE_CHANGING_PROGRAMS.get(argv[0])
    if letters is None:
        return False
    words = [*argv[1:], *_inside(argv, cwd, paths)]
    return all(_is_repeatable_argument(word, letters, cwd, paths) for word in words)


def _inside(argv: Sequence[str], cwd: str, paths: PathPolicy) -> list[str]:
    """The names that are written in a directory: they may be links, or obeyed there."""
    if argv[0] not in _INTO or not paths.files.is_directory(paths.absolute(argv[-1], cwd)):
        return []
    return [posixpath.join(argv[-1], posixpath.basename(word.rstrip("/"))) for word in argv[1:-1]]


def writes_repeatably(path: str, cwd: str, paths: PathPolicy) -> bool:
    """Not where what is written is run one day: what it is may be another thing tomorrow."""
    absolute = paths.absolute(path, cwd)
    return absolute in NOWHERE or (paths.is_inside(absolute) and not paths.is_guarded(absolute))


def _is_repeatable_argument(word: str, letters: str, cwd: str, paths: PathPolicy) -> bool:
    if word.startswith("-"):
        return word[1:] != "" and set(word[1:]) <= set(letters)
    absolute = paths.absolute(word, cwd)
    whole = paths.is_root(absolute) or paths.has_guarded(paths.files.real(absolute))
    return not whole and writes_repeatably(word, cwd, paths)


REMEMBERED_LAYER: Final = "remembered"
"""The name of the layer that what was remembered is in."""


class ScopeKind(StrEnum):
    EXACT = "exact"
    PREFIX = "prefix"
    PATH = "path"
    DIRECTORY = "directory"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class RememberScope:
    """One offer. `rule` is for an answer of yes; `denying` is the same for one of no."""

    kind: ScopeKind
    says: str
    """For the person; text of others in it is between quotes."""
    rule: ToolRule

    def denying(self) -> ToolRule:
        return replace(self.rule, decision=Permission.DENY)


BY_FIRST_WORDS: Final = frozenset(
    tuple(line.split())
    for line in """
        mkdir
        touch
    """.strip().splitlines()
)
"""What follows them has to be plain: no option, no `NAME=VALUE`, nothing outside the root."""


def shell_scopes(
    cwd: str, text: str, script: ShellScript | UnparsedShell, pieces: Sequence[JudgedPiece]
) -> tuple[RememberScope, ...]:
    if isinstance(script, UnparsedShell) or not pieces or not all(map(_is_offered, pieces)):
        return ()
    return (_exact(cwd, text), *_of_one(script, pieces))


def _is_offered(piece: JudgedPiece) -> bool:
    return piece.repeatable and not any(one.is_secret or _leads_out(one) for one in piece.touched)


def _leads_out(one: TouchedPath) -> bool:
    """A link that leads to what is asked about may lead to something else tomorrow."""
    asks = one.access is PathAccess.READ and one.verdict.decision is Permission.ASK
    return asks and one.real != posixpath.normpath(one.path)


def _exact(cwd: str, text: str) -> RememberScope:
    rule = ToolRule(Permission.ALLOW, SHELL_TOOL, text=text, cwd=cwd)
    return RememberScope(ScopeKind.EXACT, f"exactly this command, in {in_quotes(cwd)}", rule)


def _of_one(script: ShellScript, pieces: Sequence[JudgedPiece]) -> tuple[RememberScope, ...]:
    """Wider offers, for one simple command of plain words and nothing else."""
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
            says = f"{' '.join(words)}, with names inside the root and no options"
            return (RememberScope(ScopeKind.PREFIX, says, rule),)
    return ()


def _read_paths(piece: JudgedPiece) -> tuple[RememberScope, ...]:
    """A reader that asked about paths alone may be allowed these paths."""
    found = parse_reader(piece.argv)
    asked = [one for one in piece.touched if one.verdict.decision is Permission.ASK]
    if found is None or found[1].refused or len(asked) != 1 or asked[0].is_secret:
        return ()
    if _is_pattern(asked[0].real):
        return ()
    return (_path(PathAccess.READ, asked[0]),)


def path_scopes(tool: str, touched: TouchedPath, paths: PathPolicy) -> tuple[RememberScope, ...]:
    """A secret is asked about each time."""
    if touched.is_secret or _is_pattern(touched.real):
        return ()
    return (_path(tool, touched), *_directory(tool, touched, paths))


def _is_pattern(path: str) -> bool:
    """As the path of a rule, it would be about others too."""
    return "*" in path or "?" in path or not path.isprintable()


def tool_scopes(tool: str, arguments: Mapping[str, object]) -> tuple[RememberScope, ...]:
    """A plugin's tool with these arguments. As a rule's, a name with `*` would be many."""
    text = arguments_text(arguments)
    secret = any(isinstance(one, str) and is_secret("/" + one) for one in arguments.values())
    if text is None or secret or not tool.isprintable() or not set("*?[").isdisjoint(tool):
        return ()
    rule = ToolRule(Permission.ALLOW, tool, text=text)
    return (
        RememberScope(
            ScopeKind.TOOL, f"the tool {in_quotes(tool)} with exactly these arguments", rule
        ),
    )


def arguments_text(arguments: Mapping[str, object]) -> str | None:
    """As the `text` of a rule: JSON with sorted members; None if it is too much for one."""
    try:
        text = msgspec.json.encode(arguments, order="sorted").decode()
    except (TypeError, ValueError, RecursionError):  # half a surrogate pair, or no end of depth
        return None
    return text if len(text) <= AGENT_COMMAND_CHARS else None


def _path(tool: str, touched: TouchedPath) -> RememberScope:
    rule = ToolRule(Permission.ALLOW, tool, path=touched.real)
    return RememberScope(ScopeKind.PATH, f"{tool} {in_quotes(touched.real)}", rule)


def _directory(tool: str, touched: TouchedPath, paths: PathPolicy) -> tuple[RememberScope, ...]:
    """The directory of a file inside the root, but neither a guarded one nor the root itself."""
    directory = posixpath.dirname(touched.real)
    root = paths.files.real(paths.root)
    if directory == root or not paths.is_inside(directory):
        return ()
    if paths.is_guarded(touched.real) or paths.has_guarded(directory):
        return ()
    rule = ToolRule(Permission.ALLOW, tool, path=directory + "/**")
    return (
        RememberScope(ScopeKind.DIRECTORY, f"{tool} whatever is in {in_quotes(directory)}", rule),
    )
