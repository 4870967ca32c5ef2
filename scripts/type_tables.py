"""The tables of the reference pages: a struct's fields, with types, defaults and words.

Types, defaults and maxima are the struct's own; the words beside a field are its docstring there.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT
from msgspec.inspect import (
    AnyType,
    BoolType,
    BytesType,
    DataclassType,
    DictType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    Metadata,
    NoneType,
    RawType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

_PATTERNS: Final = {None: "", r"^[^\x00]*$": " without NUL", r"^[^\x00=]+$": " without NUL and ="}


@dataclass(frozen=True)
class Tables:
    """How one page tells its types."""

    common: Mapping[str, str] = field(default_factory=dict)
    """Words for fields that several have."""
    unions: Mapping[frozenset[type], str] = field(default_factory=dict)
    """What to say instead of a long list of structs."""
    inline: bool = False
    """Structs are described where they are used, except those of `shapes`; texts by their words."""
    shapes: tuple[type, ...] = ()

    def fields(self, kind: type, *, asked: bool = False) -> str:
        info = type_info(kind)
        assert isinstance(info, StructType | DataclassType)
        words = {**self.common, **_words(kind)}
        head = "| field | type | default | |\n|---|---|---|---|\n"
        tagged = isinstance(info, StructType) and info.tag_field
        tag = f"| `{info.tag_field}` | `{json.dumps(info.tag)}` |" if tagged else ""
        rows = [f"{tag}{' required |' if asked else ''}  |\n"] if tag else []
        rows += [
            f"| `{one.encode_name}` | {cell(self.type(one.type))} |"
            + (f" {_default(one)} |" if asked else "")
            + f" {cell(words.get(one.name, '') + ('' if asked else _if_asked(one)))} |\n"
            for one in info.fields
        ]
        return (head if asked else "| field | type | |\n|---|---|---|\n") + "".join(rows)

    def told(self, kind: type, *, asked: bool = False) -> str:
        """What it is, and its fields."""
        return f"{inspect.cleandoc(kind.__doc__ or '')}\n\n{self.fields(kind, asked=asked)}"

    def type(self, info: Type) -> str:
        match info:
            case Metadata(type=StrType(), extra_json_schema={"description": text}) if self.inline:
                return begin_small(text).rstrip(".")
            case Metadata():
                return self.type(info.type)
            case BytesType():
                return f"base64, of up to {info.max_length:,} bytes"
            case IntType():
                return f"integer{_span(info.ge, info.le)}"
            case StrType():
                longest = _span(info.min_length, info.max_length)
                return f"text{longest and f'{longest} characters'}{_PATTERNS.get(info.pattern, '')}"
            case BoolType():
                return "true or false"
            case FloatType():
                return "number"
            case NoneType():
                return "null"
            case AnyType() | RawType():
                return "anything"
            case LiteralType():
                numbers = [value for value in info.values if isinstance(value, int)]
                if len(numbers) > 4:
                    return ", ".join(_runs(numbers))
                return " or ".join(f"`{json.dumps(value)}`" for value in info.values)
            case ListType() | VarTupleType():
                return (
                    f"list of {self.type(info.item_type)}{_span(info.min_length, info.max_length)}"
                )
            case DictType() if not self.inline:
                return f"object of {self.type(info.value_type)}"
            case DictType():
                return f"object of {self.type(info.value_type)} by {self.type(info.key_type)}"
            case StructType() if self.inline and info.cls not in self.shapes:
                return "object"
            case StructType() | DataclassType():
                return f"[{info.cls.__name__}](#{info.cls.__name__.lower()})"
            case UnionType():
                members = frozenset(one.cls for one in info.types if isinstance(one, StructType))
                return self.unions.get(members) or " or ".join(self.type(one) for one in info.types)
            case _:
                raise TypeError(f"{info} has no words here yet")


def gather(info: Any, found: dict[type, None], *, top: bool = False) -> None:
    """Every struct that a type names, in order."""
    match info:
        case StructType() | DataclassType():
            if info.cls in found:
                return
            if not top:
                found[info.cls] = None
            for one in info.fields:
                gather(one.type, found)
        case UnionType():
            for one in info.types:
                gather(one, found)
        case ListType() | VarTupleType():
            gather(info.item_type, found)
        case DictType():
            gather(info.value_type, found)
        case Metadata():
            gather(info.type, found)


def begin_small(words: str) -> str:
    """Begin with a small letter, except for a name that begins with two capitals."""
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


def _runs(numbers: list[int]) -> list[str]:
    """Describe 30, 31, 32, 90 as `30 to 32` and `90`."""
    firsts = [n for n in numbers if n - 1 not in numbers]
    lasts = [n for n in numbers if n + 1 not in numbers]
    return [f"{a} to {b}" if a < b else str(a) for a, b in zip(firsts, lasts, strict=True)]


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _words(kind: type) -> dict[str, str]:
    """The docstrings of a class's fields: Python keeps none, so they are read from the source."""
    source = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(source, ast.ClassDef)
    return {
        one.target.id: inspect.cleandoc(said.value.value)
        for one, said in itertools.pairwise(source.body)
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and isinstance(said, ast.Expr)
        and isinstance(said.value, ast.Constant)
        and isinstance(said.value.value, str)
    }


def _if_asked(one: msgspec.inspect.Field) -> str:
    """What is left out where it was not asked for has no default, and yet is not required."""
    return " Only if asked for." if _may_be_out(one) else ""


def _may_be_out(one: msgspec.inspect.Field) -> bool:
    return not one.required and one.default is NODEFAULT and one.default_factory is NODEFAULT


def _default(one: msgspec.inspect.Field) -> str:
    if one.required:
        return "required"
    if _may_be_out(one):
        return ""
    default = one.default if one.default is not NODEFAULT else one.default_factory()
    return "" if default in (None, b"", msgspec.UNSET) else f"`{json.dumps(default)}`"


def _span(least: int | None, most: int | None) -> str:
    match least, most:
        case None, None:
            return ""
        case _, None:
            return f" from {least:,}"
        case _:
            return f", {least or 0:,} to {most:,}"
