"""A plugin's commands: which one a person means, and to run it.

Generation A is told what comes (`setupCommand`) and then runs it; B gets all of it at once, and
takes no arguments but values. A nested command is named by its path, `remote.add`; an alias is for
people, and the plugin hears the name.

Where words come from is `cli`'s; the values are `values`'.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from telex.plugins.content import text_of
from telex.plugins.manifest import command_problems, entry_problems
from telex.plugins.problems import NotIntroduced
from telex.protocols import plugin_v0 as spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.plugins.plugin import Plugin

_TOLD = 5
"""Problems of one introduction, in the sentence about it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A command, and everything it is to be run with."""

    path: tuple[str, ...]
    args: tuple[str, ...] = ()
    config: tuple[spec.KeyValue, ...] = ()
    plugin_config: tuple[spec.KeyValue, ...] = ()
    """The plugin's own values. A was initialised with them; B hears them with each command."""

    @property
    def name(self) -> str:
        return ".".join(self.path)


def named(commands: Iterable[spec.Command] | None, word: str) -> spec.Command | None:
    """The command of this name or alias. A name counts before any alias."""
    there = list(commands or ())
    by_name = (one for one in there if one.name == word)
    by_alias = (one for one in there if word in (one.aliases or ()))
    return next(by_name, next(by_alias, None))


def check(plugin: str, introduced: spec.Introduced) -> None:
    """Nobody looked at what it said of its commands and values yet. Raises NotIntroduced."""
    problems = [
        *entry_problems(introduced.configs, "configs"),
        *command_problems(introduced.commands, "commands"),
    ]
    if problems:
        told = "; ".join(map(str, problems[:_TOLD]))
        more = f"; and {len(problems) - _TOLD} more" if len(problems) > _TOLD else ""
        raise NotIntroduced(plugin, f"introduced itself wrongly: {told}{more}")


def takes_arguments(introduced: spec.Introduced) -> bool:
    """Whether there is a member for them."""
    return introduced.protocol == spec.PROTOCOL_A


async def run(
    plugin: Plugin, chosen: Chosen, on_progress: Callable[[spec.Progress], None] | None = None
) -> str | None:
    """Run it, as long as it takes. The text it answered with, if any. Raises a `PluginFailed`."""
    try:
        if takes_arguments(plugin.introduced):
            answer = await _run_a(plugin, chosen, on_progress)
        else:
            answer = await _run_b(plugin, chosen, on_progress)
    except asyncio.CancelledError:
        plugin.interrupt()
        raise
    return text_of(answer)


async def _run_a(
    plugin: Plugin, chosen: Chosen, on_progress: Callable[[spec.Progress], None] | None
) -> Any:
    setup = spec.SetupCommand(chosen.name, list(chosen.args), list(chosen.config) or UNSET)
    await plugin.call("setupCommand", setup)
    params = spec.RunCommand(name=chosen.name)
    return await plugin.call("runCommand", params, timeout=None, on_progress=on_progress)


async def _run_b(
    plugin: Plugin, chosen: Chosen, on_progress: Callable[[spec.Progress], None] | None
) -> Any:
    params = spec.RunCommand(
        cmd=chosen.name, config=list(chosen.config), plugin_config=list(chosen.plugin_config)
    )
    return await plugin.call("runCommand", params, timeout=None, on_progress=on_progress)
