"""Tools of plugins, named `plugin.tool` and created for a call: they are unknown until the plugin
runs.

A plugin is started by the first call that was permitted, not by the question about the call; or by
a run of a language model, which needs the list of tools. So the plugin checks the arguments, and an
unknown tool is a result with `is_error`. The list of tools is requested once per process, and again
when a tool is not in it. The person configures which plugins there are (`agent.plugins`);
`telex.plugins.plugin_tools` makes the calls.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.messages import ToolSpec
from telex.agent.tools.tool import AgentTool, ToolContext, ToolResult
from telex.plugins.plugin_commands import content_text
from telex.plugins.plugin_tools import PluginTools, list_tools
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from telex.plugins.client import RunningPlugin
    from telex.plugins.supervisor import PluginSupervisor, PluginSupervisors

log = logging.getLogger("telex.agent")

_ARGUMENTS: Final = msgspec.json.Decoder(dict[str, Any])


class PluginToolSource:
    """The tools of these plugins. The caller closes the supervisors."""

    def __init__(self, supervisors: PluginSupervisors) -> None:
        # Names of plugins and of tools may contain dots: the longest matching plugin name wins.
        ordered = sorted(supervisors, key=lambda supervisor: len(supervisor.name), reverse=True)
        self._listings = [_Listing(supervisor) for supervisor in ordered]

    async def specs(self) -> list[ToolSpec]:
        """Return the tools of all plugins, for a model. A plugin that fails has none."""
        listed = await asyncio.gather(*(listing.tools() for listing in self._listings))
        for problem in (problem for tools in listed for problem in tools.problems):
            log.warning("the tools of a plugin are missing: %s", problem)
        return [
            ToolSpec(name, found.tool.description or "", _schema(found.tool.input_schema))
            for tools in listed
            for name, found in tools.by_name.items()
        ]

    def named(self, name: str) -> AgentTool[dict[str, Any]] | None:
        for listing in self._listings:
            if name.startswith(f"{listing.supervisor.name}."):
                return _tool(listing, name)
        return None


class _Listing:
    """The tools that the running process of one plugin has listed."""

    def __init__(self, supervisor: PluginSupervisor) -> None:
        self.supervisor = supervisor
        self._listed: PluginTools | None = None
        self._plugin: RunningPlugin | None = None

    async def with_tool(self, name: str) -> PluginTools:
        """Return the list of tools. Request it again if the process has changed, or if it does not
        contain the tool."""
        listed = self._current()
        return listed if listed is not None and name in listed.by_name else await self._list()

    async def tools(self) -> PluginTools:
        """Return the list of tools, requested once per process."""
        return self._current() or await self._list()

    def _current(self) -> PluginTools | None:
        """Return the list of the process that runs now."""
        plugin = self.supervisor.running
        return self._listed if plugin is not None and plugin is self._plugin else None

    async def _list(self) -> PluginTools:
        listed = await list_tools([self.supervisor])
        self._listed, self._plugin = listed, self.supervisor.running
        return listed


def _schema(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"type": "object"}


def _tool(listing: _Listing, name: str) -> AgentTool[dict[str, Any]]:
    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            tools = await listing.with_tool(name)
            if tools.problems:
                return ToolResult("; ".join(tools.problems), is_error=True)
            result = await tools.call(name, arguments)
        except asyncio.CancelledError:
            await _end(listing.supervisor)
            raise
        text = await run_in_thread(lambda _: context.redactor.redact(content_text(result.content)))
        return ToolResult(text, is_error=result.is_error)

    description = f"A tool of the plugin {listing.supervisor.name}."
    return AgentTool(name, description, {"type": "object"}, _ARGUMENTS.decode, run)


async def _end(supervisor: PluginSupervisor) -> None:
    """Kill the plugin: it may ignore a cancel, and nothing may run after a cancel. Other calls of
    the plugin fail. The next call starts it again."""
    if (plugin := supervisor.running) is not None:
        plugin.interrupt()
        await plugin.close()
