"""Checks JSON values against a struct, field by field, and returns all problems at once.

msgspec stops at the first problem, but the author of a manifest wants all of them, with the names
as written. So each field is checked separately, down to single values, which msgspec checks. An
unknown member is a hint, with the most similar known name, and not a problem: it may be for a newer
host. Null means absent. Pure; used by `plugin_manifest` and `task_plan`.
"""

from __future__ import annotations

import json
import types
from dataclasses import dataclass, field
from functools import cache
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from telex.config.errors import kind_in_words
from telex.config.layers import nearest
from telex.config.limits import MANIFEST_ITEMS

S = TypeVar("S", bound=msgspec.Struct)

WHOLE: Final = "(manifest)"
"""Used as the field's name if the problem is in no field."""
_SHOWN: Final = 60
_HINTS: Final = 50
"""Maximum number of hints: the search for a similar name takes time, and more are not read."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem of one field, with the remedy."""

    field: str
    """The field as written: `needs.memory`, `config[2].type`."""
    problem: str

    def __str__(self) -> str:
        return f"`{self.field}` {self.problem}"


@dataclass(frozen=True, slots=True)
class Validated(Generic[S]):
    """The struct, or None with the problems."""

    value: S | None
    problems: tuple[FieldProblem, ...] = ()
    hints: tuple[str, ...] = ()


@dataclass(slots=True)
class _Notes:
    problems: list[FieldProblem] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def add(self, place: str, problem: str) -> None:
        self.problems.append(FieldProblem(place or WHOLE, problem))


def validate(kind: type[S], document: object) -> Validated[S]:
    """Convert a document to a struct, with all problems and hints."""
    notes = _Notes()
    known = _of_struct(kind, document, "", notes)
    problems, hints = tuple(notes.problems), tuple(notes.hints)
    return Validated(None if problems else msgspec.convert(known, kind), problems, hints)


def describe_value(value: object) -> str:
    """Return a value for a message: as written, or its kind if that is long."""
    if isinstance(value, (str, bool, int, float)):
        text = json.dumps(value, ensure_ascii=False)
        if len(text) <= _SHOWN and text.isprintable():
            return text
    return kind_in_words(value)


def _of_struct(kind: type[msgspec.Struct], value: object, place: str, notes: _Notes) -> object:
    if not isinstance(value, dict):
        notes.add(place, f"must be an object; it is {describe_value(value)}")
        return value
    fields = _fields(kind)
    known: dict[str, object] = {}
    for name, (its_type, required) in fields.items():
        given, where = value.get(name), f"{place}.{name}" if place else name
        if given is not None:
            known[name] = _of_type(its_type, given, where, notes)
        elif required:
            notes.add(where, "is missing")
    for name in [name for name in value if name not in fields][: _HINTS - len(notes.hints)]:
        where = f"{place}.{name}" if place else name
        near = nearest(name, fields)
        meant = f"; did you mean {near}?" if near else ", and is ignored"
        spelt = where if len(where) <= _SHOWN and where.isprintable() else ascii(where[:_SHOWN])
        notes.hints.append(f"`{spelt}` is not known{meant}")
    return known


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field and whether it is required, by the name on the wire."""
    types = get_type_hints(kind, include_extras=True)
    fields = msgspec.structs.fields(kind)
    return {one.encode_name: (types[one.name], one.required) for one in fields}


def _of_type(kind: Any, value: object, place: str, notes: _Notes) -> object:
    """Return the value without unknown members, and note problems."""
    if get_origin(kind) in (Union, types.UnionType):
        options = [option for option in get_args(kind) if option is not type(None)]
        if len(options) == 1:
            return _of_type(options[0], value, place, notes)
    if get_origin(kind) is list:
        return _of_list(get_args(kind)[0], value, place, notes)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _of_struct(kind, value, place, notes)
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        notes.add(place, f"must be {_in_words(kind)}; it is {describe_value(value)}")
    return value


def _of_list(kind: Any, value: object, place: str, notes: _Notes) -> object:
    if not isinstance(value, list):
        notes.add(place, f"must be a list; it is {describe_value(value)}")
        return value
    if len(value) > MANIFEST_ITEMS:
        notes.add(place, f"has {len(value)} items; {MANIFEST_ITEMS} are allowed")
        return value
    return [_of_type(kind, its, f"{place}[{at}]", notes) for at, its in enumerate(value)]


def _in_words(kind: Any) -> str:
    if hasattr(kind, "__metadata__"):
        bare, meta = kind.__origin__, kind.__metadata__[0]
        if meta.pattern is not None:
            return "1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first"
        return f"{_in_words(bare)} of at least {meta.ge}"
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    return {str: "text", bool: "true or false", int: "a whole number"}.get(kind, "an object")
