"""Streams of the SDK, around those of a transport, which make answers readable and bounded.

The SDK refuses a whole page if one tool in it does not match the protocol. So each tool is reduced
to its name, its description and its schema before the SDK reads it, and a tool that has no name is
left out. `mcp_tool_list` checks the rest. The SDK also checks every member of every answer on the
event loop, so an answer with a million of them would stop everything else: a result of a call is
cut to MCP_BLOCKS blocks, and the lists and objects of other answers to `_MEMBERS`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from telex.agent.limits import MCP_BLOCKS, MCP_DESCRIPTION_CHARS, MCP_TOOLS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from mcp.shared.message import SessionMessage

_LIST: Final = "tools/list"
_CALL: Final = "tools/call"
_OF_RESULTS: Final = ("structuredContent", "isError", "resultType")
_OF_BLOCKS: Final = ("type", "text", "data", "mimeType", "uri", "name", "description", "resource")
"""The members that `mcp_result` reads, and no others."""
_OF_RESOURCES: Final = ("uri", "mimeType", "text", "blob")
_TOOLS: Final = 4 * MCP_TOOLS
"""Tools of one page that are looked at; some of them are left out."""
_DESCRIPTION_CHARS: Final = 2 * MCP_DESCRIPTION_CHARS
"""More than a tool keeps, so that no secret is cut before it is hidden."""
_MEMBERS: Final = 100
"""Members of one list or object of another answer: those about the server have a few."""
_LEVELS: Final = 8
_ANY_OBJECT: Final = {"type": "object"}


@asynccontextmanager
async def with_readable_answers(
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
) -> AsyncIterator[tuple[_Reading, _Writing]]:
    """Give the SDK the two streams of a transport, with answers that it can read."""
    async with streams as (reading, writing):
        asked: dict[Any, str] = {}
        yield _Reading(reading, asked), _Writing(writing, asked)


class _Wrapped:
    """One stream of a transport, and the methods of the unanswered requests by id."""

    def __init__(self, stream: Any, asked: dict[Any, str]) -> None:
        self._stream = stream
        self._asked = asked

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)


class _Writing(_Wrapped):
    """Messages to the server."""

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._asked[message.id] = message.method
        await self._stream.send(item)


class _Reading(_Wrapped):
    """Messages of the server."""

    @property
    def last_context(self) -> Any:
        """The context variables of the sender, where the transport keeps them."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return self._readable(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self._readable(await anext(self._stream))

    def _readable(self, item: Any) -> Any:
        message = getattr(item, "message", None)
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            method = self._asked.pop(message.id, "")
            if isinstance(message, JSONRPCResponse):
                message.result = readable_answer(method, message.result)
        return item


def readable_answer(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request as the SDK can read it, in a short time. Pure."""
    if method == _LIST:
        return _readable_list(result)
    if method == _CALL:
        return _readable_result(result)
    return dict(_bounded(result, _LEVELS))


def _bounded(value: Any, levels: int) -> Any:
    match value:
        case dict() if levels:
            members = islice(value.items(), _MEMBERS)
            return {name: _bounded(inner, levels - 1) for name, inner in members}
        case list() if levels:
            return [_bounded(inner, levels - 1) for inner in value[:_MEMBERS]]
        case _:
            return value


def _readable_result(result: dict[str, Any]) -> dict[str, Any]:
    kept = _members(result, _OF_RESULTS)
    content = result.get("content")
    if not isinstance(content, list):
        return {**kept, "content": content} if "content" in result else kept
    blocks = [_block(one) for one in content[:MCP_BLOCKS] if isinstance(one, dict)]
    if left := len(content) - len(blocks):
        blocks.append({"type": "text", "text": f"[{left} more blocks are left out]"})
    return {**kept, "content": blocks}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    kept = _members(block, _OF_BLOCKS)
    if isinstance(resource := kept.get("resource"), dict):
        kept["resource"] = _members(resource, _OF_RESOURCES)
    return kept


def _members(value: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value[name] for name in names if name in value}


def _readable_list(result: dict[str, Any]) -> dict[str, Any]:
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result
    kept = [_plain(tool) for tool in tools[:_TOOLS] if _is_named(tool)]
    others = {name: value for name, value in result.items() if name != "tools"}
    return {**_bounded(others, _LEVELS), "tools": kept}


def _is_named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _plain(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    readable = schema if isinstance(schema, dict) and _is_readable(schema) else _ANY_OBJECT
    kept = {"name": tool["name"], "inputSchema": {**readable, "type": "object"}}
    description = tool.get("description")
    if isinstance(description, str):
        kept["description"] = description[:_DESCRIPTION_CHARS]
    return kept


def _is_readable(schema: dict[str, Any]) -> bool:
    """Whether the SDK reads the schema: of these members it knows the types."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        schema.get("type", "object") == "object"
        and isinstance(properties, dict)
        and all(isinstance(value, dict) for value in properties.values())
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
    )
