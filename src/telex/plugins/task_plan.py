"""A file of tasks, read and converted into the values that a plugin is sent, and their order. Pure.

    [[task]]
    id = "motd"
    type = "write"          # or "greet/write": the plugin's name, or its manifest's domain
    requires = ["folder"]
    config = { path = "motd", text = "Good morning" }

Relative paths are relative to the file's directory. Values have the types that the plugin declares.
A value that is not declared is an error for generation B, because only its manifest can be checked.
For A it is a hint: the plugin validates the task, and the type is that of the TOML value. A table
is sent as a list of values with their types, at every depth.

`TaskSchedule` decides which tasks may start: a failed task stops the tasks that require it,
directly or indirectly, and no others. `plugin_tasks` validates and runs the tasks.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from telex.config.layers import Origin, Source, nearest
from telex.plugins import plugin_manifest
from telex.plugins import protocol as spec
from telex.plugins.config_values import ConfigSection, Sources, absolute_path, resolve, type_problem
from telex.plugins.validation import validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from telex.plugins.discovery import FoundPlugin


class BadTasks(ValueError):
    """Tasks cannot be run. `problems` has all their problems."""

    exit_code = 2

    def __init__(self, where: str, wrong: Iterable[str]) -> None:
        self.problems = tuple(wrong)
        super().__init__("\n".join(f"{where}: {problem}" for problem in self.problems))


class RequestedTask(Struct, frozen=True):
    """One `[[task]]` of a file."""

    id: spec.Name
    type: str
    requires: list[str] = []
    config: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Planned:
    """One task with all its values, of a type that the plugin has."""

    id: str
    type: str
    requires: tuple[str, ...]
    config: list[spec.KeyValue]


def read(content: bytes, where: str) -> list[RequestedTask]:
    """Read the tasks of a file, and check that there is an order. Raises BadTasks."""
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
    if not wrong:  # otherwise the id of an unreadable task would be reported as unknown
        wrong += order_problems({task.id: task.requires for task in tasks})
    if wrong:
        raise BadTasks(where, wrong)
    return tasks


def _one(at: int, table: object, wrong: list[str]) -> Iterator[RequestedTask]:
    result = validate(RequestedTask, table)
    name = table.get("id") if isinstance(table, dict) else None
    label = f"task {name if isinstance(name, str) and name.isprintable() else at}"
    wrong += (f"{label}: {problem}" for problem in result.problems)
    # An unknown member is an error here: `require` for `requires` would change the order.
    wrong += (f"{label}: {hint}" for hint in result.hints)
    if result.value is not None:
        yield result.value


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The tasks of one plugin, and hints about undeclared values."""

    tasks: tuple[Planned, ...]
    hints: tuple[str, ...]
    directory: Path

    @property
    def requires(self) -> dict[str, Sequence[str]]:
        return {task.id: task.requires for task in self.tasks}


def plan(
    wanted: Iterable[RequestedTask],
    found: FoundPlugin,
    introduced: spec.Introduced,
    where: Path,
    home: str,
) -> TaskPlan:
    """Convert tasks into the values that the plugin is sent. Raises BadTasks.

    `where` is the path of the file, and `home` the meaning of `~` in it.
    """
    wrong: list[str] = []
    hints: list[str] = []
    planning = _Planning(found, introduced, where, home, wrong, hints)
    tasks = tuple(task for one in wanted for task in planning.task(one))
    if wrong:
        raise BadTasks(str(where), wrong)
    return TaskPlan(tasks, tuple(hints), where.parent)


