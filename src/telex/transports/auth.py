"""Authentication of network requests. `AuthMiddleware` is its ASGI part.

A page in any browser can make requests to 127.0.0.1, and so can every other user of the machine.
Four checks, in this order, keep both out:

    target   it must be a plain path, and not an address meant for a proxy
    Host     it must be one of our own names, not one that was rebound to our address
    Origin   if a browser sends one, it must be ours
    proof    the token; or a cookie, which is not enough where a foreign page could use it

Proof is the token as `Authorization: Bearer`, the token as first WebSocket message, or a code.
Once, within minutes, `/?code=…` is exchanged for a cookie and forgotten, so no address in a
browser's history gives access. Browsers send cookies to every port of a host, so the name of the
cookie contains the port. Another server on the same host could still receive it, so the cookie is
not the token.

An authenticator can protect the pages of another program (`shared`), which has a host name of its
own. Credentials that such a page uses for itself are then passed on to it.

No secret is kept where a repr, a log or an error could print it; codes and cookies are kept only as
digests. There is no TLS, no rate limit, and one user. `Authenticator` does no I/O.

Every token has a name, which is the identity of its requests (`identity_of`). A cookie has the name
of the token whose link it came from. Tokens of different names have the same rights.

`AuthMiddleware` calls it for each request before any of the request is read. A refusal contains
only the authenticator's own sentence, as JSON, or for a person in a browser as a page that also
gives the next step. A WebSocket without proof is accepted, but its first message must be `{"token":
"…"}`, and must be short and in time; the app never sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from telex.rpc.identity import UNKNOWN, Identity
from telex.transports import limits
from telex.transports.responses import (
    CONTROL_EXTENSION,
    ConnectionControl,
    ErrorPage,
    is_opened_by_a_person,
    refuse,
    respond,
    with_security_headers,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


T = TypeVar("T")

TOKEN_CHARACTERS: Final = 16
"""Shortest `TELEX_TOKEN` accepted: a shorter one can be guessed."""

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE: Final = ("0.0.0.0", "[::]")  # noqa: S104  compared with, never bound here
_NAME: Final = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")
_PLAIN_PATH: Final = re.compile(rb"/(?:[\w.~!$&'()*+,;=:@%-][\w.~!$&'()*+,;=:@%/-]*)?", re.ASCII)
_HTTP_PORT: Final = 80


DEFAULT_TOKEN: Final = "default"
"""The name of the token of `TELEX_TOKEN`, or of the random one."""
_TOKEN_NAME: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
_IDENTITY: Final = "telex.identity"
"""The key of the identity in the scope of a request."""


class WeakToken(ValueError):
    """The token could be guessed, or no header can carry it."""


class NoHostName(ValueError):
    """A configured name cannot occur in a Host header."""


class RefusalReason(StrEnum):
    """Why a request is refused, for programs. The sentence for people is in `AccessRefused`."""

    TARGET = "target"
    HOST = "host"
    ORIGIN = "origin"
    TOKEN = "token"
    CODE = "code"


class Proof(StrEnum):
    TOKEN = "token"
    COOKIE = "cookie"


@dataclass(frozen=True, slots=True)
class AuthRequest:
    """The parts of a request used by authentication. All but method and kind may hold secrets."""

    method: str
    path: bytes = field(repr=False)
    """The path as received, still percent-encoded."""
    query: bytes = field(repr=False)
    headers: Sequence[tuple[bytes, bytes]] = field(repr=False)
    websocket: bool = False

    def header(self, name: bytes) -> list[bytes]:
        return [value for other, value in self.headers if other.lower() == name]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request is authenticated, by this proof."""

    by: Proof
    name: str = DEFAULT_TOKEN
    """The name of the token, or of the token that the cookie came from."""


@dataclass(frozen=True, slots=True)
class Redeemed:
    """A valid code: set this cookie, and redirect to the same page without the code."""

    cookie: str | None = field(repr=False)
    """The value of `Set-Cookie`; None if the browser already has a valid one."""
    location: str


@dataclass(frozen=True, slots=True)
class Unproven:
    """A WebSocket without proof, which may still send the token as its first message."""


