"""Edits of the tables `[mcp.NAME]` in the text of a `config.toml`. Pure.

Everything else in the file stays as it is, to the byte: comments, order and blanks. Each edit is
checked by reading its result, so that a file with an unusual form is refused and not damaged.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from telex.config.errors import WrongValue

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER: Final = re.compile(r"\s*\[(?!\[)\s*(?P<name>[^\]]*)\]")
_ANY_HEADER: Final = re.compile(r"\s*\[")
_BY_HAND: Final = "the file has an unusual form; edit it by hand"


def with_server(text: str, name: str, table: Mapping[str, Any]) -> str:
    """Return the text with a table at its end. Raises `WrongValue` if there is one already."""
    before = tomllib.loads(text)
    servers = before.get("mcp", {})
    if name in servers:
        raise WrongValue(f"there is a table [mcp.{name}] already; remove it first")
    lines = [f"[mcp.{name}]", *(f"{member} = {_toml(value)}" for member, value in table.items())]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    after = text + gap + "\n".join([*lines, ""])
    return _checked(after, {**before, "mcp": {**servers, name: dict(table)}})


def without_server(text: str, name: str) -> str:
    """Return the text without the table and its subtables. Raises `WrongValue` if there is none."""
    before = tomllib.loads(text)
    servers = before.get("mcp", {})
    if name not in servers:
        raise WrongValue(f"there is no table [mcp.{name}]")
    kept: list[str] = []
    held: list[str] = []
    """Comments and blank lines inside the table, which belong to the next one if they end it."""
    inside = False
    for line in text.splitlines(keepends=True):
        if _ANY_HEADER.match(line) and _is_table(line):
            inside = _is_of(line, name)
            kept += [] if inside else held
            held = []
        if not inside:
            kept.append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            held = []
        elif not (line.strip() == "" and not held):
            held.append(line)
    others = {server: table for server, table in servers.items() if server != name}
    expected = {key: value for key, value in before.items() if key != "mcp"}
    if inside and not held:  # the blank lines before a table at the end go with it
        kept = [*"".join(kept).rstrip("\n").splitlines(keepends=True), "\n"] if kept else []
    return _checked("".join([*kept, *held]), {**expected, **({"mcp": others} if others else {})})


def _is_table(line: str) -> bool:
    """Whether the line is a header, and not a line of a list."""
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _is_of(line: str, name: str) -> bool:
    header = _HEADER.match(line)
    words = [] if header is None else [word.strip(" \t\"'") for word in header["name"].split(".")]
    return words[:2] == ["mcp", name]


def _checked(text: str, expected: Mapping[str, Any]) -> str:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise WrongValue(_BY_HAND) from None
    if {key: value for key, value in found.items() if value or key != "mcp"} != expected:
        raise WrongValue(_BY_HAND)
    return text


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            members = (f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items())
            return "{ " + ", ".join(members) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:
            return str(value)
