"""What changed on a terminal since it was last looked at, row by row, as packed cells.

The library calls it a render state. Only the terminals that were looked at last keep theirs. Used
by `ghostty`.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from telex.terminal.cells import PLAIN, Style
from telex.terminal.libghostty import GRAPHEME, LAYOUT, STYLED, WRAP, check, ffi, lib, sized
from telex.terminal.packed import CELL_BYTES, Packed
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY_ROW: Final = range(65_536)
"""The library counts rows in 16 bits."""
_CLUSTER_TAG: Final = lib.GHOSTTY_CELL_CONTENT_CODEPOINT_GRAPHEME


class Frame:
    """What the library calls a render state: it knows which rows changed since it last looked.

    One takes some 80 bytes a cell, five times what an idle terminal takes, so only the terminals
    that were looked at last have one (`keep`). A new one finds everything changed, and `Screen`
    sees for itself which rows are still the same.
    """

    def __init__(self) -> None:
        self._state: Any = _made("GhosttyRenderState", lib.ghostty_render_state_new)
        self._rows: Any = _made(
            "GhosttyRenderStateRowIterator", lib.ghostty_render_state_row_iterator_new
        )
        self._cells: Any = _made(
            "GhosttyRenderStateRowCells", lib.ghostty_render_state_row_cells_new
        )
        weakref.finalize(self, _free_frame, self._state[0], self._rows[0], self._cells[0])
        self.weight = 0
        """How many cells it holds."""
        self._dirty: Any = ffi.new("GhosttyRenderStateDirty*")
        self._y: Any = ffi.new("uint16_t*")
        self._view: Any = ffi.new("GhosttyCellsView*")
        self._raw: Any = ffi.new("GhosttyRow*")
        self._values: Any = ffi.new("void*[2]", [self._view, self._raw])
        self._style: Any = sized("GhosttyStyle")

    def read(self, terminal: Any) -> tuple[bool, list[tuple[int, Packed]]]:
        state = self._state[0]
        check(lib.ghostty_render_state_update(state, terminal), "render_state_update")
        lib.ghostty_render_state_get(state, _DIRTY, self._dirty)
        dirty = self._dirty[0]
        if not dirty:
            return False, []
        lib.ghostty_render_state_get(state, _ITERATOR, self._rows)
        found = self._copied(self._rows[0])
        lib.ghostty_render_state_clean(state)
        if dirty == lib.GHOSTTY_RENDER_STATE_DIRTY_FULL:
            self.weight = len(found) * self._view.len
        return dirty == lib.GHOSTTY_RENDER_STATE_DIRTY_FULL, found

    def _copied(self, rows: Any) -> list[tuple[int, Packed]]:
        y, view, raw, values = self._y, self._view, self._raw, self._values
        next_dirty, get = _next_dirty, _row_get_multi  # names looked up once, not for each row
        buffer, none, made = ffi.buffer, ffi.NULL, tuple.__new__
        found: list[tuple[int, Packed]] = []
        for _ in _EVERY_ROW:  # no longer than a screen can be high, whatever the library answers
            if not next_dirty(rows, y):
                break
            get(rows, 2, _ROW_KEYS, values, none)
            cells, bits = buffer(view.ptr, view.len * CELL_BYTES)[:], raw[0]
            if bits & _MARKED:
                found.append((y[0], self._marked(rows, cells, bits)))
            else:
                found.append((y[0], made(Packed, (cells, bits & WRAP != 0, (), ()))))
        return found

    def _marked(self, row: Any, cells: bytes, bits: int) -> Packed:
        lib.ghostty_render_state_row_get(row, _ROW_CELLS, self._cells)
        styles = tuple(self._styles(cells)) if bits & STYLED else ()
        clusters = tuple(self._clusters(cells)) if bits & GRAPHEME else ()
        return Packed(cells, bits & WRAP != 0, styles, clusters)

    def _styles(self, cells: bytes) -> list[tuple[int, Style]]:
        """What the style numbers of a row mean now: they are given anew when nobody uses them."""
        columns = _style_numbers(cells)
        return [(number, self._style_at(columns[number])) for number in sorted(columns)]

    def _style_at(self, col: int) -> Style:
        cells = self._cells[0]
        lib.ghostty_render_state_row_cells_select(cells, col)
        lib.ghostty_render_state_row_cells_get(cells, _STYLE, self._style)
        key = ffi.buffer(self._style)[:]
        known = _known_styles.get(key)
        if known is None:
            if len(_known_styles) >= _STYLES_KEPT:
                _known_styles.clear()
            known = _known_styles[key] = _style(self._style)
        return known

    def _clusters(self, cells: bytes) -> Iterator[tuple[int, str]]:
        size = ffi.new("uint32_t*")
        cells_get = lib.ghostty_render_state_row_cells_get
        for col, cell in enumerate(memoryview(cells).cast("Q")):
            if LAYOUT.tag.of(cell) == _CLUSTER_TAG:
                lib.ghostty_render_state_row_cells_select(self._cells[0], col)
                cells_get(self._cells[0], _LENGTH, size)
                points = ffi.new("uint32_t[]", max(size[0], 1))
                cells_get(self._cells[0], _POINTS, points)
                yield col, "".join(map(chr, points[0 : size[0]]))


_BYTE, _BIT = divmod(LAYOUT.style.lsb, 8)


def _style_numbers(cells: bytes) -> dict[int, int]:
    """The style numbers of a row, but 0, each with a column that has it.

    They are given from 1 on, so most rows have them in one byte of each cell.
    """
    mask = (1 << LAYOUT.style.width) - 1
    low = cells[_BYTE::CELL_BYTES]
    if cells[_BYTE + 1 :: CELL_BYTES].strip(b"\0") or cells[_BYTE + 2 :: CELL_BYTES].strip(b"\0"):
        view = memoryview(cells).cast("Q")
        found = {cell >> LAYOUT.style.lsb & mask: col for col, cell in enumerate(view)}
    else:
        found = {value >> _BIT: low.index(value) for value in set(low)}
    found.pop(0, None)
    return found


_DIRTY: Final = lib.GHOSTTY_RENDER_STATE_DATA_DIRTY
_ITERATOR: Final = lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR
_ROW_CELLS: Final = lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS
_STYLE: Final = lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_STYLE
_next_dirty: Final = lib.ghostty_render_state_row_iterator_next_dirty
_row_get_multi: Final = lib.ghostty_render_state_row_get_multi
_MARKED: Final = STYLED | GRAPHEME
_LENGTH: Final = lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_GRAPHEMES_LEN
_POINTS: Final = lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_GRAPHEMES_BUF
_ROW_KEYS: Final = ffi.new(
    "GhosttyRenderStateRowData[]",
    [lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW, lib.GHOSTTY_RENDER_STATE_ROW_DATA_RAW],
)

_STYLES_KEPT: Final = 16_384
_known_styles: dict[bytes, Style] = {}

_kept: OrderedDict[int, Frame] = OrderedDict()


def take(number: int) -> Frame:
    """The frame of the terminal of that number, or a new one."""
    return _kept.pop(number, None) or Frame()


def keep(number: int, frame: Frame) -> None:
    """For its next look, unless others are looked at in the meantime."""
    _kept[number] = frame
    while len(_kept) > 1 and sum(one.weight for one in _kept.values()) > limits.FRAME_CELLS:
        _kept.popitem(last=False)


def forget(number: int) -> None:
    """That terminal is gone."""
    _kept.pop(number, None)


def _made(kind: str, new: Any) -> Any:
    out = ffi.new(f"{kind}*")
    check(new(ffi.NULL, out), kind)
    return out


def _free_frame(state: Any, rows: Any, cells: Any) -> None:
    lib.ghostty_render_state_row_cells_free(cells)
    lib.ghostty_render_state_row_iterator_free(rows)
    lib.ghostty_render_state_free(state)


def _style(style: Any) -> Style:
    made = Style(
        foreground=_colour(style.fg_color),
        background=_colour(style.bg_color),
        bold=style.bold,
        dim=style.faint,
        italic=style.italic,
        underline=style.underline != 0,
        inverse=style.inverse,
        strikethrough=style.strikethrough,
        blink=style.blink,
        invisible=style.invisible,
    )
    return PLAIN if made == PLAIN else made


def _colour(colour: Any) -> str:
    if colour.tag == lib.GHOSTTY_STYLE_COLOR_PALETTE:
        return f"idx:{colour.value.palette}"
    if colour.tag == lib.GHOSTTY_STYLE_COLOR_RGB:
        rgb = colour.value.rgb
        return f"rgb:{rgb.r}:{rgb.g}:{rgb.b}"
    return "default"
