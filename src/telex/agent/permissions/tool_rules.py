"""Permission rules as data, and the modes that decide where no rule matches. Pure.

    [[permission.rule]]
    tool = "shell"            # a name, or a pattern with * and ?
    command = "cargo test"    # the first words of one simple command
    decision = "allow"        # or "ask", or "deny"

Rules come in layers: the user's file, the project's file, and the remembered answers. A layer that
is not trusted is ignored. docs/reference/permissions.md has the syntax; `judge` matches the rules
with requests. Without a matching rule, the mode decides:

| | minimal | trusted | full |
|---|---|---|---|
| read inside the root, known read-only programs in a shell | allow | allow | allow |
| write inside the root | ask | allow | allow |
| read or write outside the root, any other command | ask | ask | allow |
| a secret that is named, the clipboard | ask | ask | ask |

Rules that deny or ask count in every mode. `git` runs programs that its repository configures, so
it is a read-only program only in a trusted workspace.
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
    """Decides where no rule matches."""

    MINIMAL = "minimal"
    TRUSTED = "trusted"
    FULL = "full"


class PathAccess(StrEnum):
    """How a path is used. The values are the tool names that rules use for it, also for commands in
    a shell."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class PathTool:
    """A built-in tool that works on one path."""

    access: PathAccess
    recursive: bool = False
    """The tool also reads the files below a directory. Its default path is the working
    directory."""
    skips_hidden: bool = False
    """The tool skips hidden files, unless it starts in a hidden directory."""
    filters: tuple[str, ...] = ()
    """Arguments that select names below the path."""


PATH_TOOLS: Final = {
    "read": PathTool(PathAccess.READ),
    "read_line": PathTool(PathAccess.READ),
    "view_image": PathTool(PathAccess.READ),
    "list": PathTool(PathAccess.READ, recursive=True, filters=("pattern", "glob")),
    "search": PathTool(PathAccess.READ, recursive=True, skips_hidden=True, filters=("glob",)),
    "write": PathTool(PathAccess.WRITE),
    "edit": PathTool(PathAccess.WRITE),
}
PATH_ARGUMENTS: Final = ("path", "file_path")
HARMLESS_TOOLS: Final = frozenset(
    {
        *("todo", "tool_output_cache", "tool_output_cache_line", "tool_output_cache_grep"),
        *("terminal_see", "terminal_wait", "terminal_close"),
    }
)
"""Tools that use only data of the run itself, and terminals that it opened."""
SKILL_TOOL: Final = "skill_load"
"""The tool that reads files of skills, and refuses everything else by itself."""
PRIVATE_TOOLS: Final = frozenset({"clipboard_read"})
"""Tools that read what a person has outside the workspace. They ask in every mode, and the answer
is not remembered; only a rule of the user can allow them."""
SHELL_TOOL: Final = "shell"
SHELL_ARGUMENT: Final = "command"


class Permission(StrEnum):
    """The decision about a call. If several rules match, the first in this order wins."""

    DENY = "deny"
    ALLOW = "allow"
    ASK = "ask"


class InvalidRule(Exception):
    """A rule in a file is not valid. The message names the file, the rule and the member."""


@dataclass(frozen=True, slots=True)
class ToolRule:
    """One rule. A member that is None matches everything; all other members must match."""

    decision: Permission
    tool: str = "*"
    command: tuple[str, ...] | None = None
    """The first words of a simple command."""
    plain: bool = False
    """The words after `command` must be no options and no `NAME=VALUE`, and inside the root."""
    text: str | None = None
    """The whole text of the tool's command, to the last byte."""
    cwd: str | None = None
    """The directory in which the command runs."""
    path: str | None = None
    """A pattern for whole paths: `*` and `?` within a directory, `**` across them."""
    reason: str = ""
    layer: str = ""
    place: str = ""
    """The file, and the number of the rule in it."""

    def is_for(self, tool: str, cwd: str) -> bool:
        return (self.cwd is None or self.cwd == cwd) and matches_pattern(self.tool, tool)

    def begins(self, argv: Sequence[str]) -> bool:
        return self.command is not None and tuple(argv[: len(self.command)]) == self.command


