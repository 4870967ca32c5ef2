"""A plugin's config entries as options of a command line, and its descriptions as help.

Every level is a click command made at run time: the plugin, each command on the way, the last one.
A level takes the flags of its own command and of the plugin; if both have a flag of one name, the
command's wins. Values stay strings here: `plugins.config_values` converts them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import click

from telex.cli.console import printable
from telex.config.layers import nearest
from telex.plugins import plugin_commands
from telex.plugins.protocol import CommandEntry, ConfigEntry, Introduced

_METAVARS: Final = {"int": "NUMBER", "string": "TEXT", "path": "PATH", "bool": "YES/NO"}
_WORDS: Final = "words"

Flags = dict[str, list[str]]
"""The values of each key, one for each time it was given."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed command line."""

    context: click.Context
    """The context of the last level, for error messages about it."""
    path: tuple[str, ...]
    command: CommandEntry
    args: tuple[str, ...]
    flags: Flags
    """The values of the command."""
    plugin_flags: Flags


@dataclass(slots=True)
class _Level:
    """One level: the plugin itself, or a command of it."""

    name: str
    entries: Sequence[ConfigEntry]
    below: Sequence[CommandEntry]
    help: str
    usage: str | None = None


@dataclass(slots=True)
class _Line:
    """A command line that is parsed level by level."""

    introduced: Introduced
    context: click.Context
    plugin_flags: Flags = field(default_factory=dict)

    def read(self, level: _Level, words: Sequence[str]) -> tuple[Flags, list[str]]:
        """Parse a level's flags and return the words after them. Raises for help and errors."""
        options = _Options(level.entries, self.introduced.configs or [])
        command = _OneLevel(level, options.params())
        self.context = command.make_context(level.name, list(words), parent=self.context)
        own, shared = options.flags(self.context.params)
        for key, texts in shared.items():
            self.plugin_flags.setdefault(key, []).extend(texts)
        return own, list(self.context.params[_WORDS])


def parse(
    context: click.Context, name: str, about: str | None, introduced: Introduced, words: list[str]
) -> Parsed:
    """Parse the words after a plugin's name. Raises click's exceptions, for help too."""
    line = _Line(introduced, context.parent or context)
    below = introduced.commands or []
    top = _Level(f"{context.info_name} {name}", [], below, _joined(introduced.description, about))
    _, rest = line.read(top, words)
    if not rest:
        raise click.exceptions.NoArgsIsHelpError(line.context)
    path: list[str] = []
    while True:
        command = _named(below, rest.pop(0), line.context)
        path.append(command.name)
        below = command.commands or []
        flags, rest = line.read(_level(command, below), rest)
        if not below or not rest:
            break
        if flags:
            said = f"{rest[0]} does not take the flags of {' '.join(path)} itself"
            raise click.UsageError(printable(said), line.context)
    if rest and not plugin_commands.takes_arguments(introduced):
        raise click.UsageError(f"{' '.join(path)} takes no arguments", line.context)
    return Parsed(line.context, tuple(path), command, tuple(rest), flags, line.plugin_flags)


def _named(below: Sequence[CommandEntry], word: str, context: click.Context) -> CommandEntry:
    if (found := plugin_commands.find_command(below, word)) is not None:
        return found
    near = nearest(word, [one.name for one in below])
    meant = f"; did you mean {near}?" if near else ""
    raise click.UsageError(f"there is no command {printable(word)}{meant}", context)


def _level(command: CommandEntry, below: Sequence[CommandEntry]) -> _Level:
    about = _joined(command.description, command.help, command.manual)
    return _Level(command.name, command.configs or [], below, about, command.usage)


def _joined(*texts: str | None) -> str:
    """Join texts, each once, and keep their line breaks."""
    kept: list[str] = []
    for text in filter(None, texts):
        if not any(text in one for one in kept):
            kept = [one for one in kept if one not in text] + [text]
    paragraphs = "\n\n".join(printable(text.strip()) for text in kept).split("\n\n")
    # click wraps a paragraph anew unless this precedes it.
    return "\n\n".join(f"\b\n{one}" if "\n" in one else one for one in paragraphs)