@dataclass(frozen=True, slots=True)
class AccessRefused:
    """The request is refused. The sentence contains nothing of the request."""

    status: int
    reason: RefusalReason
    sentence: str


AuthVerdict = Admitted | Redeemed | Unproven | AccessRefused

_NO_TARGET = AccessRefused(400, RefusalReason.TARGET, "The request target is not a path.")
_NO_HOST = AccessRefused(400, RefusalReason.HOST, "The request does not name one host.")
_OTHER_HOST = AccessRefused(403, RefusalReason.HOST, "telex is not served under that host name.")
_TWO_ORIGINS = AccessRefused(400, RefusalReason.ORIGIN, "The request names several origins.")
_OTHER_ORIGIN = AccessRefused(403, RefusalReason.ORIGIN, "Pages of other origins may not do this.")
_NO_ORIGIN = AccessRefused(
    403, RefusalReason.ORIGIN, "With a cookie, this needs the Origin of our own page."
)
_NO_TOKEN = AccessRefused(
    401, RefusalReason.TOKEN, "This needs the token, as Authorization: Bearer."
)
_WRONG_TOKEN = AccessRefused(401, RefusalReason.TOKEN, "That is not the token.")
_SPENT_CODE = AccessRefused(
    401, RefusalReason.CODE, "This link was used or is too old; ask for a new one."
)
_NO_COOKIE = AccessRefused(
    401, RefusalReason.TOKEN, "This browser is not authenticated; open the link that telex prints."
)


def token_from(environment: Mapping[str, str]) -> str:
    """Return the token of `TELEX_TOKEN`, or 256 fresh random bits. Raises WeakToken."""
    token = environment.get("TELEX_TOKEN", "")
    if not token:
        return secrets.token_urlsafe(32)
    if not _is_strong(token):
        raise WeakToken(
            f"TELEX_TOKEN must have {TOKEN_CHARACTERS} or more printable ASCII characters and no "
            "spaces; unset it to get a random token"
        )
    return token


