"""One HTTP request of a browser to a page: forwarded to the program, or answered with an error.

`GatewayRequest` is the common part of HTTP and WebSocket (`gateway`): find the program,
wait for a stream and for the response, each with a deadline, and free the stream in every case.
`ForwardedRequest` is HTTP. Bodies are never buffered: the program's waits in its HTTP/2 window
until the browser has read the previous data, and the browser's waits in its socket until the
program has room. Trailers are dropped.

An error before the response began is sent as an `ErrorResponse`: HTML for a person, JSON for a
program. Where it makes sense the page reloads itself: it sends a request with a `Telex-Wait`
header, which the gateway answers when a program serves the page again. No path of the program is
used for that, and no page of another origin can send the header. After the response has begun, the
connection is cut, so no browser takes the response for complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from h2.errors import ErrorCodes

from telex.htty import limits
from telex.htty.errors import BadHeaders, ConnectionOver, StreamReset
from telex.htty.gateway.header_policy import (
    MalformedResponse,
    ResponseHead,
    has_body,
    request_headers,
    response_head,
)
from telex.htty.h2.http2_frames import FLOOD_BUDGETS, FloodBudget, FloodKind
from telex.transports.responses import (
    ConnectionControl,
    ErrorPage,
    refuse,
    respond,
    with_security_headers,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Receive, Scope, Send

    from telex.htty.gateway.header_policy import Headers
    from telex.htty.gateway.pages import Page
    from telex.htty.h2.http2_connection import Http2Connection
    from telex.htty.h2.http_stream import HttpStream
    from telex.transports.auth import Authenticator


WAIT: Final = b"telex-wait"


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """Why a request gets no response from the program."""

    status: int
    reason: str
    """A word for programs."""
    sentence: str
    """A sentence for people."""
    retry: int | None = None
    """Seconds after which a retry makes sense."""
    advice: str = ""
    """The next step, for people."""


UNSERVED: Final = ErrorResponse(
    503,
    "unserved",
    "No program serves this page at the moment. It opens when one does.",
    1,
    "Start the program again in its terminal.",
)
BUSY: Final = ErrorResponse(503, "busy", "The program is busy with other requests.", 1)
UNFIT: Final = ErrorResponse(400, "headers", "The request has headers that cannot be forwarded.")
SILENT: Final = ErrorResponse(
    504, "silent", "The program did not respond in time.", advice="Its terminal may show why."
)
GAVE_UP: Final = ErrorResponse(
    502, "reset", "The program gave up this request.", advice="Its terminal may show why."
)
REFUSED: Final = ErrorResponse(503, "refused", "The program did not accept this request.", 1)
NO_WEBSOCKET: Final = ErrorResponse(501, "websocket", "The program does not accept WebSockets.")
UNREAD: Final = ErrorResponse(408, "unread", "The response was not read.")
"""Never sent: the connection of a client that does not read is cut."""


def malformed_response(sentence: str) -> ErrorResponse:
    return ErrorResponse(502, "malformed", sentence)


async def send_error(scope: Scope, send: Send, problem: ErrorResponse, title: str) -> None:
    """Respond with an error. `title` is the page's."""
    returns = problem.status == 503 and scope.get("method") == "GET"  # others are not repeated
    page = ErrorPage(
        problem.sentence,
        problem.advice,
        title,
        link=("", "Try again"),
        refresh=(problem.retry or 1, "") if returns else None,
        script=_SCRIPT if returns else "",
    )
    retry = [] if problem.retry is None else [(b"retry-after", b"%d" % problem.retry)]
    await refuse(
        scope,
        with_security_headers(send),
        problem.status,
        problem.reason,
        problem.sentence,
        page,
        retry,
    )


async def send_page_is_back(scope: Scope, send: Send) -> None:
    """Answer a `Telex-Wait`: a program serves the page again."""
    await respond(scope, with_security_headers(send), 200, b"", [])


def asks_to_wait(scope: Scope) -> bool:
    return scope["type"] == "http" and any(name == WAIT for name, _ in scope["headers"])


_SCRIPT: Final = """
const pause = seconds => new Promise(done => setTimeout(done, 1000 * seconds));
(async () => {
  for (;;) {
    await pause(1);
    try {
      const answer = await fetch(location.href, {headers: {"Telex-Wait": "1"}, cache: "no-store"});
      if (answer.ok) return location.reload();
      if (answer.status !== 503) return;
    } catch { /* telex itself is not running */ }
  }
})();
"""


class NoRoom(Exception):
    """Too many requests already wait for the program."""


