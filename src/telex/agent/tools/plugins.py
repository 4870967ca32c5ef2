"""Tools of plugins, by `plugin.tool`: made for a call, since nobody knows them before one runs.

A plugin is started by the first call that was permitted, not by the question whether it may be
made. So what a tool takes is the plugin's to check, and one that is not there is an answer. Its
list of tools is asked for once in the life of its process, and again when a tool is not in it.
Which plugins there are is for the person to say; `telex.plugins.plugin_tools` does the calling.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.tools.tool import AgentTool, ToolContext, ToolResult
from telex.plugins.plugin_commands import content_text
from telex.plugins.plugin_tools import PluginTools, list_tools
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from telex.plugins.client import RunningPlugin
    from telex.plugins.supervisor import PluginSupervisor, PluginSupervisors

_ARGUMENTS: Final = msgspec.json.Decoder(dict[str, Any])


class PluginToolSource:
    """The tools of these plugins. Whoever made the supervisors closes them."""

    def __init__(self, supervisors: PluginSupervisors) -> None:
        # Names may have dots, and so may those of tools: the longest that fits is meant.
        ordered = sorted(supervisors, key=lambda supervisor: len(supervisor.name), reverse=True)
        self._listings = [_Listing(supervisor) for supervisor in ordered]

    def named(self, name: str) -> AgentTool[dict[str, Any]] | None:
        for listing in self._listings:
            if name.startswith(f"{listing.supervisor.name}."):
                return _tool(listing, name)
        return None


class _Listing:
    """The tools of one plugin, as its running process listed them."""

    def __init__(self, supervisor: PluginSupervisor) -> None:
        self.supervisor = supervisor
        self._listed: PluginTools | None = None
        self._plugin: RunningPlugin | None = None

    async def with_tool(self, name: str) -> PluginTools:
        """Listed again where the process is another one, or the tool is not there."""
        plugin, listed = self.supervisor.running, self._listed
        is_current = plugin is not None and plugin is self._plugin
        if listed is not None and is_current and name in listed.by_name:
            return listed
        listed = await list_tools([self.supervisor])
        self._listed, self._plugin = listed, self.supervisor.running
        return listed


def _tool(listing: _Listing, name: str) -> AgentTool[dict[str, Any]]:
    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            there = await listing.with_tool(name)
            if there.problems:
                return ToolResult("; ".join(there.problems), is_error=True)
            result = await there.call(name, arguments)
        except asyncio.CancelledError:
            await _end(listing.supervisor)
            raise
        text = await run_in_thread(lambda _: context.redactor.redact(content_text(result.content)))
        return ToolResult(text, is_error=result.is_error)

    described = f"A tool of the plugin {listing.supervisor.name}."
    return AgentTool(name, described, {"type": "object"}, _ARGUMENTS.decode, run)


async def _end(supervisor: PluginSupervisor) -> None:
    """A plugin that was told to cancel may go on all the same, and after a cancel nothing may: it
    is ended, at the cost of what others have it do. The next call starts it again."""
    if (plugin := supervisor.running) is not None:
        plugin.interrupt()
        await plugin.close()
