"""`Emulator`: one terminal of libghostty-vt, with only the parts of its API that we use.

`Emulator` takes bytes and returns packed rows, modes and replies. It makes no decisions: `screen`
decides which replies are allowed, and caches the rows. `RenderState` is the library's record of the
changes of a terminal since it was last read; only the terminals that were read last keep theirs.

Callbacks are created once for the process, and find their terminal by a number: a closure for each
terminal would cost memory and form a reference cycle with the terminal.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from telex.terminal import limits
from telex.terminal.cells import PLAIN, UNDERLINES, Style
from telex.terminal.libghostty import (
    GRAPHEME,
    LAYOUT,
    STYLED,
    WRAP,
    check,
    ffi,
    lib,
    read_buf,
    sized,
    string,
    union_fn,
)
from telex.terminal.packed_rows import CELL_BYTES, Packed
from telex.terminal.scrollback_pool import SHARED_POOL
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.terminal.cells import Size
    from telex.terminal.packed_rows import Packed


_EVERY_ROW: Final = range(65_536)
"""The library counts rows in 16 bits."""
_CLUSTER_TAG: Final = lib.GHOSTTY_CELL_CONTENT_CODEPOINT_GRAPHEME


class RenderState:
    """The library's render state: it knows which rows changed since it was last read.

    A render state takes about 80 bytes per cell, five times the memory of an idle terminal.
    Therefore only the terminals that were read last have one (`keep_render_state`). A new render
    state reports every row as changed, and `Screen` compares the rows itself.
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
        """The number of cells it holds."""
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
        next_dirty, get = _next_dirty, _row_get_multi  # look the names up once, not for each row
        buffer, none, made = ffi.buffer, ffi.NULL, tuple.__new__
        found: list[tuple[int, Packed]] = []
        for _ in _EVERY_ROW:  # bounded by the largest possible screen, whatever the library returns
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
        """Return the present styles of a row's style numbers. The library reuses unused numbers."""
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
    """Return the style numbers of a row except 0, each with a column that has it.

    The library counts style numbers from 1, so in most rows they fit in one byte of each cell.
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

_kept: OrderedDict[int, RenderState] = OrderedDict()


def take_render_state(number: int) -> RenderState:
    """Return the kept render state of the terminal with that number, or a new one."""
    return _kept.pop(number, None) or RenderState()


def keep_render_state(number: int, frame: RenderState) -> None:
    """Keep a render state for the next read. The states that were read longest ago are dropped."""
    _kept[number] = frame
    while len(_kept) > 1 and sum(one.weight for one in _kept.values()) > limits.FRAME_CELLS:
        _kept.popitem(last=False)


def drop_render_state(number: int) -> None:
    """Drop the render state of a closed terminal."""
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
        underline_style=_UNDERLINES[style.underline],
        underline_color=_colour(style.underline_color) if style.underline else "default",
        inverse=style.inverse,
        strikethrough=style.strikethrough,
        blink=style.blink,
        invisible=style.invisible,
    )
    return PLAIN if made == PLAIN else made


_UNDERLINES: Final = ("single", *UNDERLINES)
"""By the library's numbers: 0 is no underline."""


def _colour(colour: Any) -> str:
    if colour.tag == lib.GHOSTTY_STYLE_COLOR_PALETTE:
        return f"idx:{colour.value.palette}"
    if colour.tag == lib.GHOSTTY_STYLE_COLOR_RGB:
        rgb = colour.value.rgb
        return f"rgb:{rgb.r}:{rgb.g}:{rgb.b}"
    return "default"


CELL_PIXELS: Final = (8, 16)
"""The size of a cell when no pixel size was set: the reply to a program that asks in pixels."""

_PAGE_BYTES: Final = 512 * 1024
"""The library drops rows a page at a time: room for one more page keeps all requested rows."""
_SHARE_BYTES: Final = 128 * 1024
"""The amount of output after which a scrollback reports its memory to the pool."""

_OPT: Final = "GHOSTTY_TERMINAL_OPT_"
_DATA: Final = "GHOSTTY_TERMINAL_DATA_"


_NAME: Final = f"telex {__version__}".encode()
_name_kept: Final = ffi.new("uint8_t[]", _NAME)


@dataclass(slots=True)
class _CallbackState:
    """The data that the callbacks of one terminal need: collected replies, size and attributes."""

    size: Size
    attributes: tuple[int, ...]
    answers: list[bytes] = field(default_factory=list)
    waiting: int = 0
    bells: int = 0
    clipboard: bytes | None = None
    """The text that the program last copied."""
    clipboard_cut: bool = False


_callback_states: dict[int, _CallbackState] = {}
_numbers = itertools.count(1)