@dataclass(frozen=True, slots=True)
class _Planning:
    found: FoundPlugin
    introduced: spec.Introduced
    where: Path
    home: str
    wrong: list[str]
    hints: list[str]

    def task(self, wanted: RequestedTask) -> Iterator[Planned]:
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

    def _config(self, wanted: RequestedTask, its: spec.Task) -> Iterator[spec.KeyValue]:
        declared = plugin_manifest.declared_entries(its)
        self.wrong.extend(f"task {wanted.id}: {its.type}: {one}" for one in declared.problems)
        for entry in declared.entries:
            yield from self._given(_TaskPlace(wanted, its.type or ""), entry)
        keys = {key for entry in declared.entries for key in plugin_manifest.entry_keys(entry)}
        yield from self._undeclared(wanted, its, keys)

    def _given(self, place: _TaskPlace, entry: plugin_manifest.Entry) -> Iterable[spec.KeyValue]:
        match entry:
            case plugin_manifest.UnionOfEntries():
                return self._one_of(place, entry)
            case spec.MappedEntry():
                return self._table(place, entry)
            case _:
                return self._resolved(place, [entry], place.only(entry.key))

    def _one_of(
        self, place: _TaskPlace, union: plugin_manifest.UnionOfEntries
    ) -> Iterable[spec.KeyValue]:
        """Resolve a union. Of several alternatives with the same key, use the first whose type
        fits the value."""
        given = [one for one in union.alternatives if one.key in place.wanted.config]
        if len(keys := {one.key for one in given}) > 1:
            names = ", ".join(sorted(keys))
            problem = f"{place.type} takes one of {names}, and all of them are set"
            self.wrong.append(f"task {place.wanted.id}: {problem}")
            return ()
        fitting = [one for one in given if _fits(place.wanted.config[one.key], one)]
        chosen = next(iter((*fitting, *given, *union.alternatives)))
        return self._given(place, chosen)

    def _table(self, place: _TaskPlace, entry: spec.MappedEntry) -> Iterator[spec.KeyValue]:
        if (tables := place.wanted.config.get(entry.key)) is None:
            return
        if not _is_table_of_tables(tables):
            problem = f"{place.spelt(self.found.name, entry.key)} must be a table of tables"
            self.wrong.append(f"task {place.wanted.id}: {problem}")
            return
        values: list[spec.KeyValue] = []
        for key, table in tables.items():
            inner = place.below(entry.key, key)
            self._report_unknown(inner, table.keys(), {one.key for one in entry.values})
            name = absolute_path(key, self._sources()) if entry.key_type == "path" else key
            config = self._resolved(inner, entry.values, table)
            values.append(spec.KeyValue(name, config, spec.CONFIGS))
        yield spec.KeyValue(entry.key, values, spec.CONFIGS)

    def _resolved(
        self, place: _TaskPlace, entries: list[spec.ConfigEntry], table: dict[str, Any]
    ) -> list[spec.KeyValue]:
        """Return the values of plain entries, with their defaults."""
        section = place.section(self.found.name, table)
        values = resolve(self.found.name, entries, self._sources(section), command=place.words)
        self.wrong.extend(values.problems)
        return [] if values.problems else values.key_values()

    def _sources(self, *sections: ConfigSection) -> Sources:
        # Variables do not set values of a file of tasks; HOME is only for `~`.
        return Sources(sections, {"HOME": self.home}, cwd=self.where.parent)

    @property
    def _by_manifest(self) -> bool:
        return self.introduced.protocol == spec.PROTOCOL_B

    def _undeclared(
        self, wanted: RequestedTask, its: spec.Task, declared: set[str]
    ) -> Iterator[spec.KeyValue]:
        if declared or self._by_manifest:
            self._report_unknown(_TaskPlace(wanted, its.type or ""), wanted.config, declared)
        for key in wanted.config:
            if key in declared:
                continue
            if (value := _typed_value(key, wanted.config[key])) is not None:
                yield value
            else:
                kinds = "true or false, a whole number, text, a table, or a list of the first three"
                self.wrong.append(f"task {wanted.id}: {its.type}: {key} must be {kinds}")

    def _report_unknown(self, place: _TaskPlace, given: Iterable[str], declared: set[str]) -> None:
        """Report undeclared values: as problems for generation B, as hints for A."""
        for key in given:
            if key not in declared:
                near = nearest(key, declared)
                meant = f"; did you mean {near}?" if near else ""
                taker = ".".join(place.words)
                message = f"task {place.wanted.id}: {taker} does not declare {key}{meant}"
                (self.wrong if self._by_manifest else self.hints).append(message)


