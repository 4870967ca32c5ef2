"""JSON terminal escapes: a terminal that answers, on both of its sides.

A program asks its terminal for something by a JSON packet in a control string, and the terminal may
answer, or tell what happens, the same way. The spec is `docs/specs/json_escapes.md`; packets and
frames are `rpc.dialects.json_escapes` and `wire.json_escape`.

What there is:
    command         what a command and an event are, as values
    catalogue       every command and event, once; schema is made from it
    lowering        a command as the ANSI bytes that do it (ansi); lifting the other way round
    detecting       what `detect` answers
The terminal's side:
    inband          the channel that runs through a program's terminal; attentive is its dialect,
                    which knows who asked, and foreground who could hear an answer
    service         the handlers, given a surface to act on; reporting is for its questions
    gate            what every guarded command passes: policy decides, audit writes it down
    events          what is typed, as events (decoding); subscriptions are who hears them
    session_side    the same in a session: session_events, session_service for automation
The program's side:
    client          `connect()`: calls, streams, events; `commanding` has the typed commands, and
                    `blocking` is the same without an event loop
    reaching        who answers: the terminal, the one behind tmux, a socket; probing finds out
    own_tty         the terminal, taken and given back; `tty_channel` reads and writes it, in
                    frames that it takes (fitting)
    listening       events as they come; sending has files
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telex.escapes.client import AnsweringTerminal as AnsweringTerminal
    from telex.escapes.client import NotTaken as NotTaken
    from telex.escapes.client import connect as connect
    from telex.escapes.fitting import FrameTooLarge as FrameTooLarge
    from telex.escapes.listening import TerminalEvent as TerminalEvent
    from telex.escapes.own_tty import NoTerminal as NoTerminal
    from telex.escapes.own_tty import NotSupported as NotSupported
    from telex.escapes.sending import FileCutShort as FileCutShort

_PLACES = {
    "AnsweringTerminal": "client",
    "FileCutShort": "sending",
    "FrameTooLarge": "fitting",
    "NoTerminal": "own_tty",
    "NotSupported": "own_tty",
    "NotTaken": "client",
    "TerminalEvent": "listening",
    "connect": "client",
}
"""What a program needs, loaded when it is first used."""

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
    if name not in _PLACES:
        raise AttributeError(f"module 'telex.escapes' has no attribute {name!r}")
    return getattr(importlib.import_module(f"telex.escapes.{_PLACES[name]}"), name)
