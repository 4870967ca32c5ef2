"""Every command and every event, once.

Each theme has its table in a file of its own: what a command takes, the ANSI it is lowered to, and
beside it how the same ANSI is lifted. This is where they come together, and what to import. From
`COMMANDS` and `EVENTS` are made: the schema, the reference page, what `detect` answers, the bytes.
"""

from __future__ import annotations

from typing import Final

import msgspec

from telex.escapes.ansi import Lift
from telex.escapes.catalogue import core, cursor, events, extensions, modes, screen, style, window
from telex.escapes.command import Command, Event, Guard
from telex.protocols import json_escapes as spec

_THEMES: Final = (cursor, screen, style, modes, window, extensions)


def batched(batch: spec.Batch) -> list[tuple[Command, msgspec.Struct]]:
    """The commands of a batch with their payloads, all of them looked at.

    Raises `msgspec.ValidationError` for the first that cannot be in one: what is unknown or asks
    something, and what is guarded, because nobody could say what the person allowed.
    """
    return [_batched(n, item) for n, item in enumerate(batch.commands)]


def _batched(n: int, item: spec.BatchItem) -> tuple[Command, msgspec.Struct]:
    command = COMMANDS.get(item.command)
    if command is None or command.lower is None or command is COMMANDS["term:batch"]:
        raise msgspec.ValidationError(f"Command {n} of the batch is no output.")
    if command.guard is not Guard.FREE:
        raise msgspec.ValidationError(f"Command {n} of the batch has to be asked for by itself.")
    data = {} if item.data is None else item.data
    return command, msgspec.convert(data, command.payload, str_keys=True)


def _batch(batch: spec.Batch) -> bytes:
    found = batched(batch)
    return b"".join([command.lower(data) for command, data in found if command.lower is not None])


_BATCH: Final = Command(
    "term:batch",
    "Several commands in one packet: all of them, or none if one is wrong.",
    spec.Batch,
    None,
    _batch,
)

COMMANDS: Final[dict[str, Command]] = {
    command.name: command
    for command in (
        *core.COMMANDS,
        *(command for theme in _THEMES for command in theme.COMMANDS),
        _BATCH,
    )
}
EVENTS: Final[dict[str, Event]] = {event.name: event for event in events.EVENTS}
LIFTS: Final[dict[bytes, Lift]] = {
    key: lift for theme in _THEMES for key, lift in theme.LIFTS.items()
}
"""By what makes a sequence what it is: its bytes without its parameters; an OSC's up to the `;`."""