def _callback_state(userdata: Any) -> _CallbackState:
    return _callback_states[int(ffi.cast("uintptr_t", userdata))]


def _on_answer(_terminal: Any, userdata: Any, data: Any, length: int) -> None:
    state = _callback_state(userdata)
    state.waiting += length
    # Over the limit only the count is kept, so that a flood of requests costs no memory.
    answer = ffi.buffer(data, length)[:] if state.waiting <= limits.REPLY_BYTES else b""
    state.answers.append(answer)


def _on_size(_terminal: Any, userdata: Any, out: Any) -> bool:
    size = _callback_state(userdata).size
    out.rows, out.columns = size.rows, size.cols
    out.cell_width, out.cell_height = cell_pixels(size)
    return True


def _on_attributes(_terminal: Any, userdata: Any, out: Any) -> bool:
    # A VT220 with colour (22), as the library reports by default, and the attributes of the
    # session. The library does not clear the struct: fields left unset would show our memory to the
    # program.
    ffi.memmove(out, bytes(ffi.sizeof(out[0])), ffi.sizeof(out[0]))
    features = (22, *_callback_state(userdata).attributes)
    out.primary.conformance_level = 62
    out.primary.num_features = len(features)
    for n, feature in enumerate(features):
        out.primary.features[n] = feature
    out.secondary.device_type = 1
    return True


def _on_scheme(_terminal: Any, _userdata: Any, out: Any) -> bool:
    out[0] = lib.GHOSTTY_COLOR_SCHEME_DARK
    return True


def _on_version(_terminal: Any, _userdata: Any) -> Any:
    return ffi.new("GhosttyString*", {"ptr": _name_kept, "len": len(_NAME)})[0]


def _on_bell(_terminal: Any, userdata: Any) -> None:
    _callback_state(userdata).bells += 1


def _on_copy(_terminal: Any, userdata: Any, write: Any) -> None:
    """Keep the text that a program copies (OSC 52). It is not sent back, and reaches no clipboard
    of a person."""
    contents = [write.contents[n] for n in range(write.contents_len)]
    texts = [string(one.data) for one in contents if string(one.mime).startswith(b"text/plain")]
    if texts or not contents:  # no contents clear the clipboard
        text, state = texts[0] if texts else b"", _callback_state(userdata)
        state.clipboard = text[: limits.COPIED_BYTES]
        state.clipboard_cut = len(text) > limits.COPIED_BYTES


_MORE_SELECTIONS: Final = re.compile(rb"(?<=\x1b\]52;[cpqs0-7])[cpqs0-7]+")
_COPY_HEAD: Final = 32
_COPY_BEGUN: Final = re.compile(rb"\x1b(?:\](?:5(?:2(?:;[cpqs0-7]*)?)?)?)?\Z")
"""The beginning of a copy at the end of a read, up to its selections."""
_IGNORED: Final = rb"\x00-\x17\x19\x1c-\x1f\x7f"
"""Characters that a terminal processes inside a sequence, and then goes on with the sequence."""
_SETS_MODES: Final = re.compile(rb"\?[0-9;%b]*h" % _IGNORED)
_SET_MODES: Final = re.compile(rb"\x1b[%b]*\[[%b]*\?([0-9;%b]*)h" % ((_IGNORED,) * 3))
_SET_BEGUN: Final = re.compile(rb"\x1b[%b]*(?:\[[%b]*(?:\?[0-9;%b]*)?)?" % ((_IGNORED,) * 3))
_MAY_CHANGE_COLUMNS: Final = b"40"


_CALLBACKS: Final = {
    "BELL": ffi.callback("GhosttyTerminalBellFn", _on_bell),
    "CLIPBOARD_WRITE": ffi.callback("GhosttyTerminalClipboardWriteFn", _on_copy),
    "WRITE_PTY": ffi.callback("GhosttyTerminalWritePtyFn", _on_answer),
    "SIZE": ffi.callback("GhosttyTerminalSizeFn", _on_size),
    "DEVICE_ATTRIBUTES": ffi.callback("GhosttyTerminalDeviceAttributesFn", _on_attributes),
    "COLOR_SCHEME": ffi.callback("GhosttyTerminalColorSchemeFn", _on_scheme),
    "XTVERSION": ffi.callback("GhosttyTerminalXtversionFn", _on_version),
}
_COLOURS: Final = {
    "COLOR_FOREGROUND": (0xE5, 0xE5, 0xE5),
    "COLOR_BACKGROUND": (0x1E, 0x1E, 0x1E),
    "COLOR_CURSOR": (0xE5, 0xE5, 0xE5),
}
_NUMBERS: Final = {
    # The limit in bytes applies, see `_keep_rows`.
    "SCROLLBACK_MAX_LINES": 2**32,
    # Pictures and glyphs are not drawn here, and a program must not fill our memory with them.
    "KITTY_IMAGE_STORAGE_LIMIT": 0,
    "APC_MAX_BYTES": 0,
}
_SWITCHES: Final = {"TITLE_REPORT": False, "GLYPH_PROTOCOL": False}


