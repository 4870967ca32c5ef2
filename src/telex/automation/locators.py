"""Locators: things on the screen by text, style and place, looked up when they are used.

    term.find("Save", inverse=True).wait()
    term.find("OK", right_of="Cancel").click()

A locator holds a query and no place: each method reads the screen again (`screen_search`), and
`wait` does so after each change, without polling. Made by `Terminal.find`.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

from telex.automation import screen_search
from telex.automation.errors import TimedOut
from telex.automation.portal import hides_frames
from telex.automation.screen_search import Found, Query
from telex.terminal.cells import Region

if TYPE_CHECKING:
    from telex.automation.client import AsyncTerminal, MouseButton
    from telex.automation.portal import Portal
    from telex.automation.protocol import CellStyle, ScreenSnapshot

__tracebackhide__ = hides_frames


def build_query(
    what: str | re.Pattern[str] | None, row: int | None, given: dict[str, Any]
) -> Query:
    """Return the query for the arguments of `find`; `given` has its styles and sides.

    Raises:
        ValueError: The query says nothing.
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
            anchors[name] = _anchor(value)
    if what == "" or (what is None and not style):
        raise ValueError("find needs a text, a pattern or a style")
    return Query(what, style, row, anchors)


_GROUNDS: Final = {"fg": "foreground", "bg": "background"}


def _anchor(given: object) -> Region | Query:
    match given:
        case str() | re.Pattern():
            return Query(given)
        case AsyncLocator() | Locator():
            return given.query
        case Found():
            return given.region
        case tuple():
            return Region(*given)
    raise TypeError(f"{type(given).__name__} is not a text, a locator, a Found or a region")


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
        """Return everything on the screen that fits, from the top to the bottom."""
        return screen_search.find_all(await self._screen(), self.query)

    async def get(self) -> Found:
        """Return the one thing on the screen that fits: its text, region and style.

        Raises:
            NotFound: Nothing fits.
            Ambiguous: Several things fit; the message lists them with their places.
        """
        return screen_search.find_one(await self._screen(), self.query)

    async def text(self) -> str:
        """Return its text. Raises as `get`."""
        return (await self.get()).text

    async def region(self) -> Region:
        """Return its place: row, column, height and width. Raises as `get`."""
        return (await self.get()).region

    async def style(self) -> CellStyle:
        """Return the style of its first character. Raises as `get`."""
        return (await self.get()).style

    async def click(self, *, button: MouseButton = "left", count: int = 1) -> str:
        """Click in its middle.

        Args:
            button: "left", "middle" or "right".
            count: The number of clicks.

        Returns:
            A mark of the moment before.

        Raises:
            NotFound: Nothing fits.
            Ambiguous: Several things fit.
            Refused: The program did not ask its terminal for mouse events: press keys instead.
        """
        row, col = (await self.get()).middle
        return await self._terminal.click(row, col, button=button, count=count)

    async def wait(self, timeout: float = 30.0) -> Found:
        """Wait until it is on the screen, and return it.

        Args:
            timeout: Seconds to wait.

        Raises:
            TimedOut: It did not come in time.
            Ambiguous: Several things fit.
            SessionClosed: The program ended first.
        """
        found = await self._wait(timeout, gone=False)
        assert found is not None
        return found

    async def wait_gone(self, timeout: float = 30.0) -> None:
        """Wait until nothing on the screen fits.

        Args:
            timeout: Seconds to wait.

        Raises:
            TimedOut: It is still there.
            SessionClosed: The program ended first.
        """
        await self._wait(timeout, gone=True)

    async def _wait(self, timeout: float, gone: bool) -> Found | None:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while True:
            screen = await self._screen()
            found = screen_search.find_all(screen, self.query)
            if len(found) > 1 and not gone:
                screen_search.find_one(screen, self.query)  # raises Ambiguous
            if bool(found) is not gone:
                return found[0] if found else None
            try:
                left = max(0.0, end - loop.time())
                await self._terminal.wait_change(since=screen.sequence, timeout=left)
            except TimedOut as late:
                what = f"the absence of {self.query}" if gone else str(self.query)
                sentence = f"{what} did not come within {round(timeout * 1000)} ms"
                raise TimedOut(sentence, {**late.data, "why": {}}) from None

    async def _screen(self) -> ScreenSnapshot:
        return await self._terminal.snapshot(cells="runs", redact=self._redact)


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
        """Return everything on the screen that fits, from the top to the bottom."""
        return self._run(self._locator.all())

    def get(self) -> Found:
        """Return the one thing on the screen that fits: its text, region and style.

        Raises:
            NotFound: Nothing fits.
            Ambiguous: Several things fit; the message lists them with their places.
        """
        return self._run(self._locator.get())

    def text(self) -> str:
        """Return its text. Raises as `get`."""
        return self._run(self._locator.text())

    def region(self) -> Region:
        """Return its place: row, column, height and width. Raises as `get`."""
        return self._run(self._locator.region())

    def style(self) -> CellStyle:
        """Return the style of its first character. Raises as `get`."""
        return self._run(self._locator.style())

    def click(self, *, button: MouseButton = "left", count: int = 1) -> str:
        """Click in its middle.

        Args:
            button: "left", "middle" or "right".
            count: The number of clicks.

        Returns:
            A mark of the moment before.

        Raises:
            NotFound: Nothing fits.
            Ambiguous: Several things fit.
            Refused: The program did not ask its terminal for mouse events: press keys instead.
        """
        return self._run(self._locator.click(button=button, count=count))

    def wait(self, timeout: float = 30.0) -> Found:
        """Wait until it is on the screen, and return it.

        Args:
            timeout: Seconds to wait.

        Raises:
            TimedOut: It did not come in time.
            Ambiguous: Several things fit.
            SessionClosed: The program ended first.
        """
        return self._run(self._locator.wait(timeout))

    def wait_gone(self, timeout: float = 30.0) -> None:
        """Wait until nothing on the screen fits.

        Args:
            timeout: Seconds to wait.

        Raises:
            TimedOut: It is still there.
            SessionClosed: The program ended first.
        """
        self._run(self._locator.wait_gone(timeout))


Anchor = str | re.Pattern[str] | Found | Region | AsyncLocator | Locator
"""A thing that another is next to: the one that this finds, or a place."""
