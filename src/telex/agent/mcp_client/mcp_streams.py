"""Streams of the SDK, around those of a transport, which make lists of tools readable.

The SDK refuses a whole page if one tool in it does not match the protocol. So each tool is reduced
to its name, its description and its schema before the SDK reads it, and a tool that has no name is
left out. `mcp_tool_list` checks the rest.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from mcp.shared.message import SessionMessage

_LIST: Final = "tools/list"
_ANY_OBJECT: Final = {"type": "object"}


@asynccontextmanager
async def with_readable_lists(
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
) -> AsyncIterator[tuple[_Reading, _Writing]]:
    """Give the SDK the two streams of a transport, with lists of tools that it can read."""
    async with streams as (reading, writing):
        asked: set[Any] = set()
        yield _Reading(reading, asked), _Writing(writing, asked)


class _Wrapped:
    """One stream of a transport, and the ids of the requests for lists."""

    def __init__(self, stream: Any, asked: set[Any]) -> None:
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
        if isinstance(message, JSONRPCRequest) and message.method == _LIST:
            self._asked.add(message.id)
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
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id in self._asked:
            self._asked.discard(message.id)
            if isinstance(message, JSONRPCResponse):
                message.result = readable_list(message.result)
        return item


def readable_list(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of `tools/list` with tools that the SDK can read. Pure."""
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result
    return {**result, "tools": [_plain(tool) for tool in tools if _is_named(tool)]}


def _is_named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _plain(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    readable = schema if isinstance(schema, dict) and _is_readable(schema) else _ANY_OBJECT
    kept = {"name": tool["name"], "inputSchema": {**readable, "type": "object"}}
    description = tool.get("description")
    return {**kept, "description": description} if isinstance(description, str) else kept


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