def cell_pixels(size: Size) -> tuple[int, int]:
    """Return the width and height of a cell."""
    wide, high = CELL_PIXELS
    return size.pixel_width // size.cols or wide, size.pixel_height // size.rows or high


def _modes(numbers: bytes) -> list[bytes]:
    return [number.lstrip(b"0") for number in numbers.split(b";")]


def _without_columns(found: re.Match[bytes]) -> bytes:
    """Return a sequence that sets modes; with an invalid character if it permits other columns."""
    modes = _modes(_without_ignored(found[1]))
    return found[0][:-1] + b":h" if _MAY_CHANGE_COLUMNS in modes else found[0]


def _shortened(begun: bytes) -> bytes:
    """Shorten the beginning of a sequence that sets modes to a few characters."""
    start, mark, numbers = _without_ignored(begun).partition(b"?")
    *before, last = _modes(numbers)
    kept = _MAY_CHANGE_COLUMNS + b";" if _MAY_CHANGE_COLUMNS in before else b""
    return start + mark + kept + last[:3]


def _without_ignored(data: bytes) -> bytes:
    return re.sub(rb"[%b]" % _IGNORED, b"", data)


class Emulator:
    """One emulator. `close` frees it; otherwise the garbage collector does."""

    def __init__(self, size: Size, scrollback: int, attributes: tuple[int, ...]) -> None:
        handle = ffi.new("GhosttyTerminal*")
        check(lib.ghostty_terminal_new(ffi.NULL, handle, size.cols, size.rows), "terminal_new")
        self.handle: Any = handle[0]
        self._number = next(_numbers)
        self._callback = _callback_states[self._number] = _CallbackState(size, attributes)
        self._free = weakref.finalize(self, _free, self.handle, self._number)
        self._free.atexit = False
        self._mode: Any = ffi.new("GhosttyTerminalModeConfig*")
        self._state: Any = ffi.new("TelexState*")
        places = [ffi.addressof(self._state[0], name) for name in _FIELDS]
        self._places: Any = ffi.new("void*[]", places)
        self._scrollback = scrollback
        self._share: int | None = None
        self._configure()
        self._keep_rows(size)
        self._fed = 0
        self._copy_begun = b""
        self._set_begun = b""
        if scrollback:
            SHARED_POOL.join(self)

    def close(self) -> None:
        """Free the memory, once. A later use raises instead of crashing."""
        if self._scrollback:
            SHARED_POOL.leave(self)
        self._free()
        self.handle = ffi.NULL

    def _configure(self) -> None:
        self._set("USERDATA", ffi.cast("void*", self._number))
        for name, callback in _CALLBACKS.items():
            self._set(name, callback)
        for name, rgb in _COLOURS.items():
            self._set(name, ffi.new("GhosttyColorRgb*", rgb))
        for name, number in _NUMBERS.items():
            self._set(name, ffi.new("uint64_t*", number))
        for name, switch in _SWITCHES.items():
            self._set(name, ffi.new("bool*", switch))

    def _keep_rows(self, size: Size) -> None:
        # The limit is set in bytes: with a limit in lines the library returns each old page to
        # the system and allocates a new one, and printing a plain log takes three times as long. In
        # bytes a row takes 9 per cell when plain, and 12 when every word has another colour.
        wanted = self._scrollback * (size.cols + 4) * 12 + _PAGE_BYTES if self._scrollback else 0
        limit = min(wanted, limits.SCROLLBACK_BYTES, self._share or wanted)
        self._set("SCROLLBACK_MAX_BYTES", ffi.new("uint64_t*", limit))

    def limit(self, size: int | None) -> None:
        """Set the pool's limit for the scrollback in bytes; rows over the limit are dropped now."""
        self._share = size
        self._keep_rows(self._callback.size)

    def _used(self) -> int:
        """Return about how many bytes the scrollback takes."""
        return int(self.get("SCROLLBACK_ROWS", "size_t")) * (self._callback.size.cols + 4) * 10

    def _set(self, option: str, value: Any) -> None:
        check(lib.ghostty_terminal_set(self.handle, getattr(lib, _OPT + option), value), option)

    def feed(self, data: bytes) -> list[bytes]:
        """Process output; return the replies in order, b"" for each one over the limit."""
        data = self._with_fixed_columns(self._with_one_selection(data))
        lib.ghostty_terminal_vt_write(self.handle, data, len(data))
        self._fed += len(data)
        if self._fed >= _SHARE_BYTES and self._scrollback:
            self._fed = 0
            SHARED_POOL.report(self, self._used())
        if self._callback.bells > limits.BELLS_COUNTED:
            self._callback.bells = limits.BELLS_COUNTED
            self._set("BELL", ffi.NULL)
        return self._answers()

    def _with_one_selection(self, data: bytes) -> bytes:
        """Leave the first selection of a copy (OSC 52): the library drops a copy to several."""
        begun = self._copy_begun
        whole = begun + data
        last = _COPY_BEGUN.search(whole[-_COPY_HEAD:])
        self._copy_begun = last[0] if last else b""
        if b"]52;" not in whole:
            return data
        return _MORE_SELECTIONS.sub(b"", whole)[len(_MORE_SELECTIONS.sub(b"", begun)) :]

    def _with_fixed_columns(self, data: bytes) -> bytes:
        """Spoil each sequence that permits a program to switch between 80 and 132 columns (mode
        40): the size is that of the PTY, and each switch takes milliseconds for a long scrollback.
        """
        begun = self._set_begun
        whole = begun + data if begun else data
        last = _SET_BEGUN.fullmatch(whole, max(whole.rfind(b"\x1b"), 0))
        self._set_begun = _shortened(last[0]) if last else b""
        if b"?" not in whole or not _SETS_MODES.search(whole):
            return data
        return _SET_MODES.sub(_without_columns, whole)[len(begun) :]

    def resize(self, size: Size) -> list[bytes]:
        self._callback.size = size
        self._keep_rows(size)
        wide, high = cell_pixels(size)
        resize = lib.ghostty_terminal_resize
        check(resize(self.handle, size.cols, size.rows, wide, high), "resize")
        return self._answers()

    def _answers(self) -> list[bytes]:
        callback = self._callback
        if not callback.answers:
            return callback.answers
        answers, callback.answers, callback.waiting = callback.answers, [], 0
        return answers

    def state(self) -> Any:
        """Return cursor, active screen and title. The object is valid until the next call."""
        get_multi = lib.ghostty_terminal_get_multi
        check(get_multi(self.handle, len(_FIELDS), _STATE_KEYS, self._places, ffi.NULL), "state")
        return self._state

    def get(self, what: str, kind: str) -> Any:
        """Return one value of the library's `GHOSTTY_TERMINAL_DATA_*`."""
        out = ffi.new(f"{kind}*")
        check(lib.ghostty_terminal_get(self.handle, getattr(lib, _DATA + what), out), what)
        return out[0]

    def mode(self, number: int, ansi: bool = False) -> bool:
        """Return whether a DEC private or an ANSI mode is set."""
        self._mode.mode = number | ansi << 15
        check(lib.ghostty_terminal_get(self.handle, _MODE, self._mode), "mode")
        return bool(self._mode.value)

    def changed(self) -> tuple[bool, list[tuple[int, Packed]]]:
        """Return the visible rows that changed since the last call, and whether all rows did."""
        frame = take_render_state(self._number)
        try:
            return frame.read(self.handle)
        finally:
            keep_render_state(self._number, frame)

    @property
    def bells(self) -> int:
        """How often the program rang the bell."""
        return self._callback.bells

    @property
    def copied(self) -> bytes | None:
        """The text that the program last copied (OSC 52)."""
        return self._callback.clipboard

    @property
    def copied_in_part(self) -> bool:
        """Whether the copied text was longer than what is kept of it."""
        return self._callback.clipboard_cut

    def colour(self, name: str) -> tuple[int, int, int]:
        """Return the foreground, background or cursor colour in force."""
        rgb = self.get(f"COLOR_{name.upper()}", "GhosttyColorRgb")
        return rgb.r, rgb.g, rgb.b

    def palette(self) -> list[tuple[int, int, int]]:
        """Return the 256 colours in force."""
        out = ffi.new("GhosttyColorRgb[256]")
        check(lib.ghostty_terminal_get(self.handle, getattr(lib, _DATA + "COLOR_PALETTE"), out), "")
        return [(rgb.r, rgb.g, rgb.b) for rgb in out]

    def links(self, rows: int, cols: int) -> list[tuple[int, int, str]]:
        """Return row, column and URI of each visible cell with a link (OSC 8)."""
        found = []
        ref, linked = sized("GhosttyGridRef"), ffi.new("bool*")
        row_of, point = ffi.new("GhosttyRow*"), ffi.new("GhosttyPointS*")
        for row in range(min(rows, limits.LINK_ROWS)):
            for col in range(cols):
                point.value.y, point.value.x = row, col
                check(_grid_ref(self.handle, point[0], ref), "ref")
                if col == 0:
                    check(lib.ghostty_grid_ref_row(ref, row_of), "row")
                    check(lib.ghostty_row_get(row_of[0], _ROW_LINKED, linked), "linked")
                    if not linked[0]:
                        break
                if uri := _uri(ref):
                    found.append((row, col, uri))
        return found

    def history(self, start: int, count: int) -> list[Packed]:
        """Return rows of the scrollback; row 0 is the oldest. Scrolls the viewport there and back.

        The result has fewer than `count` rows when the library shows no more: its viewport does not
        move on the alternate screen, whatever number of rows it reports there.
        """
        frame = RenderState()
        found: list[Packed] = []
        try:
            while len(found) < count:
                self._look(lib.GHOSTTY_SCROLL_VIEWPORT_ROW, start + len(found))
                moved, rows = frame.read(self.handle)
                if not moved or not rows:
                    break
                found += [row for _, row in rows]
        finally:
            self._look(lib.GHOSTTY_SCROLL_VIEWPORT_BOTTOM, 0)
        return found[:count]

    def extras(self, *wanted: str, before: bool = False) -> str:
        """Return bytes that restore state outside the cells; the library adds them to a text.

        The library cannot write these bytes alone, so one cell is written with and without them.
        """
        whole, bare = self._formatted(wanted), self._formatted(())
        return whole[: len(whole) - len(bare)] if before else whole[len(bare) :]

    def _formatted(self, wanted: tuple[str, ...]) -> str:
        options, cell = sized("GhosttyFormatterTerminalOptions"), sized("GhosttySelection")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_VT
        for name in wanted:
            group = options.extra if hasattr(options.extra, name) else options.extra.screen
            setattr(group, name, True)
        check(
            _grid_ref(self.handle, ffi.new("GhosttyPointS*")[0], ffi.addressof(cell.start)), "ref"
        )
        cell.end = cell.start
        options.selection = cell
        out = ffi.new("GhosttyFormatter*")
        new = lib.ghostty_formatter_terminal_new
        check(new(ffi.NULL, out, self.handle, options[0]), "formatter")
        try:
            format_buf = lib.ghostty_formatter_format_buf
            return str(read_buf(lambda *room: format_buf(out[0], *room)))
        finally:
            lib.ghostty_formatter_free(out[0])

    def _look(self, tag: int, row: int) -> None:
        where = ffi.new("TelexViewport*")
        where.tag, where.row = tag, row
        _scroll_viewport(self.handle, where[0])


