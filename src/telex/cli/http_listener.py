"""The HTTP listener of a server: its token, its addresses, and the lines that announce them."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response

from telex.cli.console import explain
from telex.transports import http
from telex.transports.auth import Authenticator, named_tokens, token_from
from telex.transports.responses import ErrorPage, refuse
from telex.transports.web_server import listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send


_ADVICE: Final = (
    "This address is for programs; it has no page. A program sends the token that was printed when "
    "this server started: `TELEX_TOKEN=… telex call --to URL session.list`"
)


@asynccontextmanager
async def serve_http(
    protocols: Mapping[str, http.Serve | http.SessionProtocol | http.HttpProtocol],
    at: tuple[str, int],
    allow_remote: bool,
) -> AsyncIterator[None]:
    """Serve each protocol at `/rpc/NAME`, or at its own path, until the block ends. A random token
    is printed once."""
    token = token_from(os.environ)
    app = Starlette(
        routes=http.routes(protocols),
        exception_handlers={404: _nothing_there, 405: _not_so},
    )
    host, port = at
    async with listen(
        app,
        auth=Authenticator(token, more_tokens=named_tokens(os.environ)),
        host=host,
        port=port,
        allow_remote=allow_remote,
        advice=lambda reason: _ADVICE,
    ) as address:
        for name, one in protocols.items():
            path = f"/rpc/{name}"
            if isinstance(one, http.SessionProtocol):
                path += "/SESSION"
            elif isinstance(one, http.HttpProtocol):
                path = one.path
            explain(f"telex: listening at {address.url}{path}")
        if os.environ.get("TELEX_TOKEN"):
            explain("telex: the token is in TELEX_TOKEN")
        else:
            explain(f"telex: token {token}", redact=False)
        yield


class _Refusing(Response):
    """A response made by `refuse`."""

    def __init__(self, status: int, reason: str, sentence: str, allow: str = "") -> None:
        super().__init__(status_code=status)
        self._told = reason, sentence
        self._allow = [(b"allow", allow.encode())] if allow else []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason, sentence = self._told
        page = ErrorPage(sentence, _ADVICE)
        await refuse(scope, send, self.status_code, reason, sentence, page, self._allow)


def _nothing_there(request: Request, error: Exception) -> Response:
    return _Refusing(404, "path", "Nothing is served at this path.")


def _not_so(request: Request, error: Exception) -> Response:
    headers = error.headers if isinstance(error, HTTPException) else None
    allow = (headers or {}).get("Allow", "")
    return _Refusing(405, "method", "Send messages by POST or over a WebSocket.", allow)
