"""The tools of all plugins, for an agent: listed, and called by name.

Every plugin that can be run is started for that, and those that announce the capability `tools` are
asked. One that fails costs its own tools and nothing else: that is a sentence in `problems`, and
the others are there. A call never raises: what goes wrong is an answer, for the model to read and
try something else. What a tool takes is passed through as the plugin wrote it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from telex.plugins import errors
from telex.plugins import protocol as spec
from telex.plugins.limits import PLUGIN_CALL_SECONDS, PLUGIN_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from telex.plugins.client import RunningPlugin
    from telex.plugins.supervisor import PluginSupervisor


@dataclass(frozen=True, slots=True)
class PluginTool:
    """One tool, and whose it is."""

    supervisor: PluginSupervisor
    tool: spec.ToolEntry

    @property
    def name(self) -> str:
        """Unlike that of any other tool of any plugin."""
        return f"{self.supervisor.name}.{self.tool.name}"


@dataclass(frozen=True, slots=True)
class PluginTools:
    """All there are, by `plugin.tool`, and what is wrong with the rest."""

    by_name: Mapping[str, PluginTool]
    problems: tuple[str, ...] = ()

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout: float | None = PLUGIN_CALL_SECONDS,
        on_progress: Callable[[spec.ProgressNotice], None] | None = None,
    ) -> spec.ToolOutput:
        """Its answer, or what went wrong, which is an answer too."""
        if (found := self.by_name.get(name)) is None:
            there = ", ".join(self.by_name) or "none"
            return spec.ToolOutput(f"There is no tool {name}; there are: {there}.", is_error=True)
        params = spec.ToolsCall(found.tool.name, arguments)
        try:
            answer: Any = await found.supervisor.call(
                "tools/call", params, timeout=timeout, on_progress=on_progress
            )
        except errors.PluginError as failure:
            said = failure.message if isinstance(failure, errors.PluginErrorReply) else str(failure)
            return spec.ToolOutput(said, is_error=True)
        return _result(name, answer)


async def list_tools(
    supervisors: Iterable[PluginSupervisor], *, timeout: float | None = PLUGIN_CALL_SECONDS
) -> PluginTools:
    """Ask all plugins at once. Those that may not be run are left out without a word."""
    asked = [supervisor for supervisor in supervisors if supervisor.found.refusal is None]
    answers = await asyncio.gather(*(_list_supervised(supervisor, timeout) for supervisor in asked))
    by_name: dict[str, PluginTool] = {}
    wrong: list[str] = []
    for supervisor, answer in zip(asked, answers, strict=True):
        if isinstance(answer, errors.PluginError):
            wrong.append(str(answer))
            continue
        for tool in answer:
            _add(PluginTool(supervisor, tool), by_name, wrong)
    return PluginTools(by_name, tuple(wrong))


async def list_plugin_tools(
    plugin: RunningPlugin, timeout: float | None = PLUGIN_CALL_SECONDS
) -> list[spec.ToolEntry]:
    """The tools of one that runs; none if it announces none. Raises a `PluginError`."""
    can = plugin.introduced.capabilities
    if can is None or not can.tools:
        return []
    answer: spec.ToolsList = await plugin.call(
        "tools/list", returns=spec.ToolsList, timeout=timeout
    )
    if len(answer.tools) > PLUGIN_TOOLS:
        what = f"has {len(answer.tools)} tools; {PLUGIN_TOOLS} are taken, and so none is"
        raise errors.PluginBadResult(plugin.name, what)
    return answer.tools


async def _list_supervised(
    supervisor: PluginSupervisor, timeout: float | None
) -> list[spec.ToolEntry] | errors.PluginError:
    try:
        async with supervisor.acquire(timeout) as plugin:
            return await list_plugin_tools(plugin, timeout)
    except errors.PluginError as failure:
        return failure


def _add(one: PluginTool, by_name: dict[str, PluginTool], wrong: list[str]) -> None:
    # `a.b` of the plugin c, or `b` of the plugin c.a: names may have dots.
    if (first := by_name.setdefault(one.name, one)) is not one:
        whose = first.supervisor.name
        wrong.append(f"the plugin {one.supervisor.name} has a tool {one.name}, and so has {whose}")


def _result(name: str, answer: Any) -> spec.ToolOutput:
    if not isinstance(answer, dict):
        return spec.ToolOutput(f"{name} gave an answer that is no object.", is_error=True)
    return spec.ToolOutput(answer.get("content"), is_error=answer.get("isError") is True)