def _free(handle: Any, number: int) -> None:
    drop_render_state(number)
    del _callback_states[number]
    lib.ghostty_terminal_free(handle)


_MODE: Final = getattr(lib, _DATA + "MODE")

_FIELDS: Final = {
    "cursor_x": "uint16_t",
    "cursor_y": "uint16_t",
    "cursor_visible": "bool",
    "active_screen": "GhosttyTerminalScreen",
    "title": "GhosttyString",
}
_MEMBERS: Final = "".join([f"{kind} {name};" for name, kind in _FIELDS.items()])
ffi.cdef(f"typedef struct {{ {_MEMBERS} }} TelexState;")
_STATE_KEYS: Final = ffi.new(
    "GhosttyTerminalData[]", [getattr(lib, _DATA + name.upper()) for name in _FIELDS]
)

# cffi cannot pass the union in this argument by value; it can pass a struct of the same layout.
ffi.cdef(
    "typedef struct { GhosttyTerminalScrollViewportTag tag; uint64_t row, pad; } TelexViewport;"
)
_scroll_viewport: Final = union_fn(
    "ghostty_terminal_scroll_viewport", "void(*)(GhosttyTerminal, TelexViewport)"
)


_grid_ref: Final = union_fn(
    "ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)"
)

_ROW_LINKED: Final = lib.GHOSTTY_ROW_DATA_HYPERLINK


def _uri(ref: Any) -> str:
    """Return the link of a cell; empty if there is none."""
    size = ffi.new("size_t*")
    lib.ghostty_grid_ref_hyperlink_uri(ref, ffi.NULL, 0, size)
    if not size[0]:
        return ""
    out = ffi.new("uint8_t[]", size[0])
    check(lib.ghostty_grid_ref_hyperlink_uri(ref, out, size[0], size), "link")
    return bytes(ffi.buffer(out, size[0])).decode("utf-8", "replace")
