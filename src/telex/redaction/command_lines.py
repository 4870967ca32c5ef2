"""The operators of a shell's command line, for an outlet that knows its text to be one.

In any other text `TOKEN=p4ss;word` may be one value and is hidden whole. In a command line it is
two commands, and the second one should stay readable. There an operator ends a value, unless it is
quoted. Quoted text is an argument, or after `-c` a command line of its own.

This is not a shell parser: it looks for operators and quotes only. After a here document begins it
finds no more of them, and the values it misses stay hidden. `stream` uses this module.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(
    r"""
      \\. | \$\{[^}]*\}                                       # an escape, ${name:-x}
    | (?<=[^\s=("'`;&|<>])\$\([^()]*\)                         # inside a word: a$(x)b
    | (?P<document><<)
    | (?P<script>(?<!\S)(?:-[A-Za-z]*c|eval)[ \t]+(?P<quote>["']))   # sh -c '…'
    | '[^']*' | "(?:[^"\\]|\\.)*"
    | (?P<operator>(?:[;&|<>()`\n]|\$\()+)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSED: Final = {"'": re.compile(r"[^']*"), '"': re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)}


def operators(line: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each run of operators that is not quoted."""
    stop = len(line) if end is None else end
    at = begin
    while (token := _TOKEN.search(line, at, stop)) and not token["document"]:
        at = token.end()
        if token["operator"]:
            yield token.span()
        elif token["script"]:
            inner = _CLOSED[token["quote"]].match(line, at, stop)
            closed = inner.end() if inner else stop
            yield from operators(line, at, closed)
            at = closed + 1


def cut_at_operators(spans: list[tuple[int, int]], line: str) -> list[tuple[int, int]]:
    """Return these spans, each cut at its first operator."""
    ends = [start for start, _ in operators(line)]
    kept = ((start, min([end, *(at for at in ends if start <= at < end)])) for start, end in spans)
    return [(start, end) for start, end in kept if end > start]


def commands(line: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the text between the operators."""
    at = 0
    for start, end in operators(line):
        yield at, start
        at = end
    yield at, len(line)
