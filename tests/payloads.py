"""For tests: any payload that a command of JSON escapes takes, made from its type."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import assume
from hypothesis import strategies as st
from msgspec.inspect import (
    AnyType,
    BoolType,
    BytesType,
    DictType,
    IntType,
    LiteralType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from telex.escapes.commands import COMMANDS
from telex.escapes.protocol import END, NO_CONTROLS

_PLAIN = st.text(
    st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("Ü✓本🙂;:= "), max_size=12
)
_TEXTS = {
    "": st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    "[!-~]+": st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1),
    "[A-Za-z0-9_+.-]{1,64}": st.from_regex(r"\A[A-Za-z0-9_+.-]{1,8}\Z"),
    "[A-Za-z_][A-Za-z0-9_]{0,63}": st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,8}\Z"),
    "[A-Za-z0-9]{1,32}": st.from_regex(r"\A[A-Za-z0-9]{1,8}\Z"),
    r"(?!\.)[^/\\\x00-\x1f\x7f-\x9f]{1,255}": st.sampled_from(["a", "Ü b.txt", "x.."]),
    "event:[a-z]{1,32}": st.sampled_from(["event:key", "event:mouse"]),
    "#[0-9A-Fa-f]{6}": st.from_regex(r"\A#[0-9A-Fa-f]{6}\Z"),
    "(?:default|#[0-9A-Fa-f]{6})": st.just("default") | st.from_regex(r"\A#[0-9A-Fa-f]{6}\Z"),
}


@st.composite
def payloads(draw: st.DrawFn, name: str) -> msgspec.Struct:
    """What the command of this name may be given."""
    data = draw(_of(type_info(COMMANDS[name].payload)))
    if name == "image:show":
        data.setdefault("data64", b"a picture")  # left out only if it comes in parts
    try:
        return msgspec.convert(data, COMMANDS[name].payload)
    except msgspec.ValidationError:
        assume(False)  # a rule between fields that the types do not say
        raise


def lowered_commands(*, levels: tuple[int | None, ...] = (1, 2, None)) -> list[str]:
    """The names of those that are done by ANSI bytes."""
    found = [one for one in COMMANDS.values() if one.lower is not None and one.level in levels]
    return [one.name for one in found if one.name != "term:batch"]


def any_lowered(levels: tuple[int | None, ...]) -> st.SearchStrategy[tuple[str, msgspec.Struct]]:
    """A command that is done by ANSI bytes, and what it is given."""
    names = st.sampled_from(lowered_commands(levels=levels))
    return names.flatmap(lambda name: st.tuples(st.just(name), payloads(name)))


def _of(info: Type) -> st.SearchStrategy[Any]:
    match info:
        case Metadata(type=inner):
            return _of(inner)
        case IntType(ge=least, le=most):
            return st.integers(least, most) | st.integers(max(least or 0, 0), min(most or 9, 9))
        case StrType(pattern=pattern):
            return _text(pattern or "")
        case BoolType():
            return st.booleans()
        case NoneType():
            return st.none()
        case BytesType():
            return st.binary(min_size=1, max_size=9000)
        case LiteralType(values=values):
            return st.sampled_from(values)
        case UnionType(types=types):
            return st.one_of([_of(one) for one in types])
        case VarTupleType(item_type=item):
            return st.lists(_of(item), max_size=4)
        case DictType(key_type=key, value_type=value):
            return st.dictionaries(_of(key), _of(value), max_size=3)
        case StructType(fields=fields):
            return st.fixed_dictionaries(
                {one.name: _of(one.type) for one in fields if one.required},
                optional={one.name: _of(one.type) for one in fields if not one.required},
            )
        case AnyType():
            return st.none()
    raise TypeError(f"{info} is not made here yet")


def _text(pattern: str) -> st.SearchStrategy[str]:
    if pattern == NO_CONTROLS:
        return _PLAIN
    return _TEXTS[pattern.removeprefix("^").removesuffix(END)]
