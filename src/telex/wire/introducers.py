"""A fast search for the introducers of claimed control strings in a read.

Nearly no read contains an introducer, but a program that paints a whole screen sends an ESC every
few bytes. So the search must not stop at each ESC. Introducers with a common beginning form one
family and are searched together, from their second byte on: the regex engine skips ahead to that
byte, which is rare, and tests for the ESC before it only where the rest matches. Before that, one
memchr for a byte that the whole family has in common dismisses most reads.

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
    """The introducers of one kind of control string, searched together."""

    def __init__(self, members: list[bytes]) -> None:
        first, last = min(members), max(members)
        common = next(first[:n] for n in range(len(first), 0, -1) if last.startswith(first[:n]))
        self.telltale = max(common)
        """The highest byte of it: the bytes of colour codes (digits, `;`, `[`) sort below it."""
        rests = b"|".join(re.escape(member.removeprefix(common)) for member in members)
        tail, whole = re.escape(common[1:]), re.escape(common)
        self._search = re.compile(b"%b(?<=%b)(?:%b)" % (tail, whole, rests)).search

    def find(self, data: bytes, at: int = 0) -> int:
        """Return where the next member stands, or the length of the data."""
        found = self._search(data, at + 1)
        return found.start() - 1 if found else len(data)


class Introducers:
    """Finds the introducers of some claims in one read at a time."""

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
        """Where each family was found next; less than the search position if not searched yet."""

    def absent_from(self, read: bytes) -> bool:
        """Whether the read certainly has no introducer and does not end in a partial one."""
        for family in self._families:
            if family.telltale in read and family.find(read) < len(read):
                return False
        esc = read.rfind(ESC, -self._longest)
        return esc < 0 or read[esc:] not in self._beginnings

    def start(self, read: bytes) -> None:
        """Search this read from now on."""
        self._read = read
        self._ahead = [-1 if family.telltale in read else len(read) for family in self._families]

    def next(self, at: int) -> int:
        """Return where the next introducer stands, at `at` or later; else the read's length."""
        for index, where in enumerate(self._ahead):
            if where < at:
                self._ahead[index] = self._families[index].find(self._read, at)
        return min(self._ahead, default=len(self._read))

    def claim_at(self, begin: int) -> Claim:
        """Return the claim whose introducer stands at `begin`."""
        for introducer, claim in self._claims.items():
            if self._read.startswith(introducer, begin):
                return claim
        raise LookupError(f"no introducer at byte {begin}")

    def beginning_before(self, end: int, at: int = 0) -> int:
        """Return how many bytes just before `end`, from `at` on, are a partial introducer."""
        esc = self._read.rfind(ESC, max(at, end - self._longest), end)
        return end - esc if esc >= 0 and self._read[esc:end] in self._beginnings else 0
