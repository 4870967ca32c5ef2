"""The table of every command and every event, as JSON, as ANSI, and as a schema.

Each theme has a file: the payload structs of its commands, the ANSI that each is lowered to, and
how the same ANSI is lifted back. This file joins them; import from here. The schema, the reference
page, the answer to `detect` and the bytes are all made from `COMMANDS` and `EVENTS`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from telex.escapes.commands import (
    core,
    cursor,
    dec_modes,
    event_types,
    screen_content,
    style,
    terminal_extensions,
    window_ops,
)
from telex.escapes.commands.ansi import Lift
from telex.escapes.errors import NotOutput
from telex.escapes.protocol import EscapeCommand, EscapeEvent, Guard

_THEMES: Final = (cursor, screen_content, style, dec_modes, window_ops, terminal_extensions)


def batched(batch: core.CommandBatch) -> list[tuple[EscapeCommand, msgspec.Struct]]:
    """The commands of a batch with their payloads, all of them looked at.

    Raises `msgspec.ValidationError` for the first that cannot be in one: what is unknown or asks
    something, and what is guarded, because nobody could say what the person allowed.
    """
    return [_batched(n, item) for n, item in enumerate(batch.commands)]


def _batched(n: int, item: core.BatchItem) -> tuple[EscapeCommand, msgspec.Struct]:
    command = COMMANDS.get(item.command)
    if command is None or command.lower is None or command is COMMANDS["term:batch"]:
        raise msgspec.ValidationError(f"Command {n} of the batch is no output.")
    if command.guard is not Guard.FREE:
        raise msgspec.ValidationError(f"Command {n} of the batch has to be asked for by itself.")
    data = {} if item.data is None else item.data
    return command, msgspec.convert(data, command.payload, str_keys=True)


def _batch(batch: core.CommandBatch) -> bytes:
    found = batched(batch)
    return b"".join([command.lower(data) for command, data in found if command.lower is not None])


_BATCH: Final = EscapeCommand(
    "term:batch",
    "Several commands in one packet: all of them, or none if one is wrong.",
    core.CommandBatch,
    None,
    _batch,
)

COMMANDS: Final[dict[str, EscapeCommand]] = {
    command.name: command
    for command in (
        *core.COMMANDS,
        *(command for theme in _THEMES for command in theme.COMMANDS),
        _BATCH,
    )
}
EVENTS: Final[dict[str, EscapeEvent]] = {event.name: event for event in event_types.EVENTS}
LIFTS: Final[dict[bytes, Lift]] = {
    key: lift for theme in _THEMES for key, lift in theme.LIFTS.items()
}
"""By what makes a sequence what it is: its bytes without its parameters; an OSC's up to the `;`."""


def lower(name: str, data: object = None) -> bytes:
    """The bytes. The data may be the payload, its JSON (`msgspec.Raw`), the same as Python values,
    or None for no data.

    Raises `NotOutput`, and `msgspec.ValidationError` for data the command does not take. What was
    made in Python is checked as if it had come from elsewhere.
    """
    command = COMMANDS.get(name)
    if command is None or command.lower is None:
        raise NotOutput(f"{name!r} is not a command that can be written as ANSI; see COMMANDS.")
    return command.lower(_payload(data, command.payload))


def _payload(data: object, payload: type[msgspec.Struct]) -> msgspec.Struct:
    match data:
        case None:
            data = {}
        case msgspec.Raw():
            return msgspec.json.decode(data, type=payload)
        case msgspec.Struct():
            data = msgspec.to_builtins(data)
    return msgspec.convert(data, payload, str_keys=True)


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


def _command(command: EscapeCommand, data: object, returns: object) -> dict[str, Any]:
    return {
        "about": command.about,
        "level": command.level,
        "guard": command.guard.value,
        "data": data,
        **({} if returns is None else {"returns": returns}),
    }
