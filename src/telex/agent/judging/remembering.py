"""What a person may be offered not to be asked about again. Pure.

Exact scopes only: this text in this directory, these first words followed by nothing but plain
names, this path, this directory, this tool with these arguments. A text is offered as a whole, and
only if each piece of it is known to do the same tomorrow (`lasting`): the agent may change the file
that is run, so that the same text is another program then. Nothing is offered that names a secret.
Used by `judge`, also to see whether what was remembered still holds; the answer is stored as the
scope's rule.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.judging.modes import SHELL_TOOL, Access
from telex.agent.judging.paths import is_secret
from telex.agent.judging.programs import reading
from telex.agent.judging.rules import Decision, Rule
from telex.agent.judging.script import Command, NotUnderstood, Script
from telex.agent.judging.showing import in_quotes
from telex.wire.limits import AGENT_COMMAND_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.agent.judging.commands import Piece
    from telex.agent.judging.paths import Paths, Touched


LAYER: Final = "remembered"
"""The name of the layer that what was remembered is in."""


class Kind(StrEnum):
    EXACT = "exact"
    PREFIX = "prefix"
    PATH = "path"
    DIRECTORY = "directory"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Scope:
    """One offer. `rule` is for an answer of yes; `denying` is the same for one of no."""

    kind: Kind
    says: str
    """For the person; text of others in it is between quotes."""
    rule: Rule

    def denying(self) -> Rule:
        return replace(self.rule, decision=Decision.DENY)


BY_FIRST_WORDS: Final = frozenset(
    tuple(line.split())
    for line in """
        mkdir
        touch
    """.strip().splitlines()
)
"""What follows them has to be plain: no option, no `NAME=VALUE`, nothing outside the root."""


def for_shell(
    cwd: str, text: str, script: Script | NotUnderstood, pieces: Sequence[Piece]
) -> tuple[Scope, ...]:
    if isinstance(script, NotUnderstood) or not pieces or not all(map(_is_offered, pieces)):
        return ()
    return (_exact(cwd, text), *_of_one(script, pieces))


def _is_offered(piece: Piece) -> bool:
    return piece.lasting and not any(one.is_secret or _leads_out(one) for one in piece.touched)


def _leads_out(one: Touched) -> bool:
    """A link that leads to what is asked about may lead to something else tomorrow."""
    asks = one.access is Access.READ and one.verdict.decision is Decision.ASK
    return asks and one.real != posixpath.normpath(one.path)


def _exact(cwd: str, text: str) -> Scope:
    rule = Rule(Decision.ALLOW, SHELL_TOOL, text=text, cwd=cwd)
    return Scope(Kind.EXACT, f"exactly this command, in {in_quotes(cwd)}", rule)


def _of_one(script: Script, pieces: Sequence[Piece]) -> tuple[Scope, ...]:
    """Wider offers, for one simple command of plain words and nothing else."""
    match [pipeline.commands for pipeline in script.pipelines], pieces:
        case [(Command(words=words, redirects=()),)], [piece] if all(w.is_plain for w in words):
            return (*_prefix(tuple(word.text for word in words)), *_read_paths(piece))
    return ()


def _prefix(argv: tuple[str, ...]) -> tuple[Scope, ...]:
    for length in (1, 2):
        words = argv[:length]
        if words in BY_FIRST_WORDS:
            rule = Rule(Decision.ALLOW, SHELL_TOOL, command=words, plain=True)
            says = f"{' '.join(words)}, with names inside the root and no options"
            return (Scope(Kind.PREFIX, says, rule),)
    return ()


def _read_paths(piece: Piece) -> tuple[Scope, ...]:
    """A reader that asked about paths alone may be allowed these paths."""
    found = reading(piece.argv)
    asked = [one for one in piece.touched if one.verdict.decision is Decision.ASK]
    if found is None or found[1].refused or len(asked) != 1 or asked[0].is_secret:
        return ()
    if _is_pattern(asked[0].real):
        return ()
    return (_path(Access.READ, asked[0]),)


def for_path(tool: str, touched: Touched, paths: Paths) -> tuple[Scope, ...]:
    """A secret is asked about each time."""
    if touched.is_secret or _is_pattern(touched.real):
        return ()
    return (_path(tool, touched), *_directory(tool, touched, paths))


def _is_pattern(path: str) -> bool:
    """As the path of a rule, it would be about others too."""
    return "*" in path or "?" in path or not path.isprintable()


def for_tool(tool: str, arguments: Mapping[str, object]) -> tuple[Scope, ...]:
    """A plugin's tool with these arguments. As a rule's, a name with `*` would be many."""
    text = written(arguments)
    secret = any(isinstance(one, str) and is_secret("/" + one) for one in arguments.values())
    if text is None or secret or not tool.isprintable() or not set("*?[").isdisjoint(tool):
        return ()
    rule = Rule(Decision.ALLOW, tool, text=text)
    return (Scope(Kind.TOOL, f"the tool {in_quotes(tool)} with exactly these arguments", rule),)


def written(arguments: Mapping[str, object]) -> str | None:
    """As the `text` of a rule: JSON with sorted members; None if it is too much for one."""
    try:
        text = msgspec.json.encode(arguments, order="sorted").decode()
    except (TypeError, ValueError, RecursionError):  # half a surrogate pair, or no end of depth
        return None
    return text if len(text) <= AGENT_COMMAND_CHARS else None


def _path(tool: str, touched: Touched) -> Scope:
    rule = Rule(Decision.ALLOW, tool, path=touched.real)
    return Scope(Kind.PATH, f"{tool} {in_quotes(touched.real)}", rule)


def _directory(tool: str, touched: Touched, paths: Paths) -> tuple[Scope, ...]:
    """The directory of a file inside the root, but neither a guarded one nor the root itself."""
    directory = posixpath.dirname(touched.real)
    root = paths.files.real(paths.root)
    if directory == root or not paths.is_inside(directory):
        return ()
    if paths.is_guarded(touched.real) or paths.has_guarded(directory):
        return ()
    rule = Rule(Decision.ALLOW, tool, path=directory + "/**")
    return (Scope(Kind.DIRECTORY, f"{tool} whatever is in {in_quotes(directory)}", rule),)
