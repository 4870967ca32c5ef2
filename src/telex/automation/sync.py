"""The blocking twins of `client`: the same methods, each waits for its result.

They are written out and not generated at run time, so that an editor completes them and mypy
checks them. A test compares signatures and docstrings with `client`, name by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NoReturn

from telex.automation.arguments import checks_arguments, unknown_attribute
from telex.automation.client import ATTACH_CREDIT
from telex.automation.portal import hides_frames

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from telex import match
    from telex.automation import protocol as spec
    from telex.automation.arguments import MouseButton, MouseKind, Signal
    from telex.automation.attachments import Attachment
    from telex.automation.client import AsyncServer, AsyncTerminal
    from telex.automation.locators import Anchor, Locator
    from telex.automation.portal import Portal
    from telex.automation.protocol import (
        Matched,
        ScreenLink,
        ScreenPalette,
        ScreenSnapshot,
        SessionInput,
    )
    from telex.automation.screen_search import Found
    from telex.automation.screenshot import ThemeName
    from telex.terminal import actions
    from telex.terminal.input_state import InputState
    from telex.terminal.waits.matchers import Since

__tracebackhide__ = hides_frames


@checks_arguments
class Terminal:
    """A program on a terminal: type, wait, read the screen.

    `telex.spawn` makes one for a program in this process, `Server.spawn` and
    `Server.terminal` for a session of a server. Leaving `with` ends the program.

    Example:
        with telex.spawn("python3 -q") as term:
            term.wait(">>> ")
            mark = term.type("print(6 * 7)\\n")
            term.wait("42", since=mark)
    """

    __module__ = "telex"

    def __init__(self, terminal: AsyncTerminal, portal: Portal) -> None:
        self._terminal = terminal
        self._portal = portal
        self._run = portal.run
        self.id = terminal.id

    if not TYPE_CHECKING:  # type checkers know the names

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_attribute(self, name)

    def __repr__(self) -> str:
        return repr(self._terminal).replace("Async", "", 1)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def type(self, text: str) -> str:
        """Type characters, exactly as given.

        Args:
            text: The characters. "\\n" is the Enter key for most programs.

        Returns:
            A mark of the moment before, for `since` of a later wait.

        Raises:
            SessionClosed: The program has ended.
            NotPermitted: Another client holds the lease of the session.
        """
        return self._run(self._terminal.type(text))

    def press(self, *keys: str) -> str:
        """Press keys by name, encoded as the program's current modes ask for.

        Args:
            keys: Names such as "enter", "ctrl_c", "alt_left", "f5"; docs/reference/keys.md
                lists all of them.

        Returns:
            The mark of the moment before the first key.

        Raises:
            Refused: There is no such key.
            ValueError: No key is given.

        Example:
            term.press("down", "down", "enter")
        """
        return self._run(self._terminal.press(*keys))

    def paste(self, text: str, *, bracketed: bool = False) -> str:
        """Paste text.

        Args:
            text: The text, written as it is.
            bracketed: Put it between the markers of bracketed paste. The text cannot contain the
                end marker: it is removed.

        Returns:
            A mark of the moment before.
        """
        return self._run(self._terminal.paste(text, bracketed=bracketed))

    def click(
        self,
        row: int,
        col: int,
        *,
        event: MouseKind = "click",
        button: MouseButton = "left",
        count: int = 1,
        shift: bool = False,
        alt: bool = False,
        ctrl: bool = False,
    ) -> str:
        """Click a cell with the mouse.

        Args:
            row: The row, counted from 0 at the top.
            col: The column, counted from 0 at the left.
            event: "click", "press", "release", "move", "scroll_up" or "scroll_down".
            button: "left", "middle" or "right".
            count: The number of clicks, or of notches of the wheel.
            shift: Hold Shift.
            alt: Hold Alt.
            ctrl: Hold Ctrl.

        Returns:
            A mark of the moment before.

        Raises:
            Refused: The program did not ask its terminal for mouse events.
        """
        return self._run(
            self._terminal.click(
                row, col, event=event, button=button, count=count, shift=shift, alt=alt, ctrl=ctrl
            )
        )

    def interrupt(self) -> str:
        """Type the terminal's interrupt character (usually Ctrl-C), ahead of queued input.

        Returns:
            A mark of the moment before.
        """
        return self._run(self._terminal.interrupt())

    def eof(self) -> str:
        """Type the terminal's end-of-file character (usually Ctrl-D).

        Returns:
            A mark of the moment before.
        """
        return self._run(self._terminal.eof())

    def signal(self, name: Signal) -> str:
        """Send a signal to the foreground process group.

        Args:
            name: "term", "hup", "quit", "int", "kill", "user1" or "user2".

        Returns:
            A mark of the moment before.
        """
        return self._run(self._terminal.signal(name))

    def act(self, action: actions.Action) -> str:
        """Perform any action of the automation protocol.

        Args:
            action: A value of `telex.terminal.actions`.

        Returns:
            A mark of the moment before.
        """
        return self._run(self._terminal.act(action))

    def wait(
        self,
        what: match.What,
        timeout: float | None = None,
        *,
        since: Since | None = None,
        redact: bool | None = None,
    ) -> Matched:
        """Wait until a text, a pattern or a matcher matches.

        Args:
            what: A text on the screen, a compiled `re` pattern, or a matcher of `telex.match`.
            timeout: Seconds to wait; None for the default of the terminal.
            since: A mark. Text that was on the screen at the mark, and the echo of what was typed
                since then, do not match.
            redact: Mask secrets in the match; None for the default of the session. The message of
                an exception is always masked.

        Returns:
            The match: its `evidence` has the kind of matcher and, of a pattern, the first group as
            `capture`, and several or named ones as `groups`, by number ("1") and by name.

        Raises:
            TimedOut: Nothing matched in time. The message shows the nearest miss and the screen.
            SessionClosed: The program ended first.
            Refused: The pattern is not valid in RE2, which has no lookaround.

        Example:
            found = term.wait(telex.match.regex(r"version (\\S+)"))
        """
        return self._run(self._terminal.wait(what, timeout, since=since, redact=redact))

    def wait_exit(self, timeout: float | None = None) -> int | None:
        """Wait until the program ends.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.

        Returns:
            The exit code, or None if a signal ended the program.

        Raises:
            TimedOut: The program still runs.
        """
        return self._run(self._terminal.wait_exit(timeout))

    def wait_idle(self, seconds: float = 0.25, timeout: float | None = None) -> Matched:
        """Wait until the screen has not changed, and nothing was typed, for some time.

        Use it where no text marks the end: it always costs that time.

        Args:
            seconds: How long the screen must not change.
            timeout: Seconds to wait in all; None for the default of the terminal.

        Raises:
            TimedOut: The screen did not stop changing.
        """
        return self._run(self._terminal.wait_idle(seconds, timeout))

    def wait_gone(self, what: match.What, timeout: float | None = None) -> Matched:
        """Wait until a text, a pattern or a matcher no longer matches.

        Args:
            what: A text on the screen, a compiled `re` pattern, or a matcher of `telex.match`.
            timeout: Seconds to wait; None for the default of the terminal.

        Raises:
            TimedOut: It is still there.
        """
        return self._run(self._terminal.wait_gone(what, timeout))

    def wait_change(self, timeout: float | None = None, *, since: Since | None = None) -> Matched:
        """Wait until the screen changes: its text, or a style.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.
            since: A mark, or the sequence of a snapshot; None for now.

        Raises:
            TimedOut: The screen did not change.
            SessionClosed: The program ended first.
        """
        return self._run(self._terminal.wait_change(timeout, since=since))

    def find(
        self,
        what: match.What | None = None,
        *,
        bold: bool | None = None,
        dim: bool | None = None,
        italic: bool | None = None,
        underline: bool | None = None,
        inverse: bool | None = None,
        fg: str | int | None = None,
        bg: str | int | None = None,
        row: int | None = None,
        below: Anchor | None = None,
        above: Anchor | None = None,
        right_of: Anchor | None = None,
        left_of: Anchor | None = None,
        redact: bool | None = None,
    ) -> Locator:
        """Find something on the screen by its text, style and place.

        Nothing is read yet: the locator looks each time one of its methods is called. A line that
        the terminal wrapped counts as one line.

        Args:
            what: A text, a pattern for a part of a line (compiled by `re` and read as RE2, as in
                `wait`, or `telex.match.regex`), or None for any text of that style.
            bold: Whether every character is bold; likewise the next four.
            dim: Whether it is dim.
            italic: Whether it is italic.
            underline: Whether it is underlined.
            inverse: Whether it is inverse, as a selected item often is.
            fg: The colour of the text: a name ("red", "bright_red"), a number or "#rrggbb".
            bg: The colour behind it.
            row: The row in which it begins, counted from 0; -1 is the last one.
            below: A text, pattern, locator or region that it is below.
            above: The same for above.
            right_of: The same for the left neighbour in its row.
            left_of: The same for the right neighbour in its row.
            redact: Mask secrets; None for the default of the session.

        Raises:
            ValueError: There is neither a text nor a style, or no such colour.
            Refused: The pattern is not valid in RE2.

        Example:
            term.find("ready").wait()
            place = term.find("ready", right_of="version").region()
        """
        from telex.automation.locators import Locator

        found = self._terminal.find(
            what,
            bold=bold,
            dim=dim,
            italic=italic,
            underline=underline,
            inverse=inverse,
            fg=fg,
            bg=bg,
            row=row,
            below=below,
            above=above,
            right_of=right_of,
            left_of=left_of,
            redact=redact,
        )
        return Locator(found, self._portal)

    def highlighted(self, *, redact: bool | None = None) -> Found | None:
        """Return the item that is shown in inverse, or None if it cannot be told.

        Where nothing is inverse, it is the item on a background that no other row has. Bars in the
        first and the last row do not count, if there is another item. The screen is read at once;
        to wait for a selection, use `find` with a style and `wait`.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        return self._run(self._terminal.highlighted(redact=redact))

    def focused(self, *, redact: bool | None = None) -> Found | None:
        """Return the item that has the cursor, or None if it cannot be told.

        An item is what stands between borders, or between two or more blanks. If the program hides
        the cursor, it is the highlighted item.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        return self._run(self._terminal.focused(redact=redact))

    def snapshot(self, *, cells: spec.Cells = "full", redact: bool | None = None) -> ScreenSnapshot:
        """Read the visible screen: text, cells with their styles, cursor, title, modes.

        Args:
            cells: "full" for every cell, "runs" for runs of one style, "none" for text only.
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.
        """
        return self._run(self._terminal.snapshot(cells=cells, redact=redact))

    def text(self, *, redact: bool | None = None) -> str:
        """Read the text of the visible screen.

        Args:
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.
        """
        return self._run(self._terminal.text(redact=redact))

    def waiting_for(self, *, redact: bool | None = None) -> InputState:
        """Return what the program waits for: a line, a password, a key, a menu, and so on.

        Its `state` is "busy" while the program works, and "unknown" if nothing tells. `waiting`
        says whether the program wants input; `prompt`, `choices` and `selected` what it asks.

        Args:
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.

        Example:
            asked = term.waiting_for()
            if asked.state == "password":
                term.type("swordfish\\n")
        """
        return self._run(self._terminal.waiting_for(redact=redact))

    def title(self, *, redact: bool | None = None) -> str | None:
        """Return the window title that the program set, or None.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        return self._run(self._terminal.title(redact=redact))

    def bell(self) -> int:
        """Return how often the program has rung the bell."""
        return self._run(self._terminal.bell())

    def clipboard(self, *, redact: bool | None = None) -> str | None:
        """Return the text that the program last copied (OSC 52), or None.

        Nothing reaches your own clipboard, and the program cannot read it. Of a text of more than
        1 MiB the beginning is kept, and a `UserWarning` says so. An empty text is that of a program
        that cleared the clipboard.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        return self._run(self._terminal.clipboard(redact=redact))

    def links(self, *, redact: bool | None = None) -> tuple[ScreenLink, ...]:
        """Return the links on the screen (OSC 8): their text, place and URI.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        return self._run(self._terminal.links(redact=redact))

    def palette(self) -> ScreenPalette:
        """Return the colours in force, each as `#rrggbb`. A program may change them."""
        return self._run(self._terminal.palette())

    def transcript(self, *, strip: bool = True, redact: bool | None = None) -> str:
        """Read what the program printed, in order, as far back as it is kept.

        Args:
            strip: Leave out escape sequences.
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.
        """
        return self._run(self._terminal.transcript(strip=strip, redact=redact))

    def scrollback(self, *, redact: bool | None = None) -> tuple[str, ...]:
        """Read the rows that scrolled off the top of the screen, oldest first.

        Args:
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.
        """
        return self._run(self._terminal.scrollback(redact=redact))

    def inputs(self, *, since: int | None = None, limit: int = 100) -> tuple[SessionInput, ...]:
        """Read who typed what: the last inputs of all clients, with their times and authors.

        Args:
            since: Only inputs after the one with this number.
            limit: How many at most, up to 1024.

        Returns:
            The inputs in their order, numbered without gaps. Secrets are masked in their texts,
            and a text that the terminal did not show is not kept.

        Example:
            for one in term.inputs():
                print(one.at, one.who, one.kind, one.text)
        """
        return self._run(self._terminal.inputs(since=since, limit=limit))

    def screenshot(
        self,
        path: str | os.PathLike[str],
        *,
        region: tuple[int, int, int, int] | None = None,
        theme: ThemeName = "dark",
        redact: bool | None = None,
    ) -> Path:
        """Draw the visible screen to a file. Its suffix selects the kind of picture: .png, .svg,
        .html, .ansi (text with colours) or .txt.

        Args:
            path: The file. It is replaced if it exists.
            region: Draw only this part: its top row, leftmost column, height and width.
            theme: "dark" or "light".
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.

        Returns:
            The path of the file.

        Raises:
            ValueError: The suffix or the theme is unknown, or the region is not within the screen.

        Example:
            term.screenshot("screen.png")
        """
        shot = self._terminal.screenshot(path, region=region, theme=theme, redact=redact)
        return self._run(shot)

    def resize(self, *, rows: int, cols: int) -> None:
        """Change the size of the terminal. The program gets SIGWINCH.

        Args:
            rows: The height, 1 to 1000.
            cols: The width, 1 to 1000.

        Raises:
            SessionClosed: The program has ended.
        """
        self._run(self._terminal.resize(rows=rows, cols=cols))

    def record(
        self,
        path: str | os.PathLike[str] | None,
        *,
        format: Literal[2, 3] = 2,
        input: bool = False,
        redact: bool = True,
    ) -> None:
        """Record to an asciicast file from now on.

        Args:
            path: The file; None stops the recording.
            format: The version of asciicast.
            input: Also record typed text, except while the terminal does not echo it.
            redact: Mask secrets: a recording is a file for others.

        Raises:
            Refused: The file exists, or its directory does not.
            RecordingLost: The disk is full. Raised when the recording is begun or stopped; `close`
                warns instead.
        """
        self._run(self._terminal.record(path, format=format, input=input, redact=redact))

    def attach(self, *, credit: int = ATTACH_CREDIT, redact: bool | None = None) -> Attachment:
        """Follow the output byte by byte, as a terminal would: the screen first, then the rest.

        Args:
            credit: Bytes that may be on the way. A slower reader gets the newest screen instead
                of a growing backlog.
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.

        Raises:
            Refused: The credit is not between 1 and 16777216, or there is no such session. Raised
                on entering.

        Example:
            with term.attach() as output:
                screen = output.read()  # draws the whole screen; the next ones add to it
        """
        from telex.automation.attachments import Attachment

        attachment = self._terminal.attach(credit=credit, redact=redact)
        return Attachment(attachment, self._portal)

    def kill(self) -> None:
        """Kill the program and everything it started. Its screen can still be read."""
        self._run(self._terminal.kill())

    def close(self) -> None:
        """End the program and the session. A second call does nothing."""
        self._run(self._terminal.close())


