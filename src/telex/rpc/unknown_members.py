"""Finds members of a message that its type does not know: `timeout` where `timeout_ms` is meant.

msgspec passes over unknown members, so a misspelt option would have no effect and no error. A table
of methods chooses by its `members` what happens instead:

    ignore  nothing: for notifications, whose sender may be newer than we are
    log     served, and logged once: where a spec asks for tolerance
    refuse  an error with the nearest known name: where the protocol is ours
    warn    served, with a sentence in `warnings` of the result

Pure; used by `methods` and by `telex escape`. The types are read once, at their first message.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from telex.rpc import limits
from telex.rpc.nearest import nearest_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from msgspec.inspect import Type

MemberPolicy = Literal["ignore", "log", "refuse", "warn"]

_FOUND: Final = 8
"""The number of unknown members that are reported of one message."""


class UnknownMember(NamedTuple):
    """A member that the type of its object does not have."""

    path: str
    """The object that has it, as msgspec writes it."""
    name: str
    """The name; only the beginning of a long one."""
    nearest: tuple[str, ...]
    known: tuple[str, ...]

    def __str__(self) -> str:
        said = f"unknown member `{self.name}` - at `{self.path}`"
        if self.nearest:
            return f"{said}; did you mean {' or '.join(f'`{name}`' for name in self.nearest)}?"
        return (
            f"{said}; there {'are' if self.known else 'is none'} {', '.join(self.known)}".rstrip()
        )


def unknown_members(value: object, kind: Any) -> tuple[UnknownMember, ...]:
    """Return the members of a decoded JSON value that its type does not know, a few at most."""
    shape = _shape(kind)
    if shape is None or shape.fits(value):
        return ()
    return tuple(islice(shape.unknown(value, "$"), _FOUND))


def _short(name: str) -> str:
    most = limits.MISSPELT_NAME_CHARS
    return name if len(name) <= most else f"{name[:most]}…"


class _Shape(Protocol):
    """The known members of a type. `fits` is quick, and true for nearly all messages."""

    def fits(self, value: Any) -> bool: ...

    def unknown(self, value: Any, path: str) -> Iterator[UnknownMember]: ...


class _Members:
    """The members of an object."""

    def __init__(self, tag_field: str | None) -> None:
        self.known: dict[str, _Shape | None] = {}
        """The names, each with the shape of its value; None if that has no members to check."""
        self._tag_field = tag_field

    def fits(self, value: Any) -> bool:
        if type(value) is not dict:
            return True
        for name, member in value.items():
            if name not in self.known:
                if name != self._tag_field:
                    return False
            elif (shape := self.known[name]) is not None and not shape.fits(member):
                return False
        return True

    def unknown(self, value: Any, path: str) -> Iterator[UnknownMember]:
        names = tuple(self.known)
        for name, member in value.items() if type(value) is dict else ():
            if name in self.known:
                if (shape := self.known[name]) is not None:
                    yield from shape.unknown(member, f"{path}.{name}")
            elif name != self._tag_field:
                yield UnknownMember(path, _short(name), nearest_member(name, names), names)


class _Items:
    """The members of each item of an array, or of each value of a mapping."""

    def __init__(self, item: _Shape) -> None:
        self._item = item

    def fits(self, value: Any) -> bool:
        values = value.values() if type(value) is dict else value if type(value) is list else ()
        return all(map(self._item.fits, values))

    def unknown(self, value: Any, path: str) -> Iterator[UnknownMember]:
        pairs: Any = value.items() if type(value) is dict else enumerate(value)
        for key, item in pairs:
            at = _short(key) if isinstance(key, str) else key
            yield from self._item.unknown(item, f"{path}[{at!r}]")


class _OneOf:
    """The objects of a union, by their tags."""

    def __init__(self, tag_field: str) -> None:
        self._tag_field = tag_field
        self.by_tag: dict[Any, _Shape] = {}

    def _chosen(self, value: Any) -> _Shape | None:
        tag = value.get(self._tag_field) if type(value) is dict else None
        return self.by_tag.get(tag) if isinstance(tag, str | int) else None

    def fits(self, value: Any) -> bool:
        return (chosen := self._chosen(value)) is None or chosen.fits(value)

    def unknown(self, value: Any, path: str) -> Iterator[UnknownMember]:
        if (chosen := self._chosen(value)) is not None:
            yield from chosen.unknown(value, path)


@cache
def _shape(kind: Any) -> _Shape | None:
    from msgspec.inspect import type_info  # loaded when a message is checked, not before

    return _compiled(type_info(kind), {})


def _compiled(info: Type, made: dict[type, _Members]) -> _Shape | None:
    """Return the shape of a type; `made` has the objects so far, as a type may contain itself."""
    from msgspec import inspect

    match info:
        case inspect.StructType(cls=cls, fields=fields, tag_field=tag_field):
            if (members := made.get(cls)) is None:
                members = made[cls] = _Members(tag_field)
                for field in fields:
                    members.known[field.encode_name] = _compiled(field.type, made)
            return members
        case inspect.DictType(value_type=inner) | (
            inspect.ListType(item_type=inner) | inspect.VarTupleType(item_type=inner)
        ):
            item = _compiled(inner, made)
            return None if item is None else _Items(item)
        case inspect.UnionType(types=types):
            return _union(types, made)
    return None


def _union(types: tuple[Type, ...], made: dict[type, _Members]) -> _Shape | None:
    from msgspec.inspect import StructType

    tagged = [one for one in types if isinstance(one, StructType) and one.tag_field]
    if tagged:
        choice = _OneOf(tagged[0].tag_field or "")
        choice.by_tag = {one.tag: shape for one in tagged if (shape := _compiled(one, made))}
        return choice
    shapes = [shape for one in types if (shape := _compiled(one, made)) is not None]
    return shapes[0] if len(shapes) == 1 else None


def nearest_member(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the nearest known names: one that is longer by a unit (`timeout`, `timeout_ms`) or
    shorter (`column`, `col`), then one that is spelt alike, then one with the same part."""
    asked, names = name.lower(), [other for other in known if len(other) > 2]
    longer = [other for other in names if other.startswith(f"{asked}_")]
    shorter = [other for other in names if asked.startswith(other.removesuffix("s"))]
    parts = [other for other in names if asked in other.split("_")]
    return tuple(longer[:1] or shorter[:1] or nearest_names(name, known) or parts[:1])
