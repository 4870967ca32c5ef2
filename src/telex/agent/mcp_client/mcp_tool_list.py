"""The tools of an MCP server as a model sees them: names, descriptions and schemas, checked. Pure.

A server may list anything. A tool without a usable name is left out. A schema that is too large,
too deep, not valid or that providers of models refuse is loosened, because one bad schema would
make a provider refuse every tool of the run. The server checks the arguments itself.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.limits import (
    MCP_DESCRIPTION_CHARS,
    MCP_LIST_BYTES,
    MCP_SCHEMA_BYTES,
    MCP_SCHEMA_DEPTH,
    MCP_SCHEMA_ITEMS,
    MCP_SCHEMA_ODD_ITEMS,
    MCP_TOOLS,
)
from telex.agent.messages import ToolSpec
from telex.agent.permissions import in_quotes

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Mapping

PREFIX: Final = "mcp_"
_NAME_CHARS: Final = 64
"""The longest name of a tool that model APIs accept."""
_HASH_CHARS: Final = 8
_ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
_NOT_AT_THE_TOP: Final = ("oneOf", "anyOf", "allOf", "not", "enum", "if", "then", "else")
"""Keywords that a provider refuses at the top of a schema."""
_LONGEST_TITLE: Final = 1000
_ORDERED: Final = ((str,), (int, float))


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of a server."""

    name: str
    """Its name for models and rules: `mcp_SERVER_TOOL`."""
    title: str
    """Its name at the server."""
    description: str
    schema: Mapping[str, Any]

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, dict(self.schema))


@dataclass(frozen=True, slots=True)
class McpListing:
    """The tools of one server by name, and sentences about those that are not as it listed them."""

    tools: Mapping[str, McpTool] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    size: int = 0
    """The bytes of all descriptions and schemas."""
    is_full: bool = False
    """Whether tools were left out because there were too many, or they were too large."""


def prefix(server: str) -> str:
    """Return the beginning of the names of all tools of a server. The name of a server has no `_`,
    so no two servers share it."""
    return f"{PREFIX}{server}_"


def tool_name(server: str, title: str) -> str:
    """Return the name of a tool as model APIs accept it. A title that is changed or cut gets a hash
    of the whole title, so that two of them do not become one name."""
    whole = prefix(server) + title
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    if plain == whole and len(plain) <= _NAME_CHARS:
        return plain
    mark = hashlib.sha256(title.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{plain[: _NAME_CHARS - _HASH_CHARS - 1]}_{mark}"


def read_listing(
    server: str,
    listed: Iterable[tuple[str, str, Any]],
    unwanted: threading.Event | None = None,
    before: McpListing | None = None,
) -> McpListing:
    """Return the tools of a page of titles, descriptions and schemas, after those of the pages
    `before`. Blocks; ends early once `unwanted` is set."""
    before = before or McpListing()
    tools, problems, size = dict(before.tools), list(before.problems), before.size
    is_full = before.is_full
    for title, description, schema in listed:
        if is_full or (unwanted is not None and unwanted.is_set()):
            break
        if not title or len(title) > _LONGEST_TITLE:
            problems.append("a tool without a usable name is left out")
            continue
        name = tool_name(server, title)
        if name in tools:
            problems.append(f"{in_quotes(title)} is listed twice; the first one counts")
            continue
        checked, why = checked_schema(schema)
        tool = McpTool(name, title, description[:MCP_DESCRIPTION_CHARS], checked)
        size += len(tool.description.encode(errors="replace")) + len(msgspec.json.encode(checked))
        if len(tools) == MCP_TOOLS or size > MCP_LIST_BYTES:
            most = f"{MCP_TOOLS} tools, or {MCP_LIST_BYTES} bytes of them"
            problems.append(f"it has more than {most}; the rest is left out")
            is_full = True
            break
        if why:
            problems.append(f"the schema of {in_quotes(title)} {why}")
        tools[name] = tool
    return McpListing(tools, tuple(problems), size, is_full)


def checked_schema(schema: Any) -> tuple[Mapping[str, Any], str]:
    """Return the schema, or a looser one and the reason."""
    if not isinstance(schema, dict):
        return _ANY_OBJECT, "is not an object, so any arguments are offered"
    if _is_deep(schema):
        return _ANY_OBJECT, f"has more than {MCP_SCHEMA_DEPTH} levels, so any arguments are offered"
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError, OverflowError):
        return _ANY_OBJECT, "cannot be sent to a model, so any arguments are offered"
    if size > MCP_SCHEMA_BYTES:
        return _ANY_OBJECT, f"has {size} bytes, so any arguments are offered"
    if schema.get("type", "object") != "object":
        return _ANY_OBJECT, "is not that of an object, so any arguments are offered"
    if any(map(_is_slow, _values(schema))):
        return _ANY_OBJECT, "has a list of too many elements, so any arguments are offered"
    if any(map(_is_remote, _references(schema))):
        return _ANY_OBJECT, "refers to another document, so any arguments are offered"
    if not _is_schema(schema):
        return _ANY_OBJECT, "is not a JSON Schema, so any arguments are offered"
    kept = {name: value for name, value in schema.items() if name not in _NOT_AT_THE_TOP}
    why = "" if len(kept) == len(schema) else "has alternatives at its top, which are left out"
    return {**kept, "type": "object"}, why


def _is_deep(schema: Any) -> bool:
    level: list[Any] = [schema]
    for _ in range(MCP_SCHEMA_DEPTH):
        level = [inner for value in level for inner in _children(value)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            yield from value.values()
        case list():
            yield from value


def _values(schema: Any) -> Iterator[Any]:
    """Return the schema and everything in it."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        yield value
        waiting += _children(value)


def _references(schema: Any) -> Iterator[Any]:
    for value in _values(schema):
        if isinstance(value, dict):
            yield from (value[key] for key in ("$ref", "$dynamicRef") if key in value)


def _is_slow(value: Any) -> bool:
    """Whether the value is a list that the check of a schema takes long for: without an order of
    the elements its time grows with the square of their number."""
    if not isinstance(value, list) or len(value) <= MCP_SCHEMA_ODD_ITEMS:
        return False
    is_ordered = any(all(type(one) in kind for one in value) for kind in _ORDERED)
    return not is_ordered or len(value) > MCP_SCHEMA_ITEMS


def _is_remote(reference: Any) -> bool:
    return not (isinstance(reference, str) and reference.startswith("#"))


def _is_schema(schema: dict[str, Any]) -> bool:
    """Whether the meta-schema accepts it: that of 2020-12, which MCP prescribes, and not one that
    the server names. The SDK brings the library that checks it."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return False
    return True
