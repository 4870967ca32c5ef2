"""A plugin's tasks as a file says them, made into what the plugin is to be told. Pure.

    [[task]]
    id = "motd"
    type = "write"          # or "greet/write": the plugin's name, or its manifest's domain
    requires = ["folder"]
    config = { path = "motd", text = "Good morning" }

Relative paths are the file's: they begin in its directory. Values are typed by what the plugin
declares. What it does not declare is a mistake with generation B, whose manifest is all there is to
judge by, and with A a hint: there the plugin is asked, and the type is the one that TOML shows. A
table is told as a list of values with their types, and so is what it holds. `tasks` asks the
plugin, and runs them.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from telex.config.layers import Origin, Source, nearest
from telex.plugins import graph, task_entries
from telex.plugins.fields import checked
from telex.plugins.values import Section, Sources, absolute, fit, resolve
from telex.protocols import plugin_v0 as spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from telex.plugins.finding import Found


class BadTasks(ValueError):
    """Tasks that cannot be run, with everything that is wrong with them."""

    exit_code = 2

    def __init__(self, where: str, wrong: Iterable[str]) -> None:
        self.problems = tuple(wrong)
        super().__init__("\n".join(f"{where}: {problem}" for problem in self.problems))


class Wanted(Struct, frozen=True):
    """One `[[task]]`, as it was written."""

    id: spec.Name
    type: str
    requires: list[str] = []
    config: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Planned:
    """One that the plugin knows, with all its values."""

    id: str
    type: str
    requires: tuple[str, ...]
    config: list[spec.KeyValue]


def read(content: bytes, where: str) -> list[Wanted]:
    """The tasks of a file, whose order can be kept. Raises BadTasks."""
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise BadTasks(where, [f"cannot be read: {error}"]) from error
    tables = document.pop("task", [])
    wrong = [f"{key} is not known; tasks are [[task]]" for key in document]
    if not isinstance(tables, list):
        raise BadTasks(where, [*wrong, "task must be written as [[task]]"])
    tasks = [task for at, table in enumerate(tables, 1) for task in _one(at, table, wrong)]
    ids = Counter(task.id for task in tasks)
    wrong += (f"{count} tasks have the id {one}" for one, count in ids.items() if count > 1)
    if not wrong:  # an id that could not be read is not an unknown one
        wrong += graph.problems({task.id: task.requires for task in tasks})
    if wrong:
        raise BadTasks(where, wrong)
    return tasks


def _one(at: int, table: object, wrong: list[str]) -> Iterator[Wanted]:
    result = checked(Wanted, table)
    name = table.get("id") if isinstance(table, dict) else None
    said = f"task {name if isinstance(name, str) and name.isprintable() else at}"
    wrong += (f"{said}: {problem}" for problem in result.problems)
    # Not merely a hint: `require` for `requires` would run things in the wrong order.
    wrong += (f"{said}: {hint}" for hint in result.hints)
    if result.value is not None:
        yield result.value


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks of one plugin. `hints` are what may have been meant."""

    tasks: tuple[Planned, ...]
    hints: tuple[str, ...]
    directory: Path

    @property
    def requires(self) -> dict[str, Sequence[str]]:
        return {task.id: task.requires for task in self.tasks}


def plan(
    wanted: Iterable[Wanted], found: Found, introduced: spec.Introduced, where: Path, home: str
) -> Plan:
    """What is wanted, in the plugin's own words. `where` is the file, and `home` what `~` is in it.
    Raises BadTasks."""
    wrong: list[str] = []
    hints: list[str] = []
    planning = _Planning(found, introduced, where, home, wrong, hints)
    tasks = tuple(task for one in wanted for task in planning.task(one))
    if wrong:
        raise BadTasks(str(where), wrong)
    return Plan(tasks, tuple(hints), where.parent)


