"""JSON terminal escapes: a terminal that answers, on both of its sides.

A program sends its terminal a JSON packet in a control string, and the terminal may answer, or send
events, in the same way. The spec is `docs/specs/json_escapes.md`; packets and frames are
`rpc.dialects.json_escapes` and `wire.json_escape`.

    protocol        error codes, field types, what a command and an event are
    commands/       every command and event: its structs, the ANSI it lowers to and is lifted from
    capabilities    the answer to `detect`
    errors          the exceptions of the program's side
The terminal's side:
    server          the handlers, and the surface they act on
    inband          the channel that runs through a program's terminal, and its dialect
    foreground      which process group may be answered
    gate            what every guarded command passes: policy decides, audit writes it down
    input_events    terminal input as events; subscriptions says who gets them
    escape_sessions, session_responder   the same in a session of terminal automation
The program's side:
    client          `connect()`: calls, streams, events, files; client_commands has the typed
                    commands, and sync is the same without an event loop
    terminal_discovery   who answers: the terminal, the one behind tmux, a socket; probe finds out
    own_tty         the terminal, taken and given back
    tty_channel     the channel on it; program_dialect makes frames that the terminal takes
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telex.escapes.client import AnsweringTerminal as AnsweringTerminal
    from telex.escapes.client import TerminalEvent as TerminalEvent
    from telex.escapes.client import connect as connect
    from telex.escapes.errors import FileCutShort as FileCutShort
    from telex.escapes.errors import FrameTooLarge as FrameTooLarge
    from telex.escapes.errors import NoTerminal as NoTerminal
    from telex.escapes.errors import NotSupported as NotSupported
    from telex.escapes.errors import NotTaken as NotTaken

_MODULES = {
    "AnsweringTerminal": "client",
    "FileCutShort": "errors",
    "FrameTooLarge": "errors",
    "NoTerminal": "errors",
    "NotSupported": "errors",
    "NotTaken": "errors",
    "TerminalEvent": "client",
    "connect": "client",
}
"""The module of each public name, imported when the name is first used."""

__all__ = [
    "AnsweringTerminal",
    "FileCutShort",
    "FrameTooLarge",
    "NoTerminal",
    "NotSupported",
    "NotTaken",
    "TerminalEvent",
    "connect",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'telex.escapes' has no attribute {name!r}")
    return getattr(importlib.import_module(f"telex.escapes.{_MODULES[name]}"), name)