@dataclass(frozen=True, slots=True)
class RuleLayer:
    """The rules of one source, as the user's file or the project's."""

    name: str
    rules: tuple[ToolRule, ...]
    trusted: bool = True
    """Whether the rules count. A project's rules count once the user trusts the workspace."""


def active_rules(layers: Iterable[RuleLayer]) -> Iterator[ToolRule]:
    """Yield the rules of trusted layers, each with the name of its layer."""
    for layer in layers:
        if layer.trusted:
            yield from (replace(rule, layer=layer.name) for rule in layer.rules)


class _RuleTable(msgspec.Struct, forbid_unknown_fields=True):
    # Unknown members are refused, unlike elsewhere: with a misspelt `comand = "rm"` the rule would
    # match everything.
    decision: Permission
    tool: Annotated[str, msgspec.Meta(min_length=1)] = "*"
    command: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    plain: bool = False
    text: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    cwd: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    path: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    reason: str = ""


def rules_from_tables(tables: Iterable[object], where: str) -> tuple[ToolRule, ...]:
    """Convert the parsed TOML tables of `[[permission.rule]]`. Raise `InvalidRule` for the first
    rule that is not valid."""
    return tuple(_read_rule(table, f"{where}, rule {n}") for n, table in enumerate(tables, start=1))


def rule_to_table(rule: ToolRule) -> dict[str, Any]:
    """Convert a rule to a table with only the members that are set, so that parsing the table gives
    the same rule."""
    table: dict[str, Any] = {"tool": rule.tool}
    if rule.command is not None:
        table["command"] = " ".join(map(quote_word, rule.command))
    for name in ("text", "cwd", "path"):
        # An empty value is written too: without the member, the rule would match everything.
        if (value := getattr(rule, name)) is not None:
            table[name] = value
    table |= {name: value for name in ("plain", "reason") if (value := getattr(rule, name))}
    return {**table, "decision": str(rule.decision)}


def _read_rule(table: object, place: str) -> ToolRule:
    try:
        written = msgspec.convert(table, _RuleTable)
    except msgspec.ValidationError as error:
        raise InvalidRule(
            f"{place}: {error}. docs/reference/permissions.md lists the members of a rule"
        ) from error
    if written.command is not None and written.text is not None:
        raise InvalidRule(f"{place}: `command` and `text` exclude each other; use one of them")
    if written.plain and written.command is None:
        raise InvalidRule(f"{place}: `plain` requires `command`")
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
            raise InvalidRule(
                f"{place}: `command` must be plain words; found {why}. Quote it, or use `text`"
            )
        case script:
            match [pipeline.commands for pipeline in script.pipelines]:
                case [(SimpleCommand(words=words, redirects=()),)] if words:
                    if all(word.is_plain for word in words):
                        return tuple(word.text for word in words)
    raise InvalidRule(
        f"{place}: `command` must be the plain words of one command. For anything else, use `text`"
    )


def quote_word(word: str) -> str:
    """Quote a word so that `parse_shell` returns the same word."""
    if re.fullmatch(r"[A-Za-z0-9_@%+:,./-]+", word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def matches_pattern(pattern: str, name: str) -> bool:
    """Match a name with `*`, `?` and `**`. RE2 is used, because both texts may be hostile and RE2
    runs in linear time. A byte that is not UTF-8 becomes `?`, which a pattern cannot contain
    literally."""
    return _compiled(pattern).fullmatch(name.encode(errors="replace").decode()) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """`**/` matches any number of directories, `/**` a directory and all below it; `*` and `?` do
    not match `/`."""
    parts = re.split(r"(/\*\*$|\*\*/|\*\*|\*|\?)", pattern)
    meant = {"/**": r"(?:/.*)?", "**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return re2.compile("(?s)" + "".join(meant.get(part) or re2.escape(part) for part in parts))
