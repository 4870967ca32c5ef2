"""The lines of an exported session, NDJSON: what each holds. Pure.

A first line says what the file is, a last one how many lines came before it and their hash. Between
them each thread is followed by its runs, each run by its questions and events. JSON that others
wrote stays the bytes it was. Decisions are never exported: a file must not bring permissions along.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from telex.agent.store.records import Status

FORMAT: Final = "telex.agent.export"
NULL: Final = msgspec.Raw(b"null")

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A count: SQLite keeps no integer of any size, as JSON does."""

Time = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""In milliseconds, until the year 10000: a calendar has no later ones."""


class Head(msgspec.Struct, frozen=True, tag_field="type", tag=FORMAT):
    version: int


class ThreadLine(msgspec.Struct, frozen=True, tag_field="type", tag="thread"):
    id: str
    created_at: Time
    updated_at: Time
    meta: msgspec.Raw = NULL
    workspace: str | None = None


class RunLine(msgspec.Struct, frozen=True, tag_field="type", tag="run"):
    id: str
    status: Status
    message: str | None
    input: msgspec.Raw
    said: str
    started_at: Time
    ended_at: Time | None
    meta: msgspec.Raw = NULL


class QuestionLine(msgspec.Struct, frozen=True, tag_field="type", tag="question"):
    method: str
    params: msgspec.Raw
    digest: bytes
    asked_at: Time
    answer: msgspec.Raw
    closed_by: str | None
    closed_at: Time | None


class EventLine(msgspec.Struct, frozen=True, tag_field="type", tag="event"):
    seq: Number
    at: Time
    event: msgspec.Raw
    meta: msgspec.Raw = NULL


class EndLine(msgspec.Struct, frozen=True, tag_field="type", tag="end"):
    lines: int
    sha256: str


Line = Head | ThreadLine | RunLine | QuestionLine | EventLine | EndLine


def raw(kept: bytes | None) -> msgspec.Raw:
    return NULL if kept is None else msgspec.Raw(kept)


def kept(value: msgspec.Raw) -> bytes | None:
    """The bytes as they stood in the file; None for null, which the store never keeps."""
    found = bytes(value)
    return None if found == b"null" else found
