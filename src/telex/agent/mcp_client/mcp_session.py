"""The start and the end of one session with an MCP server, as values, without the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

    from telex.agent.mcp_client.mcp_log import McpLog
    from telex.agent.mcp_client.mcp_secrets import McpSecrets
    from telex.config.mcp_settings import McpSection


@dataclass(frozen=True, slots=True)
class McpStart:
    """Everything that the start of one server needs."""

    name: str
    section: McpSection
    secrets: McpSecrets
    environment: Mapping[str, str]
    """The environment of the agent, without secrets."""
    cwd: str
    log: McpLog
    auth: httpx2.Auth | None = None
    """The authentication by OAuth, where there is one."""
    can_login: bool = False
    """Whether a login could help if the server refuses a request."""


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ended."""

    why: str
    needs_login: bool = False
