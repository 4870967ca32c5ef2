"""A plugin's commands: which one a person means, how it is run, and its result as text.

Generation A is told what comes (`setupCommand`) and then runs it; B gets all of it at once, and
takes no arguments but values. A nested command is named by its path, `remote.add`; an alias is for
people, and the plugin is sent the name.

Words come from `cli`, values from `config_values`.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from telex.plugins import protocol as spec
from telex.plugins.errors import PluginHandshakeFailed
from telex.plugins.plugin_manifest import command_problems, entry_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.plugins.client import RunningPlugin


_TOLD = 5
"""Problems of one introduction, in the sentence about it."""


@dataclass(frozen=True, slots=True)
class ChosenCommand:
    """A command, and everything it is to be run with."""

    path: tuple[str, ...]
    args: tuple[str, ...] = ()
    config: tuple[spec.KeyValue, ...] = ()
    plugin_config: tuple[spec.KeyValue, ...] = ()
    """The plugin's own values. A was initialised with them; B hears them with each command."""

    @property
    def name(self) -> str:
        return ".".join(self.path)


def find_command(
    commands: Iterable[spec.CommandEntry] | None, word: str
) -> spec.CommandEntry | None:
    """The command of this name or alias. A name counts before any alias."""
    there = list(commands or ())
    by_name = (one for one in there if one.name == word)
    by_alias = (one for one in there if word in (one.aliases or ()))
    return next(by_name, next(by_alias, None))


def check(plugin: str, introduced: spec.Introduced) -> None:
    """Check what it declared as commands and values. Raises PluginHandshakeFailed."""
    problems = [
        *entry_problems(introduced.configs, "configs"),
        *command_problems(introduced.commands, "commands"),
    ]
    if problems:
        told = "; ".join(map(str, problems[:_TOLD]))
        more = f"; and {len(problems) - _TOLD} more" if len(problems) > _TOLD else ""
        raise PluginHandshakeFailed(plugin, f"introduced itself wrongly: {told}{more}")


def takes_arguments(introduced: spec.Introduced) -> bool:
    """Whether there is a member for them."""
    return introduced.protocol == spec.PROTOCOL_A


async def run(
    plugin: RunningPlugin,
    chosen: ChosenCommand,
    on_progress: Callable[[spec.ProgressNotice], None] | None = None,
) -> str | None:
    """Run it, as long as it takes. The text it answered with, if any. Raises a `PluginError`."""
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
    plugin: RunningPlugin,
    chosen: ChosenCommand,
    on_progress: Callable[[spec.ProgressNotice], None] | None,
) -> Any:
    setup = spec.SetupCommand(chosen.name, list(chosen.args), list(chosen.config) or UNSET)
    await plugin.call("setupCommand", setup)
    params = spec.RunCommand(name=chosen.name)
    return await plugin.call("runCommand", params, timeout=None, on_progress=on_progress)


async def _run_b(
    plugin: RunningPlugin,
    chosen: ChosenCommand,
    on_progress: Callable[[spec.ProgressNotice], None] | None,
) -> Any:
    params = spec.RunCommand(
        cmd=chosen.name, config=list(chosen.config), plugin_config=list(chosen.plugin_config)
    )
    return await plugin.call("runCommand", params, timeout=None, on_progress=on_progress)


def text_of(result: Any) -> str | None:
    """The text of a result that has some: itself, its `content`, or the parts of that."""
    match result:
        case str() as text:
            return text or None
        case {"content": content}:
            return text_of(content)
        case [*parts]:
            texts = [part["text"] for part in parts if _is_text(part)]
            return "\n".join(texts) or None
        case _:
            return None


def content_text(content: object) -> str:
    """Any content: its text, or what it is as JSON."""
    text = text_of(content)
    return json.dumps(content, ensure_ascii=False) if text is None else text


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)
