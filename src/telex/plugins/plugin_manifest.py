"""A plugin's `manifest.json`: read from bytes, with every problem by its field.

The types are in `protocol.PluginManifest`. This module checks the rules that types cannot express:
the path of the executable, that a default has its declared type, that names are unique. `discovery`
checks where the file is and which users can write to it. Pure except for `read_manifest`.

`declared_entries` returns the values that a task takes. Generation A declares plain entries
(`configs`), B also tables of tables and unions (`config`). Their members distinguish them, as in
the original host: `alternatives` is a union, `keyType` with `values` a table, and a `key` alone a
plain entry. Anything else is a problem of the manifest.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from telex.config.errors import ConfigError
from telex.config.places import read_file
from telex.plugins.config_values import type_problem
from telex.plugins.limits import PLUGIN_MANIFEST_BYTES
from telex.plugins.protocol import (
    CommandEntry,
    ConfigEntry,
    Flag,
    MappedEntry,
    Needs,
    PluginManifest,
    Task,
    UnionEntry,
)
from telex.plugins.validation import WHOLE, FieldProblem, Validated, describe_value, validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


NAME: Final = "manifest.json"

_SHOWN_PROBLEMS: Final = 50
"""How many problems the message of a `BadPluginManifest` lists."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FLAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SHORTHAND: Final = re.compile(r"[A-Za-z0-9]")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class BadPluginManifest(ValueError):
    """A manifest cannot be used. `problems` has all its problems."""

    def __init__(self, path: Path, problems: Sequence[FieldProblem]) -> None:
        self.problems = tuple(problems)
        more = len(problems) - _SHOWN_PROBLEMS
        shown = [*map(str, problems[:_SHOWN_PROBLEMS]), *([f"and {more} more"] if more > 0 else [])]
        super().__init__(f"{path}: {'; '.join(shown)}")


def read_manifest(path: Path) -> PluginManifest:
    """Read a manifest from a file. Raises BadPluginManifest."""
    try:
        content = read_file(path)
    except ConfigError as error:
        raise BadPluginManifest(path, [FieldProblem(WHOLE, str(error))]) from error
    validated = _bad("does not exist") if content is None else read(content)
    if validated.value is None:
        raise BadPluginManifest(path, validated.problems)
    return validated.value


