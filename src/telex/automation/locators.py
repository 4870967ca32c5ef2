"""Locators: things on the screen by text, style and place, looked up when they are used.

    term.find("Save", inverse=True).wait()
    term.find("OK", right_of="Cancel").click()

A locator holds a query and no place: each method reads the screen again (`screen_search`).
`all` and `get` look once; the others wait until exactly one thing fits, its anchors too, and look
again after each change, without polling. Made by `Terminal.find`.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

from telex import match as telex_match
from telex.automation import screen_search
from telex.automation.arguments import checks_arguments
from telex.automation.errors import (
    Ambiguous,
    NotFound,
    SessionClosed,
    SessionProblem,
    TimedOut,
)
from telex.automation.portal import hides_frames
from telex.automation.screen_search import Found, Query
from telex.terminal.cells import Region
from telex.terminal.waits import matchers

if TYPE_CHECKING:
    from telex.automation.arguments import MouseButton
    from telex.automation.client import AsyncTerminal
    from telex.automation.portal import Portal
    from telex.automation.protocol import CellStyle, ScreenSnapshot

__tracebackhide__ = hides_frames


SETTLED_SECONDS: Final = 1.0
"""The time without a change after which several things that fit are an error. Programs draw in
steps, and the second of two things may go again; a screen that stands still does not."""


def build_query(
    what: str | re.Pattern[str] | matchers.Matcher | None, row: int | None, given: dict[str, Any]
) -> Query:
    """Return the query for the arguments of `find`; `given` has its styles and sides.

    Raises:
        ValueError: The query says nothing, or a pattern is not valid (`Refused`).
    """
    style: dict[str, bool | str] = {}
    anchors: dict[str, Region | Query] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in ("fg", "bg"):
            style[_GROUNDS[name]] = screen_search.colour(value)
        elif isinstance(value, bool):
            style[name] = value
        else:
            anchors[name] = _anchor(name, value)
    if what == "" or (what is None and not style):
        raise ValueError("find needs a text, a pattern or a style")
    return Query(None if what is None else _wanted("what", what), style, row, anchors)


_GROUNDS: Final = {"fg": "foreground", "bg": "background"}


def _wanted(
    name: str, given: str | re.Pattern[str] | matchers.Matcher
) -> str | matchers.ScreenRegex:
    match telex_match.matcher(given):
        case matchers.ContainsText(value=text, since=None):
            return text
        case matchers.ScreenRegex(since=None) as pattern:
            return pattern
    raise TypeError(
        f"{name} must be a text or a pattern without since; use wait for other matchers"
    )


def _anchor(name: str, given: object) -> Region | Query:
    match given:
        case "":
            raise ValueError(f"{name} is an empty text")
        case str() | re.Pattern() | matchers.ContainsText() | matchers.ScreenRegex():
            return Query(_wanted(name, given))
        case AsyncLocator() | Locator():
            return given.query
        case Found():
            return given.region
        case (int(), int(), int(), int()):
            return Region(*given)
    raise TypeError(
        f"{name} must be a text, a pattern, a locator, a Found or a region of four whole numbers; "
        f"given is the {type(given).__name__}"
    )


@checks_arguments
class AsyncLocator:
    """Something on the screen, looked up each time it is used. Made by `AsyncTerminal.find`.

    Example:
        async with telex.spawn(["printf", "\\\\033[7mSave\\\\033[m  Quit"]) as term:
            await term.find("Save", inverse=True).wait()
            print(await term.find("Quit", right_of="Save").region())
    """

    __module__ = "telex"

    def __init__(self, terminal: AsyncTerminal, query: Query, redact: bool | None) -> None:
        self.query = query
        self._terminal = terminal
        self._redact = redact

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.query}>"

    async def all(self) -> list[Found]:
        """Return everything on the screen that fits, from the top to the bottom, at once."""
        return screen_search.find_all(await self._screen(), self.query)

    async def get(self) -> Found:
        """Return the one thing on the screen that fits, at once: its text, region and style.

        Raises:
            NotFound: Nothing fits.
            Ambiguous: Several things fit; the message lists them with their places.
        """
        return screen_search.find_one(await self._screen(), self.query)

    async def text(self, timeout: float | None = None) -> str:
        """Wait for it and return its text. Raises as `wait`.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.
        """
        return (await self.wait(timeout)).text

    async def region(self, timeout: float | None = None) -> Region:
        """Wait for it and return its place: row, column, height and width. Raises as `wait`.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.
        """
        return (await self.wait(timeout)).region

    async def style(self, timeout: float | None = None) -> CellStyle:
        """Wait for it and return the style of its first character. Raises as `wait`.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.
        """
        return (await self.wait(timeout)).style

    async def click(
        self, *, button: MouseButton = "left", count: int = 1, timeout: float | None = None
    ) -> str:
        """Wait for it and click in its middle.

        Args:
            button: "left", "middle" or "right".
            count: The number of clicks.
            timeout: Seconds to wait; None for the default of the terminal.

        Returns:
            A mark of the moment before.

        Raises:
            TimedOut: It did not come in time.
            Ambiguous: Several things fit until the end of that time, or for a second in which the
                screen did not change.
            Refused: The program did not ask its terminal for mouse events: press keys instead.
        """
        row, col = (await self.wait(timeout)).middle
        return await self._terminal.click(row, col, button=button, count=count)

    async def wait(self, timeout: float | None = None) -> Found:
        """Wait until exactly one thing on the screen fits, and return it.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.

        Raises:
            TimedOut: It did not come in time. The message shows the nearest miss and the screen.
            Ambiguous: Several things fit until the end of that time, or for a second in which the
                screen did not change; the message lists them.
            SessionClosed: The program ended first.
        """
        found = await self._wait(timeout, gone=False)
        assert found is not None
        return found

    async def wait_gone(self, timeout: float | None = None) -> None:
        """Wait until nothing on the screen fits.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.

        Raises:
            TimedOut: It is still there.
            SessionClosed: The program ended first.
        """
        await self._wait(timeout, gone=True)

    async def _wait(self, timeout: float | None, gone: bool) -> Found | None:
        seconds = self._terminal._seconds(timeout)
        what = f"the absence of {self.query}" if gone else str(self.query)
        with self._terminal._caller.step("wait", f"wait for {what}, at most {seconds:g} s"):
            return await self._look_until(seconds, gone, what)

    async def _look_until(self, seconds: float, gone: bool, what: str) -> Found | None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            late = loop.time() >= end
            screen = await self._screen()
            several: Ambiguous | None = None
            try:
                found = screen_search.find_one(screen, self.query)
                if not gone:
                    return found
            except NotFound:
                if gone:
                    return None
            except Ambiguous as error:
                several = error
            try:
                left = max(0.0, end - loop.time())
                still = left if several is None or gone else min(left, SETTLED_SECONDS)
                late = late or not await self._changes(screen.sequence, still)
            except SessionClosed as ended:
                said = str(ended.args[0])
                reason = said.partition(" did not come: ")[2] or said
                data = {**ended.data, "why": {}}
                raise SessionClosed(f"{what} did not come: {reason}", data) from None
            if late and several is not None and not gone:
                raise several
            if late:
                sentence = f"{what} did not come within {round(seconds * 1000)} ms"
                raise TimedOut(sentence, await self._miss(screen, gone))

    async def _changes(self, sequence: int, timeout: float) -> bool:
        """Wait for a change of the screen. Return False if there was none in time."""
        try:
            await self._terminal.wait_change(timeout, since=sequence)
        except TimedOut:
            return False
        return True

    async def _miss(self, screen: ScreenSnapshot, gone: bool) -> dict[str, Any]:
        """Return why nothing fits, with the nearest miss, as the data of other waits has it."""
        why, missing = ("", None) if gone else screen_search.explain_miss(screen, self.query)
        never = matchers.AnyOf(())
        text = never if missing is None or missing.what is None else missing.what
        try:
            await self._terminal.wait(text, 0)
        except SessionProblem as failed:
            nearest = {"nearest": failed.data.get("why", {}).get("nearest")}
            explained = {"kind": "find", "matched": False, "why": why, **nearest}
            return {**failed.data, "why": explained if why else {}}
        return {}  # it came this moment

    async def _screen(self) -> ScreenSnapshot:
        return await self._terminal.snapshot(cells="runs", redact=self._redact)


@checks_arguments
class Locator:
    """Something on the screen, looked up each time it is used. Made by `Terminal.find`.

    Example:
        with telex.spawn(["printf", "\\\\033[7mSave\\\\033[m  Quit"]) as term:
            term.find("Save", inverse=True).wait()
            print(term.find("Quit", right_of="Save").region())
    """

    __module__ = "telex"

    def __init__(self, locator: AsyncLocator, portal: Portal) -> None:
        self.query = locator.query
        self._locator = locator
        self._run = portal.run

    def __repr__(self) -> str:
        return repr(self._locator).replace("Async", "", 1)

    def all(self) -> list[Found]:
        """Return everything on the screen that fits, from the top to the bottom, at once."""
        return self._run(self._locator.all())

    def get(self) -> Found:
        """Return the one thing on the screen that fits, at once: its text, region and style.

        Raises:
            NotFound: Nothing fits.
            Ambiguous: Several things fit; the message lists them with their places.
        """
        return self._run(self._locator.get())

    def text(self, timeout: float | None = None) -> str:
        """Wait for it and return its text. Raises as `wait`.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.
        """
        return self._run(self._locator.text(timeout))

    def region(self, timeout: float | None = None) -> Region:
        """Wait for it and return its place: row, column, height and width. Raises as `wait`.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.
        """
        return self._run(self._locator.region(timeout))

    def style(self, timeout: float | None = None) -> CellStyle:
        """Wait for it and return the style of its first character. Raises as `wait`.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.
        """
        return self._run(self._locator.style(timeout))

    def click(
        self, *, button: MouseButton = "left", count: int = 1, timeout: float | None = None
    ) -> str:
        """Wait for it and click in its middle.

        Args:
            button: "left", "middle" or "right".
            count: The number of clicks.
            timeout: Seconds to wait; None for the default of the terminal.

        Returns:
            A mark of the moment before.

        Raises:
            TimedOut: It did not come in time.
            Ambiguous: Several things fit until the end of that time, or for a second in which the
                screen did not change.
            Refused: The program did not ask its terminal for mouse events: press keys instead.
        """
        return self._run(self._locator.click(button=button, count=count, timeout=timeout))

    def wait(self, timeout: float | None = None) -> Found:
        """Wait until exactly one thing on the screen fits, and return it.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.

        Raises:
            TimedOut: It did not come in time. The message shows the nearest miss and the screen.
            Ambiguous: Several things fit until the end of that time, or for a second in which the
                screen did not change; the message lists them.
            SessionClosed: The program ended first.
        """
        return self._run(self._locator.wait(timeout))

    def wait_gone(self, timeout: float | None = None) -> None:
        """Wait until nothing on the screen fits.

        Args:
            timeout: Seconds to wait; None for the default of the terminal.

        Raises:
            TimedOut: It is still there.
            SessionClosed: The program ended first.
        """
        self._run(self._locator.wait_gone(timeout))


Anchor = str | re.Pattern[str] | matchers.Matcher | Found | Region | AsyncLocator | Locator
"""A thing that another is next to: the one that this finds, or a place."""
