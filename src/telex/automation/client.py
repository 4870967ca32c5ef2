"""The asyncio client: `telex.spawn`, `telex.connect`, and the objects they give.

    async with telex.spawn("python3 -q") as term:
        await term.wait(">>> ")
        mark = await term.type("print(6 * 7)\\n")
        await term.wait("42", since=mark)

The same classes drive a program in this process (`spawn`) and a session of a running server
(`connect`); only the `Caller` below them differs. `sync` has the blocking twins, which `with`
gives instead of `async with`. Its docstrings are the same, and a test compares them.
"""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Protocol, TypeVar

from msgspec import UNSET

from telex import match
from telex.automation import protocol as spec
from telex.automation.arguments import checks_arguments, unknown_attribute
from telex.automation.caller import LocalCaller, dial_caller
from telex.automation.errors import (
    RecordingLost,
    Refused,
    ServerGone,
    SessionClosed,
    SessionProblem,
)
from telex.automation.portal import DualContext, end_abandoned, hides_frames
from telex.processes.shielded import run_shielded
from telex.terminal import actions
from telex.terminal.input_state import UNKNOWN
from telex.terminal.waits import matchers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.automation.arguments import MouseButton, MouseKind, Signal
    from telex.automation.attachments import AsyncAttachment
    from telex.automation.caller import Caller
    from telex.automation.locators import Anchor, AsyncLocator
    from telex.automation.protocol import (
        Matched,
        ScreenLink,
        ScreenPalette,
        ScreenSnapshot,
        SessionInput,
    )
    from telex.automation.screen_search import Found
    from telex.automation.screenshot import ThemeName
    from telex.automation.sync import Server, Terminal
    from telex.terminal.input_state import InputState
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import PredicateRunner
    from telex.terminal.waits.matchers import Since

T = TypeVar("T")
__tracebackhide__ = hides_frames
DAY_SECONDS: Final = 86_400.0
"""The longest wait."""
WAIT_SECONDS: Final = 30.0
"""The length of a wait that says nothing, unless `spawn` or `connect` set another."""
ATTACH_CREDIT: Final = 256 * 1024
"""Bytes that an attachment sends before the reader has to ask for more."""


class PredicateSource(Protocol):
    """Runs the predicates that `lua` matchers name, as long as a program is driven."""

    def runner(self, session: PtySession, predicate: matchers.Predicate) -> PredicateRunner:
        """Return what runs one predicate for one wait."""
        ...

    async def close(self) -> None: ...


