"""One request of a browser to a page, from its beginning to its end, whatever the end is.

What HTTP (`forwarding`) and WebSocket (`tunnelling`) have in common: finding the program, waiting
for room and for an answer but not for ever, and a stream that is free again in every case.

A problem before the answer began is told (`refusals`). After that there is nothing left to say: the
connection is cut, which no browser takes for an end.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final

from h2.errors import ErrorCodes

from telex.htty.budget import ALLOWED, Budget, Kind
from telex.htty.errors import BadHeaders, ConnectionOver, StreamReset
from telex.htty.refusals import BUSY, GAVE_UP, REFUSED, SILENT, UNFIT, UNSERVED, Problem, tell
from telex.transports.doorway import Line
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from telex.htty.crossing import Headers
    from telex.htty.exchange import Exchange
    from telex.htty.http2 import Http2
    from telex.htty.page import Page
    from telex.transports.door import Door


class NoRoom(Exception):
    """Too many wait already."""


class Site:
    """A page as its visits share it."""

    def __init__(self, page: Page, door: Door) -> None:
        self.page: Final = page
        self.door: Final = door
        self.visits: Final[set[Visit]] = set()
        self.passing_on = 0
        """Visits whose browser has to take something before they go on."""
        self._waiting = 0
        self._resets = Budget()
        self._resetting = asyncio.Lock()

    @property
    def is_served(self) -> bool:
        """Also between the end of a connection and the news of it, no program serves the page."""
        return self.page.http is not None and not self.page.http.leaving

    async def program(self) -> Http2:
        """The connection to whoever serves the page, now or because somebody came. Raises
        ConnectionOver."""
        while self.page.http is None and self.page.come():
            await self.page.changed.wait()
        if self.page.http is None:
            raise ConnectionOver("no program serves the page")
        return self.page.http

    async def open(self, http: Http2, headers: Headers, *, end: bool) -> Exchange:
        """A stream for a request, when the program has room for one more. Raises NoRoom."""
        if self._waiting >= limits.HTTY_WAITING_REQUESTS:
            raise NoRoom(f"{self._waiting} requests wait for the page already")
        self._waiting += 1
        try:
            return await http.request(headers, end=end)
        finally:
            self._waiting -= 1

    async def free(self, exchange: Exchange, *, whole: bool) -> None:
        """Give a stream back. One that is not over is reset, but never so many so fast that the
        program takes us for a flood and hangs up: then the stream is held, and others wait."""
        try:
            if not (whole or exchange.gone.is_set()):
                async with self._resetting:
                    await self._room_for_a_reset(exchange)
        finally:
            exchange.reset()

    async def _room_for_a_reset(self, exchange: Exchange) -> None:
        """Half of what a program puts up with is never used: it counts other things too."""
        if exchange.gone.is_set():
            return
        allowed = ALLOWED[Kind.RESET]
        missing = allowed / 2 + 1 - self._resets.left(Kind.RESET, time.monotonic())
        if missing > 0:
            await asyncio.sleep(missing * limits.HTTY_BUDGET_SECONDS / allowed)
        self._resets.spend(Kind.RESET, time.monotonic())


class Visit:
    """What a request of either kind needs. `_carry` is the request itself."""

    def __init__(self, site: Site, scope: Scope, receive: Receive, send: Send) -> None:
        self._site = site
        self._scope = scope
        self._receive = receive
        self._send = send
        self._line = Line.under(scope)
        self._patience = asyncio.timeout(None)
        self._late = UNSERVED
        self._begun = False
        """The program's answer is on its way to the browser."""
        self._whole = False
        """Both sides said all they had to, so that nothing needs to be reset."""
        self._left = False
        """The browser is gone."""
        self._ending = True
        """Nothing is waited for, yet or any more, that could take too long."""

    async def run(self) -> None:
        self._site.visits.add(self)
        self._line.watch()
        self._line.gone.add_done_callback(self._leave)
        try:
            problem = await self._attempt()
        finally:
            self._line.gone.remove_done_callback(self._leave)
            self._site.visits.discard(self)
        if problem is None or self._left:
            return
        if self._begun:
            await self._cut()
        else:
            await tell(self._scope, self._send, problem, self._site.page.title)

    def end(self, problem: Problem = UNSERVED) -> None:
        """Stop waiting for whatever it is, now. Nothing happens to a visit that is ending."""
        self._expect(0, problem)
        self._ending = True  # so that nobody who is about to wait for something puts it off

    def _leave(self, _: object = None) -> None:
        """The browser is gone, whatever is under way for it."""
        self._left = True
        self.end()

    async def _carry(self) -> Problem | None:
        raise NotImplementedError

    async def _cut(self) -> None:
        self._line.abort()

    async def _attempt(self) -> Problem | None:
        try:
            async with self._patience:
                self._ending = False
                try:
                    return await self._carry()
                finally:
                    self._ending = True
        except TimeoutError:
            return self._late
        except NoRoom:
            return BUSY
        except BadHeaders:
            return UNFIT
        except ConnectionOver:
            return UNSERVED
        except StreamReset as reset:
            if not self._site.is_served:  # a program that ends gives up what it was asked
                return UNSERVED
            return REFUSED if reset.code == ErrorCodes.REFUSED_STREAM else GAVE_UP

    def _expect(self, seconds: float | None, otherwise: Problem) -> None:
        """From now on: how long the next thing may take, and what it means if it takes longer."""
        if self._ending or self._patience.expired():
            return
        self._late = otherwise
        when = None if seconds is None else asyncio.get_running_loop().time() + seconds
        self._patience.reschedule(when)

    @contextlib.asynccontextmanager
    async def _opened(self, http: Http2, headers: Headers, *, end: bool) -> AsyncIterator[Exchange]:
        """A stream, which is free again at the end of the block."""
        self._expect(limits.HTTY_WAITING_SECONDS, BUSY)
        exchange = await self._site.open(http, headers, end=end)
        self._expect(limits.HTTY_ANSWER_SECONDS, SILENT)
        try:
            yield exchange
        finally:
            self._ending = True
            if not self._patience.expired():
                self._patience.reschedule(None)  # to give a stream back takes as long as it takes
            await self._site.free(exchange, whole=self._whole)
