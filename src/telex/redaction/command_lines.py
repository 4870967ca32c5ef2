"""Where the commands of a command line end, for an outlet that knows its text to be one.

In any text `TOKEN=p4ss;word` may be one value, and is hidden whole. In a command line it is two
commands, and the second one is to be read. So there an operator of the shell ends a value, unless
it is quoted; what is quoted is an argument, or after `-c` a command line of its own.

This is no parser of a shell: it looks for operators and quotes. From a here document on it finds no
more of them, and what it does not see stays hidden. Used by `stream`.
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
    """(start, end) of each run of operators that is not quoted."""
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


def cut(spans: list[tuple[int, int]], line: str) -> list[tuple[int, int]]:
    """These spans without the operators in them, and what comes after the first one in each."""
    ends = [start for start, _ in operators(line)]
    kept = ((start, min([end, *(at for at in ends if start <= at < end)])) for start, end in spans)
    return [(start, end) for start, end in kept if end > start]


def commands(line: str) -> Iterator[tuple[int, int]]:
    """(start, end) of what stands between the operators."""
    at = 0
    for start, end in operators(line):
        yield at, start
        at = end
    yield at, len(line)
