"""The HTTP door of a server: its token, its addresses, and what the person is told of them."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette

from telex.cli.console import explain
from telex.transports import http
from telex.transports.door import Door, token_from
from telex.transports.listening import listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from telex.rpc.channel import Channel


@asynccontextmanager
async def listening(
    protocols: Mapping[str, Callable[[Channel], Awaitable[None]]],
    at: tuple[str, int],
    allow_remote: bool,
) -> AsyncIterator[None]:
    """Serve each protocol at `/rpc/NAME` until the end of the block. The token is told once."""
    token = token_from(os.environ)
    app = Starlette(routes=http.routes(protocols))
    host, port = at
    async with listen(
        app, door=Door(token), host=host, port=port, allow_remote=allow_remote
    ) as address:
        for name in protocols:
            explain(f"telex: listening at {address.url}/rpc/{name}")
        if os.environ.get("TELEX_TOKEN"):
            explain("telex: the token is in TELEX_TOKEN")
        else:
            explain(f"telex: token {token}", redact=False)
        yield
