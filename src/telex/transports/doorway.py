"""Where the door stands in a web server: ASGI in front, ASGI behind, `door` decides.

Every request passes here before any of it is read. Refusals say no more than the door's own
sentence, as JSON, and to a person in a browser as a page that also says what to do; every response
leaves with headers that keep pages to themselves, and none with a CORS header, unless the pages are
not ours (`Door.shared`) and their keeper sees to it. A WebSocket without proof is let in as far as
the mat: its first message must be `{"token": "…"}`, soon and short, and the app behind never sees
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.transports.door import Admitted, Knock, Reason, Redeemed, Refused, Unproven
from telex.transports.error_page import ErrorPage, wants_html
from telex.transports.queued import printable
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from telex.transports.door import Door

log = logging.getLogger("telex.transports")

Advice = Callable[[Reason], str]
"""What a person can do who is refused for a reason; commands stand between backticks."""

TOKEN_SECONDS: Final = limits.FIRST_MESSAGE_SECONDS
"""How long a WebSocket may stand on the mat. How much it may say there is `Line.widen`'s matter."""
NOT_ADMITTED: Final = 4401
"""The WebSocket close code for a missing or wrong token: 401, in the range left to applications."""

HEADERS: Final = {
    b"content-security-policy": b"default-src 'self'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}
"""On every response. A page that needs another policy states its own."""


@dataclass(frozen=True, slots=True)
class Line:
    """The connection beneath a request, as far as our own server tells of it.

    ASGI has no word for any of these; under another server they do nothing.
    """

    abort: Callable[[], object] = lambda: None
    """Drop it with all that is unsent: the way out when the other side does not read."""
    widen: Callable[[], object] = lambda: None
    """Take messages of full size: whoever is there has shown the token."""
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops; a response without an end should find one."""
    gone: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Done when the connection is lost."""
    watch: Callable[[], object] = lambda: None
    """From now on it is lost soon after the other side left, also while nothing is read from it."""

    @classmethod
    def under(cls, scope: Scope) -> Line:
        line = scope.get("extensions", {}).get(_LINE)
        return line if isinstance(line, cls) else cls()

    def beneath(self, app: ASGIApp) -> ASGIApp:
        """The same app, on this line."""

        async def connected(scope: Scope, receive: Receive, send: Send) -> None:
            scope.setdefault("extensions", {})[_LINE] = self
            await app(scope, receive, send)

        return connected


_LINE: Final = "telex.line"


class _FirstMessage(msgspec.Struct):
    token: str


class _Refusal(msgspec.Struct):
    reason: str
    message: str


class Doorway:
    """An ASGI app: the one behind it, for those whom the door admits."""

    def __init__(
        self,
        app: ASGIApp,
        door: Door,
        clock: Callable[[], float] = time.monotonic,
        *,
        advice: Advice = lambda reason: "",
        title: str = "telex",
    ) -> None:
        """`advice` says what a person who is refused can do, and `title` where they wanted to go:
        for the page in their browser."""
        self._app = app
        self._door = door
        self._clock = clock
        self._advice = advice
        self._title = title

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        verdict = self._door.admit(_knock(scope), self._clock())
        unsealed, send = send, sealed(send)
        match verdict:
            case Admitted():
                Line.under(scope).widen()
                await self._app(scope, receive, unsealed if self._door.shared else send)
            case Redeemed(cookie, location):
                await self._let_in(scope, send, cookie, location)
            case Refused() as refused:
                log.info("refused a %s: %s", scope["type"], refused.reason.value)
                await self._refuse(scope, send, refused)
            case Unproven():
                await self._from_the_mat(scope, receive, send)

    async def _let_in(self, scope: Scope, send: Send, cookie: str | None, location: str) -> None:
        """To the plain address, with the cookie. A browser that came from another site would not
        send the cookie along with a redirect; with a step from a page of ours it does."""
        headers = [] if cookie is None else [(b"set-cookie", cookie.encode())]
        if not _from_elsewhere(scope):
            await respond(scope, send, 303, b"", [(b"location", location.encode()), *headers])
            return
        page = ErrorPage(
            "The page opens.",
            title=self._title,
            link=(location, "Open it"),
            refresh=(0, location),
        )
        await respond(scope, send, 200, page.body(), [*page.headers(), *headers])

    async def _refuse(self, scope: Scope, send: Send, refused: Refused) -> None:
        """The way in is offered to who may have the cookie and was sent here by another site, for
        then it was not shown. Only to the front: where a stranger's link leads is not for us."""
        unproven = refused.reason in (Reason.CODE, Reason.TOKEN)
        offer = self._door.shared and unproven and _from_elsewhere(scope)
        page = ErrorPage(
            refused.sentence,
            self._advice(refused.reason),
            self._title,
            link=("/", "Open the page, if this browser was let in before") if offer else None,
        )
        await refuse(scope, send, refused.status, refused.reason.value, refused.sentence, page)

    async def _from_the_mat(self, scope: Scope, receive: Receive, send: Send) -> None:
        connect = await receive()
        await send({"type": "websocket.accept"})
        if (problem := await self._first_message(receive)) is not None:
            log.info("refused a websocket: %s", problem)
            with contextlib.suppress(OSError, RuntimeError):  # closed already
                await send({"type": "websocket.close", "code": NOT_ADMITTED, "reason": problem})
            return
        Line.under(scope).widen()
        # Accepted is accepted: the app can no longer answer the handshake with a page.
        extensions = {_LINE: Line.under(scope)}
        await self._app(
            {**scope, "extensions": extensions}, _again(connect, receive), _accepted(send)
        )

    async def _first_message(self, receive: Receive) -> str | None:
        """What is wrong with it, or None."""
        try:
            async with asyncio.timeout(TOKEN_SECONDS):
                message = await receive()
        except TimeoutError:
            return "the first message must be the token, and none came"
        body = message.get("text") or message.get("bytes") or b""
        try:
            shown = msgspec.json.decode(body, type=_FirstMessage)
        except (msgspec.DecodeError, RecursionError):
            return 'the first message must be {"token": "…"}'
        return None if self._door.is_token(shown.token.encode()) else "that is not the token"


def _knock(scope: Scope) -> Knock:
    return Knock(
        method=scope.get("method", "GET"),
        path=scope.get("raw_path") or scope["path"].encode(),
        query=scope["query_string"],
        headers=scope["headers"],
        websocket=scope["type"] == "websocket",
    )


def sealed(send: Send) -> Send:
    """Send, for a response that is ours: with `HEADERS`, and open to nobody else."""

    async def with_headers(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = [
                (name.lower(), value)
                for name, value in message.get("headers", ())
                if not name.lower().startswith(b"access-control-")
            ]
            present = {name for name, _ in headers}
            headers += [pair for pair in HEADERS.items() if pair[0] not in present]
            message = {**message, "headers": headers}
        await send(message)

    return with_headers


def _again(first: Message, receive: Receive) -> Receive:
    """Receive, with one message put back."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _accepted(send: Send) -> Send:
    async def once_more(message: Message) -> None:
        if message["type"] != "websocket.accept":
            await send(message)

    return once_more


def _from_elsewhere(scope: Scope) -> bool:
    """Whether a page of another site sent a browser here."""
    sites = [value for name, value in scope["headers"] if name.lower() == b"sec-fetch-site"]
    return is_opened_by_a_person(scope) and sites in ([b"cross-site"], [b"same-site"])


def is_opened_by_a_person(scope: Scope) -> bool:
    """Whether the answer is looked at in a browser, and not read by a program."""
    return scope["type"] == "http" and wants_html(scope["headers"])


async def refuse(
    scope: Scope,
    send: Send,
    status: int,
    reason: str,
    sentence: str,
    page: ErrorPage | None = None,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """Answer with a status, a word for programs and a sentence for people; or, to a person in a
    browser, with a page, which may say more."""
    page = page or ErrorPage(sentence)
    if is_opened_by_a_person(scope):
        body, kind = page.body(), page.headers()
    else:
        body = msgspec.json.encode(_Refusal(reason, sentence))
        kind = [(b"content-type", b"application/json")]
    proof = [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await respond(scope, send, status, body, [*kind, *proof, *headers])


def told(body: bytes) -> str:
    """What a server said that refused us, if it is one of ours: ` (sentence)`, or nothing."""
    try:
        sentence = msgspec.json.decode(body, type=_Refusal).message
    except (msgspec.DecodeError, RecursionError):
        return ""
    return f" ({printable(sentence)})"


async def respond(
    scope: Scope, send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    """A whole response, in place of the handshake where a WebSocket was asked for."""
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    if kind.startswith("websocket") and kind not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 4000 + status})
        return
    length = (b"content-length", b"%d" % len(body))
    start: dict[str, Any] = {"status": status, "headers": [*headers, length]}
    await send({"type": f"{kind}.start", **start})
    await send({"type": f"{kind}.body", "body": body})
