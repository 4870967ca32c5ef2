"""The tools of all plugins, for whoever works for a language model: listed, and called by name.

Every plugin that can be run is started for that, and those that announce `tools` are asked. One
that fails costs its own tools and nothing else: that is told, and the others are there. A call
never raises: what goes wrong is an answer, for the model to read and try something else. What a
tool takes is passed through as the plugin wrote it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from telex.plugins import problems
from telex.protocols import plugin_v0 as spec
from telex.wire.limits import PLUGIN_CALL_SECONDS, PLUGIN_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from telex.plugins.keeper import Keeper
    from telex.plugins.plugin import Plugin


@dataclass(frozen=True, slots=True)
class PluginTool:
    """One tool, and whose it is."""

    keeper: Keeper
    tool: spec.Tool

    @property
    def name(self) -> str:
        """Unlike that of any other tool of any plugin."""
        return f"{self.keeper.name}.{self.tool.name}"


@dataclass(frozen=True, slots=True)
class Tools:
    """All there are, by `plugin.tool`, and what is wrong with the rest."""

    by_name: Mapping[str, PluginTool]
    problems: tuple[str, ...] = ()

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout: float | None = PLUGIN_CALL_SECONDS,
        on_progress: Callable[[spec.Progress], None] | None = None,
    ) -> spec.ToolResult:
        """Its answer, or what went wrong, which is an answer too."""
        if (found := self.by_name.get(name)) is None:
            there = ", ".join(self.by_name) or "none"
            return spec.ToolResult(f"There is no tool {name}; there are: {there}.", is_error=True)
        params = spec.ToolsCall(found.tool.name, arguments)
        try:
            answer: Any = await found.keeper.call(
                "tools/call", params, timeout=timeout, on_progress=on_progress
            )
        except problems.PluginFailed as failure:
            said = failure.message if isinstance(failure, problems.Refused) else str(failure)
            return spec.ToolResult(said, is_error=True)
        return _result(name, answer)


async def tools(keepers: Iterable[Keeper], *, timeout: float | None = PLUGIN_CALL_SECONDS) -> Tools:
    """Ask all plugins at once. Those that may not be run are left out without a word."""
    asked = [keeper for keeper in keepers if keeper.found.refusal is None]
    answers = await asyncio.gather(*(_listed(keeper, timeout) for keeper in asked))
    by_name: dict[str, PluginTool] = {}
    wrong: list[str] = []
    for keeper, answer in zip(asked, answers, strict=True):
        if isinstance(answer, problems.PluginFailed):
            wrong.append(str(answer))
            continue
        for tool in answer:
            _add(PluginTool(keeper, tool), by_name, wrong)
    return Tools(by_name, tuple(wrong))


async def listed(plugin: Plugin, timeout: float | None = PLUGIN_CALL_SECONDS) -> list[spec.Tool]:
    """The tools of one that runs; none if it announces none. Raises a `PluginFailed`."""
    can = plugin.introduced.capabilities
    if can is None or not can.tools:
        return []
    answer: spec.ToolsList = await plugin.call(
        "tools/list", returns=spec.ToolsList, timeout=timeout
    )
    if len(answer.tools) > PLUGIN_TOOLS:
        what = f"has {len(answer.tools)} tools; {PLUGIN_TOOLS} are taken, and so none is"
        raise problems.Unexpected(plugin.name, what)
    return answer.tools


async def _listed(keeper: Keeper, timeout: float | None) -> list[spec.Tool] | problems.PluginFailed:
    try:
        async with keeper.using(timeout) as plugin:
            return await listed(plugin, timeout)
    except problems.PluginFailed as failure:
        return failure


def _add(one: PluginTool, by_name: dict[str, PluginTool], wrong: list[str]) -> None:
    # `a.b` of the plugin c, or `b` of the plugin c.a: names may have dots.
    if (first := by_name.setdefault(one.name, one)) is not one:
        whose = first.keeper.name
        wrong.append(f"the plugin {one.keeper.name} has a tool {one.name}, and so has {whose}")


def _result(name: str, answer: Any) -> spec.ToolResult:
    if not isinstance(answer, dict):
        return spec.ToolResult(f"{name} gave an answer that is no object.", is_error=True)
    return spec.ToolResult(answer.get("content"), is_error=answer.get("isError") is True)
