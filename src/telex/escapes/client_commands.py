"""The commands that programs use most, as methods. They send and do not wait for an answer.

Each method is one command with its payload's own types; for a command without a method there is
`tell("term:…", {…})`. Shared by the asyncio client and its blocking twin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import msgspec

from telex.escapes.commands.cursor import CursorMove, CursorSet, CursorStyle, CursorVisible
from telex.escapes.commands.dec_modes import AltScreen, Enabled
from telex.escapes.commands.screen_content import Erase, Scroll, WriteText
from telex.escapes.commands.style import Background, Color, SetStyle, StyleKey, StyleKeys, Underline
from telex.escapes.commands.terminal_extensions import (
    ClipWrite,
    NotifyClose,
    NotifyShow,
    SetProgress,
)
from telex.escapes.commands.window_ops import Hyperlink, SetTitle

if TYPE_CHECKING:
    from collections.abc import Iterator


class CommandMethods(ABC):
    """Methods for commands, on top of `tell`."""

    @abstractmethod
    def tell(self, name: str, data: object = msgspec.UNSET) -> None: ...

    # --- what is written

    def write(self, text: str) -> None:
        """Text at the cursor, without control characters."""
        self._say("term:write", WriteText(text))

    def style(
        self,
        *,
        color: Color | None = None,
        bgcolor: Background | None = None,
        ulcolor: Color | None = None,
        bold: bool | None = None,
        faint: bool | None = None,
        italic: bool | None = None,
        underline: bool | Underline | None = None,
        blink: bool | Literal["slow", "rapid"] | None = None,
        inverse: bool | None = None,
        hidden: bool | None = None,
        strike: bool | None = None,
        overline: bool | None = None,
    ) -> None:
        """How what is written next looks. What is left out stays as it is."""
        self._say(
            "term:setstyle",
            SetStyle(
                color, bgcolor, ulcolor, bold, faint, italic,
                underline, blink, inverse, hidden, strike, overline,
            ),
        )  # fmt: skip

    def reset_style(self, *keys: StyleKey) -> None:
        """Those parts of the style, or all of it."""
        self._say("term:resetstyle", StyleKeys(keys))

    def link(self, uri: str, text: str, *, id: str | None = None) -> None:
        """A text that leads somewhere."""
        self._say("term:hyperlink", Hyperlink(uri, id, text))

    # --- the cursor and the screen

    def move(self, x: int = 0, y: int = 0) -> None:
        """The cursor, to the right and down."""
        self._say("term:cursormove", CursorMove(x, y))

    def go(self, row: int | None = None, col: int | None = None) -> None:
        """The cursor, to a place counted from 1."""
        self._say("term:cursorset", CursorSet(row, col))

    def cursor(
        self,
        shape: Literal["default", "block", "underline", "bar"] = "default",
        *,
        blink: bool = False,
    ) -> None:
        """What the cursor looks like."""
        self._say("term:cursorstyle", CursorStyle(shape, blink))

    def show_cursor(self, visible: bool = True) -> None:
        self._say("term:cursorvisible", CursorVisible(visible))

    def erase(
        self,
        target: Literal["line", "screen"] = "screen",
        part: Literal["after", "before", "all", "scrollback"] = "all",
    ) -> None:
        """A line or the screen, seen from the cursor."""
        self._say("term:erase", Erase(target, part))

    def scroll(self, n: int = 1) -> None:
        """Lines up; negative down."""
        self._say("term:scroll", Scroll(n))

    @contextmanager
    def alternate_screen(self) -> Iterator[None]:
        """A screen of its own for a while; then what was there before is there again."""
        self._say("term:altscreen", AltScreen())
        try:
            yield
        finally:
            self._say("term:altscreen", AltScreen(enabled=False))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What is drawn in the block is shown when it is complete."""
        self._say("term:sync", Enabled())
        try:
            yield
        finally:
            self._say("term:sync", Enabled(enabled=False))

    # --- around it

    def title(self, title: str) -> None:
        """What the window is called."""
        self._say("term:title", SetTitle(title))

    def bell(self) -> None:
        self.tell("term:bell")

    def progress(
        self,
        done: float | None = None,
        *,
        state: Literal["none", "normal", "error", "indeterminate", "paused"] | None = None,
    ) -> None:
        """How much is done, from 0 to 1. Nothing at all ends it."""
        state = state or ("none" if done is None else "normal")
        self._say("progress:set", SetProgress(state, round((done or 0) * 100)))

    def notify(
        self,
        title: str,
        body: str = "",
        *,
        id: str | None = None,
        urgency: Literal["low", "normal", "critical"] | None = None,
        when: Literal["always", "unfocused", "invisible"] | None = None,
    ) -> None:
        """Tell the person, wherever they look."""
        self._say("notify:show", NotifyShow(title, body, id, urgency, when))

    def close_notification(self, id: str) -> None:
        self._say("notify:close", NotifyClose(id))

    def copy(self, text: str, *, selection: Literal["clipboard", "primary"] = "clipboard") -> None:
        """A text for the person's clipboard."""
        self._say("clip:write", ClipWrite(text, selection))

    def _say(self, name: str, payload: msgspec.Struct) -> None:
        """Raises `msgspec.ValidationError` for what the terminal would refuse in silence."""
        plain = msgspec.to_builtins(payload)
        msgspec.convert(plain, type(payload))
        self.tell(name, plain)
