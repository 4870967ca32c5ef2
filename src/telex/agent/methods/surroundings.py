"""Skills, MCP servers, the context, and the person's own commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.protocols.agent_ui import sessions

if TYPE_CHECKING:
    from telex.agent.connection import Connection
    from telex.agent.runtime import Runtime


async def mcp_list(
    runtime: Runtime, params: sessions.McpListParams, connection: Connection
) -> sessions.McpListResult:
    """No MCP server can be configured yet, so none is loaded either."""
    return sessions.McpListResult([])


async def skills_list(
    runtime: Runtime, params: sessions.SkillsListParams, connection: Connection
) -> sessions.SkillsListResult:
    return await runtime.surroundings.skills(params.cwd, reload=bool(params.force_reload))


async def context_inspect(
    runtime: Runtime, params: sessions.ContextInspectParams, connection: Connection
) -> sessions.ContextInspectResult:
    return await runtime.surroundings.inspected(params, connection.ui_context)


async def shell_exec(
    runtime: Runtime, params: sessions.ShellExecParams, connection: Connection
) -> sessions.ShellExecResult:
    """The person's own, beside any run: nobody is asked, and a connection that ends ends it."""
    return await runtime.surroundings.exec(params)
