"""Finds names that occur twice in one object of a JSON text.

Parsers differ in which of the two members they use, so two readers of one text may see two
different commands; msgspec silently uses the last. The check runs on every packet of JSON escapes,
so it first avoids parsing: if no string of the text, name or value, occurs twice, no name does.
Only a text with a repeated string, or whose strings cannot be found by their quotes, is parsed in
full.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Final

_SPELT: Final = re.compile(rb'"[^"\\]*+\\[^"]*+"\s*+:')
"""A name that contains an escape, in a text without escaped quotes."""
_LONG: Final = 1024
"""No name is this long, and comparing such strings takes longer than all other work here."""


def repeated(body: bytes) -> frozenset[str]:
    """Return the names that occur twice in any object. The text must be valid JSON."""
    strings = body.split(b'"')[1::2]
    if len(body) > 2 * _LONG and sum([len(one) > _LONG for one in strings]) == 1:
        strings = [one for one in strings if len(one) <= _LONG]
    if len(set(strings)) == len(strings) and (b"\\" not in body or _is_plain(body)):
        return frozenset()
    return _all(body)


def _is_plain(body: bytes) -> bool:
    """Whether each quote begins or ends a string, and no name is spelled with escapes."""
    return b'\\"' not in body and _SPELT.search(body) is None


def _all(body: bytes) -> frozenset[str]:
    found: set[str] = set()

    def check(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        if len(names) > len(set(names)):
            found.update([name for name, count in Counter(names).items() if count > 1])

    json.loads(body, object_pairs_hook=check, parse_int=str, parse_float=str)
    return frozenset(found)
