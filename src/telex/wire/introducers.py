"""Where claimed control strings begin in a read, found fast.

Nearly no read holds one, and a program that paints a whole screen sends an ESC every few bytes, so
a look at each ESC is what must not happen. Introducers that begin alike are one family, searched
for together and from their second byte on: the engine then skips ahead to that byte, which is rare,
and the ESC before it is asked for only where the rest stands. Before that, one memchr for a byte
that all of them have dismisses most reads.

Used by `demux` only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from telex.wire.escape import ESC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.wire.escape import Claim


class _Family:
    """Introducers of one kind of control string."""

    def __init__(self, members: list[bytes]) -> None:
        first, last = min(members), max(members)
        common = next(first[:n] for n in range(len(first), 0, -1) if last.startswith(first[:n]))
        self.telltale = max(common)
        """The highest byte: what colour codes are made of (digits, `;`, `[`) sorts below it."""
        rests = b"|".join(re.escape(member.removeprefix(common)) for member in members)
        tail, whole = re.escape(common[1:]), re.escape(common)
        self._search = re.compile(b"%b(?<=%b)(?:%b)" % (tail, whole, rests)).search

    def find(self, data: bytes, at: int = 0) -> int:
        """Where a member stands next, or the end of the data."""
        found = self._search(data, at + 1)
        return found.start() - 1 if found else len(data)


class Introducers:
    """The introducers of some claims, and where they stand in the read at hand."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        self._claims = {claim.introducer: claim for claim in claims}
        kinds = {introducer[:2] for introducer in self._claims}
        self._families = [
            _Family([i for i in self._claims if i.startswith(kind)]) for kind in kinds
        ]
        self._beginnings = frozenset(
            introducer[:n] for introducer in self._claims for n in range(1, len(introducer))
        )
        self._longest = max(map(len, self._beginnings), default=1)
        self._read = b""
        self._ahead: list[int] = []
        """Where each family stands next, or is still to be looked for."""

    def absent_from(self, read: bytes) -> bool:
        """Whether the read surely holds no introducer, nor ends in the beginning of one."""
        for family in self._families:
            if family.telltale in read and family.find(read) < len(read):
                return False
        esc = read.rfind(ESC, -self._longest)
        return esc < 0 or read[esc:] not in self._beginnings

    def look_at(self, read: bytes) -> None:
        """Search this read from now on."""
        self._read = read
        self._ahead = [-1 if family.telltale in read else len(read) for family in self._families]

    def next(self, at: int) -> int:
        """Where one stands next, at `at` or later; the end of the read if none does."""
        for index, where in enumerate(self._ahead):
            if where < at:
                self._ahead[index] = self._families[index].find(self._read, at)
        return min(self._ahead, default=len(self._read))

    def claim_at(self, begin: int) -> Claim:
        """Whose introducer it is that stands here."""
        for introducer, claim in self._claims.items():
            if self._read.startswith(introducer, begin):
                return claim
        raise LookupError(f"no introducer stands at byte {begin}")

    def beginning_before(self, end: int, at: int = 0) -> int:
        """How many of the bytes just before `end`, from `at` on, are the start of an introducer."""
        esc = self._read.rfind(ESC, max(at, end - self._longest), end)
        return end - esc if esc >= 0 and self._read[esc:end] in self._beginnings else 0
