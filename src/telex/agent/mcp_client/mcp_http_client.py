"""The HTTP client of one MCP server: its headers and tokens, and a bound for each answer.

The SDK follows a redirect only within the server's origin, so headers and tokens go nowhere else.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from telex.agent.limits import MCP_UNASKED_BYTES
from telex.wire.limits import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

_CONNECT_SECONDS: Final = 10.0
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404


class McpHttp:
    """The HTTP conversation with one server."""

    def __init__(self, url: str, on_forgotten: Callable[[], None]) -> None:
        """`on_forgotten` is called when the server does not know the session any more, as after its
        restart: the client must begin another one."""
        self.url = url
        self._on_forgotten = on_forgotten
        self.is_unauthorized = False
        """Whether the server refused the last request for lack of a valid token."""

    @asynccontextmanager
    async def streams(
        self, headers: Mapping[str, str], auth: httpx2.Auth | None, seconds: float
    ) -> AsyncIterator[tuple[Any, Any]]:
        """Give the SDK its two streams. `seconds`: how long an answer may pause."""
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=seconds)
        hooks: dict[str, list[Callable[..., Any]]] = {
            "request": [_without_pause_limit],
            "response": [self._received],
        }
        async with (
            httpx2.AsyncClient(
                headers={"accept-encoding": "identity", **headers},
                auth=auth,
                timeout=timeout,
                event_hooks=hooks,
            ) as client,
            streamable_http_client(
                self.url, http_client=client, max_sse_event_size=LINE_BYTES
            ) as streams,
        ):
            yield streams

    async def _received(self, response: httpx2.Response) -> None:
        if response.request.url.copy_with(query=None) == httpx2.URL(self.url).copy_with(query=None):
            self.is_unauthorized = response.status_code == _UNAUTHORIZED
            if response.status_code == _NOT_FOUND and MCP_SESSION_ID in response.request.headers:
                self._on_forgotten()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.StreamError(
                "the server compresses its answers, which telex did not ask for"
            )
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream)


async def _without_pause_limit(request: httpx2.Request) -> None:
    """Let the stream of changes be silent for as long as nothing changes. The SDK would open it a
    few times more, and then no longer hear of changes."""
    method = request.headers.get("mcp-method")
    if request.method == "GET" or method == "subscriptions/listen":
        request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": None}


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that ends with an error when it is too long."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MCP_UNASKED_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.StreamError("the server sends without an end")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