@dataclass(frozen=True, slots=True)
class _Planning:
    found: Found
    introduced: spec.Introduced
    where: Path
    home: str
    wrong: list[str]
    hints: list[str]

    def task(self, wanted: Wanted) -> Iterator[Planned]:
        if (its := self._type(wanted.type)) is None:
            there = ", ".join(sorted(filter(None, self._types()))) or "none"
            name = self.found.name
            problem = f"{name} has no tasks of the type {wanted.type}; there are: {there}"
            self.wrong.append(f"task {wanted.id}: {problem}")
            return
        config = list(self._config(wanted, its))
        yield Planned(wanted.id, its.type or "", tuple(wanted.requires), config)

    def _types(self) -> dict[str, spec.Task]:
        return {task.type or "": task for task in self.introduced.tasks or ()}

    def _type(self, word: str) -> spec.Task | None:
        types = self._types()
        whose, slash, name = word.partition("/")
        manifest = self.found.manifest
        ours = {self.found.name, (manifest.domain if manifest else None) or self.found.name}
        return types.get(word) or (types.get(name) if slash and whose in ours else None)

    def _config(self, wanted: Wanted, its: spec.Task) -> Iterator[spec.KeyValue]:
        declared = task_entries.declared(its)
        self.wrong.extend(f"task {wanted.id}: {its.type}: {one}" for one in declared.problems)
        for entry in declared.entries:
            yield from self._given(_Place(wanted, its.type or ""), entry)
        keys = {key for entry in declared.entries for key in task_entries.keys(entry)}
        yield from self._undeclared(wanted, its, keys)

    def _given(self, place: _Place, entry: task_entries.Entry) -> Iterable[spec.KeyValue]:
        match entry:
            case task_entries.Union():
                return self._one_of(place, entry)
            case spec.MappedEntry():
                return self._table(place, entry)
            case _:
                return self._resolved(place, [entry], place.only(entry.key))

    def _one_of(self, place: _Place, union: task_entries.Union) -> Iterable[spec.KeyValue]:
        """Of several alternatives for the same key, the first that fits what was given counts."""
        given = [one for one in union.alternatives if one.key in place.wanted.config]
        if len(keys := {one.key for one in given}) > 1:
            names = ", ".join(sorted(keys))
            problem = f"{place.type} takes one of {names}, and all of them are given"
            self.wrong.append(f"task {place.wanted.id}: {problem}")
            return ()
        fitting = [one for one in given if _fits(place.wanted.config[one.key], one)]
        chosen = next(iter((*fitting, *given, *union.alternatives)))
        return self._given(place, chosen)

    def _table(self, place: _Place, entry: spec.MappedEntry) -> Iterator[spec.KeyValue]:
        if (tables := place.wanted.config.get(entry.key)) is None:
            return
        if not _is_table_of_tables(tables):
            problem = f"{place.spelt(self.found.name, entry.key)} must be a table of tables"
            self.wrong.append(f"task {place.wanted.id}: {problem}")
            return
        values: list[spec.KeyValue] = []
        for key, table in tables.items():
            inner = place.below(entry.key, key)
            self._tell_unknown(inner, table.keys(), {one.key for one in entry.values})
            name = absolute(key, self._sources()) if entry.key_type == "path" else key
            config = self._resolved(inner, entry.values, table)
            values.append(spec.KeyValue(name, config, spec.CONFIGS))
        yield spec.KeyValue(entry.key, values, spec.CONFIGS)

    def _resolved(
        self, place: _Place, entries: list[spec.ConfigEntry], table: dict[str, Any]
    ) -> list[spec.KeyValue]:
        """The values of plain entries, and their defaults."""
        section = place.section(self.found.name, table)
        values = resolve(self.found.name, entries, self._sources(section), command=place.words)
        self.wrong.extend(values.problems)
        return [] if values.problems else values.key_values()

    def _sources(self, *sections: Section) -> Sources:
        # No variable has a say in a file of tasks; HOME is there for `~` alone.
        return Sources(sections, {"HOME": self.home}, cwd=self.where.parent)

    @property
    def _by_manifest(self) -> bool:
        return self.introduced.protocol == spec.PROTOCOL_B

    def _undeclared(
        self, wanted: Wanted, its: spec.Task, declared: set[str]
    ) -> Iterator[spec.KeyValue]:
        if declared or self._by_manifest:
            self._tell_unknown(_Place(wanted, its.type or ""), wanted.config, declared)
        for key in wanted.config:
            if key in declared:
                continue
            if (value := _as_shown(key, wanted.config[key])) is not None:
                yield value
            else:
                kinds = "true or false, a whole number, text, a table, or a list of the first three"
                self.wrong.append(f"task {wanted.id}: {its.type}: {key} must be {kinds}")

    def _tell_unknown(self, place: _Place, given: Iterable[str], declared: set[str]) -> None:
        """What is given and not declared: a mistake where the manifest is all there is."""
        for key in given:
            if key not in declared:
                near = nearest(key, declared)
                meant = f"; did you mean {near}?" if near else ""
                taker = ".".join(place.words)
                said = f"task {place.wanted.id}: {taker} does not say that it takes {key}{meant}"
                (self.wrong if self._by_manifest else self.hints).append(said)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a file of tasks a value stands."""

    wanted: Wanted
    type: str
    within: tuple[str, ...] = ()
    """The keys of the tables around it."""

    @property
    def words(self) -> tuple[str, ...]:
        return (self.type, *self.within)

    def below(self, *keys: str) -> _Place:
        return _Place(self.wanted, self.type, (*self.within, *keys))

    def only(self, key: str) -> dict[str, Any]:
        """Of what is given, the value of one key."""
        config = self.wanted.config
        return {key: config[key]} if key in config else {}

    def spelt(self, plugin: str, key: str) -> str:
        return ".".join((plugin, *self.words, key))

    def section(self, plugin: str, table: dict[str, Any]) -> Section:
        for word in reversed(self.words):
            table = {word: table}
        return Section({plugin: table}, Origin(Source.FLAG, f"task {self.wanted.id}"))


def _is_table_of_tables(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(its, dict) for its in value.values())


def _fits(value: object, entry: spec.ConfigEntry | spec.MappedEntry) -> bool:
    if isinstance(entry, spec.MappedEntry):
        return isinstance(value, dict)
    return fit(value, entry.type) is None


def _as_shown(key: str, value: object) -> spec.KeyValue | None:
    """A value with the type that it shows; None if it shows one that plugins do not know."""
    match value:
        case dict():
            inner = [_as_shown(name, its) for name, its in value.items()]
            known = [one for one in inner if one is not None]
            return spec.KeyValue(key, known, spec.CONFIGS) if len(known) == len(inner) else None
        case []:
            return spec.KeyValue(key, value, "stringList")
    for kind in _SHOWN:
        if fit(value, kind) is None:
            return spec.KeyValue(key, value, kind)
    return None


_SHOWN: Final[tuple[spec.ValueType, ...]] = (
    "bool",
    "int",
    "string",
    "boolList",
    "intList",
    "stringList",
)
