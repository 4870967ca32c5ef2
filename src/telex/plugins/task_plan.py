"""A plugin's tasks as a file says them, made into what the plugin is to be told. Pure.

    [[task]]
    id = "motd"
    type = "write"          # or "greet/write": the plugin's name, or its manifest's domain
    requires = ["folder"]
    config = { path = "motd", text = "Good morning" }

Relative paths are the file's: they begin in its directory. Values are typed by what the plugin
declares. What it does not declare is a mistake with generation B, whose manifest is all there is to
judge by, and with A a hint: there the plugin is asked. `tasks` asks it, and runs them.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from telex.config.layers import Origin, Source, nearest
from telex.plugins import graph
from telex.plugins.fields import checked
from telex.plugins.values import Section, Sources, resolve
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
        config = [*self._typed(wanted, its), *self._untyped(wanted, its)]
        yield Planned(wanted.id, its.type or "", tuple(wanted.requires), config)

    def _types(self) -> dict[str, spec.Task]:
        return {task.type or "": task for task in self.introduced.tasks or ()}

    def _type(self, word: str) -> spec.Task | None:
        types = self._types()
        whose, slash, name = word.partition("/")
        manifest = self.found.manifest
        ours = {self.found.name, (manifest.domain if manifest else None) or self.found.name}
        return types.get(word) or (types.get(name) if slash and whose in ours else None)

    def _typed(self, wanted: Wanted, its: spec.Task) -> list[spec.KeyValue]:
        """The values of declared entries, and their defaults."""
        entries = list(_entries(its))
        keys = {entry.key for entry in entries}
        given = {key: value for key, value in wanted.config.items() if key in keys}
        origin = Origin(Source.FLAG, f"task {wanted.id}")
        section = Section({self.found.name: {its.type: given}}, origin)
        # No variable has a say in a file of tasks; HOME is there for `~` alone.
        sources = Sources([section], {"HOME": self.home}, cwd=self.where.parent)
        values = resolve(self.found.name, entries, sources, command=[its.type or ""])
        self.wrong.extend(values.problems)
        return [] if values.problems else values.key_values()

    def _untyped(self, wanted: Wanted, its: spec.Task) -> Iterator[spec.KeyValue]:
        """What is not declared, or has a form that is the plugin's to judge: as it is."""
        typed = {entry.key for entry in _entries(its)}
        declared = {*typed, *(entry["key"] for entry in _forms(its))}
        by_manifest = self.introduced.protocol == spec.PROTOCOL_B
        for key in wanted.config.keys() - declared if declared or by_manifest else ():
            near = nearest(key, declared)
            meant = f"; did you mean {near}?" if near else ""
            said = f"task {wanted.id}: {its.type} does not say that it takes {key}{meant}"
            (self.wrong if by_manifest else self.hints).append(said)
        for key in wanted.config.keys() - typed:
            yield spec.KeyValue(key, wanted.config[key])


def _forms(task: spec.Task) -> Iterator[dict[str, Any]]:
    """Generation B's entries. Some are maps and unions, which have a key and no plain type."""
    for entry in task.config or ():
        if isinstance(entry, dict) and isinstance(entry.get("key"), str):
            yield entry


def _entries(task: spec.Task) -> Iterator[spec.ConfigEntry]:
    """Its plain entries, of either generation. No flag and no variable sets a task's values."""
    yield from (replace(entry, flag_only=None, env_override=None) for entry in task.configs or ())
    for form in _forms(task):
        result = checked(spec.ConfigEntry, form)
        if result.value is not None and "type" in form:
            yield replace(result.value, flag_only=None, env_override=None)
