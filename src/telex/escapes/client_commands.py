"""The commands that programs use most, as methods. They send a command and do not wait.

Each method is one command with the types of its payload; for a command without a method, use
`tell("term:…", {…})`. The asyncio client and its blocking twin share these methods.
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
    def tell(self, name: str, data: object = msgspec.UNSET) -> None:
        """Send a command without waiting for a response."""

    # --- text and style

    def write(self, text: str) -> None:
        """Write text at the cursor.

        Args:
            text: The text; control characters are removed.
        """
        self._send("term:write", WriteText(text))

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
        """Set the style of the following text. Omitted attributes do not change.

        Args:
            color: The foreground: a name, a number of the palette, or "#rrggbb".
            bgcolor: The background.
            ulcolor: The colour of the underline.
            bold: Bold text.
            faint: Faint text.
            italic: Italic text.
            underline: An underline, or its kind.
            blink: Blinking text, or its speed.
            inverse: Exchange foreground and background.
            hidden: Invisible text.
            strike: Struck-out text.
            overline: A line above the text.
        """
        self._send(
            "term:setstyle",
            SetStyle(
                color, bgcolor, ulcolor, bold, faint, italic,
                underline, blink, inverse, hidden, strike, overline,
            ),
        )  # fmt: skip

    def reset_style(self, *keys: StyleKey) -> None:
        """Reset attributes of the style.

        Args:
            keys: The attributes, as for `style`; none resets all.
        """
        self._send("term:resetstyle", StyleKeys(keys))

    def link(self, uri: str, text: str, *, id: str | None = None) -> None:
        """Write a text as a hyperlink.

        Args:
            uri: Where the link leads.
            text: The visible text.
            id: Joins the parts of one link that stand in several places.
        """
        self._send("term:hyperlink", Hyperlink(uri, id, text))

    # --- the cursor and the screen

    def move(self, x: int = 0, y: int = 0) -> None:
        """Move the cursor.

        Args:
            x: Columns to the right; negative to the left.
            y: Rows down; negative up.
        """
        self._send("term:cursormove", CursorMove(x, y))

    def go(self, row: int | None = None, col: int | None = None) -> None:
        """Move the cursor to a place.

        Args:
            row: The row, counted from 1; None keeps it.
            col: The column, counted from 1; None keeps it.
        """
        self._send("term:cursorset", CursorSet(row, col))

    def cursor(
        self,
        shape: Literal["default", "block", "underline", "bar"] = "default",
        *,
        blink: bool = False,
    ) -> None:
        """Set the shape of the cursor.

        Args:
            shape: The shape.
            blink: Whether it blinks.
        """
        self._send("term:cursorstyle", CursorStyle(shape, blink))

    def show_cursor(self, visible: bool = True) -> None:
        """Show the cursor, or hide it.

        Args:
            visible: False hides it.
        """
        self._send("term:cursorvisible", CursorVisible(visible))

    def erase(
        self,
        target: Literal["line", "screen"] = "screen",
        part: Literal["after", "before", "all", "scrollback"] = "all",
    ) -> None:
        """Erase a line or the screen.

        Args:
            target: The line or the screen.
            part: All of it, the part before or after the cursor, or the scrollback.
        """
        self._send("term:erase", Erase(target, part))

    def scroll(self, n: int = 1) -> None:
        """Scroll the screen.

        Args:
            n: Lines up; negative scrolls down.
        """
        self._send("term:scroll", Scroll(n))

    @contextmanager
    def alternate_screen(self) -> Iterator[None]:
        """Use the alternate screen in this block, and restore the primary screen afterwards."""
        self._send("term:altscreen", AltScreen())
        try:
            yield
        finally:
            self._send("term:altscreen", AltScreen(enabled=False))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Show the output of this block at once, when it is complete (synchronized update)."""
        self._send("term:sync", Enabled())
        try:
            yield
        finally:
            self._send("term:sync", Enabled(enabled=False))

    # --- window, progress, notifications, clipboard

    def title(self, title: str) -> None:
        """Set the title of the window.

        Args:
            title: The title.
        """
        self._send("term:title", SetTitle(title))

    def bell(self) -> None:
        """Ring the terminal's bell."""
        self.tell("term:bell")

    def progress(
        self,
        done: float | None = None,
        *,
        state: Literal["none", "normal", "error", "indeterminate", "paused"] | None = None,
    ) -> None:
        """Show the progress of the program. Without arguments, remove it.

        Args:
            done: From 0 to 1.
            state: The kind of progress; by default "normal".
        """
        state = state or ("none" if done is None else "normal")
        self._send("progress:set", SetProgress(state, round((done or 0) * 100)))

    def notify(
        self,
        title: str,
        body: str = "",
        *,
        id: str | None = None,
        urgency: Literal["low", "normal", "critical"] | None = None,
        when: Literal["always", "unfocused", "invisible"] | None = None,
    ) -> None:
        """Show a desktop notification.

        Args:
            title: The first line.
            body: The text below it.
            id: An id for `close_notification`; a second notification with it replaces the first.
            urgency: How urgent it is.
            when: Show it always, or only if the window has no focus or is not visible.
        """
        self._send("notify:show", NotifyShow(title, body, id, urgency, when))

    def close_notification(self, id: str) -> None:
        """Close a notification.

        Args:
            id: The id that `notify` was given.
        """
        self._send("notify:close", NotifyClose(id))

    def copy(self, text: str, *, selection: Literal["clipboard", "primary"] = "clipboard") -> None:
        """Copy a text to the person's clipboard.

        Args:
            text: The text.
            selection: The clipboard, or the primary selection of X11.
        """
        self._send("clip:write", ClipWrite(text, selection))

    def _send(self, name: str, payload: msgspec.Struct) -> None:
        """Send a command. Raises `msgspec.ValidationError` for data that the terminal would refuse
        without an error.
        """
        plain = msgspec.to_builtins(payload)
        msgspec.convert(plain, type(payload))
        self.tell(name, plain)
