"""Every command and event as JSON Schema, for programs in other languages. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from telex.escapes.catalogue import COMMANDS, EVENTS
from telex.escapes.command import Command

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """`commands` and `events` by name; each `data` and `returns` is a schema into `$defs`."""
    returned = {name: one.returns for name, one in COMMANDS.items() if one.returns is not None}
    taken = {name: one.payload for name, one in COMMANDS.items()}
    taken |= {name: one.payload for name, one in EVENTS.items()}
    found, definitions = msgspec.json.schema_components(
        [*taken.values(), *returned.values()], ref_template="#/$defs/{name}"
    )
    data = dict(zip(taken, found, strict=False))
    returns = dict(zip(returned, found[len(taken) :], strict=True))
    return {
        "$schema": DIALECT,
        "commands": {
            name: _command(command, data[name], returns.get(name))
            for name, command in COMMANDS.items()
        },
        "events": {
            name: {"about": event.about, "data": data[name]} for name, event in EVENTS.items()
        },
        "$defs": definitions,
    }


def _command(command: Command, data: object, returns: object) -> dict[str, Any]:
    return {
        "about": command.about,
        "level": command.level,
        "guard": command.guard.value,
        "data": data,
        **({} if returns is None else {"returns": returns}),
    }