class PageOrigin:
    """The state of one page that its requests share."""

    def __init__(self, page: Page, auth: Authenticator) -> None:
        self.page: Final = page
        self.auth: Final = auth
        self.requests: Final[set[GatewayRequest]] = set()
        self.slow_readers = 0
        """Requests that wait for their browser to read."""
        self._waiting = 0
        self._resets = FloodBudget()
        self._resetting = asyncio.Lock()

    @property
    def is_served(self) -> bool:
        """Whether a program serves the page; False as soon as its connection is closing."""
        return self.page.http is not None and not self.page.http.leaving

    async def program(self) -> Http2Connection:
        """Wait for the connection to the program, and start one if a program is offered.

        Raises ConnectionOver if no program serves the page.
        """
        while self.page.http is None and self.page.request_program():
            await self.page.changed.wait()
        if self.page.http is None:
            raise ConnectionOver("no program serves the page")
        return self.page.http

    async def open(self, http: Http2Connection, headers: Headers, *, end: bool) -> HttpStream:
        """Open a stream for a request, when the program has room for it. Raises NoRoom."""
        if self._waiting >= limits.HTTY_WAITING_REQUESTS:
            raise NoRoom(f"{self._waiting} requests already wait for the page")
        self._waiting += 1
        try:
            return await http.request(headers, end=end)
        finally:
            self._waiting -= 1

    async def release(self, http_stream: HttpStream, *, whole: bool) -> None:
        """Free a stream. A stream that has not ended is reset, but only at a rate that the program
        does not take for a flood; until then the stream is kept, and others wait."""
        try:
            if not (whole or http_stream.gone.is_set()):
                async with self._resetting:
                    await self._room_for_a_reset(http_stream)
        finally:
            http_stream.reset()

    async def _room_for_a_reset(self, http_stream: HttpStream) -> None:
        """Wait until a reset is allowed. Half of the program's budget is kept for other resets."""
        if http_stream.gone.is_set():
            return
        allowed = FLOOD_BUDGETS[FloodKind.RESET]
        missing = allowed / 2 + 1 - self._resets.left(FloodKind.RESET, time.monotonic())
        if missing > 0:
            await asyncio.sleep(missing * limits.HTTY_BUDGET_SECONDS / allowed)
        self._resets.spend(FloodKind.RESET, time.monotonic())


class GatewayRequest:
    """The common part of both kinds of requests. Subclasses implement `_forward`."""

    def __init__(self, origin: PageOrigin, scope: Scope, receive: Receive, send: Send) -> None:
        self._origin = origin
        self._scope = scope
        self._receive = receive
        self._send = send
        self._control = ConnectionControl.of(scope)
        self._deadline = asyncio.timeout(None)
        self._late = UNSERVED
        self._begun = False
        """Whether the program's response has begun to be sent to the browser."""
        self._whole = False
        """Whether both sides are complete, so that nothing needs to be reset."""
        self._left = False
        """Whether the browser has disconnected."""
        self._ending = True
        """Whether no deadline applies: before the request begins, and after its end."""

    async def run(self) -> None:
        self._origin.requests.add(self)
        self._control.watch_hangup()
        self._control.gone.add_done_callback(self._leave)
        try:
            problem = await self._attempt()
        finally:
            self._control.gone.remove_done_callback(self._leave)
            self._origin.requests.discard(self)
        if problem is None or self._left:
            return
        if self._begun:
            await self._cut()
        else:
            await send_error(self._scope, self._send, problem, self._origin.page.title)

    def end(self, problem: ErrorResponse = UNSERVED) -> None:
        """Stop waiting, now, and respond with this error. Does nothing if the request is ending."""
        self._expect(0, problem)
        self._ending = True  # so that no later `_expect` extends the deadline

    def _leave(self, _: object = None) -> None:
        """End the request, because the browser has disconnected."""
        self._left = True
        self.end()

    async def _forward(self) -> ErrorResponse | None:
        raise NotImplementedError

    async def _cut(self) -> None:
        self._control.abort()

    async def _attempt(self) -> ErrorResponse | None:
        try:
            async with self._deadline:
                self._ending = False
                try:
                    return await self._forward()
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
            if not self._origin.is_served:  # a program that exits resets its open requests
                return UNSERVED
            return REFUSED if reset.code == ErrorCodes.REFUSED_STREAM else GAVE_UP

    def _expect(self, seconds: float | None, otherwise: ErrorResponse) -> None:
        """Set the deadline of the next step, and the error to send if it passes."""
        if self._ending or self._deadline.expired():
            return
        self._late = otherwise
        when = None if seconds is None else asyncio.get_running_loop().time() + seconds
        self._deadline.reschedule(when)

    @contextlib.asynccontextmanager
    async def _opened(
        self, http: Http2Connection, headers: Headers, *, end: bool
    ) -> AsyncIterator[HttpStream]:
        """Open a stream, which is freed at the end of the block."""
        self._expect(limits.HTTY_WAITING_SECONDS, BUSY)
        http_stream = await self._origin.open(http, headers, end=end)
        self._expect(limits.HTTY_ANSWER_SECONDS, SILENT)
        try:
            yield http_stream
        finally:
            self._ending = True
            if not self._deadline.expired():
                self._deadline.reschedule(None)  # freeing a stream has no deadline
            await self._origin.release(http_stream, whole=self._whole)


