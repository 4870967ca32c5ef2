"""The agent behind the one server: by its unix socket, and by its HTTP origin."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette

from agent.ui_side import an_agent
from telex.redaction import Redactor
from telex.server.telex_server import ServerOptions, TelexServer
from telex.transports import unix, websocket
from telex.transports.auth import Authenticator
from telex.transports.http import routes
from telex.transports.web_server import listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent.ui_side import Agent
    from telex.rpc.channel import Channel

TOKEN = "a-token-of-forty-characters-or-more-0123456789"


@asynccontextmanager
async def an_agent_by(
    transport: str, directory: Path, *cores: Any, **options: Any
) -> AsyncIterator[Agent]:
    """An agent whose UIs connect by this transport."""
    async with AsyncExitStack() as stack:
        agent = await stack.enter_async_context(an_agent(directory, *cores, **options))
        if transport != "memory":
            server = TelexServer(ServerOptions(), Redactor(), lambda: _lent(agent), lambda: None)
            stack.push_async_callback(server.close)
            listening = _on_socket if transport == "socket" else _on_http
            agent.dial = await stack.enter_async_context(listening(server, directory))
            stack.push_async_callback(agent.close)
        yield agent


@asynccontextmanager
async def _lent(agent: Agent) -> AsyncIterator[Any]:
    yield agent.server


@asynccontextmanager
async def _on_socket(
    server: TelexServer, directory: Path
) -> AsyncIterator[Callable[[], Awaitable[Channel]]]:
    tasks: set[asyncio.Task[None]] = set()

    def accept(channel: Any) -> None:
        tasks.add(asyncio.create_task(server.converse_on_socket(channel)))

    async with unix.listen(directory / "telex.sock", accept):
        yield lambda: unix.connect(directory / "telex.sock")
    await asyncio.gather(*tasks)


@asynccontextmanager
async def _on_http(
    server: TelexServer, directory: Path
) -> AsyncIterator[Callable[[], Awaitable[Channel]]]:
    app = Starlette(routes=routes(server.on_http()))
    async with listen(app, auth=Authenticator(TOKEN)) as address:
        yield lambda: websocket.connect(f"{address.websocket_url}/rpc/agent", TOKEN)
