"""A login at an MCP server, and a first look at its tools, for `telex agent mcp`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.limits import MCP_LOGIN_SECONDS
from telex.agent.mcp_client.mcp_connection import McpConnection
from telex.agent.mcp_client.mcp_log import McpLog, log_file
from telex.agent.mcp_client.mcp_oauth import browser_login
from telex.agent.mcp_client.mcp_secrets import read_secrets
from telex.agent.mcp_client.mcp_session import McpStart
from telex.agent.mcp_client.mcp_token_file import McpTokenFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.mcp_client.mcp_supervisor import ConfiguredServer, McpSite
    from telex.agent.mcp_client.mcp_tool_list import McpListing


class LoginFailed(Exception):
    """The login at an MCP server did not succeed; the message says why."""


async def log_in(
    server: ConfiguredServer, site: McpSite, show: Callable[[str], None]
) -> McpListing:
    """Log in at a server, store its tokens, and return its tools. `show` gets the address that the
    person opens. Raises `LoginFailed`, `SecretMissing` and `ConfigError`."""
    name = server.name
    section = msgspec.structs.replace(server.section, start_seconds=float(MCP_LOGIN_SECONDS))
    secrets = await read_secrets(name, section, site.environ, site.redactor)
    log = McpLog(log_file(site.logs, name))
    listed: asyncio.Future[McpListing] = asyncio.get_running_loop().create_future()

    def on_listed(listing: McpListing) -> None:
        if not listed.done():
            listed.set_result(listing)

    try:
        async with browser_login(McpTokenFile(site.tokens), name, section.url, show) as auth:
            start = McpStart(name, section, secrets, {}, site.root, log, auth)
            session = asyncio.create_task(McpConnection(start).run(on_listed, lambda: None))
            try:
                ends: set[asyncio.Future[Any]] = {session, listed}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if not listed.done():
                    raise LoginFailed(session.result().why)
                return listed.result()
            finally:
                session.cancel()
                await asyncio.wait({session})
    finally:
        listed.cancel()
        log.close()
