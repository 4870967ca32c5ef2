"""What every terminal that speaks JSON escapes answers: what it can do, that it is there, and which
events to tell. `cancel` is no command but a member of a packet."""

from __future__ import annotations

from typing import Final

from telex.escapes.command import Command, Guard
from telex.protocols import json_escapes as spec

COMMANDS: Final = (
    Command("detect", "Ask what is supported.", spec.Nothing, 1, returns=spec.Detected),
    Command(
        "ping", "Ask for an answer, with nothing in it.", spec.Nothing, 1, returns=spec.Nothing
    ),
    # Behind ssh or tmux the terminal cannot see who asked: there the person is asked. For keys and
    # pastes they always are (`service`), since whoever hears the keys has the keyboard.
    Command(
        "term:subscribe",
        "Be told of events.",
        spec.Subscribe,
        1,
        returns=spec.Subscribed,
        guard=Guard.REMOTE,
        deed="be told what happens in this terminal",
    ),
    Command(
        "term:unsubscribe",
        "Be told of them no more.",
        spec.Subscribe,
        1,
        returns=spec.Subscribed,
    ),
)
