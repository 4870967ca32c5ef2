"""The tools of the MCP servers of one workspace, for the registry of tools and for `mcp.list`.

A tool has the name `mcp_SERVER_TOOL`. Every call is judged like that of any tool that telex does
not know: it asks, also if the server says that the tool only reads. A server that nobody uses any
more is ended, when no workspace has it and when the runtime ends.
"""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import msgspec

from telex.agent.mcp_client.mcp_supervisor import McpSupervisor
from telex.agent.mcp_client.mcp_tool_list import prefix
from telex.agent.permissions import in_quotes
from telex.agent.tools.tool import AgentTool, ToolContext, ToolResult

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from telex.agent.mcp_client.mcp_supervisor import ConfiguredServer, McpPace, McpSite
    from telex.agent.messages import ToolSpec
    from telex.agent.protocol.sessions import McpServer

_ARGUMENTS: Final = msgspec.json.Decoder(dict[str, Any])


class McpToolSource:
    """The servers of one workspace. The caller closes it."""

    def __init__(self, supervisors: Sequence[McpSupervisor]) -> None:
        self.supervisors = supervisors

    async def specs(self) -> list[ToolSpec]:
        """Return the tools of all servers that run, for a model. Servers are started, and waited
        for up to MCP_LISTED_SECONDS; one that fails has no tools."""
        for supervisor in self.supervisors:
            supervisor.wake()
        await asyncio.gather(*(one.until_listed() for one in self.supervisors))
        return [tool.spec for one in self.supervisors for tool in one.listing.tools.values()]

    def named(self, name: str) -> AgentTool[dict[str, Any]] | None:
        for supervisor in self.supervisors:
            if supervisor.section.enabled and name.startswith(prefix(supervisor.name)):
                return _tool(supervisor, name)
        return None

    def list_servers(self, *, start: bool) -> list[McpServer]:
        """Return the servers with their states: with `start` those that are enabled, which are
        started; else all."""
        for supervisor in self.supervisors if start else ():
            supervisor.wake()
        return [one.describe() for one in self.supervisors if one.section.enabled or not start]

    async def close(self) -> None:
        """End all servers, at the same time."""
        await asyncio.gather(*(supervisor.close() for supervisor in self.supervisors))


def _tool(supervisor: McpSupervisor, name: str) -> AgentTool[dict[str, Any]]:
    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await supervisor.call(name, arguments)

    listed = supervisor.listing.tools.get(name)
    title = name.removeprefix(prefix(supervisor.name)) if listed is None else listed.title
    return AgentTool(
        name,
        "" if listed is None else listed.description,
        {"type": "object"} if listed is None else listed.schema,
        _ARGUMENTS.decode,
        run,
        origin=f"It is {in_quotes(title)} of the MCP server {in_quotes(supervisor.name)}.",
    )


class McpToolSources:
    """The servers of all workspaces of one runtime. Workspaces with the same configuration and the
    same root share them, as long as one of them lives."""

    def __init__(self, pace: McpPace | None = None) -> None:
        self._pace = pace
        self._open: WeakValueDictionary[Hashable, McpToolSource] = WeakValueDictionary()
        self._supervisors: set[McpSupervisor] = set()
        self._ending: set[asyncio.Task[None]] = set()

    def open(
        self, key: Hashable, servers: Sequence[ConfiguredServer], site: McpSite
    ) -> McpToolSource:
        """Return the servers of a workspace. None is started yet."""
        if (known := self._open.get(key)) is not None:
            return known
        supervisors = [McpSupervisor(server, site, self._pace) for server in servers]
        source = self._open[key] = McpToolSource(supervisors)
        self._supervisors.update(supervisors)
        weakref.finalize(
            source, self._abandon, supervisors, asyncio.get_running_loop()
        ).atexit = False
        return source

    def _abandon(
        self, supervisors: Sequence[McpSupervisor], loop: asyncio.AbstractEventLoop
    ) -> None:
        """End the servers of a source that nobody has any more."""
        with suppress(RuntimeError):  # the loop is closed, and the servers were ended before
            loop.call_soon_threadsafe(self._end, supervisors)

    def _end(self, supervisors: Sequence[McpSupervisor]) -> None:
        for supervisor in self._supervisors.intersection(supervisors):
            self._supervisors.discard(supervisor)
            task = asyncio.create_task(supervisor.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End all servers, at the same time."""
        self._end(list(self._supervisors))
        if self._ending:
            await asyncio.gather(*self._ending)
