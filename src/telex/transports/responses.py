"""HTTP responses of our own: errors as JSON or as a page, security headers, the connection below.

The Accept header alone tells whether a person reads the response: browsers name `text/html` when
they open an address, and scripts and clients do not. A person gets an `ErrorPage` with the error
and the next step. Our own responses have headers that prevent framing and caching, and no CORS
header (`with_security_headers`). Used by `auth`, by the HTTP transport and by the gateway of pages.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.transports.channels import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


CONTENT_TYPE: Final = (b"content-type", b"text/html; charset=utf-8")
_CODE: Final = re.compile(r"`([^`]*)`")
_STYLE: Final = """
:root{color-scheme:light dark}
body{margin:0;min-height:100vh;display:grid;place-items:center;font:17px/1.5 system-ui,sans-serif;
background:light-dark(#f6f5f2,#191a1c);color:light-dark(#26272b,#e4e3df)}
main{max-width:34rem;padding:2rem;text-align:center}
code{font:15px/1.4 ui-monospace,monospace;background:light-dark(#e9e7e1,#2a2c30);
padding:.2rem .6rem;border-radius:.4rem;overflow-wrap:anywhere}
a{color:light-dark(#0b57d0,#8ab4f8)}
i{display:block;width:2rem;height:2rem;margin:0 auto 1.5rem;border-radius:50%;
border:3px solid light-dark(#d5d2c9,#3a3d43);border-top-color:#d9822b;
animation:turn 1s linear infinite}
@keyframes turn{to{transform:rotate(1turn)}}
@media (prefers-reduced-motion:reduce){i{animation-duration:6s}}
"""


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """The content of an error page. All of it is plain text."""

    sentence: str
    advice: str = ""
    """The next step; a command in it stands between backticks."""
    title: str = "telex"
    """The name of the page that it replaces."""
    link: tuple[str, str] | None = None
    """A link for the next step: a path, and the text for it."""
    refresh: tuple[int, str] | None = None
    """After how many seconds the browser opens which path by itself; empty means this path."""
    script: str = ""
    """A script in place of the refresh, where scripts run."""

    def policy(self) -> bytes:
        """Return the Content-Security-Policy: it allows only the content of the page itself."""
        script = f"; script-src 'sha256-{_digest(self.script)}'" if self.script else ""
        return (
            "default-src 'none'; connect-src 'self'; frame-ancestors 'self'; base-uri 'none'; "
            f"form-action 'none'; style-src 'sha256-{_digest(_STYLE)}'{script}"
        ).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [CONTENT_TYPE, (b"content-security-policy", self.policy())]

    def body(self) -> bytes:
        title = html.escape(self.title)
        link = ""
        if self.link is not None:
            path, words = (html.escape(text) for text in self.link)
            link = f'<p><a href="{path}">{words}</a></p>'
        text = (
            "<!doctype html><html lang=en><meta charset=utf-8>"
            "<meta name=viewport content='width=device-width'>"
            f"<title>{title}</title><style>{_STYLE}</style>{self._refresh()}"
            f"<main>{'<i></i>' if self.refresh else ''}<p><code>{title}</code></p>"
            f"<p>{_marked(self.sentence)}</p>"
            f"{f'<p>{_marked(self.advice)}</p>' if self.advice else ''}{link}</main>"
            f"{f'<script>{self.script}</script>' if self.script else ''}"
        )
        return text.encode()

    def _refresh(self) -> str:
        if self.refresh is None:
            return ""
        seconds, path = self.refresh
        where = f"; url={html.escape(path)}" if path else ""
        meta = f'<meta http-equiv=refresh content="{seconds}{where}">'
        return f"<noscript>{meta}</noscript>" if self.script else meta


def wants_html(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a person reads the response: HTML is accepted, and JSON is not preferred."""
    html_quality = json_quality = 0.0
    for name, value in headers:
        if name.lower() != b"accept":
            continue
        for kind, quality in _accepted(value):
            if kind in (b"text/html", b"application/xhtml+xml"):
                html_quality = max(html_quality, quality)
            elif kind == b"application/json":
                json_quality = max(json_quality, quality)
    return html_quality > 0 and html_quality >= json_quality


def _accepted(value: bytes) -> Iterable[tuple[bytes, float]]:
    for given in value.lower().split(b","):
        kind, *parameters = [part.strip() for part in given.split(b";")]
        quality = next((one[2:] for one in parameters if one.startswith(b"q=")), b"1")
        yield kind, float(quality) if re.fullmatch(rb"[01](\.\d{0,3})?", quality) else 0.0


def _marked(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


SECURITY_HEADERS: Final = {
    b"content-security-policy": b"default-src 'self'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}
"""The headers of every response. A page that needs another policy sets its own."""


CONTROL_EXTENSION: Final = "telex.connection"


@dataclass(frozen=True, slots=True)
class ConnectionControl:
    """The connection of a request, as far as our own web server gives access to it.

    ASGI defines none of these; under another server they do nothing.
    """

    abort: Callable[[], object] = lambda: None
    """Drop the connection with its unsent bytes, when the other side does not read."""
    allow_full_messages: Callable[[], object] = lambda: None
    """Accept messages of full size, after the client has sent the token."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops; an endless response should then end."""
    gone: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Done when the connection is lost."""
    watch_hangup: Callable[[], object] = lambda: None
    """From now on, report a disconnect soon, even while nothing is read from the connection."""

    @classmethod
    def of(cls, scope: Scope) -> ConnectionControl:
        control = scope.get("extensions", {}).get(CONTROL_EXTENSION)
        return control if isinstance(control, cls) else cls()

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return the app, with this control in each scope."""

        async def connected(scope: Scope, receive: Receive, send: Send) -> None:
            scope.setdefault("extensions", {})[CONTROL_EXTENSION] = self
            await app(scope, receive, send)

        return connected


class RefusalBody(msgspec.Struct):
    reason: str
    message: str


def with_security_headers(send: Send) -> Send:
    """Return a `send` for our own responses: adds `SECURITY_HEADERS`, removes CORS headers."""

    async def with_headers(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = [
                (name.lower(), value)
                for name, value in message.get("headers", ())
                if not name.lower().startswith(b"access-control-")
            ]
            present = {name for name, _ in headers}
            headers += [pair for pair in SECURITY_HEADERS.items() if pair[0] not in present]
            message = {**message, "headers": headers}
        await send(message)

    return with_headers


def is_opened_by_a_person(scope: Scope) -> bool:
    """Whether a person reads the response in a browser, and not a program."""
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
    """Send a refusal: a status, a reason for programs and a sentence for people.

    A person in a browser gets a page instead, which may contain more.
    """
    page = page or ErrorPage(sentence)
    if is_opened_by_a_person(scope):
        body, kind = page.body(), page.headers()
    else:
        body = msgspec.json.encode(RefusalBody(reason, sentence))
        kind = [(b"content-type", b"application/json")]
    proof = [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await respond(scope, send, status, body, [*kind, *proof, *headers])


def refusal_sentence(body: bytes) -> str:
    """Return the sentence of a telex server that refused us, as ` (sentence)`; else empty."""
    try:
        sentence = msgspec.json.decode(body, type=RefusalBody).message
    except (msgspec.DecodeError, RecursionError):
        return ""
    return f" ({printable(sentence)})"


async def respond(
    scope: Scope, send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    """Send a whole response, in place of the handshake if a WebSocket was requested."""
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    if kind.startswith("websocket") and kind not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 4000 + status})
        return
    length = (b"content-length", b"%d" % len(body))
    start: dict[str, Any] = {"status": status, "headers": [*headers, length]}
    await send({"type": f"{kind}.start", **start})
    await send({"type": f"{kind}.body", "body": body})


# The HTTP conventions of the server: headers, kinds of frames, event streams.
#
# A POST has one response, so the server must distinguish a response from a notification that is
# sent before it, and a request from a message without response. Both dialects are read, loosely:
# the peer reports errors in a frame.
#
# An event stream is `data: …` and an empty line. The format's other fields (`event`, `id`,
# `retry`) are not sent.
#
# A message with both Content-Length and Transfer-Encoding has two possible ends, and an
# intermediary may use the other one: the bytes after it are then a request that was never checked
# (RFC 9112 §6.3, §11.2). h11 silently uses the second, which the RFC allows; `length_fault`
# refuses such a message, in both directions. Differing lengths, and codings other than `chunked`,
# are refused by h11 itself.


JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
"""The media type of a response in parts, one line for each."""
CONVERSATION: Final = "telex-conversation"
"""The header that names an event stream, in its response and in further POSTs to it."""


class FrameKind(Enum):
    REQUEST = "gets an answer"
    NOTIFICATION = "gets none"
    RESPONSE = "is one"


class _FrameEnvelope(msgspec.Struct):
    method: Any = None
    command: Any = None
    id: Any = None
    rpcid: Any = None
    reqid: Any = None


_envelope_decoder = msgspec.json.Decoder(_FrameEnvelope | list[_FrameEnvelope])


def frame_kind(frame: bytes) -> FrameKind:
    """Return the kind of a frame. An unreadable frame is a request: it gets an error response."""
    try:
        message = _envelope_decoder.decode(frame)
    except (msgspec.DecodeError, RecursionError):
        return FrameKind.REQUEST
    if not isinstance(message, list):
        return _message_kind(message)
    kinds = {_message_kind(member) for member in message}
    return next((kind for kind in FrameKind if kind in kinds), FrameKind.REQUEST)


def _message_kind(message: _FrameEnvelope) -> FrameKind:
    if message.method is not None or message.command is not None:
        ids = (message.id, message.rpcid, message.reqid)
        return FrameKind.NOTIFICATION if ids == (None, None, None) else FrameKind.REQUEST
    if message.rpcid is not None or message.reqid is not None:  # a further part, or a cancel
        return FrameKind.NOTIFICATION
    return FrameKind.RESPONSE


EVENT_STREAM: Final = "text/event-stream"
KEEP_ALIVE_EVENT: Final = b":\n\n"
"""A comment, which only shows that the connection is alive."""

_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")


def encode_event(frame: bytes) -> bytes:
    """Return one event. A line break inside a frame is white space between JSON tokens."""
    lines = _LINE_ENDS.split(frame)
    return b"".join(b"data: %b\n" % line for line in lines) + b"\n"


TWO_LENGTHS: Final = "it has both Content-Length and Transfer-Encoding"


def length_fault(headers: Iterable[tuple[bytes, bytes]], version: bytes = b"1.1") -> str:
    """Return why the end of such a message is ambiguous; empty if it is not."""
    names = {name for name, _ in headers}
    if b"transfer-encoding" not in names:
        return ""
    if b"content-length" in names:
        return TWO_LENGTHS
    return "HTTP/1.0 has no Transfer-Encoding" if version < b"1.1" else ""
