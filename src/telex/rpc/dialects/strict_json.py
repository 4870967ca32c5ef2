"""JSON, strictly: what msgspec lets pass that a door must not.

msgspec already refuses NaN, lone surrogate escapes, raw control characters and trailing junk. Left
for us: a body kept as `Raw` is not checked for UTF-8, and nesting is bounded only by the stack.
Of duplicate keys the last one counts; JSON escapes refuse them (`repeated`). Used by both dialects
before they look at a body.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from telex.rpc import limits

_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)
"""Possessive, so that a string without its end costs one look and not one for each quote."""
_HALF_A_PAIR = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])", re.DOTALL)
_HALF = "Half of a surrogate pair (\\ud800 to \\udbff) stands alone in it."
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")

T = TypeVar("T")


class NotStrictJson(ValueError):
    """The bytes are no JSON we take; the message says why, without quoting them."""


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode, or raise NotStrictJson (bad JSON) or msgspec.ValidationError (another shape)."""
    if not body.isascii():
        _check_utf8(body)
    if too_deep(body):
        raise NotStrictJson(f"Its brackets do not close within {limits.JSON_DEPTH} levels.")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        raise NotStrictJson(_sentence(str(error), body)) from None


def _sentence(said: str, body: bytes) -> str:
    """msgspec takes half of a pair for the end of its input."""
    return _HALF if "truncated" in said and _HALF_A_PAIR.search(body) else said


def _check_utf8(body: bytes) -> None:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotStrictJson(f"It is not UTF-8 (byte {error.start}).") from None


def too_deep(body: bytes) -> bool:
    """Whether brackets nest beyond the limit, without a Python loop over them.

    With few brackets there is nothing to count. Otherwise only brackets are kept, and the innermost
    pairs are struck out, a level at a time: what is left after the allowed levels was too deep.
    """
    if body.count(b"[") + body.count(b"{") <= limits.JSON_DEPTH:
        return False
    brackets = _STRINGS.sub(b"", body).translate(_ONE_KIND, _NOT_BRACKETS)
    for _ in range(limits.JSON_DEPTH):
        struck = brackets.replace(b"[]", b"")
        if len(struck) == len(brackets):
            break
        brackets = struck
    return bool(brackets)