def read(content: bytes) -> Validated[PluginManifest]:
    """Parse and check the bytes of a manifest."""
    if len(content) > PLUGIN_MANIFEST_BYTES:
        return _bad(f"is larger than {PLUGIN_MANIFEST_BYTES} bytes")
    try:
        document = msgspec.json.decode(content.removeprefix(_BYTE_ORDER_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _bad(f"is not JSON: {error}")
    result = validate(PluginManifest, document)
    manifest = result.value or _valid_part(document, result.problems)
    problems = (*result.problems, *_problems(manifest))
    return Validated(None if problems else manifest, problems, result.hints)


def _valid_part(document: object, problems: Iterable[FieldProblem]) -> PluginManifest:
    """Return the members of a manifest that have valid types. They are checked further, so that all
    problems are reported at once."""
    members = document if isinstance(document, dict) else {}
    bad = {re.split(r"[.\[]", problem.field)[0] for problem in problems}
    rest = {name: its for name, its in members.items() if name not in bad}
    manifest = validate(PluginManifest, {"name": "it", "executable": "it", **rest}).value
    assert manifest is not None
    return manifest


def _bad(problem: str) -> Validated[PluginManifest]:
    return Validated(None, (FieldProblem(WHOLE, problem),))


def _problems(manifest: PluginManifest) -> Iterator[FieldProblem]:
    if problem := executable_problem(manifest.executable):
        yield FieldProblem("executable", problem)
    yield from entry_problems(manifest.config, "config")
    yield from command_problems(manifest.commands, "commands")
    types = [task.type or task.task_type or "" for task in manifest.tasks or ()]
    for at, name in enumerate(types):
        if not name:
            yield FieldProblem(f"tasks[{at}].taskType", "is missing")
    yield from _twice((name for name in types if name), "tasks")
    for at, task in enumerate(manifest.tasks or ()):
        yield from task_problems(task, f"tasks[{at}]")
    needs = manifest.needs or Needs()
    for key, paths in (("read", needs.read), ("write", needs.write)):
        for at, path in enumerate(paths or ()):
            if not path or not path.isprintable():
                yield FieldProblem(
                    f"needs.{key}[{at}]", f"must be a path; it is {describe_value(path)}"
                )


def executable_problem(path: str) -> str | None:
    """Return why this path cannot name a file in the manifest's directory, or None. `discovery`
    checks links."""
    if not path or path.endswith("/"):
        return f"must name the file to run; it is {describe_value(path)}"
    if not path.isprintable():
        return "contains a control character; rename the file"
    if path.startswith("/"):
        return f"must be relative to the manifest, not absolute; it is {describe_value(path)}"
    if ".." in path.split("/"):
        return f"must stay in the manifest's directory, without ..; it is {describe_value(path)}"
    return None


def command_problems(commands: list[CommandEntry] | None, place: str) -> Iterator[FieldProblem]:
    """Yield the problems of commands and their subcommands, of a manifest or of a handshake."""
    names = [name for one in commands or () for name in (one.name, *(one.aliases or ()))]
    yield from _twice(names, place)
    for at, command in enumerate(commands or ()):
        yield from entry_problems(command.configs, f"{place}[{at}].configs")
        yield from entry_problems(command.config, f"{place}[{at}].config")
        yield from command_problems(command.commands, f"{place}[{at}].commands")


def task_problems(task: Task, place: str) -> Iterator[FieldProblem]:
    """Yield the problems of a task's entries, also within tables and unions."""
    of_task = declared_entries(task, f"{place}.config")
    yield from of_task.problems
    for where, entries in plain_entries(of_task.entries, f"{place}.config"):
        in_union = where.endswith(".alternatives")
        for at, entry in enumerate(entries):
            for name, problem in _of_entry(entry):
                yield FieldProblem(f"{where}[{at}].{name}", problem)
        if not in_union:  # in a union, alternatives may share a key
            yield from _twice((entry.key for entry in entries), where)


def entry_problems(entries: list[ConfigEntry] | None, place: str) -> Iterator[FieldProblem]:
    """Yield the problems of config entries, of a manifest or of a handshake."""
    yield from _twice((entry.key for entry in entries or ()), place)
    for at, entry in enumerate(entries or ()):
        for name, problem in _of_entry(entry):
            yield FieldProblem(f"{place}[{at}].{name}", problem)


def _of_entry(entry: ConfigEntry) -> Iterator[tuple[str, str]]:
    if entry.value is not None and (problem := type_problem(entry.value, entry.type)):
        yield "value", f"{problem}, and its `type` is {entry.type}"
    if entry.env_override and not _VARIABLE.fullmatch(entry.env_override):
        yield (
            "envOverride",
            f"must be a variable's name; it is {describe_value(entry.env_override)}",
        )
    flag = entry.flag or Flag()
    if flag.name and not _FLAG.fullmatch(flag.name):
        yield "flag.name", f"must be letters, digits and hyphens; it is {describe_value(flag.name)}"
    if flag.shorthand and not _SHORTHAND.fullmatch(flag.shorthand):
        yield (
            "flag.shorthand",
            f"must be one letter or digit; it is {describe_value(flag.shorthand)}",
        )


def _twice(names: Iterable[str], place: str) -> Iterator[FieldProblem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield FieldProblem(
                place, f"has {count} of the name {describe_value(name)}; rename all but one"
            )


@dataclass(frozen=True, slots=True)
class UnionOfEntries:
    """Entries of which a person sets at most one."""

    alternatives: tuple[ConfigEntry | MappedEntry, ...]


Entry = ConfigEntry | MappedEntry | UnionOfEntries


@dataclass(frozen=True, slots=True)
class DeclaredEntries:
    """The entries of a task, and the problems of their declaration."""

    entries: tuple[Entry, ...]
    problems: tuple[FieldProblem, ...]


def declared_entries(task: Task, place: str = "config") -> DeclaredEntries:
    """Return the entries of a task. `place` is their field in the manifest, for problems."""
    problems: list[FieldProblem] = []
    plain = [_without_flag(entry) for entry in task.configs or ()]
    forms = [
        _read_entry(form, f"{place}[{at}]", problems) for at, form in enumerate(task.config or ())
    ]
    entries = (*plain, *(entry for entry in forms if entry is not None))
    return DeclaredEntries(entries, tuple(problems))


def entry_keys(entry: Entry) -> tuple[str, ...]:
    """Return the keys under which a value may be set: several for a union."""
    if isinstance(entry, UnionOfEntries):
        return tuple(one.key for one in entry.alternatives)
    return (entry.key,)


def plain_entries(entries: Iterable[Entry], place: str) -> Iterator[tuple[str, list[ConfigEntry]]]:
    """Yield each group of plain entries with its place: of the task, each union, each table."""
    entries = list(entries)
    yield place, [entry for entry in entries if isinstance(entry, ConfigEntry)]
    for entry in entries:
        match entry:
            case UnionOfEntries():
                yield from plain_entries(entry.alternatives, f"{place}.alternatives")
            case MappedEntry():
                yield f"{place}.{entry.key}.values", entry.values


def _read_entry(form: Any, place: str, problems: list[FieldProblem]) -> Entry | None:
    if isinstance(form, dict) and form.get("alternatives") is not None:
        return _union(form, place, problems)
    return _simple(form, place, problems)


def _union(form: dict[str, Any], place: str, problems: list[FieldProblem]) -> UnionOfEntries | None:
    result = validate(UnionEntry, form)
    if result.value is None:
        problems += (_within(place, problem) for problem in result.problems)
        return None
    place = f"{place}.alternatives"
    if not result.value.alternatives:
        problems.append(FieldProblem(place, "must have at least one entry; it is empty"))
        return None
    read = [
        _simple(one, f"{place}[{at}]", problems) for at, one in enumerate(result.value.alternatives)
    ]
    return UnionOfEntries(tuple(one for one in read if one is not None))


def _simple(
    form: Any, place: str, problems: list[FieldProblem]
) -> ConfigEntry | MappedEntry | None:
    if not isinstance(form, dict):
        problems.append(FieldProblem(place, f"must be an object; it is {describe_value(form)}"))
        return None
    is_table = form.get("keyType") is not None or form.get("values") is not None
    result = validate(MappedEntry, form) if is_table else validate(ConfigEntry, form)
    problems += (_within(place, problem) for problem in result.problems)
    value = result.value
    return _without_flag(value) if isinstance(value, ConfigEntry) else value


def _within(place: str, problem: FieldProblem) -> FieldProblem:
    return FieldProblem(f"{place}.{problem.field}", problem.problem)


def _without_flag(entry: ConfigEntry) -> ConfigEntry:
    """Return the entry without flag and variable: neither sets a value of a task."""
    return replace(entry, flag_only=None, env_override=None)
