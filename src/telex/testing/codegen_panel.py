"""`telex codegen`: watches a person in a program, and notes it for a test. A `panel_view.Panel`.

The panel is one row below the program. Its key marks the screen as a golden: the person enters a
name, Enter alone numbers it, Escape cancels. The screen is the one at the moment of the key.
"""

from __future__ import annotations

import asyncio
import math
import platform
import re
from codecs import getincrementaldecoder
from itertools import groupby
from typing import TYPE_CHECKING, Final

from telex.passthrough.panel_view import PIXELS, PanelLine, input_modes
from telex.terminal.emulator import cell_pixels
from telex.terminal.redact import Masker
from telex.terminal.shown_screen import from_cells
from telex.testing.codegen_log import CodegenLog, PersonInput, SeenScreen, SizeChange

if TYPE_CHECKING:
    from telex.passthrough.panel_view import PanelView
    from telex.redaction import Redactor
    from telex.terminal.cells import Snapshot
    from telex.testing.codegen_log import Echo

STYLE: Final = "7"
PROMPT: Final = " name of this golden: "
_KEY: Final = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO.|\x1b|[^\x1b]", re.DOTALL)
_ENTER: Final = (b"\r", b"\n")
_CANCEL: Final = (b"\x1b", b"\x03")
_RUB_OUT: Final = (b"\x7f", b"\b")
_NAME: Final = re.compile(r"[\w -]{1,40}")


class CodegenPanel:
    """Notes inputs, screens and marks in a `CodegenLog`."""

    height = 1

    def __init__(self, key: str, redactor: Redactor) -> None:
        self.log = CodegenLog(redactor, {platform.node(), platform.node().partition(".")[0]})
        self._key = key
        self._masker = Masker(redactor)
        self._input = PersonInput()
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._typed: str | None = None
        self._marked: SeenScreen | None = None
        self._view: PanelView | None = None
        self._last: SeenScreen | None = None
        """The screen at the last change."""
        self._held: SeenScreen | None = None
        """The screen before an input of which only the beginning has come."""
        self._due: asyncio.TimerHandle | None = None

    @property
    def answer(self) -> str | None:
        return None if self._typed is None else PROMPT + self._typed

    def lines(self) -> list[PanelLine]:
        if self._typed is not None:
            return [PanelLine(PROMPT + self._typed, "enter keeps it · esc does not ", STYLE)]
        goldens = len(self.log.names)
        count = f"{_counted(self.log.inputs, 'input')}, {_counted(goldens, 'golden')}"
        return [PanelLine(f" codegen: {count}", f"{self._key} marks a golden ", STYLE)]

    # Keys.

    def pressed(self) -> None:
        if self._view is not None:
            self._end_held()
            self._marked = self._screen()
            self._typed = ""

    def typed(self, data: bytes) -> bytes:
        for key in _KEY.finditer(data):
            self._press(key[0])
            if self._typed is None:
                return data[key.end() :]
        return b""

    def _press(self, key: bytes) -> None:
        typed = self._typed or ""
        if key in _ENTER and self._marked is not None:
            self.log.mark(self._marked, typed.strip())
            self._typed = self._marked = None
        elif key in _CANCEL:
            self._typed = self._marked = None
        elif key in _RUB_OUT:
            self._typed = typed[:-1]
        elif _NAME.fullmatch(more := typed + key.decode("latin-1")):
            self._typed = more

    # The program.

    async def live(self, view: PanelView) -> None:
        """Listen until the program has ended, or the view is left."""
        self._view = view
        session = view.session
        self._last = self._screen()
        session.input_filter = self._take
        session.output_taps.add(self._printed)
        session.watchers.add(self._changed)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._end_held()
            self.log.end = self._screen()
            if session.exit is not None:
                self.log.exit_code = session.exit.code

    def _screen(self) -> SeenScreen:
        assert self._view is not None
        session = self._view.session
        seen = session.snapshot()
        masked = self._masker.snapshot(seen, session.rows_above())
        hidden, secrets = _masked(seen, masked)
        return SeenScreen(
            from_cells(masked),
            hidden,
            secrets,
            (seen.cursor.row, seen.cursor.col),
            session.screen.alternate_screen,
        )

    def _printed(self, data: bytes) -> None:
        self.log.printed(self._decoder.decode(data))

    def _changed(self) -> None:
        """Take the present screen, and a new size."""
        now, before = self._screen(), self._last
        size = len(now.golden.rows), now.golden.cols
        if before is not None and size != (len(before.golden.rows), before.golden.cols):
            self._end_held()
            self.log.typed(before, [SizeChange(*size)], "kernel")
        self.log.saw(now)
        self._last = now

    def _take(self, data: bytes) -> bytes:
        """Note an input before it is written: after that, the program may already have changed its
        screen or switched the echo off."""
        self._feed(data)
        return data

    def _feed(self, data: bytes, now: float | None = None) -> None:
        loop = asyncio.get_running_loop()
        screen = self._held or self._screen()
        if self._due is not None:
            self._due.cancel()
            self._due = None
        inputs = self._input.feed(data, loop.time() if now is None else now, self._cell(data))
        self._held = None
        if self._input.deadline is not None:
            self._held = screen
            self._due = loop.call_at(self._input.deadline, self._feed, b"")
        if inputs:
            self.log.typed(screen, inputs, self._echo())
            if self._view is not None:
                self._view.changed()  # the count, also if the program prints nothing

    def _end_held(self) -> None:
        """Take the beginning of an input as all of it."""
        if self._held is not None:
            self._feed(b"", math.inf)

    def _cell(self, data: bytes) -> tuple[int, int] | None:
        """Return the size of a cell if the mouse reports pixels."""
        assert self._view is not None
        screen = self._view.session.screen
        if b"[<" in data and PIXELS in input_modes(screen.restore()).modes:
            return cell_pixels(self._view.session.size)
        return None

    def _echo(self) -> Echo:
        assert self._view is not None
        settings = self._view.session.pty.line_settings()
        if settings.echo:
            return "kernel"
        return "none" if settings.canonical else "program"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _masked(seen: Snapshot, masked: Snapshot) -> tuple[dict[int, frozenset[int]], tuple[str, ...]]:
    """Return the masked columns of each row, and the masked texts. A text that goes on in the next
    row is there as a whole, too."""
    hidden: dict[int, frozenset[int]] = {}
    texts: list[str] = []
    whole = ""
    for number, (row, other) in enumerate(zip(seen.rows, masked.rows, strict=True)):
        if row is other:
            continue
        cells = enumerate(zip(row.cells, other.cells, strict=True))
        for differs, group in groupby(cells, key=lambda pair: pair[1][0] != pair[1][1]):
            members = list(group)
            if differs:
                columns = frozenset([col for col, _ in members])
                hidden[number] = hidden.get(number, frozenset()) | columns
                text = "".join([cell.text for _, (cell, _) in members])
                whole = whole + text if min(columns) == 0 else text
                texts += [text] if whole == text else [text, whole]
    return hidden, tuple(texts)
