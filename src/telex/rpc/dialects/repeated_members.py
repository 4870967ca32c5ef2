"""Whether a name stands twice in one object of a JSON text.

Parsers differ in which of the two counts, so that two readers of one text may see two commands;
msgspec takes the last without a word. This is done to every packet of JSON escapes, so it does not
parse: if no string of the text, name or value, stands there twice, no name does. Only for a text in
which one does, or whose strings cannot be told by their quotes, is there a look in full.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Final

_SPELT: Final = re.compile(rb'"[^"\\]*+\\[^"]*+"\s*+:')
"""A name with an escape in it, in a text without escaped quotes."""
_LONG: Final = 1024
"""No name is that long; and to compare such strings takes longer than all of the rest."""


def repeated(body: bytes) -> frozenset[str]:
    """The names that stand twice in an object somewhere. The text must be JSON."""
    strings = body.split(b'"')[1::2]
    if len(body) > 2 * _LONG and sum([len(one) > _LONG for one in strings]) == 1:
        strings = [one for one in strings if len(one) <= _LONG]
    if len(set(strings)) == len(strings) and (b"\\" not in body or _is_plain(body)):
        return frozenset()
    return _all(body)


def _is_plain(body: bytes) -> bool:
    """Whether each quote is the beginning or end of a string, and no name is spelt with escapes."""
    return b'\\"' not in body and _SPELT.search(body) is None


def _all(body: bytes) -> frozenset[str]:
    found: set[str] = set()

    def look(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        if len(names) > len(set(names)):
            found.update([name for name, count in Counter(names).items() if count > 1])

    json.loads(body, object_pairs_hook=look, parse_int=str, parse_float=str)
    return frozenset(found)
