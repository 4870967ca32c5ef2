"""JSON terminal escapes: requests from a program to its terminal, and both sides of them.

A program sends its terminal a JSON packet in a control string, and the terminal may send responses
and events in the same way. The spec is `docs/specs/json_escapes.md`; packets and frames are in
`rpc.dialects.json_escapes` and `wire.json_escape`.

    protocol        error codes, field types, and the types of commands and events
    commands/       every command and event: its structs, and the ANSI for it in both directions
    capabilities    the response to `detect`
    errors          the exceptions of the program's side
The terminal's side:
    server          the handlers, and the surface on which they act
    inband          the channel through a program's terminal, and its dialect
    gate            decides every guarded command: by `policy`, or by the person; and logs it
    input_events    parses terminal input into events; subscriptions has the subscribers
    escape_sessions, session_responder   the terminal's side in a session of terminal automation
The program's side:
    client          `connect()`: calls, streams, events, files; client_commands has the typed
                    commands, and sync is the same without an event loop
    terminal_discovery   finds the peer: the terminal, the one behind tmux, or a socket; probe
                    has the queries for it
    own_tty         takes the program's terminal, and restores it
    tty_channel     the channel on it, and its dialect: frames within the terminal's limit
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telex.escapes.client import AsyncAnsweringTerminal as AsyncAnsweringTerminal
    from telex.escapes.client import TerminalEvent as TerminalEvent
    from telex.escapes.client import connect as connect
    from telex.escapes.errors import FileCutShort as FileCutShort
    from telex.escapes.errors import FrameTooLarge as FrameTooLarge
    from telex.escapes.errors import NoTerminal as NoTerminal
    from telex.escapes.errors import NotSupported as NotSupported
    from telex.escapes.errors import NotTaken as NotTaken
    from telex.escapes.sync import AnsweringTerminal as AnsweringTerminal
    from telex.rpc.errors import CallError as CallError
    from telex.rpc.errors import CallTimedOut as CallTimedOut
    from telex.rpc.errors import RpcError as RpcError

_MODULES = {
    "AnsweringTerminal": "telex.escapes.sync",
    "AsyncAnsweringTerminal": "telex.escapes.client",
    "CallError": "telex.rpc.errors",
    "CallTimedOut": "telex.rpc.errors",
    "FileCutShort": "telex.escapes.errors",
    "FrameTooLarge": "telex.escapes.errors",
    "NoTerminal": "telex.escapes.errors",
    "NotSupported": "telex.escapes.errors",
    "NotTaken": "telex.escapes.errors",
    "RpcError": "telex.rpc.errors",
    "TerminalEvent": "telex.escapes.client",
    "connect": "telex.escapes.client",
}
"""The module of each public name, imported when the name is first used."""

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'telex.escapes' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
