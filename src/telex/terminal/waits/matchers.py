"""Matchers: the states that a caller can wait for, as values.

A matcher states the condition, not how it is checked: `compiler` compiles each to a condition.
`session.wait` has them on the wire, so the tags and the bounds are those of the automation
protocol; `telex.match` creates them with short functions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from telex.terminal.input_state import WaitingState

Milliseconds = Annotated[int, Meta(ge=0, le=86_400_000, description="Milliseconds, up to a day.")]


Since = Annotated[int, Meta(ge=0)] | str
"""A sequence number, or the mark that `session.input` returned."""


class _Matcher(Struct, frozen=True, tag_field="type"):
    pass


class ContainsText(_Matcher, frozen=True, tag="contains_text"):
    """The text is on the screen."""

    value: str
    since: Since | None = None


class ScreenRegex(_Matcher, frozen=True, tag="screen_regex"):
    """The screen matches the pattern (RE2)."""

    value: str
    since: Since | None = None


class TranscriptContains(_Matcher, frozen=True, tag="transcript_contains"):
    """The text was printed."""

    value: str
    since: Since | None = None


class TranscriptRegex(_Matcher, frozen=True, tag="transcript_regex"):
    """The printed text matches the pattern (RE2)."""

    value: str
    since: Since | None = None


class TextAbsent(_Matcher, frozen=True, tag="text_absent"):
    """The text is not on the screen."""

    value: str


class Title(_Matcher, frozen=True, tag="title"):
    """The window title contains the text."""

    value: str


class CellPosition(Struct, frozen=True):
    """A cell, counted from 0."""

    row: int
    col: int


class CursorAt(_Matcher, frozen=True, tag="cursor_at"):
    """The cursor is at the given cell."""

    value: CellPosition


class Stability(Struct, frozen=True):
    """How long the screen must not change."""

    min_ms: Milliseconds
    since: Literal["wait", "change"] = "wait"
    """The start of the time: the beginning of the wait, or the last visible change."""


class ScreenStable(_Matcher, frozen=True, tag="screen_stable"):
    """Nothing changed for the given time."""

    value: Stability


class ScreenChanged(_Matcher, frozen=True, tag="screen_changed"):
    """The screen, its text or a style, has changed since a moment."""

    since: Since | None = None
    """Needed here, or in the wait."""


class ProcessExited(_Matcher, frozen=True, tag="process_exited"):
    """The program has exited."""


class ExitCode(_Matcher, frozen=True, tag="exit_code"):
    """The program has exited with the given code."""

    value: int


class InputWanted(_Matcher, frozen=True, tag="input_wanted"):
    """The program waits for input."""

    value: tuple[WaitingState, ...] = ()
    """The kinds of input that count; empty for all."""


class Predicate(Struct, frozen=True):
    """A function that a Lua plugin exports."""

    plugin: str
    predicate: str
    params: dict[str, Any] | None = None


class Lua(_Matcher, frozen=True, tag="lua"):
    """The predicate of a plugin returns true."""

    value: Predicate


class AnyOf(_Matcher, frozen=True, tag="any"):
    """At least one matcher matches. An empty list never matches: the wait times out."""

    value: Annotated[tuple[Matcher, ...], Meta(max_length=64)]


class AllOf(_Matcher, frozen=True, tag="all"):
    """All matchers match at the same moment. An empty list matches at once."""

    value: Annotated[tuple[Matcher, ...], Meta(max_length=64)]


class Not(_Matcher, frozen=True, tag="not"):
    """The matcher does not match."""

    value: Matcher


Matcher = (
    ContainsText
    | ScreenRegex
    | TranscriptContains
    | TranscriptRegex
    | TextAbsent
    | Title
    | CursorAt
    | ScreenStable
    | ScreenChanged
    | ProcessExited
    | ExitCode
    | InputWanted
    | Lua
    | AnyOf
    | AllOf
    | Not
)