@checks_arguments
class AsyncTerminal:
    """A program on a terminal: type, wait, read the screen.

    `telex.spawn` makes one for a program in this process, `AsyncServer.spawn` and
    `AsyncServer.terminal` for a session of a server. Leaving `async with` ends the program.

    Example:
        async with telex.spawn("python3 -q") as term:
            await term.wait(">>> ")
            mark = await term.type("print(6 * 7)\\n")
            await term.wait("42", since=mark)
    """

    __module__ = "telex"

    def __init__(
        self,
        caller: Caller,
        id: str,
        *,
        made: bool = False,
        owns: bool = False,
        redact: bool = True,
        timeout: float = WAIT_SECONDS,
    ) -> None:
        self._caller = caller
        self.id = id
        self._timeout = timeout
        """Seconds that a wait lasts, unless it says otherwise."""
        self._redact = redact
        """Whether reads mask secrets, unless they say otherwise."""
        self._made = made
        """Whether the session certainly existed."""
        self._owns = owns
        """Whether the caller is closed with the terminal."""
        if owns:
            self._loop = asyncio.get_running_loop()
        self._closed = False
        self._records = False
        """Whether a recording was begun here and not stopped."""

    if not TYPE_CHECKING:  # type checkers know the names

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_attribute(self, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}{', closed' if self._closed else ''}>"

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self, warn: Any = warnings.warn) -> None:
        if self._owns and not self._closed:
            warn(f"{self!r} was not closed", ResourceWarning, source=self)
            end_abandoned(self._loop, self.close)

    async def type(self, text: str) -> str:
        """Type characters, exactly as given.

        Args:
            text: The characters. "\\n" is the Enter key for most programs.

        Returns:
            A mark of the moment before, for `since` of a later wait.

        Raises:
            SessionClosed: The program has ended.
            NotPermitted: Another client holds the lease of the session.
        """
        return await self.act(actions.Text(text))

    async def press(self, *keys: str) -> str:
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
            await term.press("down", "down", "enter")
        """
        if not keys:
            raise ValueError("press needs at least one key")
        marks = [await self.act(actions.Key(key)) for key in keys]
        return marks[0]

    async def paste(self, text: str, *, bracketed: bool = False) -> str:
        """Paste text.

        Args:
            text: The text, written as it is.
            bracketed: Put it between the markers of bracketed paste. The text cannot contain the
                end marker: it is removed.

        Returns:
            A mark of the moment before.
        """
        return await self.act(actions.BracketedPaste(text) if bracketed else actions.Paste(text))

    async def click(
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
        happened = actions.MouseEvent(row, col, event, button, count, shift, alt, ctrl)
        return await self.act(actions.Mouse(happened))

    async def interrupt(self) -> str:
        """Type the terminal's interrupt character (usually Ctrl-C), ahead of queued input.

        Returns:
            A mark of the moment before.
        """
        return await self.act(actions.Interrupt())

    async def eof(self) -> str:
        """Type the terminal's end-of-file character (usually Ctrl-D).

        Returns:
            A mark of the moment before.
        """
        return await self.act(actions.Eof())

    async def signal(self, name: Signal) -> str:
        """Send a signal to the foreground process group.

        Args:
            name: "term", "hup", "quit", "int", "kill", "user1" or "user2".

        Returns:
            A mark of the moment before.
        """
        return await self.act(actions.Signal(name))

    async def act(self, action: actions.Action) -> str:
        """Perform any action of the automation protocol.

        Args:
            action: A value of `telex.terminal.actions`.

        Returns:
            A mark of the moment before.
        """
        sent = await self._call("session.input", spec.Input(self.id, action), spec.Sent)
        return sent.mark

    async def wait(
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
            found = await term.wait(telex.match.regex(r"version (\\S+)"))
        """
        asked = spec.Wait(
            session=self.id,
            matcher=match.matcher(what),
            timeout_ms=milliseconds(self._seconds(timeout)),
            since=since,
            cells="none",
            redact=self._masks(redact),
        )
        return await self._call("session.wait", asked, spec.Matched)

    async def wait_exit(self, timeout: float | None = None) -> int | None:
        """Wait until the program ends.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.

        Returns:
            The exit code, or None if a signal ended the program.

        Raises:
            TimedOut: The program still runs.
        """
        matched = await self.wait(match.exited(), timeout)
        code = matched.evidence["exit_code"]
        return code if isinstance(code, int) else None

    async def wait_idle(self, seconds: float = 0.25, timeout: float | None = None) -> Matched:
        """Wait until the screen has not changed, and nothing was typed, for some time.

        Use it where no text marks the end: it always costs that time.

        Args:
            seconds: How long the screen must not change.
            timeout: Seconds to wait in all; None for the default of the terminal.

        Raises:
            TimedOut: The screen did not stop changing.
        """
        return await self.wait(match.stable(milliseconds(seconds)), timeout)

    async def wait_gone(self, what: match.What, timeout: float | None = None) -> Matched:
        """Wait until a text, a pattern or a matcher no longer matches.

        Args:
            what: A text on the screen, a compiled `re` pattern, or a matcher of `telex.match`.
            timeout: Seconds to wait; None for the default of the terminal.

        Raises:
            TimedOut: It is still there.
        """
        gone = match.absent(what) if isinstance(what, str) else match.none_of(what)
        return await self.wait(gone, timeout)

    async def wait_change(
        self, timeout: float | None = None, *, since: Since | None = None
    ) -> Matched:
        """Wait until the screen changes: its text, or a style.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.
            since: A mark, or the sequence of a snapshot; None for now.

        Raises:
            TimedOut: The screen did not change.
            SessionClosed: The program ended first.
        """
        if since is None:
            since = (await self.snapshot(cells="none")).sequence
        return await self.wait(match.changed(since), timeout)

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
    ) -> AsyncLocator:
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
            await term.find("ready").wait()
            place = await term.find("ready", right_of="version").region()
        """
        from telex.automation.locators import AsyncLocator, build_query

        options = {
            "bold": bold,
            "dim": dim,
            "italic": italic,
            "underline": underline,
            "inverse": inverse,
            "fg": fg,
            "bg": bg,
            "below": below,
            "above": above,
            "right_of": right_of,
            "left_of": left_of,
        }
        return AsyncLocator(self, build_query(what, row, options), redact)

    async def highlighted(self, *, redact: bool | None = None) -> Found | None:
        """Return the item that is shown in inverse, or None if it cannot be told.

        Where nothing is inverse, it is the item on a background that no other row has. Bars in the
        first and the last row do not count, if there is another item. The screen is read at once;
        to wait for a selection, use `find` with a style and `wait`.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        from telex.automation import screen_search

        return screen_search.highlighted(await self.snapshot(cells="runs", redact=redact))

    async def focused(self, *, redact: bool | None = None) -> Found | None:
        """Return the item that has the cursor, or None if it cannot be told.

        An item is what stands between borders, or between two or more blanks. If the program hides
        the cursor, it is the highlighted item.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        from telex.automation import screen_search

        return screen_search.focused(await self.snapshot(cells="runs", redact=redact))

    async def snapshot(
        self, *, cells: spec.Cells = "full", redact: bool | None = None
    ) -> ScreenSnapshot:
        """Read the visible screen: text, cells with their styles, cursor, title, modes.

        Args:
            cells: "full" for every cell, "runs" for runs of one style, "none" for text only.
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.
        """
        asked = spec.ReadScreen(session=self.id, cells=cells, redact=self._masks(redact))
        return await self._call("session.snapshot", asked, spec.ScreenSnapshot)

    async def text(self, *, redact: bool | None = None) -> str:
        """Read the text of the visible screen.

        Args:
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.
        """
        return (await self.snapshot(cells="none", redact=redact)).plain_text

    async def waiting_for(self, *, redact: bool | None = None) -> InputState:
        """Return what the program waits for: a line, a password, a key, a menu, and so on.

        Its `state` is "busy" while the program works, and "unknown" if nothing tells. `waiting`
        says whether the program wants input; `prompt`, `choices` and `selected` what it asks.

        Args:
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.

        Example:
            asked = await term.waiting_for()
            if asked.state == "password":
                await term.type("swordfish\\n")
        """
        seen = await self.snapshot(cells="none", redact=redact)
        return UNKNOWN if seen.input_state is UNSET else seen.input_state

    async def title(self, *, redact: bool | None = None) -> str | None:
        """Return the window title that the program set, or None.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        return (await self._properties(redact)).title

    async def bell(self) -> int:
        """Return how often the program has rung the bell."""
        return (await self._properties(None)).bells

    async def clipboard(self, *, redact: bool | None = None) -> str | None:
        """Return the text that the program last copied (OSC 52), or None.

        Nothing reaches your own clipboard, and the program cannot read it. Of a text of more than
        1 MiB the beginning is kept, and a `UserWarning` says so. An empty text is that of a program
        that cleared the clipboard.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        found = await self._properties(redact)
        if found.clipboard_cut:
            warnings.warn("the program copied more than 1 MiB; this is the beginning", stacklevel=2)
        return found.clipboard

    async def links(self, *, redact: bool | None = None) -> tuple[ScreenLink, ...]:
        """Return the links on the screen (OSC 8): their text, place and URI.

        Args:
            redact: Mask secrets; None for the default of the session.
        """
        return (await self._properties(redact)).links

    async def palette(self) -> ScreenPalette:
        """Return the colours in force, each as `#rrggbb`. A program may change them."""
        return (await self._properties(None)).palette

    async def transcript(self, *, strip: bool = True, redact: bool | None = None) -> str:
        """Read what the program printed, in order, as far back as it is kept.

        Args:
            strip: Leave out escape sequences.
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.
        """
        asked = spec.ReadTranscript(session=self.id, strip=strip, redact=self._masks(redact))
        return (await self._call("session.transcript", asked, spec.TranscriptText)).text

    async def scrollback(self, *, redact: bool | None = None) -> tuple[str, ...]:
        """Read the rows that scrolled off the top of the screen, oldest first.

        Args:
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.
        """
        asked = spec.ReadScrollback(
            session=self.id, start=0, count=10_000, redact=self._masks(redact)
        )
        return (await self._call("session.scrollback", asked, spec.Scrollback)).lines

    async def inputs(
        self, *, since: int | None = None, limit: int = 100
    ) -> tuple[SessionInput, ...]:
        """Read who typed what: the last inputs of all clients, with their times and authors.

        Args:
            since: Only inputs after the one with this number.
            limit: How many at most, up to 1024.

        Returns:
            The inputs in their order, numbered without gaps. Secrets are masked in their texts,
            and a text that the terminal did not show is not kept.

        Example:
            for one in await term.inputs():
                print(one.at, one.who, one.kind, one.text)
        """
        asked = spec.ReadInputs(session=self.id, since=since, limit=limit)
        return (await self._call("session.inputs", asked, spec.Inputs)).inputs

    async def screenshot(
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
            await term.screenshot("screen.png")
        """
        snapshot = await self.snapshot(redact=redact)
        return await asyncio.to_thread(snapshot.save, Path(path), region=region, theme=theme)

    async def resize(self, *, rows: int, cols: int) -> None:
        """Change the size of the terminal. The program gets SIGWINCH.

        Args:
            rows: The height, 1 to 1000.
            cols: The width, 1 to 1000.

        Raises:
            SessionClosed: The program has ended.
        """
        asked = spec.ResizeTo(session=self.id, rows=rows, cols=cols)
        await self._call("session.resize", asked, spec.Resized)

    async def record(
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
        asked = spec.Record(
            session=self.id, path=absolute(path), format=format, input=input, redact=redact
        )
        self._records = False
        await self._call("session.record", asked, spec.Recorded)
        self._records = path is not None

    def attach(self, *, credit: int = ATTACH_CREDIT, redact: bool | None = None) -> AsyncAttachment:
        """Follow the output byte by byte, as a terminal would: the screen first, then the rest.

        Args:
            credit: Bytes that may be on the way. A slower reader gets the newest screen instead
                of a growing backlog.
            redact: Mask secrets; None for the default of the session, see `telex.spawn`.

        Raises:
            Refused: The credit is not between 1 and 16777216, or there is no such session. Raised
                on entering.

        Example:
            async with term.attach() as output:
                screen = await output.read()  # draws the whole screen; the next ones add to it
        """
        from telex.automation.attachments import AsyncAttachment

        return AsyncAttachment(self, credit, self._masks(redact))

    async def kill(self) -> None:
        """Kill the program and everything it started. Its screen can still be read."""
        await self._call("session.kill", spec.OfSession(self.id), spec.Killed)

    async def close(self) -> None:
        """End the program and the session. A second call does nothing."""
        if not self._closed:
            self._closed = True
            await run_shielded(self._end())

    async def _end(self) -> None:
        if self._records:
            await self._stop_recording()
        try:
            await self._caller.call("session.close", spec.OfSession(self.id), spec.Closed)
        except (Refused, ServerGone):
            if not self._made:
                raise
            # The session existed: another client closed it, or its server ended.
        finally:
            if self._owns:
                await self._caller.close()

    async def _stop_recording(self) -> None:
        asked = spec.Record(session=self.id)
        try:
            await self._caller.call("session.record", asked, spec.Recorded)
        except RecordingLost as lost:
            warnings.warn(str(lost), RuntimeWarning, stacklevel=2)
        except SessionProblem:
            pass  # the session or the server has ended: `session.close` reports it

    async def _properties(self, redact: bool | None) -> spec.Properties:
        asked = spec.ReadProperties(session=self.id, redact=self._masks(redact))
        return await self._call("session.properties", asked, spec.Properties)

    def _seconds(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    def _masks(self, redact: bool | None) -> bool:
        return self._redact if redact is None else redact

    async def _call(self, method: str, params: object, returns: builtins.type[T]) -> T:
        if self._closed:
            raise SessionClosed(f"the session {self.id} was closed", {})
        return await self._caller.call(method, params, returns)


@checks_arguments
class AsyncServer:
    """A connection to a running server. Leaving `async with` closes the connection; the sessions
    of the server stay.

    Example:
        async with telex.connect("unix:") as server:
            term = await server.spawn("bash")
    """

    __module__ = "telex"

    def __init__(self, caller: Caller, timeout: float = WAIT_SECONDS) -> None:
        self._caller = caller
        self._timeout = timeout

    async def __aenter__(self) -> AsyncServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def spawn(
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
    ) -> AsyncTerminal:
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
        asked = created(
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
        return await _started(self._caller, asked, timeout=self._timeout)

    async def sessions(self) -> tuple[str, ...]:
        """List the ids of the server's sessions."""
        asked = await self._caller.call("session.list", spec.NoParams(), spec.SessionList)
        return asked.sessions

    def terminal(self, id: str) -> AsyncTerminal:
        """Return a session of the server. Leaving it by `async with` ends its program.

        Args:
            id: An id from `sessions`.
        """
        return AsyncTerminal(self._caller, id, timeout=self._timeout)

    async def close(self) -> None:
        """Close the connection."""
        await self._caller.close()


def spawn(
    asked: spec.Create,
    *,
    redact: bool = False,
    timeout: float = WAIT_SECONDS,
    predicates: PredicateSource | None = None,
) -> DualContext[AsyncTerminal, Terminal]:
    """Start a program on a terminal, in this process; `telex.spawn` calls this.

    Args:
        asked: The program, from `created`.
        redact: Mask secrets in what is read.
        timeout: Seconds that a wait lasts, unless it says otherwise.
        predicates: Runs the predicates of `lua` matchers (`telex.adapters.terminal_spawn`).
    """

    async def start() -> AsyncTerminal:
        from telex.automation.server import AutomationService
        from telex.redaction import Redactor

        runner = None if predicates is None else predicates.runner
        caller = LocalCaller(AutomationService(redactor=Redactor(), predicates=runner), predicates)
        try:
            return await _started(caller, asked, owns=True, redact=redact, timeout=timeout)
        except BaseException:
            await caller.close()
            raise

    return DualContext(
        start, _blocking_terminal, made_by("telex.spawn", asked.program, asked.args), "term"
    )


@checks_arguments
def connect(
    address: str, *, token: str | None = None, timeout: float = WAIT_SECONDS
) -> DualContext[AsyncServer, Server]:
    """Connect to a running server (`telex serve`).

    Args:
        address: `unix:PATH`; `unix:` alone is the socket that `telex serve --socket` opens
            without a path; or `ws://HOST:PORT/rpc`.
        token: The token of an HTTP server. By default the value of TELEX_TOKEN.
        timeout: Seconds that each wait of its terminals lasts, unless the wait says otherwise.

    Returns:
        An object for `with` (gives a `Server`) or `async with` (gives an `AsyncServer`).

    Raises:
        CannotConnect: No server answers there, or it refused the token. Raised on entering.

    Example:
        with telex.connect("unix:") as server:
            print(server.sessions())
    """

    async def dial() -> AsyncServer:
        return AsyncServer(await dial_caller(address, token), timeout)

    return DualContext(dial, _blocking_server, made_by("telex.connect", address), "server")


def created(
    command: str | Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    raw_transcript_path: str | os.PathLike[str] | None = None,
    **more: Any,
) -> spec.Create:
    """Return the parameters of `session.create`. Raises ValueError for an empty command."""
    program, *args = words(command)
    return spec.Create(
        program=program,
        args=tuple(args),
        cwd=absolute(cwd),
        env=dict(env or {}),
        raw_transcript_path=absolute(raw_transcript_path),
        **more,
    )


def words(command: str | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Split a command into program and arguments. Raises ValueError for an empty command, and for
    one with an open quotation."""
    try:
        argv = (
            shlex.split(command)
            if isinstance(command, str)
            else [os.fspath(one) for one in command]
        )
    except ValueError as error:
        reason = str(error).lower()
        raise ValueError(
            f"command cannot be split into words: {reason}; give a list of words instead"
        ) from None
    if not argv:
        raise ValueError("command is empty")
    return argv


def made_by(function: str, first: str, rest: Sequence[str] = ()) -> str:
    """Return a call as a person would write it, for the sentence about an unopened object. Further
    arguments are left out: they may be long, or secret."""
    return f"{function}({json.dumps(first + ' …' if rest else first, ensure_ascii=False)})"


def milliseconds(timeout: float) -> int:
    """Convert seconds to the protocol's unit, a day at most."""
    return round(min(timeout, DAY_SECONDS) * 1000)


def absolute(path: str | os.PathLike[str] | None) -> str | None:
    """Make a path absolute, as a server has another working directory."""
    return None if path is None else str(Path(path).absolute())


async def _started(
    caller: Caller,
    asked: spec.Create,
    *,
    owns: bool = False,
    redact: bool = True,
    timeout: float,
) -> AsyncTerminal:
    made = await caller.call("session.create", asked, spec.Created)
    return AsyncTerminal(caller, made.session, made=True, owns=owns, redact=redact, timeout=timeout)


def _blocking_terminal(terminal: AsyncTerminal, portal: Any) -> Terminal:
    from telex.automation.sync import Terminal

    return Terminal(terminal, portal)


def _blocking_server(server: AsyncServer, portal: Any) -> Server:
    from telex.automation.sync import Server

    return Server(server, portal)
