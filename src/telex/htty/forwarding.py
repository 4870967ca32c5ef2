"""A browser's HTTP request, carried to the program and its answer back, piece by piece.

Neither body is ever held: the program's waits in its HTTP/2 window until the browser took what
came before, and the browser's waits in its socket until the program has room. Trailers end here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from telex.htty.crossing import Head, Malformed, has_body, request_headers, response_head
from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.refusals import (
    SILENT,
    UNREAD,
    UNSERVED,
    Problem,
    asks_to_wait,
    malformed,
    tell_it_is_back,
)
from telex.htty.visiting import Site, Visit
from telex.wire import limits

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from telex.htty.exchange import Exchange

_WRONG_LENGTH = malformed("The program's answer is not as long as it said.")


class Forwarding(Visit):
    """One request."""

    def __init__(self, site: Site, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(site, scope, receive, send)
        self._uploads = has_body(scope)
        self._uploaded = not self._uploads
        self._exchange: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        self._listening = asyncio.create_task(self._listen())
        try:
            await super().run()
        finally:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _carry(self) -> Problem | None:
        if asks_to_wait(self._scope):
            await self._wait_for_a_program()
            return None
        headers = request_headers(self._scope, self._site.door)
        self._expect(limits.HTTY_ANSWER_SECONDS, UNSERVED)
        program = await self._site.program()
        async with self._opened(program, headers, end=not self._uploads) as exchange:
            self._exchange.set_result(exchange)
            head = response_head(await exchange.answer(), self._scope["method"], self._site.door)
            if isinstance(head, Malformed):
                return malformed(head.sentence)
            return await self._answer(head, exchange)

    async def _wait_for_a_program(self) -> None:
        self._expect(limits.HTTY_RETURN_SECONDS, UNSERVED)
        page = self._site.page
        while not self._site.is_served:
            page.come()
            await page.changed.wait()
        await tell_it_is_back(self._scope, self._send)

    async def _answer(self, head: Head, exchange: Exchange) -> Problem | None:
        self._begun = True
        await self._pass_on(
            {"type": "http.response.start", "status": head.status, "headers": head.headers}
        )
        owed = head.length
        while data := await exchange.read():
            if head.bodiless:
                break  # there is no place for it
            last = exchange.read_out  # a message less, which is much of a small answer
            if owed is not None:
                owed -= len(data)
                if owed < 0 or (last and owed):
                    return _WRONG_LENGTH
            self._whole = last and self._uploaded
            await self._pass_on({"type": "http.response.body", "body": data, "more_body": not last})
            if last:
                return None
        else:
            self._whole = self._uploaded
        if owed:
            return _WRONG_LENGTH
        await self._pass_on({"type": "http.response.body"})
        return None

    async def _pass_on(self, message: Message) -> None:
        """To the browser, when it has room. What the program does next may take as long as it
        likes: that is how a page is told of events."""
        site = self._site
        few = site.passing_on < limits.HTTY_SLOW_READERS
        self._expect(limits.HTTY_UNREAD_SECONDS if few else limits.HTTY_SLOW_READER_SECONDS, UNREAD)
        site.passing_on += 1
        try:
            await self._send(message)
        finally:
            site.passing_on -= 1
        self._expect(None, UNREAD)

    async def _listen(self) -> None:
        """Take what the browser sends, and notice when it leaves; while there is no room for more
        of an upload, and nothing is taken, `Line.gone` tells. To take something is to promise that
        there is a place for it, which a browser may wait for (`Expect: 100-continue`)."""
        if self._uploads:
            await self._exchange
        while (message := await self._receive())["type"] != "http.disconnect":
            if self._uploads:
                await self._upload(message)
        self._leave()

    async def _upload(self, message: Message) -> None:
        exchange = self._exchange.result()
        body, end = message.get("body", b""), not message.get("more_body", False)
        try:
            if body or end:
                async with asyncio.timeout(limits.HTTY_STALL_SECONDS):
                    await exchange.write(body, end=end)
        except TimeoutError:
            # Who left may be unseen behind what the kernel holds of theirs, and nobody reads it.
            self.end(SILENT)
            return
        except (StreamReset, ConnectionOver):
            self._uploads = False  # whoever reads the answer hears why; the rest goes nowhere
            return
        self._uploaded = end
        if not self._begun:
            self._expect(limits.HTTY_ANSWER_SECONDS, SILENT)

    async def _cut(self) -> None:
        await super()._cut()
        await self._listening  # until the server knows, too, and does not call it our mistake
