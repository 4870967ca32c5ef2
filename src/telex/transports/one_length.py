"""HTTP/1.1 messages that say their length twice are refused, in both directions.

A message with both Content-Length and Transfer-Encoding has two ends, and whoever stands between
the two sides may take the other one: what is behind it is then a request that nobody checked (RFC
9112 §6.3, §11.2). h11 takes the second and is silent, which the RFC allows; we do not. Several
lengths that differ, and codings other than `chunked`, h11 refuses by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import h11
import httpx

if TYPE_CHECKING:
    from collections.abc import Iterable

_TWO: Final = "it has both Content-Length and Transfer-Encoding"


class OneLengthConnection(h11.Connection):
    """A server's connection."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Raises RemoteProtocolError, as for any other request that is none."""
        event = super().next_event()
        if isinstance(event, h11.Request) and (why := _fault(event.headers, event.http_version)):
            raise h11.RemoteProtocolError(why)
        return event


class OneLengthTransport(httpx.AsyncHTTPTransport):
    """A client's connections."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises `httpx.RemoteProtocolError`, as for any other response that is none."""
        response = await super().handle_async_request(request)
        if why := _fault([(name.lower(), value) for name, value in response.headers.raw]):
            await response.aclose()
            raise httpx.RemoteProtocolError(f"the response has no clear end: {why}")
        return response


def _fault(headers: Iterable[tuple[bytes, bytes]], version: bytes = b"1.1") -> str:
    """Why such a message has no clear end; empty if it has one."""
    names = {name for name, _ in headers}
    if b"transfer-encoding" not in names:
        return ""
    if b"content-length" in names:
        return _TWO
    return "HTTP/1.0 knows no Transfer-Encoding" if version < b"1.1" else ""