_WRONG_LENGTH = malformed_response("The length of the program's response is wrong.")


class ForwardedRequest(GatewayRequest):
    """One HTTP request, forwarded to the program."""

    def __init__(self, origin: PageOrigin, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(origin, scope, receive, send)
        self._uploads = has_body(scope)
        self._uploaded = not self._uploads
        self._http_stream: asyncio.Future[HttpStream] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        self._listening = asyncio.create_task(self._receive_all())
        try:
            await super().run()
        finally:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _forward(self) -> ErrorResponse | None:
        if asks_to_wait(self._scope):
            await self._wait_for_a_program()
            return None
        headers = request_headers(self._scope, self._origin.auth)
        self._expect(limits.HTTY_ANSWER_SECONDS, UNSERVED)
        program = await self._origin.program()
        async with self._opened(program, headers, end=not self._uploads) as http_stream:
            self._http_stream.set_result(http_stream)
            head = response_head(
                await http_stream.answer(), self._scope["method"], self._origin.auth
            )
            if isinstance(head, MalformedResponse):
                return malformed_response(head.sentence)
            return await self._answer(head, http_stream)

    async def _wait_for_a_program(self) -> None:
        self._expect(limits.HTTY_RETURN_SECONDS, UNSERVED)
        page = self._origin.page
        while not self._origin.is_served:
            page.request_program()
            await page.changed.wait()
        await send_page_is_back(self._scope, self._send)

    async def _answer(self, head: ResponseHead, http_stream: HttpStream) -> ErrorResponse | None:
        self._begun = True
        await self._pass_on(
            {"type": "http.response.start", "status": head.status, "headers": head.headers}
        )
        missing = head.length
        while data := await http_stream.read():
            if head.bodiless:
                break  # a response that cannot have a body
            last = http_stream.body_read  # saves a message, which matters for a small response
            if missing is not None:
                missing -= len(data)
                if missing < 0 or (last and missing):
                    return _WRONG_LENGTH
            self._whole = last and self._uploaded
            await self._pass_on({"type": "http.response.body", "body": data, "more_body": not last})
            if last:
                return None
        else:
            self._whole = self._uploaded
        if missing:
            return _WRONG_LENGTH
        await self._pass_on({"type": "http.response.body"})
        return None

    async def _pass_on(self, message: Message) -> None:
        """Send a message to the browser, with a deadline. The program's next step has none: a page
        may stream events for any time."""
        origin = self._origin
        few = origin.slow_readers < limits.HTTY_SLOW_READERS
        self._expect(limits.HTTY_UNREAD_SECONDS if few else limits.HTTY_SLOW_READER_SECONDS, UNREAD)
        origin.slow_readers += 1
        try:
            await self._send(message)
        finally:
            origin.slow_readers -= 1
        self._expect(None, UNREAD)

    async def _receive_all(self) -> None:
        """Receive the browser's messages, and notice its disconnect.

        While an upload waits and nothing is received, `ConnectionControl.gone` reports the
        disconnect. Receiving signals that there is room, which a browser may wait for
        (`Expect: 100-continue`).
        """
        if self._uploads:
            await self._http_stream
        while (message := await self._receive())["type"] != "http.disconnect":
            if self._uploads:
                await self._upload(message)
        self._leave()

    async def _upload(self, message: Message) -> None:
        http_stream = self._http_stream.result()
        body, end = message.get("body", b""), not message.get("more_body", False)
        try:
            if body or end:
                async with asyncio.timeout(limits.HTTY_STALL_SECONDS):
                    await http_stream.write(body, end=end)
        except TimeoutError:
            # A disconnect may be hidden behind unread data in the kernel's buffer.
            self.end(SILENT)
            return
        except (StreamReset, ConnectionOver):
            self._uploads = False  # the reader of the response gets the error; the rest is dropped
            return
        self._uploaded = end
        if not self._begun:
            self._expect(limits.HTTY_ANSWER_SECONDS, SILENT)

    async def _cut(self) -> None:
        await super()._cut()
        await self._listening  # until the web server noticed it, so that it logs no error of ours
