"""A screen: bytes in; rows, cursor, title, modes and answers out.

The emulator is libghostty-vt, behind this interface. A screen is a value machine: no clock, no
I/O, no asyncio. Answers to the program's questions come out of the `feed` that asked, and only in
forms that `replies` allows. Rows are shared: one that did not change is the same object, and when
nothing changed `rows()` is the same tuple.

Used by `session`. Not safe to use from two threads at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from telex.terminal import encoding, replies
from telex.terminal.cells import Cursor, Row, Size, Snapshot
from telex.terminal.ghostty import Terminal
from telex.terminal.libghostty import LAYOUT, string
from telex.terminal.packed import PackedRow, Unpacking
from telex.terminal.restoring import State, restoring
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.protocols.pty_automation import MouseEvent
    from telex.terminal.keys import KeyPress
    from telex.terminal.packed import Packed

_UNPACKING: Final = Unpacking(LAYOUT)
_UNPRINTABLE: Final = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029))


class Screen:
    """One terminal's screen. `close` frees its memory; so does forgetting it."""

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
        """How many answers were not given: not of an allowed form, or too many at once."""
        self._terminal = Terminal(size, scrollback, attributes)
        self._rows: tuple[PackedRow, ...] = ()
        self._read: tuple[PackedRow, ...] = ()
        """What was read of the scrollback last. Whoever looks for secrets reads its end each time,
        and most of it is what it was, a little higher up."""
        self.version = 0
        """Rises whenever something was fed. What is derived from the screen may be kept by it."""
        self._looked = False
        self._last: Snapshot | None = None
        self._held: str | None = None

    def close(self) -> None:
        """Free the emulator. Rows and snapshots already taken stay readable."""
        self._terminal.close()

    def feed(self, data: bytes) -> bytes:
        """Show what a program printed. What the terminal answers, to be written to the program."""
        self._changed()
        return self._allowed(self._terminal.feed(data))

    def resize(self, size: Size) -> bytes:
        """Take another size. What the terminal tells a program that asked for such news."""
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
        allowed = replies.allowed(answers)
        self.refused += len(answers) - len(allowed)
        return b"".join(allowed)

    def rows(self) -> tuple[Row, ...]:
        """The visible rows."""
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
        if now != old:  # rows are equal only if they are the same
            self._rows = now

    def snapshot(self, sequence: int) -> Snapshot:
        """This moment, as a value."""
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
        """What the program calls its window, on one line; None until it says."""
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
        """Whether the program asked to be told about the mouse."""
        return bool(self._terminal.get("MOUSE_TRACKING", "bool"))

    @property
    def scrollback_length(self) -> int:
        """Rows that have left the top and are kept. None on the alternate screen."""
        return min(self._history(), self._scrollback)

    def _history(self) -> int:
        """How many the emulator has, which drops them a page at a time. On the alternate screen it
        counts rows that it cannot show."""
        return 0 if self.alternate_screen else int(self._terminal.get("SCROLLBACK_ROWS", "size_t"))

    def scrollback(self, start: int, count: int) -> tuple[Row, ...]:
        """Rows that have left the top, 0 the oldest kept."""
        length = self.scrollback_length
        start = min(max(start, 0), length)
        count = min(max(count, 0), length - start)
        packed = self._terminal.history(self._history() - length + start, count)
        found = _unpacked(self._read, [*enumerate(packed)])
        rows = tuple([found[y] for y in range(len(packed))])
        self._read = rows if count <= limits.MASKED_ABOVE_ROWS else ()
        return rows

    def restore(self, seen: Snapshot | None = None) -> bytes:
        """Bytes that draw the visible screen again on a fresh terminal of this size; or, in its
        place, what a snapshot of this very moment shows: the same without secrets."""
        rows, title = (self.rows(), self.title) if seen is None else (seen.rows, seen.title)
        extras = self._terminal.extras
        state = State(
            cursor=self.cursor,
            alternate_screen=self.alternate_screen,
            pending_wrap=bool(self._terminal.get("CURSOR_PENDING_WRAP", "bool")),
            title=title,
            modes=extras("modes", before=True),
            tabs=extras("tabstops", before=True),
            region=extras("scrolling_region"),
            pen=extras("style", "charsets", "kitty_keyboard", "keyboard", "protection"),
        )
        return restoring(rows, state)

    def encode_key(self, press: KeyPress) -> bytes:
        """What this key types, by the modes that the program has set."""
        return encoding.key_bytes(self._terminal.handle, press)

    def encode_mouse(self, event: MouseEvent) -> bytes:
        """What tells the program of the mouse; empty if it did not ask for that."""
        data = encoding.mouse_bytes(self._terminal.handle, self.size, event, self._held)
        if event.event in ("press", "release", "click"):
            self._held = event.button if event.event == "press" else None
        return data


def _unpacked(
    old: Sequence[PackedRow], changed: Sequence[tuple[int, Packed]]
) -> dict[int, PackedRow]:
    """Rows of what changed; those that were there before, or scrolled up, are the same as then."""
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
    """By how many rows the screen may have scrolled up: where its first words were before."""
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
