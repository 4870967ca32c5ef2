"""The table of every command and every event, as JSON, as ANSI, and as a schema.

Each topic has a file: the payload structs of its commands, functions that lower a payload to ANSI,
and functions that lift the same ANSI back to a payload. This file joins them; import from here. The
schema, the reference page, the response to `detect` and the ANSI are all made from `COMMANDS` and
`EVENTS`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from telex.escapes.commands import (
    core,
    cursor,
    dec_modes,
    screen_content,
    style,
    terminal_extensions,
    window_ops,
)
from telex.escapes.commands.ansi import Lift
from telex.escapes.errors import NotOutput
from telex.escapes.protocol import EscapeCommand, EscapeEvent, Guard

_TOPICS: Final = (cursor, screen_content, style, dec_modes, window_ops, terminal_extensions)


def batched(batch: core.CommandBatch) -> list[tuple[EscapeCommand, msgspec.Struct]]:
    """Return the commands of a batch with their payloads, after all were checked.

    Raises `msgspec.ValidationError` for the first command that is not allowed in a batch: unknown
    commands, queries, and guarded commands, because the person must be asked about each of these.
    """
    return [_batched(n, item) for n, item in enumerate(batch.commands)]


def _batched(n: int, item: core.BatchItem) -> tuple[EscapeCommand, msgspec.Struct]:
    command = COMMANDS.get(item.command)
    if command is None or command.lower is None or command is COMMANDS["term:batch"]:
        raise msgspec.ValidationError(f"Command {n} of the batch is not an output command.")
    if command.guard is not Guard.FREE:
        raise msgspec.ValidationError(f"Command {n} of the batch must be sent by itself.")
    data = {} if item.data is None else item.data
    return command, msgspec.convert(data, command.payload, str_keys=True)


def _batch(batch: core.CommandBatch) -> bytes:
    found = batched(batch)
    return b"".join([command.lower(data) for command, data in found if command.lower is not None])


_BATCH: Final = EscapeCommand(
    "term:batch",
    "Execute several commands in one packet: all of them, or none if one is invalid.",
    core.CommandBatch,
    None,
    _batch,
)

COMMANDS: Final[dict[str, EscapeCommand]] = {
    command.name: command
    for command in (
        *core.COMMANDS,
        *(command for topic in _TOPICS for command in topic.COMMANDS),
        _BATCH,
    )
}
EVENTS: Final[dict[str, EscapeEvent]] = {event.name: event for event in core.EVENTS}
LIFTS: Final[dict[bytes, Lift]] = {
    key: lift for topic in _TOPICS for key, lift in topic.LIFTS.items()
}
"""By the bytes of a sequence without its parameters; for an OSC, its bytes up to the `;`."""


def lower(name: str, data: object = None) -> bytes:
    """Return the ANSI of a command.

    Args:
        name: The command.
        data: The payload, its JSON (`msgspec.Raw`), the same as Python values, or None for no data.
            Values made in Python are checked like JSON.

    Raises:
        NotOutput: The command is unknown, or has no ANSI.
        msgspec.ValidationError: The data is not valid for the command.
    """
    command = COMMANDS.get(name)
    if command is None or command.lower is None:
        raise NotOutput(f"{name!r} is not a command with an ANSI equivalent; see COMMANDS.")
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
    """Return the JSON Schema: `commands` and `events` by name; `data` and `returns` of each refer
    to `$defs`.
    """
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
