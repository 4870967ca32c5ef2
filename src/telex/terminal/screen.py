"""A screen: takes bytes; gives rows, cursor, title, modes and replies.

The emulator behind it is libghostty-vt. A screen has no clock, no I/O and no asyncio. `feed`
returns the replies to the queries in its bytes, only in forms that are on a list
(`allowed_replies`). `redraw` makes the bytes that draw a screen again. Rows are shared: an
unchanged row is the same object, and when nothing changed `rows()` returns the same tuple.

Used by `session`. Not safe to use from two threads at once.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from telex.terminal import key_encoder, limits
from telex.terminal.cells import PLAIN, Cursor, Row, Size, Snapshot, underline_sgr
from telex.terminal.emulator import Emulator
from telex.terminal.libghostty import LAYOUT, string
from telex.terminal.packed_rows import PackedRow, RowUnpacker
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.terminal.actions import MouseEvent
    from telex.terminal.cells import Cell, Cursor, Row, Style
    from telex.terminal.keys import KeyPress
    from telex.terminal.packed_rows import Packed


# Replies. A reply is typed into whatever reads the terminal next; if the program that asked has
# exited, that is a shell. So a reply has numbers and fixed words only, never text that a program
# chose, and no line end. The emulator already refuses known dangerous queries (title reports,
# clipboard reads, answerback); this list is a second check, in case a new version does not.


UNKNOWN_SETTING: Final = b"\x1bP0$r\x1b\\"
"""The reply to a DECRQSS for an unknown setting."""
UNKNOWN_CAPABILITY: Final = b"\x1bP0+r\x1b\\"
"""The reply to an XTGETTCAP, for each name: a program reads terminfo for these."""

_NUMBER: Final = rb"[0-9]{1,5}"
_END: Final = rb"(?:\x07|\x1b\\)"
_RGB: Final = rb"rgb:[0-9a-f]{4}/[0-9a-f]{4}/[0-9a-f]{4}"

_FORMS: Final = [
    rb"\x1b\[\?62;22(?:;N){0,16}c",  # DA1
    rb"\x1b\[>N;N;Nc",  # DA2
    rb"\x1bP!\|[0-9A-F]{8}\x1b\\",  # DA3
    rb"\x1b\[0n",  # DSR: operating status
    rb"\x1b\[\??N;N(?:;N)?R",  # DSR: cursor position
    rb"\x1b\[\?997;[12]n",  # colour scheme
    rb"\x1b\[\??N;[0-4]\$y",  # DECRPM
    rb"\x1bP>\|" + re.escape(f"telex {__version__}".encode()) + rb"\x1b\\",  # XTVERSION
    rb"\x1b\[(?:4|6|8);N;Nt",  # size in pixels, of a cell, in cells
    rb"\x1b\[48;N;N;N;Nt",  # size, reported when it changes (mode 2048)
    rb"\x1b\[\?N?u",  # kitty keyboard flags
    rb"(?:\x1b\]4;[0-9]{1,3};" + _RGB + _END + rb"){1,256}",  # a colour of the palette
    rb"\x1b\]1[0-2];" + _RGB + _END,  # foreground, background, cursor
    rb"\x1bP1\$r[0-9;:]{0,64}(?:m|r|s| q|\"p)\x1b\\",  # DECRQSS of a setting that we have
    re.escape(UNKNOWN_SETTING),
    re.escape(UNKNOWN_CAPABILITY),
]
_ALLOWED: Final = re.compile(b"|".join(_FORMS).replace(b"N", _NUMBER))


def allowed_replies(answers: Sequence[bytes]) -> list[bytes]:
    """Return the replies whose form is allowed, in order."""
    return [answer for answer in answers if _ALLOWED.fullmatch(answer)]


# Redrawing: the visible screen with modes and cursor; not the scrollback, the primary screen under
# an alternate one, or the state saved by DECSC. Each row is drawn cell by cell, not by the
# library's formatter, which writes blanks as spaces and loses where a line was wrapped.


_MODE: Final = re.compile(r"\x1b\[(\??\d+)([hl])")
_REGION: Final = re.compile(r"\x1b\[(\d+);\d+([rs])")
_ALTERNATE: Final = {"?47", "?1047", "?1049"}
"""Modes that choose the screen. One may stay set after another has left the alternate screen, so
the active screen decides, not the modes."""
_FIRST: Final = {"?2027"}
"""Modes to set before drawing, as they change what a character is."""
_NEVER: Final = {"?3", "?2026", "?6"}
"""Modes that are not restored: changing the width clears the screen, a held update is not a state,
and the origin is set with the cursor."""
_ATTRIBUTES: Final = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "blink": 5,
    "inverse": 7,
    "invisible": 8,
    "strikethrough": 9,
}


@dataclass(frozen=True, slots=True)
class ScreenState:
    """The state that is not in the rows, as the emulator writes it."""

    cursor: Cursor
    alternate_screen: bool
    pending_wrap: bool
    """Whether the last column was just written, so that the next character goes to the next row."""
    title: str | None
    modes: str
    tabs: str
    region: str
    pen: str
    """Style, character sets and keyboard state for the next output."""


def redraw(rows: Sequence[Row], state: ScreenState) -> bytes:
    """Return the bytes that draw the screen on a new or reset terminal."""
    modes = _MODE.findall(state.modes)
    entered = [mode for mode, end in modes if mode in _ALTERNATE and end == "h"] or ["?1049"]
    parts = [f"\x1b[{mode}h" for mode in entered] if state.alternate_screen else []
    parts += [f"\x1b[{mode}{end}" for mode, end in modes if mode in _FIRST]
    parts += ["\x1b[m\x1b[H\x1b[2J", *_draw(rows), "\x1b[m", state.tabs]
    parts += [
        f"\x1b[{mode}{end}" for mode, end in modes if mode not in _ALTERNATE | _FIRST | _NEVER
    ]
    parts.append(state.region)
    parts += _place(rows, state, dict(modes))
    parts.append(state.pen)
    if state.title is not None:
        parts.append(f"\x1b]2;{state.title}\x1b\\")
    return "".join(parts).encode("utf-8", "replace")


def _draw(rows: Sequence[Row]) -> Iterator[str]:
    """Draw every cell from the top: drawing a wrapped row writes into the row below."""
    for y, row in enumerate(rows):
        yield f"\x1b[{y + 1}H"
        yield from _cells(row.cells)
        if row.wrapped and y + 1 < len(rows):
            yield _wrap(row.cells[-1], rows[y + 1].cells[0], len(row.cells))


def _cells(cells: Sequence[Cell]) -> Iterator[str]:
    for (style, empty), group in groupby(cells, key=lambda cell: (cell.style, _empty(cell))):
        members = list(group)
        yield _sgr(style)
        if empty:
            # Erase, do not print: a blank cell that was never written is not a space.
            yield f"\x1b[{len(members)}X\x1b[{len(members)}C"
        else:
            yield "".join([cell.text for cell in members])


def _empty(cell: Cell) -> bool:
    return not cell.text and cell.width == 1


def _wrap(last: Cell, following: Cell, cols: int) -> str:
    """Return characters that wrap the line; the row below draws over them.

    A line that ends in a blank was wrapped by a wide character that did not fit.
    """
    if _empty(last):
        return f"\x1b[{cols}G{_sgr(last.style)}{following.text if following.width == 2 else '中'}"
    return _sgr(following.style) + (following.text or " ")


def _place(rows: Sequence[Row], state: ScreenState, modes: dict[str, str]) -> Iterator[str]:
    pending = state.pending_wrap and modes.get("?7") != "l"
    row, col = state.cursor.row, state.cursor.col
    top = left = 0
    if modes.get("?6") == "h":
        starts = {end: int(start) - 1 for start, end in _REGION.findall(state.region)}
        top, left = starts.get("r", 0), starts.get("s", 0)
        yield "\x1b[?6h"
    cell = rows[row].cells[col]
    if pending and cell.width == 0:
        col, cell = col - 1, rows[row].cells[col - 1]
    yield f"\x1b[{row - top + 1};{col - left + 1}H"
    if pending and cell.text:
        yield _sgr(cell.style) + cell.text


def _sgr(style: Style) -> str:
    if style is PLAIN:
        return "\x1b[m"
    codes = [str(code) for name, code in _ATTRIBUTES.items() if getattr(style, name)]
    codes += underline_sgr(style)
    codes += _colour(style.foreground, 38) + _colour(style.background, 48)
    return f"\x1b[0;{';'.join(codes)}m"


def _colour(word: str, base: int) -> list[str]:
    kind, *numbers = word.split(":")
    return [] if kind == "default" else [str(base), "5" if kind == "idx" else "2", *numbers]


_GROUNDS: Final = ("foreground", "background", "cursor")


def _hex(rgb: tuple[int, int, int]) -> str:
    return f"#{bytes(rgb).hex()}"


_UNPACKING: Final = RowUnpacker(LAYOUT)
_UNPRINTABLE: Final = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029))


class Screen:
    """The screen of one terminal. `close`, or garbage collection, frees its memory."""

    def __init__(
        self,
        size: Size,
        *,
        scrollback: int = limits.SCROLLBACK_ROWS,
        attributes: tuple[int, ...] = (),
    ) -> None:
        self.size = size
        self._scrollback = scrollback
        self.refused = 0
        """The number of dropped replies: not of an allowed form, or too many at once."""
        self._terminal = Emulator(size, scrollback, attributes)
        self._rows: tuple[PackedRow, ...] = ()
        self._read: tuple[PackedRow, ...] = ()
        """The rows of the scrollback read last. Redaction reads the end of the scrollback each
        time, and most of these rows are still there, some rows higher."""
        self.version = 0
        """Rises with every `feed`; a key for caches of derived values."""
        self._looked = False
        self._last: Snapshot | None = None
        self._held: str | None = None

    def close(self) -> None:
        """Free the emulator. Rows and snapshots already taken stay readable."""
        self._terminal.close()

    def feed(self, data: bytes) -> bytes:
        """Process output. Returns the terminal's replies, to be written to the program."""
        self._changed()
        return self._allowed(self._terminal.feed(data))

    def resize(self, size: Size) -> bytes:
        """Change the size. Returns the report for a program that asked for size reports."""
        self._changed()
        self.size = size
        return self._allowed(self._terminal.resize(size))

    def _changed(self) -> None:
        self.version += 1
        self._looked = False
        self._last = None

    def _allowed(self, answers: Sequence[bytes]) -> bytes:
        if not answers:
            return b""
        allowed = allowed_replies(answers)
        self.refused += len(answers) - len(allowed)
        return b"".join(allowed)

    def rows(self) -> tuple[Row, ...]:
        """Return the visible rows."""
        if not self._looked:
            self._look()
            self._looked = True
        return self._rows

    def _look(self) -> None:
        full, changed = self._terminal.changed()
        if not changed:
            return
        old = self._rows
        rows: list[PackedRow | None] = [None] * len(changed) if full else [*old]
        for y, row in _unpacked(old, changed).items():
            rows[y] = row
        now = tuple([row for row in rows if row is not None])
        if now != old:  # rows are compared by identity
            self._rows = now

    def snapshot(self, sequence: int) -> Snapshot:
        """Return the current screen as a value."""
        last = self._last
        if last is not None and last.sequence == sequence:
            return last
        rows, state = self.rows(), self._terminal.state()
        self._last = Snapshot(
            size=self.size,
            cursor=Cursor(state.cursor_y, state.cursor_x, state.cursor_visible),
            sequence=sequence,
            rows=rows,
            alternate_screen=state.active_screen != 0,
            application_cursor=self.application_cursor,
            application_keypad=self.application_keypad,
            title=_title(state.title),
        )
        return self._last

    @property
    def cursor(self) -> Cursor:
        state = self._terminal.state()
        return Cursor(state.cursor_y, state.cursor_x, state.cursor_visible)

    @property
    def title(self) -> str | None:
        """The window title on one line; None until the program sets one."""
        return _title(self._terminal.state().title)

    @property
    def alternate_screen(self) -> bool:
        return bool(self._terminal.state().active_screen != 0)

    @property
    def application_cursor(self) -> bool:
        return self._terminal.mode(1)

    @property
    def application_keypad(self) -> bool:
        return self._terminal.mode(66)

    @property
    def bracketed_paste(self) -> bool:
        return self._terminal.mode(2004)

    @property
    def mouse_tracking(self) -> bool:
        """Whether the program asked for mouse events."""
        return bool(self._terminal.get("MOUSE_TRACKING", "bool"))

    @property
    def bells(self) -> int:
        """How often the program rang the bell."""
        return self._terminal.bells

    @property
    def clipboard(self) -> str | None:
        """The text that the program last copied (OSC 52); None if it copied none, and empty if it
        cleared the clipboard."""
        copied = self._terminal.copied
        if copied is None:
            return None
        return getincrementaldecoder("utf-8")("replace").decode(copied, not self.clipboard_cut)

    @property
    def clipboard_cut(self) -> bool:
        """Whether only the beginning of the copied text is kept."""
        return self._terminal.copied_in_part

    def links(self) -> list[tuple[int, int, int, str]]:
        """Return row, column, width and URI of each visible link (OSC 8)."""
        links: list[tuple[int, int, int, str]] = []
        for row, col, uri in self._terminal.links(self.size.rows, self.size.cols):
            if links and links[-1][0] == row and sum(links[-1][1:3]) == col and links[-1][3] == uri:
                links[-1] = (row, links[-1][1], links[-1][2] + 1, uri)
            else:
                links.append((row, col, 1, uri))
        return links

    def colours(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the colours of text, background and cursor, and the palette, as `#rrggbb`."""
        grounds = {name: _hex(self._terminal.colour(name)) for name in _GROUNDS}
        return grounds, tuple(map(_hex, self._terminal.palette()))

    @property
    def scrollback_length(self) -> int:
        """The number of rows in the scrollback; 0 on the alternate screen."""
        return min(self._history(), self._scrollback)

    def _history(self) -> int:
        """The emulator's number of rows. It drops rows a page at a time, and on the alternate
        screen it counts rows that it cannot show."""
        return 0 if self.alternate_screen else int(self._terminal.get("SCROLLBACK_ROWS", "size_t"))

    def scrollback(self, start: int, count: int) -> tuple[Row, ...]:
        """Return rows of the scrollback; 0 is the oldest kept."""
        length = self.scrollback_length
        start = min(max(start, 0), length)
        count = min(max(count, 0), length - start)
        packed = self._terminal.history(self._history() - length + start, count)
        found = _unpacked(self._read, [*enumerate(packed)])
        rows = tuple([found[y] for y in range(len(packed))])
        self._read = rows if count <= limits.MASKED_ABOVE_ROWS else ()
        return rows

    def restore(self, seen: Snapshot | None = None) -> bytes:
        """Return bytes that draw the visible screen on a new terminal of this size. A redacted
        snapshot of the same moment may be given to draw instead."""
        rows, title = (self.rows(), self.title) if seen is None else (seen.rows, seen.title)
        extras = self._terminal.extras
        state = ScreenState(
            cursor=self.cursor,
            alternate_screen=self.alternate_screen,
            pending_wrap=bool(self._terminal.get("CURSOR_PENDING_WRAP", "bool")),
            title=title,
            modes=_MOUSE_FORMATS.sub(r"\2\1", extras("modes", before=True)),
            tabs=extras("tabstops", before=True),
            region=extras("scrolling_region"),
            pen=extras("style", "charsets", "kitty_keyboard", "keyboard", "protection"),
        )
        return redraw(rows, state)

    def encode_key(self, press: KeyPress) -> bytes:
        """Return the bytes of a key, by the program's modes."""
        return key_encoder.key_bytes(self._terminal.handle, press)

    def encode_mouse(self, event: MouseEvent) -> bytes:
        """Return the bytes of a mouse event; empty if the program did not ask for them."""
        data = key_encoder.mouse_bytes(self._terminal.handle, self.size, event, self._held)
        if event.event in ("press", "release", "click"):
            self._held = event.button if event.event == "press" else None
        return data


_MOUSE_FORMATS: Final = re.compile(r"(\x1b\[\?1006h)(.*?\x1b\[\?1015h)")
"""The library writes modes by their numbers, and the last format of mouse reports counts. A program
that sets both asks for the older one first, for terminals that do not know the other."""


def _unpacked(
    old: Sequence[PackedRow], changed: Sequence[tuple[int, Packed]]
) -> dict[int, PackedRow]:
    """Decode changed rows; a row that was there before, or scrolled up, is the same object."""
    found: dict[int, PackedRow] = {}
    fresh: list[tuple[int, Packed]] = []
    shift = _shift(old, changed) if len(changed) > 1 else 0
    size = len(old)
    for y, packed in changed:
        if (was := y + shift) < size and old[was].packed == packed:
            found[y] = old[was]
        elif shift and y < size and old[y].packed == packed:
            found[y] = old[y]
        else:
            fresh.append((y, packed))
    made = _UNPACKING.rows([packed for _, packed in fresh])
    for (y, _), row in zip(fresh, made, strict=True):
        found[y] = row
    return found


def _shift(old: Sequence[PackedRow], changed: Sequence[tuple[int, Packed]]) -> int:
    """Yield by how many rows the screen may have scrolled: where its first text was before."""
    for y, packed in changed:
        if any(packed.cells):
            found = [was for was in range(y, len(old)) if old[was].packed == packed]
            return found[0] - y if found else 0
    return 0


def _title(raw: Any) -> str | None:
    if not raw.len:
        return None
    text = string(raw).decode("utf-8", "replace")
    return text.translate(_UNPRINTABLE)[: limits.TITLE_CHARS]
