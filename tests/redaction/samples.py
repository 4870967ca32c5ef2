"""Text made for a pattern or an alphabet, the same each time for the same seed."""

from __future__ import annotations

import random
import re
import string
from functools import cache


@cache
def characters_of(alphabet: str) -> str:
    """The characters of a set, as it stands between the brackets of a regular expression."""
    member = re.compile(f"[{alphabet}]")
    return "".join(c for c in string.printable if member.fullmatch(c) and not c.isspace())


def made_of(alphabet: str, length: int, rng: random.Random) -> str:
    return "".join(rng.choices(characters_of(alphabet), k=length))


_ATOM = re.compile(r"\\([rn])|\\(.)|\[([^]]*)\]|\(\?:([^()]*)\)|([^\\[({?])")
_COUNT = re.compile(r"\{([0-9]+)(?:,[0-9]+)?\}|(\?)")


def sample(pattern: str, rng: random.Random) -> str:
    """Text that a simple pattern matches: literals, sets, alternatives, counts."""
    made, at = "", 0
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        assert atom, pattern[at:]
        at = atom.end()
        count = _COUNT.match(pattern, at)
        times = 1
        if count:
            at = count.end()
            times = 0 if count[2] else int(count[1])
        for _ in range(times):
            made += _one(atom, rng)
    return made


def _one(atom: re.Match[str], rng: random.Random) -> str:
    escape, literal, alphabet, alternatives, plain = atom.groups()
    if escape:
        return {"r": "\r", "n": "\n"}[escape]
    if alphabet:
        return made_of(alphabet, 1, rng)
    if alternatives is not None:
        return sample(rng.choice(alternatives.split("|")), rng)
    return literal or plain
