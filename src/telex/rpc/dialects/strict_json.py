"""Strict JSON decoding: the checks that msgspec does not make on untrusted input.

msgspec already refuses NaN, lone surrogate escapes, raw control characters and trailing data. Two
checks remain: a body kept as `Raw` is not checked for UTF-8, and nesting is bounded only by the
stack. For duplicate keys the last one is used; JSON escapes refuse them (`json_escapes.repeated`).
Both dialects use this module first on every body.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from telex.rpc import limits

_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)
"""Possessive, so that an unterminated string is scanned once and not once for each quote."""
_HALF_A_PAIR = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])", re.DOTALL)
_HALF = "It contains an unpaired surrogate (\\ud800 to \\udbff)."
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")

T = TypeVar("T")


class NotStrictJson(ValueError):
    """The bytes are not acceptable JSON; the message says why, without quoting them."""


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


def _sentence(message: str, body: bytes) -> str:
    """Return msgspec's message, corrected where it reports a lone surrogate as truncation."""
    return _HALF if "truncated" in message and _HALF_A_PAIR.search(body) else message


def _check_utf8(body: bytes) -> None:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotStrictJson(f"It is not UTF-8 (byte {error.start}).") from None


def too_deep(body: bytes) -> bool:
    """Whether brackets nest beyond the limit, without a Python loop over them.

    With few brackets there is nothing to count. Otherwise only the brackets are kept, and the
    innermost pairs are removed, one level at a time: brackets that are left after the allowed
    number of levels were nested too deep.
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
