"""Matchers: what a caller wants to wait for, as values.

They say what is wanted and nothing about how it is found: `compiler` makes a condition of each.
`session.wait` carries them over the wire, so the tags and the bounds are those of the automation
protocol; `telex.match` makes them in a few words.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Milliseconds = Annotated[int, Meta(ge=0, le=86_400_000, description="Milliseconds, up to a day.")]


Since = Annotated[int, Meta(ge=0)] | str
"""A sequence number, or the mark that `session.input` returned."""


class _Matcher(Struct, frozen=True, tag_field="type"):
    pass


class ContainsText(_Matcher, frozen=True, tag="contains_text"):
    """This text stands on the screen."""

    value: str
    since: Since | None = None


class ScreenRegex(_Matcher, frozen=True, tag="screen_regex"):
    """The screen matches this pattern (RE2)."""

    value: str
    since: Since | None = None


class TranscriptContains(_Matcher, frozen=True, tag="transcript_contains"):
    """This text was printed."""

    value: str
    since: Since | None = None


class TranscriptRegex(_Matcher, frozen=True, tag="transcript_regex"):
    """What was printed matches this pattern (RE2)."""

    value: str
    since: Since | None = None


class TextAbsent(_Matcher, frozen=True, tag="text_absent"):
    """This text does not stand on the screen."""

    value: str


class Title(_Matcher, frozen=True, tag="title"):
    """The window title contains this text."""

    value: str


class CellPosition(Struct, frozen=True):
    """A cell, counted from 0."""

    row: int
    col: int


class CursorAt(_Matcher, frozen=True, tag="cursor_at"):
    """The cursor stands there."""

    value: CellPosition


class Stability(Struct, frozen=True):
    """How long nothing may change."""

    min_ms: Milliseconds
    since: Literal["wait", "change"] = "wait"
    """From when: the begin of the wait, or the last change of what is visible."""


class ScreenStable(_Matcher, frozen=True, tag="screen_stable"):
    """Nothing changed for so long."""

    value: Stability


class ProcessExited(_Matcher, frozen=True, tag="process_exited"):
    """The program ended."""


class ExitCode(_Matcher, frozen=True, tag="exit_code"):
    """The program ended with this code."""

    value: int


class Predicate(Struct, frozen=True):
    """A function that a Lua plugin exports."""

    plugin: str
    predicate: str
    params: dict[str, Any] | None = None


class Lua(_Matcher, frozen=True, tag="lua"):
    """A plugin's predicate says so."""

    value: Predicate


class AnyOf(_Matcher, frozen=True, tag="any"):
    """One of these. Of none, none is ever true: the wait times out."""

    value: Annotated[tuple[Matcher, ...], Meta(max_length=64)]


class AllOf(_Matcher, frozen=True, tag="all"):
    """All of these at once. Of none, all are true: the wait matches at once."""

    value: Annotated[tuple[Matcher, ...], Meta(max_length=64)]


class Not(_Matcher, frozen=True, tag="not"):
    """Not this."""

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
    | ProcessExited
    | ExitCode
    | Lua
    | AnyOf
    | AllOf
    | Not
)
