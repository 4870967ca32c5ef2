"""The verbs as values: one type for each, with its arguments.

`verb_commands` makes them from a command line. Other faces of the server, which have arguments of
their own, make them too. `Verbs.perform` runs them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from telex.terminal.actions import Action
    from telex.terminal.cells import Size

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ID: Final = re.compile(r"s\d+")


def is_session_name(text: str) -> bool:
    """Whether a session may have this name: a word that no shell and no option can misread."""
    return _NAME.fullmatch(text) is not None


def is_session_id(text: str) -> bool:
    """Whether this has the form of an id, which names a session too."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Start a program on a new terminal."""

    command: tuple[str, ...]
    """Empty only with an adapter that knows its program."""
    name: str | None = None
    size: Size | None = None
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    adapter: str | None = None
    ttl: float | None = None
    keep: bool = False


@dataclass(frozen=True, slots=True)
class SeeRequest:
    """Show the screen: whole, with rows above it, as a picture, or what changed."""

    session: str | None = None
    since: int | None = None
    style: bool = False
    png: str | None = None
    scrollback: int | None = None


@dataclass(frozen=True, slots=True)
class TypeRequest:
    """Type a text."""

    text: str
    enter: bool = False
    session: str | None = None


@dataclass(frozen=True, slots=True)
class PressRequest:
    """Press keys, which may have text between them."""

    keys: tuple[Action, ...]
    session: str | None = None


@dataclass(frozen=True, slots=True)
class PasteRequest:
    """Paste a text."""

    text: str
    session: str | None = None


@dataclass(frozen=True, slots=True)
class ClickRequest:
    """Click a text, or a cell: row and column."""

    text: str | None = None
    at: tuple[int, int] | None = None
    button: Literal["left", "middle", "right"] = "left"
    count: int = 1
    session: str | None = None


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """Wait for one condition: text, regex, gone, idle (seconds), input or exit."""

    text: str | None = None
    regex: str | None = None
    gone: str | None = None
    idle: float | None = None
    input: bool = False
    """Until the program waits for input."""
    exit: bool = False
    max: float = 30.0
    since: int | None = None
    anywhere: bool = False
    session: str | None = None


@dataclass(frozen=True, slots=True)
class DoRequest:
    """Run several verbs, and stop at the first that fails."""

    steps: tuple[VerbStep, ...]
    session: str | None = None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """List the sessions."""


@dataclass(frozen=True, slots=True)
class ResizeRequest:
    """Change the size of the terminal."""

    size: Size
    session: str | None = None


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """Send a signal to the foreground program."""

    signal: Literal["term", "hup", "quit", "int", "kill", "user1", "user2"]
    session: str | None = None


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """End sessions: by name, all of `telex open`, or the chosen one."""

    names: tuple[str, ...] = ()
    all: bool = False
    session: str | None = None


VerbRequest = (
    OpenRequest
    | SeeRequest
    | TypeRequest
    | PressRequest
    | PasteRequest
    | ClickRequest
    | WaitRequest
    | DoRequest
    | ListRequest
    | ResizeRequest
    | SignalRequest
    | CloseRequest
)


@dataclass(frozen=True, slots=True)
class VerbStep:
    """One verb, and how its answer is printed."""

    request: VerbRequest
    words: str
    """The step as it was written, for messages."""
    fence: bool = False
    as_json: bool = False
