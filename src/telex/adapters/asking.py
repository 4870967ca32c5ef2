"""What a plugin says of a moment and of itself: `classify` and `describe`, called and read.

A plugin that cannot say a state makes it `plugin_error`: that is no exception. Used by an
`adapter`, and by whoever looks on (`watching`, the fixture tests).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.adapters.classification import (
    Catalogue,
    introspected,
    plugin_error,
    read_catalogue,
    read_state,
)
from telex.adapters.lua.problems import PluginProblem

if TYPE_CHECKING:
    from typing import Any

    from telex.adapters.lua.instance import Instance
    from telex.protocols.pty_adapters import State


@dataclass(frozen=True, slots=True)
class Said:
    """A state, and how long the plugin took to say it."""

    state: State
    seconds: float
    problem: PluginProblem | None = None
    """Why there is no other state than `plugin_error`."""


async def ask(instance: Instance, seen: dict[str, Any]) -> Said:
    """What the plugin says of what it is shown, or what is wrong with it."""
    loop = asyncio.get_running_loop()
    sequence, last_intent = seen["sequence"], seen.get("last_intent")
    began = loop.time()
    try:
        answer = await instance.call("classify", seen)
        took = loop.time() - began
        return Said(read_state(instance.plugin.name, answer, sequence, last_intent), took)
    except PluginProblem as problem:
        took = loop.time() - began
        return Said(plugin_error(problem, sequence, last_intent), took, problem)


async def catalogue(instance: Instance) -> Catalogue:
    """What the plugin offers: by its own word, or else by what it exports. Raises PluginProblem."""
    exports = await instance.exports()
    if "describe" not in exports:
        return introspected(exports)
    return read_catalogue(instance.plugin.name, await instance.call("describe"))