class _Options:
    """Make the options of a level: each name once, the level's own before the plugin's."""

    def __init__(self, own: Sequence[ConfigEntry], shared: Sequence[ConfigEntry]) -> None:
        self._own = {f"own_{at}": entry for at, entry in enumerate(own)}
        self._shared = {f"shared_{at}": entry for at, entry in enumerate(shared)}

    def params(self) -> list[click.Parameter]:
        taken: set[str] = set()
        entries = {**self._own, **self._shared}
        names = {one: list(_names(entry, taken)) for one, entry in entries.items()}
        return [
            _option(one, entry, names[one], taken) for one, entry in entries.items() if names[one]
        ]

    def flags(self, given: Mapping[str, Any]) -> tuple[Flags, Flags]:
        """Return the given values of the level, and of the plugin."""
        return _flags(given, self._own), _flags(given, self._shared)


def _flags(given: Mapping[str, Any], entries: Mapping[str, ConfigEntry]) -> Flags:
    found: Flags = {}
    for one, entry in entries.items():
        match given.get(one):
            case bool(value):
                found[entry.key] = [str(value).lower()]
            case (_, *_) as texts:
                found[entry.key] = list(texts)
    return found


def _option(one: str, entry: ConfigEntry, names: list[str], taken: set[str]) -> click.Option:
    if entry.type != "bool":
        metavar = _METAVARS[entry.type.removesuffix("List")]
        metavar += ",…" if entry.type.endswith("List") else ""
        return click.Option([one, *names], multiple=True, metavar=metavar, help=_told(entry))
    no = names[0].replace("--", "--no-", 1)
    if names[0] != no and no not in taken:
        names = [f"{names[0]}/{no}", *names[1:]]
    return click.Option([one, *names], is_flag=True, default=None, help=_told(entry))


def _names(entry: ConfigEntry, taken: set[str]) -> Iterator[str]:
    flag = entry.flag
    wanted = [f"--{(flag and flag.name) or entry.key}"]
    wanted += [f"-{flag.shorthand}"] if flag and flag.shorthand else []
    for name in wanted:
        if name not in taken:
            taken.add(name)
            yield name


def _told(entry: ConfigEntry) -> str:
    flag = entry.flag
    text = (flag and (flag.description or flag.usage)) or entry.description or ""
    if entry.value not in (None, "", []) and entry.value is not False:
        shown = entry.value if isinstance(entry.value, str) else json.dumps(entry.value)
        text = f"{text}  [default: {shown}]".strip()
    return " ".join(printable(text).split("\n"))


class _Words(click.Argument):
    """The arguments after the options. They do not appear in the usage of the levels below."""

    def __init__(self) -> None:
        super().__init__([_WORDS], nargs=-1, type=click.UNPROCESSED)

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return []


class _OneLevel(click.Command):
    """A level as a click command."""

    def __init__(self, level: _Level, params: Sequence[click.Parameter]) -> None:
        super().__init__(level.name, params=[*params, _Words()], help=level.help)
        self.allow_interspersed_args = not level.below
        self._level = level

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage line: the command as it was called, and the plugin's own words."""
        said = printable(self._level.usage or "").strip()
        rest = said.removeprefix(self._level.name).strip()
        words = "COMMAND [ARGS]..." if self._level.below else "[ARGS]..."
        formatter.write_usage(ctx.command_path, rest or f"[OPTIONS] {words}")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        if self._level.below:
            with formatter.section("Commands"):
                formatter.write_dl([(one.name, _line_of(one)) for one in self._level.below])


def _line_of(command: CommandEntry) -> str:
    first = printable(command.description or command.help or "").strip().partition("\n")[0]
    aliases = ", ".join(command.aliases or ())
    return f"{first} (also: {aliases})".strip() if aliases else first