@checks_arguments
class Server:
    """A connection to a running server. Leaving `with` closes the connection; the sessions
    of the server stay.

    Example:
        with telex.connect("unix:") as server:
            term = server.spawn("bash")
    """

    __module__ = "telex"

    def __init__(self, server: AsyncServer, portal: Portal) -> None:
        self._server = server
        self._portal = portal
        self._run = portal.run

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def spawn(
        self,
        command: str | Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        rows: int = 24,
        cols: int = 80,
        pixel_width: int = 0,
        pixel_height: int = 0,
        transcript_max_chars: int | None = None,
        raw_transcript_path: str | os.PathLike[str] | None = None,
        raw_transcript_append: bool = False,
        escapes: bool = False,
        pages: bool = False,
    ) -> Terminal:
        """Start a program on the server. It runs until its terminal is closed.

        Args:
            command: An argument list, or a string that is split as a shell splits words.
            cwd: The working directory.
            env: Changes to the server's environment; None removes a variable.
            rows: Height of the terminal.
            cols: Width of the terminal.
            pixel_width: Width in pixels, for programs that ask; 0 if unknown.
            pixel_height: Height in pixels.
            transcript_max_chars: How many printed characters are kept; by default 131,072.
            raw_transcript_path: A file on the server for every byte printed, not masked.
            raw_transcript_append: Append to that file; otherwise it must not exist.
            escapes: Whether the terminal answers JSON escapes.
            pages: Whether the program may serve pages (HTTY).

        Raises:
            NotStarted: The program could not be started.
        """
        spawned = self._server.spawn(
            command,
            cwd=cwd,
            env=env,
            rows=rows,
            cols=cols,
            pixel_width=pixel_width,
            pixel_height=pixel_height,
            transcript_max_chars=transcript_max_chars,
            raw_transcript_path=raw_transcript_path,
            raw_transcript_append=raw_transcript_append,
            escapes=escapes,
            pages=pages,
        )
        return Terminal(self._run(spawned), self._portal)

    def sessions(self) -> tuple[str, ...]:
        """List the ids of the server's sessions."""
        return self._run(self._server.sessions())

    def terminal(self, id: str) -> Terminal:
        """Return a session of the server. Leaving it by `with` ends its program.

        Args:
            id: An id from `sessions`.
        """
        return Terminal(self._server.terminal(id), self._portal)

    def close(self) -> None:
        """Close the connection."""
        self._run(self._server.close())
