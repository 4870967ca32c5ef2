"""To what a message is the answer that cannot be read: told from how it begins. Pure.

A message may be too large, no UTF-8, too deep, or hold half a character; whoever waits for it is to
hear so, and not to wait for ever. So the members at the top are looked at as far as they can be
told apart, and no further than its first bytes: most write the id before the rest.

Used by `hearing`.
"""

from __future__ import annotations

import re
from typing import Final

LOOKED_AT: Final = 4096
"""Bytes: a header, and the members before a result."""

_TOKEN: Final = re.compile(
    rb'"((?:[^"\\]|\\.)*+)"(\s*:\s*(?:(-?[0-9]{1,18})\b|"([^"\\]*)")?)?|[{}\[\]]'
)


class NotAnAnswer(Exception):
    """It has a method: somebody asks or tells something."""


def answered(begins: bytes) -> int | str | None:
    """The id of what it answers; None where it cannot be told. Raises NotAnAnswer."""
    found: int | str | None = None
    depth = 0
    for token in _TOKEN.finditer(begins, max(0, begins.find(b"{")), LOOKED_AT):
        if token[0] in b"{[":
            depth += 1
        elif token[0] in b"}]":
            depth -= 1
        elif depth == 1 and token[2] is not None:
            if token[1] == b"method":
                raise NotAnAnswer
            if token[1] == b"id":
                found = _id(token[3], token[4])
    return found


def _id(number: bytes | None, text: bytes | None) -> int | str | None:
    if number is not None:
        return int(number)
    return None if text is None else text.decode("utf-8", "replace")
