"""Actions: input for a program on a terminal, as values.

`PtySession.act` performs an action, and `session.input` carries it over the wire, so the tags and
bounds are those of the automation protocol. The exceptions at the end are raised by `act`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from telex.terminal import limits

if TYPE_CHECKING:
    from telex.processes.child import Exit

Rows = Annotated[int, Meta(ge=1, le=1000, description="Rows, 1 to 1000.")]
Cols = Annotated[int, Meta(ge=1, le=1000, description="Columns, 1 to 1000.")]
Pixels = Annotated[int, Meta(ge=0, le=65535, description="Pixels; 0 where unknown.")]


class TerminalSize(Struct, frozen=True):
    """The size of a terminal."""

    rows: Rows
    cols: Cols
    pixel_width: Pixels = 0
    pixel_height: Pixels = 0


class _Action(Struct, frozen=True, tag_field="type"):
    pass


class Text(_Action, frozen=True, tag="text"):
    """Type these characters."""

    value: str


class Paste(_Action, frozen=True, tag="paste"):
    """Write these bytes verbatim, whatever the program's modes."""

    value: str


class BracketedPaste(_Action, frozen=True, tag="bracketed_paste"):
    """Paste between the markers of bracketed paste, which the text cannot break out of."""

    value: str


class Key(_Action, frozen=True, tag="key"):
    """Press a key, encoded by the program's current modes."""

    value: str


class Resize(_Action, frozen=True, tag="resize"):
    """Change the size of the terminal."""

    value: TerminalSize


class Interrupt(_Action, frozen=True, tag="interrupt"):
    """Type the terminal's interrupt character, ahead of any paste still queued."""


class Eof(_Action, frozen=True, tag="eof"):
    """Type the terminal's end-of-file character."""


class Kill(_Action, frozen=True, tag="kill"):
    """End the program and everything it started."""


class Signal(_Action, frozen=True, tag="signal"):
    """Send a signal to the program in the foreground."""

    value: Literal["term", "hup", "quit", "int", "kill", "user1", "user2"]


class TranscriptLabel(Struct, frozen=True):
    """The label of a place in the transcript."""

    label: Annotated[str, Meta(min_length=1, max_length=128)]


class MarkTranscript(_Action, frozen=True, tag="mark_transcript"):
    """Put a label at this place of the transcript."""

    value: TranscriptLabel


class Streamed(Struct, frozen=True):
    """Text and the speed to type it at."""

    text: str
    chunk_chars: Annotated[int, Meta(ge=1, le=1024)] = 64
    delay_ms: Annotated[int, Meta(ge=0, le=100)] = 2


class StreamText(_Action, frozen=True, tag="stream_text"):
    """Type in small pieces with pauses, like a person or a slow line."""

    value: Streamed


class MouseEvent(Struct, frozen=True):
    """A mouse event at a cell, counted from 0."""

    row: Annotated[int, Meta(ge=0, le=999)]
    col: Annotated[int, Meta(ge=0, le=999)]
    event: Literal["click", "press", "release", "move", "scroll_up", "scroll_down"] = "click"
    button: Literal["left", "middle", "right"] = "left"
    count: Annotated[int, Meta(ge=1, le=100)] = 1
    """How many clicks, or how many notches of the wheel."""
    shift: bool = False
    alt: bool = False
    ctrl: bool = False


class Mouse(_Action, frozen=True, tag="mouse"):
    """Use the mouse, encoded by the protocol the program asked for."""

    value: MouseEvent


Action = (
    Text
    | Paste
    | BracketedPaste
    | Key
    | Resize
    | Interrupt
    | Eof
    | Kill
    | Signal
    | MarkTranscript
    | StreamText
    | Mouse
)

InputKind = Literal[
    "text", "key", "paste", "bytes", "mouse", "resize", "signal", "escape_reply", "intent"
]
"""The kinds of inputs in the log of a session (`input_log`)."""


# Exceptions of `PtySession.act`.


class ProgramEnded(Exception):
    """The program has ended, so the action has no effect."""

    def __init__(self, ended: Exit, so: str = "nothing reads what is typed") -> None:
        super().__init__(f"the program {ended}; {so}")
        self.exit = ended


class NoMouse(Exception):
    """The program did not ask for mouse events."""


class InputNotRead(Exception):
    """The program did not read its input in time; the rest of a long input was dropped."""

    def __init__(self, left: int) -> None:
        super().__init__(
            f"the program read nothing for {limits.INPUT_SECONDS} s: {left} bytes wait for it, and "
            "the rest was not sent; interrupt it, or send less at a time"
        )
