"""Header blocks that come again: HPACK, with a memory of what it said last.

A page that polls sends the same header fields over and over, and is answered with the same ones;
coding them anew in Python was a fifth of a request's time. With an unchanged table the same fields
are the same bytes, and the other way round, so that is remembered until a table changes. What goes
over the wire is the same as without.

Used by `outgoing`, in place of the library's own two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from hpack import Decoder, Encoder

if TYPE_CHECKING:
    from hpack import HeaderTuple
    from hpack.table import HeaderTable

_BLOCKS: Final = 64
_BLOCK_BYTES: Final = 1024
"""What is longer is no longer worth its place: a peer decides what is kept here."""


class _Unchanged:
    """What holds for one state of a table."""

    def __init__(self, table: HeaderTable) -> None:
        self._table = table
        self._state = self._now()
        self._known: dict[Any, Any] = {}

    def _now(self) -> tuple[object, int, int]:
        """Every entry that is added is the first, and none goes but for one or for the size."""
        entries = self._table.dynamic_entries
        return (entries[0] if entries else None), len(entries), self._table.maxsize

    def get(self, key: object) -> Any:
        return self._known.get(key) if self._is_current() else None

    def keep(self, key: object, value: object) -> None:
        """Only if the table is as it was before `get`."""
        if not self._is_current():
            self._known.clear()
            self._state = self._now()
        elif len(self._known) < _BLOCKS:
            self._known[key] = value

    def _is_current(self) -> bool:
        then, now = self._state, self._now()
        return now[0] is then[0] and now[1:] == then[1:]


class RememberingEncoder(Encoder):
    """Gives the same block for the same fields, while it would be the same."""

    def __init__(self) -> None:
        super().__init__()
        self._unchanged = _Unchanged(self.header_table)

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:
        if self.header_table.resized:  # which the next block says, and it alone
            return super().encode(headers, huffman)
        fields = tuple(headers)
        block: bytes | None = self._unchanged.get(fields)
        if block is None:
            block = super().encode(fields, huffman)
            if len(block) <= _BLOCK_BYTES:
                self._unchanged.keep(fields, block)
        return block


class RememberingDecoder(Decoder):
    """The reverse."""

    def __init__(self) -> None:
        super().__init__()
        self._unchanged = _Unchanged(self.header_table)

    def decode(self, data: bytes, raw: bool = False) -> Iterable[HeaderTuple]:
        block = bytes(data)
        fields: list[HeaderTuple] | None = self._unchanged.get((block, raw))
        if fields is None:
            fields = list(super().decode(data, raw))
            if len(block) <= _BLOCK_BYTES:
                self._unchanged.keep((block, raw), fields)
        return fields.copy()
