"""A plugin's commands: find one by name, run it, and convert its result to text.

Generation A gets the arguments in `setupCommand` and then `runCommand`; B gets everything in
`runCommand`, and takes values but no arguments. A nested command is named by its path,
`remote.add`. An alias is for people: the plugin is sent the name.

`cli` parses the arguments, and `config_values` resolves the values.
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


_SHOWN_PROBLEMS = 5
"""How many problems of a handshake the error lists."""


@dataclass(frozen=True, slots=True)
class ChosenCommand:
    """A command with its arguments and values."""

    path: tuple[str, ...]
    args: tuple[str, ...] = ()
    config: tuple[spec.KeyValue, ...] = ()
    plugin_config: tuple[spec.KeyValue, ...] = ()
    """The values of the plugin itself. A received them in `initialize`; B gets them with each
    command."""

    @property
    def name(self) -> str:
        return ".".join(self.path)


def find_command(
    commands: Iterable[spec.CommandEntry] | None, word: str
) -> spec.CommandEntry | None:
    """Return the command with this name or alias. A name has precedence over aliases."""
    candidates = list(commands or ())
    by_name = (one for one in candidates if one.name == word)
    by_alias = (one for one in candidates if word in (one.aliases or ()))
    return next(by_name, next(by_alias, None))


def check(plugin: str, introduced: spec.Introduced) -> None:
    """Check the declared commands and values. Raises PluginHandshakeFailed."""
    problems = [
        *entry_problems(introduced.configs, "configs"),
        *command_problems(introduced.commands, "commands"),
    ]
    if problems:
        shown = "; ".join(map(str, problems[:_SHOWN_PROBLEMS]))
        rest = len(problems) - _SHOWN_PROBLEMS
        more = f"; and {rest} more" if rest > 0 else ""
        raise PluginHandshakeFailed(plugin, f"declared invalid entries: {shown}{more}")


def takes_arguments(introduced: spec.Introduced) -> bool:
    """Return whether the plugin's generation has a member for arguments."""
    return introduced.protocol == spec.PROTOCOL_A


async def run(
    plugin: RunningPlugin,
    chosen: ChosenCommand,
    on_progress: Callable[[spec.ProgressNotice], None] | None = None,
) -> str | None:
    """Run a command without a deadline, and return the text of its result, if any. Raises a
    `PluginError`."""
    try:
        if takes_arguments(plugin.introduced):
            result = await _run_a(plugin, chosen, on_progress)
        else:
            result = await _run_b(plugin, chosen, on_progress)
    except asyncio.CancelledError:
        plugin.interrupt()
        raise
    return text_of(result)


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
    """Return the text of a result: itself, its `content`, or the text parts of `content`; None if
    there is no text."""
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
    """Return the text of any content, or else its JSON."""
    text = text_of(content)
    return json.dumps(content, ensure_ascii=False) if text is None else text


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)
