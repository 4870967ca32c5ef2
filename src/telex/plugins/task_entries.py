"""What a task takes, as its plugin declares it: plain entries, tables of tables, and unions. Pure.

Generation A declares plain entries (`configs`), B any of the three (`config`). They are told apart
by their members, as the original does: `alternatives` is a union, `keyType` with `values` a table,
and a `key` a plain entry. What is none of them, or has something wrong with it, is a problem of the
manifest. `manifest` asks for the problems, `task_plan` for the entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from telex.plugins.fields import Problem, checked, shown
from telex.protocols.plugin_v0 import ConfigEntry, MappedEntry, Task, UnionEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Union:
    """Entries of which one is given."""

    alternatives: tuple[ConfigEntry | MappedEntry, ...]


Entry = ConfigEntry | MappedEntry | Union


@dataclass(frozen=True, slots=True)
class Declared:
    """Everything a task takes, and what is wrong with how that is said."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]


def declared(task: Task, place: str = "config") -> Declared:
    """The entries of a task. `place` is where its manifest has them."""
    problems: list[Problem] = []
    plain = [_without_flag(entry) for entry in task.configs or ()]
    forms = [_read(form, f"{place}[{at}]", problems) for at, form in enumerate(task.config or ())]
    entries = (*plain, *(entry for entry in forms if entry is not None))
    return Declared(entries, tuple(problems))


def keys(entry: Entry) -> tuple[str, ...]:
    """The names under which a value may be given: several for a union."""
    if isinstance(entry, Union):
        return tuple(one.key for one in entry.alternatives)
    return (entry.key,)


def plain_entries(entries: Iterable[Entry], place: str) -> Iterator[tuple[str, list[ConfigEntry]]]:
    """Every group of plain entries with its place: the task's own, each union's, each table's."""
    entries = list(entries)
    yield place, [entry for entry in entries if isinstance(entry, ConfigEntry)]
    for entry in entries:
        match entry:
            case Union():
                yield from plain_entries(entry.alternatives, f"{place}.alternatives")
            case MappedEntry():
                yield f"{place}.{entry.key}.values", entry.values


def _read(form: Any, place: str, problems: list[Problem]) -> Entry | None:
    if isinstance(form, dict) and form.get("alternatives") is not None:
        return _union(form, place, problems)
    return _simple(form, place, problems)


def _union(form: dict[str, Any], place: str, problems: list[Problem]) -> Union | None:
    result = checked(UnionEntry, form)
    if result.value is None:
        problems += (_within(place, problem) for problem in result.problems)
        return None
    place = f"{place}.alternatives"
    if not result.value.alternatives:
        problems.append(Problem(place, "must have at least one entry; it is empty"))
        return None
    read = [
        _simple(one, f"{place}[{at}]", problems) for at, one in enumerate(result.value.alternatives)
    ]
    return Union(tuple(one for one in read if one is not None))


def _simple(form: Any, place: str, problems: list[Problem]) -> ConfigEntry | MappedEntry | None:
    if not isinstance(form, dict):
        problems.append(Problem(place, f"must be an object; it is {shown(form)}"))
        return None
    is_table = form.get("keyType") is not None or form.get("values") is not None
    result = checked(MappedEntry, form) if is_table else checked(ConfigEntry, form)
    problems += (_within(place, problem) for problem in result.problems)
    value = result.value
    return _without_flag(value) if isinstance(value, ConfigEntry) else value


def _within(place: str, problem: Problem) -> Problem:
    return Problem(f"{place}.{problem.field}", problem.problem)


def _without_flag(entry: ConfigEntry) -> ConfigEntry:
    """No flag and no variable sets a task's values."""
    return replace(entry, flag_only=None, env_override=None)
