"""A command as the ANSI bytes that do it.

For whoever has a terminal that knows ANSI and no JSON: the terminal's side, which applies commands
to the terminal it runs in, and a program whose terminal has no JSON escapes. Pure.
"""

from __future__ import annotations

import msgspec

from telex.escapes.catalogue import COMMANDS


class NotOutput(LookupError):
    """There is no such command, or none that ANSI bytes could do: a question, a stream."""


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
