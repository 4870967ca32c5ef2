"""Rows as the emulator stores them, one 64-bit number per cell, and their decoding.

Pure: bytes in, `Row`s out; `emulator` copies the bytes and knows their layout. The text of a row is
decoded at once, for all rows together, because waits search it: the cells are shifted and masked as
one large number, so that each cell becomes one UTF-32 character, at a tenth of the cost of a loop
over cells. The cells themselves are decoded on demand from the copied bytes, so they are right even
if the terminal has changed since.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from telex.terminal.cells import BLANK, PLAIN, Cell, Row, Style

if TYPE_CHECKING:
    from collections.abc import Sequence

CELL_BYTES: Final = 8
_LANE: Final = 4
"""Text is read from the low half of each cell: `CellLayout` ensures that all of it is there."""
_KEPT: Final = 65_536
"""The number of cells and styles that are cached before the cache is emptied: a hostile program
must not make it grow.
"""
_BATCH: Final = 32
"""Rows whose text is decoded at once: enough for most screens."""


class BitField(NamedTuple):
    """The bits of a value in a packed cell."""

    lsb: int
    width: int

    def of(self, cell: int) -> int:
        return cell >> self.lsb & (1 << self.width) - 1


class CellLayout(NamedTuple):
    """The positions of the parts of a packed cell. Read from the library, never assumed."""

    tag: BitField
    """0 a character, 1 a character with more code points (a cluster), 2 a palette colour, 3 RGB."""
    content: BitField
    codepoint: BitField
    style: BitField
    wide: BitField
    """0 narrow, 1 first cell of a wide character, 2 its second cell, 3 left blank before a wrap."""

    @property
    def readable(self) -> bool:
        """Return whether `RowUnpacker` supports it: tag and text in the low half, wide bits in one
        byte.
        """
        return (
            self.tag == BitField(0, 2)
            and self.codepoint.lsb + self.codepoint.width <= _LANE * 8
            and self.wide.width == 2
            and self.wide.lsb % 8 <= 6
        )


class Packed(NamedTuple):
    """A copied row. Equal rows look the same: style numbers are stored with their styles."""

    cells: bytes
    wrapped: bool
    styles: tuple[tuple[int, Style], ...] = ()
    clusters: tuple[tuple[int, str], ...] = ()
    """Column and text of each cell with more than one code point."""


class PackedRow(Row):
    """A row whose cells are decoded on first use."""

    def __init__(self, packed: Packed, text: str, unpacking: RowUnpacker) -> None:
        self.packed = packed
        self.wrapped = packed.wrapped
        self.text = text
        self._unpacking = unpacking

    @property
    def cols(self) -> int:
        return len(self.packed.cells) // CELL_BYTES

    @cached_property
    def cells(self) -> tuple[Cell, ...]:  # type: ignore[override]  # lazy here, given there
        return self._unpacking.cells(self.packed)

    @cached_property
    def printed_text(self) -> str:
        if self.text.isascii():  # the usual row: one character for each cell
            return self.text + self._unpacking.blanks(self.packed, len(self.text))
        return Row(self.cells).printed_text


class _CellTable(dict[int, Cell]):
    """A cache of the cells of one style, by the packed cell without its style number."""

    def __init__(self, unpacking: RowUnpacker, style: Style) -> None:
        self._unpacking, self._style = unpacking, style

    def __missing__(self, packed: int) -> Cell:
        self._unpacking.made += 1
        cell = self[packed] = self._decode(packed)
        return cell

    def _decode(self, packed: int) -> Cell:
        layout, style = self._unpacking.layout, self._style
        tag, wide = layout.tag.of(packed), layout.wide.of(packed)
        if tag >= 2:
            return Cell("", _coloured(style, tag, layout.content.of(packed)))
        if wide == 3:  # shown like an erased cell: its other attributes are not visible
            style = replace(PLAIN, background=style.background)
        point = layout.codepoint.of(packed)
        text = chr(point) if point else ""
        width = (1, 2, 0, 1)[wide]
        return BLANK if (text, style, width) == ("", PLAIN, 1) else Cell(text, style, width)


def _coloured(style: Style, tag: int, content: int) -> Style:
    """Return the style of an erased cell: it stores its background in place of a character."""
    if tag == 2:
        colour = f"idx:{content & 0xFF}"
    else:
        colour = f"rgb:{content & 0xFF}:{content >> 8 & 0xFF}:{content >> 16 & 0xFF}"
    return replace(style, background=colour)


class RowUnpacker:
    """Decodes packed rows of one layout. Shared by all screens: it caches only values."""

    def __init__(self, layout: CellLayout) -> None:
        self.layout = layout
        self.made = 0
        """The number of cached cells."""
        self._tables: dict[Style, _CellTable] = {}
        self._bare = ~((1 << layout.style.width) - 1 << layout.style.lsb)
        byte, bit = divmod(layout.wide.lsb, 8)
        self._wide_byte = byte
        self._narrow = bytes(n for n in range(256) if not n >> bit & 3)

    def rows(self, packed: Sequence[Packed]) -> list[PackedRow]:
        """Decode rows of one width, a batch at a time, so that the masks stay small on large
        screens.
        """
        made: list[PackedRow] = []
        for start in range(0, len(packed), _BATCH):
            batch = packed[start : start + _BATCH]
            for one, text in zip(batch, self._texts(batch), strict=True):
                # Most of an idle screen is blank: one blank row is used for all of them.
                same = made and made[-1].packed == one
                made.append(made[-1] if same else PackedRow(one, text, self))
        return made

    def cells(self, packed: Packed) -> tuple[Cell, ...]:
        view = memoryview(packed.cells).cast("Q")
        plain = self._table(PLAIN)
        if packed.styles:
            tables = {0: plain, **{number: self._table(style) for number, style in packed.styles}}
            lsb, mask, bare = self.layout.style.lsb, (1 << self.layout.style.width) - 1, self._bare
            cells = [tables[cell >> lsb & mask][cell & bare] for cell in view]
        else:
            cells = list(map(plain.__getitem__, view))
        for col, text in packed.clusters:
            cells[col] = Cell(text, cells[col].style, cells[col].width)
        return tuple(cells)

    def blanks(self, packed: Packed, col: int) -> str:
        """Return the blanks that were printed from a column on, up to the end of the row."""
        rest = packed.cells[col * CELL_BYTES :]
        first = int.from_bytes(rest[:CELL_BYTES], "little")
        if self.layout.codepoint.of(first) != ord(" ") or self.layout.tag.of(first) >= 2:
            return ""
        return " " * len(self._points(rest).rstrip("\0"))

    def _table(self, style: Style) -> _CellTable:
        if self.made > _KEPT or len(self._tables) > _KEPT:
            self._tables, self.made = {}, 0
        table = self._tables.get(style)
        if table is None:
            table = self._tables[style] = _CellTable(self, style)
        return table

    def _texts(self, packed: Sequence[Packed]) -> list[str]:
        text = self._characters(b"".join([row.cells for row in packed]))
        cols = len(text) // len(packed)
        plain = text.isascii()
        texts = []
        for n, row in enumerate(packed):
            line = text[n * cols : (n + 1) * cols]
            if row.clusters or not (plain or line.isascii() or self._narrow_only(row.cells)):
                line = "".join([cell.text or " " for cell in self.cells(row) if cell.width])
            texts.append(line.rstrip(" "))
        return texts

    def _characters(self, cells: bytes) -> str:
        """Return one character for each cell: a blank for an empty cell."""
        return self._points(cells).replace("\0", " ")

    def _points(self, cells: bytes) -> str:
        """Return one character for each cell: a NUL for an empty cell."""
        low = memoryview(cells).cast("I")[::2].tobytes()
        ones, points = _masks(len(low), self.layout.codepoint.width)
        number = int.from_bytes(low, "little")
        characters = number >> self.layout.codepoint.lsb & points
        if colours := number >> 1 & ones:
            characters &= points ^ colours * ((1 << self.layout.codepoint.width) - 1)
        raw = characters.to_bytes(len(low), "little")
        return raw.decode("utf-32-le", "replace")

    def _narrow_only(self, cells: bytes) -> bool:
        return not cells[self._wide_byte :: CELL_BYTES].translate(None, self._narrow)


@lru_cache(maxsize=_BATCH)
def _masks(size: int, width: int) -> tuple[int, int]:
    """Return a 1 in each lane, and a mask of all bits of a code point in each lane."""
    ones = int.from_bytes(b"\1\0\0\0" * (size // _LANE), "little")
    return ones, ones * ((1 << width) - 1)