@dataclass(frozen=True, slots=True)
class _TaskPlace:
    """The position of a value in a file of tasks."""

    wanted: RequestedTask
    type: str
    within: tuple[str, ...] = ()
    """The keys of the tables that contain the value."""

    @property
    def words(self) -> tuple[str, ...]:
        return (self.type, *self.within)

    def below(self, *keys: str) -> _TaskPlace:
        return _TaskPlace(self.wanted, self.type, (*self.within, *keys))

    def only(self, key: str) -> dict[str, Any]:
        """Return a table with this key alone, or an empty one."""
        config = self.wanted.config
        return {key: config[key]} if key in config else {}

    def spelt(self, plugin: str, key: str) -> str:
        return ".".join((plugin, *self.words, key))

    def section(self, plugin: str, table: dict[str, Any]) -> ConfigSection:
        for word in reversed(self.words):
            table = {word: table}
        return ConfigSection({plugin: table}, Origin(Source.FLAG, f"task {self.wanted.id}"))


def _is_table_of_tables(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(its, dict) for its in value.values())


def _fits(value: object, entry: spec.ConfigEntry | spec.MappedEntry) -> bool:
    if isinstance(entry, spec.MappedEntry):
        return isinstance(value, dict)
    return type_problem(value, entry.type) is None


def _typed_value(key: str, value: object) -> spec.KeyValue | None:
    """Return a value with the type of its TOML form; None if the protocol has no such type."""
    match value:
        case dict():
            inner = [_typed_value(name, its) for name, its in value.items()]
            known = [one for one in inner if one is not None]
            return spec.KeyValue(key, known, spec.CONFIGS) if len(known) == len(inner) else None
        case []:
            return spec.KeyValue(key, value, "stringList")
    for kind in _TOML_TYPES:
        if type_problem(value, kind) is None:
            return spec.KeyValue(key, value, kind)
    return None


_TOML_TYPES: Final[tuple[spec.ValueType, ...]] = (
    "bool",
    "int",
    "string",
    "boolList",
    "intList",
    "stringList",
)


if TYPE_CHECKING:
    Requires = Mapping[str, Sequence[str]]
    """The ids that each task requires, by its id."""


def order_problems(requires: Requires) -> Iterator[str]:
    """Yield why the tasks have no order."""
    for one, needed in requires.items():
        for other in needed:
            if other not in requires:
                near = nearest(other, requires)
                meant = f"; did you mean {near}?" if near else ""
                yield f"{one} requires {other}, which does not exist{meant}"
    if (path := cycle(requires)) is not None:
        yield f"these require each other in a circle: {' → '.join(path)}"


def cycle(requires: Requires) -> list[str] | None:
    """Return a cycle of ids, each followed by one that it requires; None if there is none."""
    try:
        TopologicalSorter(requires).prepare()
    except CycleError as error:
        path: list[str] = error.args[1]
        return path[::-1]  # `graphlib` has the order of execution, which is the reverse
    return None


def stages(requires: Requires) -> list[list[str]]:
    """Return all ids: first the tasks that require none, then those that require only these, and so
    on."""
    schedule = TaskSchedule(requires)
    found = []
    while ready := schedule.ready():
        found.append(ready)
        for one in ready:
            schedule.finished(one, ok=True)
    return found


class TaskSchedule:
    """Returns the tasks that may start, while others finish. `requires` must have no cycle."""

    def __init__(self, requires: Requires) -> None:
        self.stopped: dict[str, str] = {}
        """The tasks that will not start, each with a required task that failed or was stopped."""
        self._requires = requires
        self._failed: set[str] = set()
        self._sorter = TopologicalSorter(requires)
        self._sorter.prepare()

    def ready(self) -> list[str]:
        """Return the tasks that may start now and were not returned before."""
        found: list[str] = []
        while candidates := self._sorter.get_ready():
            found += (one for one in candidates if not self._stop(one))
        return found

    def finished(self, one: str, *, ok: bool) -> None:
        """Record that a task has ended."""
        if not ok:
            self._failed.add(one)
        self._sorter.done(one)

    def _stop(self, one: str) -> bool:
        failed = (need for need in self._requires[one] if need in self._failed)
        if (missing := next(failed, None)) is None:
            return False
        self.stopped[one] = missing
        self.finished(one, ok=False)
        return True
