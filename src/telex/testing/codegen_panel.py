"""`telex codegen`: watches a person in a program, and notes it for a test. A `panel_view.Panel`.

The panel is one row below the program. Its key marks the screen as a golden: the person enters a
name, Enter alone numbers it, Escape cancels. The screen is the one at the moment of the key.
"""

from __future__ import annotations

import asyncio
import re
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Final

from telex.passthrough.panel_view import PanelLine
from telex.terminal.redact import mask
from telex.testing.codegen import (
    CodegenLog,
    HiddenText,
    PastedText,
    PressedKey,
    TypedText,
    typed_inputs,
)
from telex.testing.golden_file import GoldenScreen, from_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.passthrough.panel_view import PanelView
    from telex.redaction import Redactor
    from telex.testing.codegen import TypedInput

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
        self.log = CodegenLog()
        self._key = key
        self._redactor = redactor
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._typed: str | None = None
        self._marked: GoldenScreen | None = None
        self._view: PanelView | None = None

    @property
    def answer(self) -> str | None:
        return None if self._typed is None else PROMPT + self._typed

    def lines(self) -> list[PanelLine]:
        if self._typed is not None:
            return [PanelLine(PROMPT + self._typed, "enter keeps it · esc does not ", STYLE)]
        goldens = len(self.log.names)
        count = f"{len(self.log.moments) - goldens} inputs, {goldens} goldens"
        return [PanelLine(f" codegen: {count}", f"{self._key} marks a golden ", STYLE)]

    # Keys.

    def pressed(self) -> None:
        if self._view is not None:
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
        session.input_filter = self._input
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.log.end = self._screen()
            if session.exit is not None:
                self.log.exit_code = session.exit.code

    def _screen(self) -> GoldenScreen:
        assert self._view is not None
        session = self._view.session
        return from_cells(mask(session.snapshot(), self._redactor, session.rows_above()))

    def _input(self, data: bytes) -> bytes:
        """Note an input before it is written: after that, the program may already have changed its
        screen or switched the echo off."""
        inputs = typed_inputs(self._decoder.decode(data))
        self.log.typed(self._screen(), self._without_secrets(inputs))
        return data

    def _without_secrets(self, inputs: Iterator[TypedInput]) -> Iterator[TypedInput]:
        assert self._view is not None
        settings = self._view.session.pty.line_settings()
        hidden = settings.canonical and not settings.echo
        for one in inputs:
            match one:
                case PressedKey("enter") if hidden:
                    yield HiddenText(True)
                case TypedText(text) | PastedText(text) if hidden or self._is_secret(text):
                    yield HiddenText(False)
                case PressedKey() if hidden:
                    continue
                case _:
                    yield one

    def _is_secret(self, text: str) -> bool:
        return self._redactor.redact(text) != text