def named_tokens(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the tokens of `TELEX_TOKENS` (`ci=TOKEN phone=TOKEN`) by name. Raises WeakToken."""
    found: dict[str, str] = {}
    for number, given in enumerate(environment.get("TELEX_TOKENS", "").split(), 1):
        name, _, token = given.partition("=")
        if not _TOKEN_NAME.fullmatch(name) or not _is_strong(token):
            raise WeakToken(
                f"part {number} of TELEX_TOKENS must be NAME=TOKEN: a name of letters, digits, - "
                f"and _, and a token of {TOKEN_CHARACTERS} or more printable ASCII characters"
            )
        if name in (DEFAULT_TOKEN, *found):
            raise WeakToken(
                f"TELEX_TOKENS names {name!r}, which is taken; give each token a name of its own"
            )
        found[name] = token
    return found


def _is_strong(token: str) -> bool:
    return len(token) >= TOKEN_CHARACTERS and re.fullmatch(r"[!-~]+", token) is not None


class Authenticator:
    """Holds the token and the names of a server. Refuses every request before `set_address`."""

    def __init__(
        self,
        token: str,
        *,
        more_tokens: Mapping[str, str] | None = None,
        names: Iterable[str] = (),
        origins: Iterable[str] = (),
        shared: bool = False,
    ):
        """Create an authenticator.

        Args:
            more_tokens: Further tokens by name; `token` itself has the name "default".
            names: Host names besides the loopback ones, with our port unless they have one.
            origins: Origins of pages with another scheme, such as those of a proxy with TLS.
            shared: Accept only `names`. An Authorization that is not the token, and a parameter
                `code`, are passed on to the page; ours is `telex-code`. A WebSocket must come with
                proof, because no message is read from it.
        """
        if not token:
            raise WeakToken("the token is empty; use auth.token_from")
        tokens = {DEFAULT_TOKEN: token, **(more_tokens or {})}
        self._tokens = {name: each.encode() for name, each in tokens.items()}
        self._names = [_checked(name) for name in names]
        self.shared: Final = shared
        self._parameter: Final = b"telex-code" if shared else b"code"
        self._hosts: frozenset[bytes] = frozenset()
        self._more_origins = frozenset(origin.encode() for origin in origins)
        self._origins: frozenset[bytes] = frozenset()
        self._cookie_name = b""
        self._codes: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        self._cookies: OrderedDict[bytes, str] = OrderedDict()

    def set_address(self, host: str, port: int) -> None:
        """Set the address that the server listens at. An IPv6 address is in brackets."""
        ours = () if self.shared else (*_LOOPBACK, host.lower())
        names = {*ours, *self._names} - {*_EVERYWHERE}
        hosts = {address for name in names for address in _addresses(name, port)}
        self._hosts = frozenset(address.encode() for address in hosts)
        self._origins = frozenset(b"http://" + own for own in self._hosts) | self._more_origins
        self._cookie_name = b"telex-%d" % port

    @property
    def cookie_name(self) -> bytes:
        return self._cookie_name

    def new_link(self, now: float, name: str = DEFAULT_TOKEN) -> str:
        """Return a path and query that authenticate a browser, once, as the token of that name."""
        return f"/?{self._parameter.decode()}={self.new_code(now, name)}"

    def new_code(self, now: float, name: str = DEFAULT_TOKEN) -> str:
        """Return a code for `/?code=…`. `now` is monotonic seconds, as for `authenticate`."""
        code = secrets.token_urlsafe(32)
        _remember(self._codes, _digest(code.encode()), (now + limits.CODE_SECONDS, name))
        return code

    def is_bearer(self, authorization: bytes) -> bool:
        """Whether the value of an Authorization header is a token of ours."""
        return self._bearer_name(authorization) is not None

    def _bearer_name(self, authorization: bytes) -> str | None:
        scheme, _, given = authorization.partition(b" ")
        return self.token_name(given.strip()) if scheme.lower() == b"bearer" else None

    def token_name(self, given: bytes) -> str | None:
        """Return the name of a token, None for any other bytes. Each comparison takes constant
        time, and all tokens are compared."""
        found = [name for name, own in self._tokens.items() if hmac.compare_digest(given, own)]
        return found[0] if found else None

    def authenticate(self, request: AuthRequest, now: float) -> AuthVerdict:
        """Return the verdict on a request."""
        return (
            self._check_target(request)
            or self._check_token(request)
            or self._check_code(request, now)
            or self._check_cookie(request)
            or self._no_proof(request)
        )

    def _no_proof(self, request: AuthRequest) -> Unproven | AccessRefused:
        if self.shared:
            return _NO_COOKIE
        return Unproven() if request.websocket else _NO_TOKEN

    def _check_target(self, request: AuthRequest) -> AccessRefused | None:
        if not request.path.startswith(b"/"):
            return _NO_TARGET
        hosts, origins = request.header(b"host"), request.header(b"origin")
        if len(hosts) != 1:
            return _NO_HOST
        if hosts[0].lower() not in self._hosts:
            return _OTHER_HOST
        if len(origins) > 1:
            return _TWO_ORIGINS
        if origins and origins[0] not in self._origins:
            return _OTHER_ORIGIN
        return None

    def _check_token(self, request: AuthRequest) -> Admitted | AccessRefused | None:
        """Check an Authorization header. If there is one, no other proof counts."""
        shown = request.header(b"authorization")
        if not shown:
            return None
        if len(shown) == 1 and (name := self._bearer_name(shown[0])) is not None:
            return Admitted(Proof.TOKEN, name)
        return None if self.shared else _WRONG_TOKEN

    def _check_code(self, request: AuthRequest, now: float) -> Redeemed | AccessRefused | None:
        """Redeem a code. A reload or a second click with a spent code is accepted by the cookie."""
        codes = list(_codes(request.query, self._parameter))
        if not codes or request.websocket or request.method != "GET":
            return None
        expiry, name = 0.0, DEFAULT_TOKEN
        if len(codes) == 1:
            expiry, name = self._codes.pop(_digest(codes[0]), (expiry, name))
        if now < expiry:
            return Redeemed(self._new_cookie(name), _plain(request.path))
        if self._cookie_owner(request) is not None:
            return Redeemed(None, _plain(request.path))
        return _SPENT_CODE

    def _check_cookie(self, request: AuthRequest) -> Admitted | AccessRefused | None:
        """Check the cookie.

        Browsers send it with any page's request, so only GET needs no Origin.
        """
        if (name := self._cookie_owner(request)) is None:
            return None
        reads = request.method in ("GET", "HEAD") and not request.websocket
        if reads or request.header(b"origin"):
            return Admitted(Proof.COOKIE, name)
        return _NO_ORIGIN

    def _cookie_owner(self, request: AuthRequest) -> str | None:
        """Return the name of the token that the cookie came from; None without a valid cookie. Any
        valid value counts: servers on other ports can add bad ones under our name."""
        crumbs = (crumb for header in request.header(b"cookie") for crumb in header.split(b";"))
        pairs = (crumb.strip().partition(b"=") for crumb in crumbs)
        values = (value for name, _, value in pairs if name == self._cookie_name)
        owners = (self._cookies.get(_digest(value)) for value in values)
        return next((owner for owner in owners if owner is not None), None)

    def _new_cookie(self, name: str) -> str:
        value = secrets.token_urlsafe(32)
        _remember(self._cookies, _digest(value.encode()), name)
        return f"{self._cookie_name.decode()}={value}; HttpOnly; SameSite=Strict; Path=/"


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name.lower()):
        raise NoHostName(f"{name!r} is not a host name; use a name as in box.lan or box.lan:8080")
    return name.lower()


def _addresses(name: str, port: int) -> Iterator[str]:
    """Return the Host values of browsers for a name: with the port, unless it is the default."""
    if ":" in name.rpartition("]")[2]:
        yield name
    else:
        yield f"{name}:{port}"
        if port == _HTTP_PORT:
            yield name


def _codes(query: bytes, ours: bytes) -> Iterator[bytes]:
    for parameter in query.split(b"&"):
        name, _, value = parameter.partition(b"=")
        if name == ours:
            yield value


def _plain(path: bytes) -> str:
    """Return the path for a redirect without the code: `//host/…` would lead to another host."""
    return path.decode() if _PLAIN_PATH.fullmatch(path) else "/"


def _digest(secret: bytes) -> bytes:
    """Return the digest that is kept. The time of its lookup reveals nothing about the secret."""
    return hashlib.sha256(secret).digest()


def _remember(kept: OrderedDict[bytes, T], digest: bytes, value: T) -> None:
    kept[digest] = value
    while len(kept) > limits.LOGIN_SECRETS:
        kept.popitem(last=False)


log = logging.getLogger("telex.transports")

Advice = Callable[[RefusalReason], str]
"""Returns the next step for a person who is refused; commands stand between backticks."""

TOKEN_SECONDS: Final = limits.FIRST_MESSAGE_SECONDS
"""How long a WebSocket may take to send the token. Its message size is limited until then."""
CLOSE_NOT_ADMITTED: Final = 4401
"""The WebSocket close code for a missing or wrong token: 401, in the range for applications."""


class _FirstMessage(msgspec.Struct):
    token: str


class AuthMiddleware:
    """An ASGI app that passes authenticated requests on to another app."""

    def __init__(
        self,
        app: ASGIApp,
        auth: Authenticator,
        clock: Callable[[], float] = time.monotonic,
        *,
        advice: Advice = lambda reason: "",
        title: str = "telex",
    ) -> None:
        """Wrap an app.

        Args:
            advice: Returns the next step for a person who is refused, for the error page.
            title: The name of the requested page, for the error page.
        """
        self._app = app
        self._auth = auth
        self._clock = clock
        self._advice = advice
        self._title = title

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        verdict = self._auth.authenticate(_auth_request(scope), self._clock())
        unsealed, send = send, with_security_headers(send)
        match verdict:
            case Admitted(_, name):
                ConnectionControl.of(scope).allow_full_messages()
                scope[_IDENTITY] = Identity("token", name)
                await self._app(scope, receive, unsealed if self._auth.shared else send)
            case Redeemed(cookie, location):
                await self._redeem(scope, send, cookie, location)
            case AccessRefused() as refused:
                log.info("refused a %s: %s", scope["type"], refused.reason.value)
                await self._refuse(scope, send, refused)
            case Unproven():
                await self._authenticate_by_message(scope, receive, send)

    async def _redeem(self, scope: Scope, send: Send, cookie: str | None, location: str) -> None:
        """Redirect to the plain address, with the cookie.

        A browser that was sent here by another site would not send the strict cookie after a
        redirect. From a page of ours it does, so such a browser gets a page that leads there.
        """
        headers = [] if cookie is None else [(b"set-cookie", cookie.encode())]
        if not _is_cross_site(scope):
            await respond(scope, send, 303, b"", [(b"location", location.encode()), *headers])
            return
        page = ErrorPage(
            "Opening the page.",
            title=self._title,
            link=(location, "Open it"),
            refresh=(0, location),
        )
        await respond(scope, send, 200, page.body(), [*page.headers(), *headers])

    async def _refuse(self, scope: Scope, send: Send, refused: AccessRefused) -> None:
        """Send a refusal.

        A browser that was sent here by another site did not send its cookie, but may have one. Such
        a person gets a link to the front page, and to no other path: another site chose the path.
        """
        unproven = refused.reason in (RefusalReason.CODE, RefusalReason.TOKEN)
        offer = self._auth.shared and unproven and _is_cross_site(scope)
        page = ErrorPage(
            refused.sentence,
            self._advice(refused.reason),
            self._title,
            link=("/", "Open the page, if this browser was admitted before") if offer else None,
        )
        await refuse(scope, send, refused.status, refused.reason.value, refused.sentence, page)

    async def _authenticate_by_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        connect = await receive()
        await send({"type": "websocket.accept"})
        name, problem = await self._first_message(receive)
        if name is None:
            log.info("refused a websocket: %s", problem)
            with contextlib.suppress(OSError, RuntimeError):  # already closed
                await send(
                    {"type": "websocket.close", "code": CLOSE_NOT_ADMITTED, "reason": problem}
                )
            return
        ConnectionControl.of(scope).allow_full_messages()
        # The WebSocket is accepted, so the app can no longer respond to the handshake with a page.
        changed = {
            "extensions": {CONTROL_EXTENSION: ConnectionControl.of(scope)},
            _IDENTITY: Identity("token", name),
        }
        await self._app({**scope, **changed}, _again(connect, receive), _accepted(send))

    async def _first_message(self, receive: Receive) -> tuple[str | None, str]:
        """Read the first message. Returns the name of its token, or None and the problem."""
        try:
            async with asyncio.timeout(TOKEN_SECONDS):
                message = await receive()
        except TimeoutError:
            return None, "the first message must be the token, and none arrived in time"
        body = message.get("text") or message.get("bytes") or b""
        try:
            shown = msgspec.json.decode(body, type=_FirstMessage)
        except (msgspec.DecodeError, RecursionError):
            return None, 'the first message must be {"token": "…"}'
        return self._auth.token_name(shown.token.encode()), "that is not the token"


def identity_of(scope: Scope) -> Identity:
    """Return the token of a request, as `AuthMiddleware` found it."""
    found = scope.get(_IDENTITY, UNKNOWN)
    return found if isinstance(found, Identity) else UNKNOWN


def _auth_request(scope: Scope) -> AuthRequest:
    return AuthRequest(
        method=scope.get("method", "GET"),
        path=scope.get("raw_path") or scope["path"].encode(),
        query=scope["query_string"],
        headers=scope["headers"],
        websocket=scope["type"] == "websocket",
    )


def _again(first: Message, receive: Receive) -> Receive:
    """Return a `receive` with one message put back."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _accepted(send: Send) -> Send:
    async def once_more(message: Message) -> None:
        if message["type"] != "websocket.accept":
            await send(message)

    return once_more


def _is_cross_site(scope: Scope) -> bool:
    """Whether a page of another site sent a browser here."""
    sites = [value for name, value in scope["headers"] if name.lower() == b"sec-fetch-site"]
    return is_opened_by_a_person(scope) and sites in ([b"cross-site"], [b"same-site"])
