"""The tools of all plugins, for an agent: list them, and call one by name.

To list tools, every plugin that may be run is started, and plugins with the capability `tools` are
called. If a plugin fails, only its own tools are missing, and `problems` has a message. A call
never raises: a failure is a result, so that the model can read it and try something else. The input
schema of a tool is passed on as the plugin wrote it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from telex.plugins import errors
from telex.plugins import protocol as spec
from telex.plugins.limits import PLUGIN_CALL_SECONDS, PLUGIN_TOOLS
from telex.plugins.plugin_settings import CallDeadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from telex.plugins.client import RunningPlugin
    from telex.plugins.supervisor import PluginSupervisor


@dataclass(frozen=True, slots=True)
class PluginTool:
    """One tool, with the supervisor of its plugin."""

    supervisor: PluginSupervisor
    tool: spec.ToolEntry

    @property
    def name(self) -> str:
        """The name of the tool among all plugins."""
        return f"{self.supervisor.name}.{self.tool.name}"


@dataclass(frozen=True, slots=True)
class PluginTools:
    """The tools by `plugin.tool`, and a message for each plugin whose tools are missing."""

    by_name: Mapping[str, PluginTool]
    problems: tuple[str, ...] = ()

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout: float | CallDeadline | None = PLUGIN_CALL_SECONDS,
        on_progress: Callable[[spec.ProgressNotice], None] | None = None,
    ) -> spec.ToolOutput:
        """Call a tool. A failure is a result with `is_error`."""
        if (found := self.by_name.get(name)) is None:
            there = ", ".join(self.by_name) or "none"
            return spec.ToolOutput(f"There is no tool {name}; there are: {there}.", is_error=True)
        params = spec.ToolsCall(found.tool.name, arguments)
        try:
            result: Any = await found.supervisor.call(
                "tools/call", params, timeout=timeout, on_progress=on_progress
            )
        except errors.PluginErrorReply as reply:
            return spec.ToolOutput(reply.message, is_error=True)
        except errors.PluginError as failure:
            return spec.ToolOutput(str(failure), is_error=True)
        return _output(name, result)


async def list_tools(
    supervisors: Iterable[PluginSupervisor],
    *,
    timeout: float | CallDeadline | None = PLUGIN_CALL_SECONDS,
) -> PluginTools:
    """List the tools of all plugins at once. Plugins that may not be run are left out without a
    message."""
    deadline = CallDeadline.of(timeout)
    runnable = [supervisor for supervisor in supervisors if supervisor.found.refusal is None]
    listings = await asyncio.gather(
        *(_list_supervised(supervisor, deadline) for supervisor in runnable)
    )
    by_name: dict[str, PluginTool] = {}
    problems: list[str] = []
    for supervisor, listing in zip(runnable, listings, strict=True):
        if isinstance(listing, errors.PluginError):
            problems.append(str(listing))
            continue
        for tool in listing:
            _add(PluginTool(supervisor, tool), by_name, problems)
    return PluginTools(by_name, tuple(problems))


async def list_plugin_tools(
    plugin: RunningPlugin, timeout: float | CallDeadline | None = PLUGIN_CALL_SECONDS
) -> list[spec.ToolEntry]:
    """Return the tools of a running plugin, none without the capability `tools`. Raises a
    `PluginError`."""
    can = plugin.introduced.capabilities
    if can is None or not can.tools:
        return []
    listing: spec.ToolsList = await plugin.call(
        "tools/list", returns=spec.ToolsList, timeout=timeout
    )
    if len(listing.tools) > PLUGIN_TOOLS:
        what = f"has {len(listing.tools)} tools, and more than {PLUGIN_TOOLS} are not accepted"
        raise errors.PluginBadResult(plugin.name, what)
    return listing.tools


async def _list_supervised(
    supervisor: PluginSupervisor, deadline: CallDeadline
) -> list[spec.ToolEntry] | errors.PluginError:
    try:
        async with supervisor.acquire(deadline) as plugin:
            return await list_plugin_tools(plugin, deadline)
    except errors.PluginError as failure:
        return failure


def _add(one: PluginTool, by_name: dict[str, PluginTool], problems: list[str]) -> None:
    # Names may have dots: `c.a.b` is `a.b` of the plugin c, or `b` of the plugin c.a.
    if (first := by_name.setdefault(one.name, one)) is not one:
        name, other = one.supervisor.name, first.supervisor.name
        problems.append(f"the plugin {name} has a tool {one.name}, and so has {other}")


def _output(name: str, result: Any) -> spec.ToolOutput:
    if not isinstance(result, dict):
        return spec.ToolOutput(f"{name} returned a result that is no object.", is_error=True)
    return spec.ToolOutput(result.get("content"), is_error=result.get("isError") is True)
