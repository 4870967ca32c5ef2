"""Whether a text that somebody made of a screen quotes a secret of it.

A rule knows a secret by what stands around it (`password=`). A plugin's predicate sees the screen
as it is and may say the secret alone, where no rule knows it any more. So what it says is compared
with what was hidden in the moment that it speaks of. Used by `telling`.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final

from telex.terminal.transcript import strip_escapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.redaction import Redactor
    from telex.terminal.cells import Row
    from telex.terminal.moment import KeptMoment

SHORTEST: Final = 4
"""Fewer characters of a secret say nothing about it: they stand in half of all words."""
SHARED: Final = 8
"""So many characters in a row that a text has in common with a secret are no chance."""


class Told:
    """One moment, as somebody else is told of it."""

    def __init__(self, moment: KeptMoment, redactor: Redactor) -> None:
        self._moment = moment
        self._redactor = redactor

    def shows(self, text: str) -> bool:
        """Whether it can be read in what is told of the moment anyway."""
        return text in self._moment.text or text in self._moment.transcript.tail

    def quotes_secret(self, text: str) -> bool:
        """Whether it has a hidden text in it, or is or has a part of one."""
        said = _plain(text)
        return any(_shares(said, secret) for secret in self._secrets)

    @cached_property
    def _secrets(self) -> frozenset[str]:
        hidden = frozenset(map(_plain, self._hidden()))
        return frozenset(secret for secret in hidden if len(secret) >= SHORTEST)

    def _hidden(self) -> Iterator[str]:
        moment = self._moment
        for seen, told in zip(moment.unmasked.rows, moment.snapshot.rows, strict=True):
            if seen is not told:
                yield from _masked(seen, told)
        printed = strip_escapes(moment.transcript.unredacted_tail())
        for text in (printed, moment.unmasked.title or ""):
            for start, end in self._redactor.spans(text):
                yield text[start:end]


def _masked(seen: Row, told: Row) -> Iterator[str]:
    cells = zip(seen.cells, told.cells, strict=True)
    for hidden, run in groupby(cells, key=lambda pair: pair[0] != pair[1]):
        if hidden:
            yield "".join([before.text for before, _ in run])


def _plain(text: str) -> str:
    """Without what plugins change most: case, and the blanks that a wrapped line has in it."""
    return "".join(text.split()).casefold()


def _shares(said: str, secret: str) -> bool:
    if secret in said or (len(said) >= SHORTEST and said in secret):
        return True
    return any(secret[at : at + SHARED] in said for at in range(len(secret) - SHARED + 1))
