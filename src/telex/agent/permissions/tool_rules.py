"""Rules as data: what a person wrote about tools, paths and commands; and the modes, for what no
rule matches. Pure.

    [[permission.rule]]
    tool = "shell"            # a name, or a pattern with * and ?
    command = "cargo test"    # the first words of one simple command
    decision = "allow"        # or "ask", or "deny"

Rules lie in layers (the person's file, the project's, what was remembered). A layer that is not
trusted is not looked at. How they are written is in docs/reference/permissions.md; `judge` compares
them with what is asked. Without a rule, the mode decides:

| | minimal | trusted | full |
|---|---|---|---|
| read inside the root, known readers in a shell | yes | yes | yes |
| write inside the root | asks | yes | yes |
| read or write outside the root, any command | asks | asks | yes |
| secrets that are named | asks | asks | asks |

Deny and ask rules count in each. `git` reads by programs that its repository names, so it is a
reader only in a workspace that is trusted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import re2

from telex.agent.permissions.shell_parser import SimpleCommand, UnparsedShell, parse_shell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Mode(StrEnum):
    MINIMAL = "minimal"
    TRUSTED = "trusted"
    FULL = "full"


class PathAccess(StrEnum):
    """What is done to a path. The values are the tools that rules name for it, in a shell too."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class PathTool:
    """A tool of our own that works on one path."""

    access: PathAccess
    recursive: bool = False
    """It goes below a directory, and without a path it is about the working directory."""
    skips_hidden: bool = False
    """It reads what is there, but nothing hidden, unless it begins there."""
    filters: tuple[str, ...] = ()
    """Arguments that say which names below."""


PATH_TOOLS: Final = {
    "read": PathTool(PathAccess.READ),
    "read_line": PathTool(PathAccess.READ),
    "list": PathTool(PathAccess.READ, recursive=True, filters=("pattern", "glob")),
    "search": PathTool(PathAccess.READ, recursive=True, skips_hidden=True, filters=("glob",)),
    "write": PathTool(PathAccess.WRITE),
    "edit": PathTool(PathAccess.WRITE),
}
PATH_ARGUMENTS: Final = ("path", "file_path")
HARMLESS_TOOLS: Final = frozenset(
    {"todo", "tool_output_cache", "tool_output_cache_line", "tool_output_cache_grep"}
)
"""They touch only what the run itself made."""
SHELL_TOOL: Final = "shell"
SHELL_ARGUMENT: Final = "command"


class Permission(StrEnum):
    """What is decided about a call. Of two rules that match, the one named first here wins."""

    DENY = "deny"
    ALLOW = "allow"
    ASK = "ask"


class InvalidRule(Exception):
    """A rule in a file cannot mean anything. The sentence names the place and the member."""


@dataclass(frozen=True, slots=True)
class ToolRule:
    """One rule. Whatever is None is not asked about; all that is there has to match."""

    decision: Permission
    tool: str = "*"
    command: tuple[str, ...] | None = None
    """How the words of a simple command begin."""
    plain: bool = False
    """What follows `command` is neither an option nor `NAME=VALUE`, and lies inside the root."""
    text: str | None = None
    """The whole text of the tool's command, to the last byte."""
    cwd: str | None = None
    """The directory it runs in."""
    path: str | None = None
    """A pattern for whole paths: `*` and `?` within a directory, `**` across them."""
    reason: str = ""
    layer: str = ""
    place: str = ""
    """The file, and which of its rules."""

    def is_for(self, tool: str, cwd: str) -> bool:
        return (self.cwd is None or self.cwd == cwd) and matches_pattern(self.tool, tool)

    def begins(self, argv: Sequence[str]) -> bool:
        return self.command is not None and tuple(argv[: len(self.command)]) == self.command


@dataclass(frozen=True, slots=True)
class RuleLayer:
    """The rules of one source."""

    name: str
    rules: tuple[ToolRule, ...]
    trusted: bool = True
    """Whether they count. A project's own do once the person trusts the workspace."""


def active_rules(layers: Iterable[RuleLayer]) -> Iterator[ToolRule]:
    """The rules that count, each knowing its layer."""
    for layer in layers:
        if layer.trusted:
            yield from (replace(rule, layer=layer.name) for rule in layer.rules)


class _RuleTable(msgspec.Struct, forbid_unknown_fields=True):
    # Unknown members are refused, unlike elsewhere: `comand = "rm"` would be a rule for everything.
    decision: Permission
    tool: Annotated[str, msgspec.Meta(min_length=1)] = "*"
    command: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    plain: bool = False
    text: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    cwd: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    path: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    reason: str = ""


def rules_from_tables(tables: Iterable[object], where: str) -> tuple[ToolRule, ...]:
    """What TOML made of `[[permission.rule]]`; raises `InvalidRule` at the first that is wrong."""
    return tuple(_read_rule(table, f"{where}, rule {n}") for n, table in enumerate(tables, start=1))


def rule_to_table(rule: ToolRule) -> dict[str, Any]:
    """The same for writing: only what is said, so that reading it gives the rule again."""
    table: dict[str, Any] = {"tool": rule.tool}
    if rule.command is not None:
        table["command"] = " ".join(map(quote_word, rule.command))
    for name in ("text", "cwd", "path"):
        # Also when it is empty: left out, it would be a rule for everything.
        if (value := getattr(rule, name)) is not None:
            table[name] = value
    table |= {name: value for name in ("plain", "reason") if (value := getattr(rule, name))}
    return {**table, "decision": str(rule.decision)}


def _read_rule(table: object, place: str) -> ToolRule:
    try:
        written = msgspec.convert(table, _RuleTable)
    except msgspec.ValidationError as error:
        raise InvalidRule(
            f"{place}: {error}. docs/reference/permissions.md has the members"
        ) from error
    if written.command is not None and written.text is not None:
        raise InvalidRule(f"{place}: command and text are both given; one of them says it all")
    if written.plain and written.command is None:
        raise InvalidRule(f"{place}: plain says what follows a command, and there is no command")
    return ToolRule(
        written.decision,
        written.tool,
        None if written.command is None else _words(written.command, place),
        written.plain,
        written.text,
        written.cwd,
        written.path,
        written.reason,
        place=place,
    )


def _words(command: str, place: str) -> tuple[str, ...]:
    match parse_shell(command):
        case UnparsedShell(why=why):
            raise InvalidRule(f"{place}: command is not plain words: {why}. Quote it, or use text")
        case script:
            match [pipeline.commands for pipeline in script.pipelines]:
                case [(SimpleCommand(words=words, redirects=()),)] if words:
                    if all(word.is_plain for word in words):
                        return tuple(word.text for word in words)
    raise InvalidRule(f"{place}: command is not the plain words of one command. Use text for more")


def quote_word(word: str) -> str:
    """A word as the reader reads it back."""
    if re.fullmatch(r"[A-Za-z0-9_@%+:,./-]+", word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def matches_pattern(pattern: str, name: str) -> bool:
    """RE2, as a pattern may be the project's and a name anybody's. A byte that is no text is `?`,
    which no pattern has as itself."""
    return _compiled(pattern).fullmatch(name.encode(errors="replace").decode()) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """`**/` is any number of directories, `/**` one and all in it; `*` and `?` stop at `/`."""
    parts = re.split(r"(/\*\*$|\*\*/|\*\*|\*|\?)", pattern)
    meant = {"/**": r"(?:/.*)?", "**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return re2.compile("(?s)" + "".join(meant.get(part) or re2.escape(part) for part in parts))
