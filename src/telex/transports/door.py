"""The one place that decides who may come in over the network. Sans-IO; `doorway` asks it.

A page in any browser can make requests to 127.0.0.1, and so can every other user of the machine.
Four questions, in this order, keep both out:

    target   is it a plain path, and not an address meant for a proxy
    Host     one of our own names: a name that was rebound to our address is not
    Origin   if a browser says who asks, it must be us
    proof    the token; or a cookie, which proves nothing by itself where a page could lend it

Proof is the token as `Authorization: Bearer`, the token as first WebSocket message, or a code:
once, within minutes, `/?code=…` is exchanged for a cookie and forgotten, so that no address in a
history opens anything. Browsers send cookies to every port of a host, so the name carries the port;
another server on the same host could still be shown ours, so it is not the token.

A door can stand before somebody else's pages (`shared`): those of a program, which has a host name
of its own. What such a page says in its own name is then left to it.

Nothing secret is kept where a repr, a log or an error could print it; of codes and cookies only
digests are kept at all. What it does not do: TLS, rate limits, several users.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

T = TypeVar("T")

TOKEN_CHARACTERS: Final = 16
"""Shortest `TELEX_TOKEN` taken: anything shorter was typed to get it over with."""

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE: Final = ("0.0.0.0", "[::]")  # noqa: S104  compared with, never bound here
_NAME: Final = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")
_PLAIN_PATH: Final = re.compile(rb"/(?:[\w.~!$&'()*+,;=:@%-][\w.~!$&'()*+,;=:@%/-]*)?", re.ASCII)
_HTTP_PORT: Final = 80


class WeakToken(ValueError):
    """A token that could be guessed, or that no header can carry."""


class NoHostName(ValueError):
    """A configured name that no Host header can have."""


class Reason(StrEnum):
    """Why somebody is refused, for programs. The sentence for people is in `Refused`."""

    TARGET = "target"
    HOST = "host"
    ORIGIN = "origin"
    TOKEN = "token"
    CODE = "code"


class Proof(StrEnum):
    TOKEN = "token"
    COOKIE = "cookie"


@dataclass(frozen=True, slots=True)
class Knock:
    """A request, as far as the door looks at it. All but method and kind may hold secrets."""

    method: str
    path: bytes = field(repr=False)
    """As it came, still percent-encoded."""
    query: bytes = field(repr=False)
    headers: Sequence[tuple[bytes, bytes]] = field(repr=False)
    websocket: bool = False

    def header(self, name: bytes) -> list[bytes]:
        return [value for other, value in self.headers if other.lower() == name]


@dataclass(frozen=True, slots=True)
class Admitted:
    """Come in."""

    by: Proof


@dataclass(frozen=True, slots=True)
class Redeemed:
    """A good code: take this cookie, and go to the same page by its plain address."""

    cookie: str | None = field(repr=False)
    """The value of `Set-Cookie`; None for somebody who had a good one already."""
    location: str


@dataclass(frozen=True, slots=True)
class Unproven:
    """A WebSocket that may still show the token, as its first message."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No. The sentence is ours from end to end: nothing of the request is in it."""

    status: int
    reason: Reason
    sentence: str


Verdict = Admitted | Redeemed | Unproven | Refused

_NO_TARGET = Refused(400, Reason.TARGET, "The request target is not a path.")
_NO_HOST = Refused(400, Reason.HOST, "The request does not name one host.")
_OTHER_HOST = Refused(403, Reason.HOST, "telex does not go by that host name.")
_TWO_ORIGINS = Refused(400, Reason.ORIGIN, "The request names several origins.")
_OTHER_ORIGIN = Refused(403, Reason.ORIGIN, "Pages of other origins may not do this.")
_NO_ORIGIN = Refused(403, Reason.ORIGIN, "With a cookie, this needs the Origin of our own page.")
_NO_TOKEN = Refused(401, Reason.TOKEN, "This needs the token, as Authorization: Bearer.")
_WRONG_TOKEN = Refused(401, Reason.TOKEN, "That is not the token.")
_SPENT_CODE = Refused(401, Reason.CODE, "This link was used or is too old; ask for a new one.")
_NOT_LET_IN = Refused(401, Reason.TOKEN, "This browser was not let in; open the link telex gives.")


def token_from(environment: Mapping[str, str]) -> str:
    """The token of `TELEX_TOKEN`, or 256 fresh random bits."""
    token = environment.get("TELEX_TOKEN", "")
    if not token:
        return secrets.token_urlsafe(32)
    if len(token) < TOKEN_CHARACTERS or not re.fullmatch(r"[!-~]+", token):
        raise WeakToken(
            f"TELEX_TOKEN must have {TOKEN_CHARACTERS} or more printable ASCII characters and no "
            "spaces; unset it to get a random token"
        )
    return token


class Door:
    """Knows the token and the names we go by. Shut until `opens_at` says where it is."""

    def __init__(
        self,
        token: str,
        *,
        names: Iterable[str] = (),
        origins: Iterable[str] = (),
        shared: bool = False,
    ):
        """`names` are host names besides the loopback ones, with our port unless they have one.

        `origins` are those of pages that come by another scheme, such as a proxy with TLS.

        A `shared` door goes by its `names` alone. An Authorization that is not the token, and a
        parameter `code`, are the page's own matter; ours is `telex-code`. No message is taken off
        a WebSocket, which must come with proof.
        """
        if not token:
            raise WeakToken("the token is empty; use door.token_from")
        self._token = token.encode()
        self._names = [_checked(name) for name in names]
        self.shared: Final = shared
        self._parameter: Final = b"telex-code" if shared else b"code"
        self._hosts: frozenset[bytes] = frozenset()
        self._more_origins = frozenset(origin.encode() for origin in origins)
        self._origins: frozenset[bytes] = frozenset()
        self._cookie_name = b""
        self._codes: OrderedDict[bytes, float] = OrderedDict()
        self._cookies: OrderedDict[bytes, None] = OrderedDict()

    def opens_at(self, host: str, port: int) -> None:
        """From now on: the address we listen at. An IPv6 address stands in brackets."""
        ours = () if self.shared else (*_LOOPBACK, host.lower())
        names = {*ours, *self._names} - {*_EVERYWHERE}
        hosts = {address for name in names for address in _addresses(name, port)}
        self._hosts = frozenset(address.encode() for address in hosts)
        self._origins = frozenset(b"http://" + own for own in self._hosts) | self._more_origins
        self._cookie_name = b"telex-%d" % port

    @property
    def cookie_name(self) -> bytes:
        return self._cookie_name

    def new_link(self, now: float) -> str:
        """The path and query that a browser is let in by, once."""
        return f"/?{self._parameter.decode()}={self.new_code(now)}"

    def new_code(self, now: float) -> str:
        """A code for `/?code=…`. `now` is monotonic seconds, as for `admit`."""
        code = secrets.token_urlsafe(32)
        _remember(self._codes, _digest(code.encode()), now + limits.CODE_SECONDS)
        return code

    def is_bearer(self, authorization: bytes) -> bool:
        """Whether the value of an Authorization header is the token."""
        scheme, _, given = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and self.is_token(given.strip())

    def is_token(self, given: bytes) -> bool:
        """In constant time. Never raises, whatever the bytes."""
        return hmac.compare_digest(given, self._token)

    def admit(self, knock: Knock, now: float) -> Verdict:
        """What to do with a request."""
        return (
            self._misdirected(knock)
            or self._by_token(knock)
            or self._by_code(knock, now)
            or self._by_cookie(knock)
            or self._without_proof(knock)
        )

    def _without_proof(self, knock: Knock) -> Unproven | Refused:
        if self.shared:
            return _NOT_LET_IN
        return Unproven() if knock.websocket else _NO_TOKEN

    def _misdirected(self, knock: Knock) -> Refused | None:
        if not knock.path.startswith(b"/"):
            return _NO_TARGET
        hosts, origins = knock.header(b"host"), knock.header(b"origin")
        if len(hosts) != 1:
            return _NO_HOST
        if hosts[0].lower() not in self._hosts:
            return _OTHER_HOST
        if len(origins) > 1:
            return _TWO_ORIGINS
        if origins and origins[0] not in self._origins:
            return _OTHER_ORIGIN
        return None

    def _by_token(self, knock: Knock) -> Admitted | Refused | None:
        """Whoever shows an Authorization to us is judged by it, whatever else they carry."""
        shown = knock.header(b"authorization")
        if not shown:
            return None
        if len(shown) == 1 and self.is_bearer(shown[0]):
            return Admitted(Proof.TOKEN)
        return None if self.shared else _WRONG_TOKEN

    def _by_code(self, knock: Knock, now: float) -> Redeemed | Refused | None:
        """A reload or a second click on a spent link is no stranger: the cookie vouches for it."""
        codes = list(_codes(knock.query, self._parameter))
        if not codes or knock.websocket or knock.method != "GET":
            return None
        expiry = self._codes.pop(_digest(codes[0]), None) if len(codes) == 1 else None
        if expiry is not None and now < expiry:
            return Redeemed(self._new_cookie(), _plain(knock.path))
        if self._has_cookie(knock):
            return Redeemed(None, _plain(knock.path))
        return _SPENT_CODE

    def _by_cookie(self, knock: Knock) -> Admitted | Refused | None:
        """Cookies come along with whatever a page asks for, so only reading goes without Origin."""
        if not self._has_cookie(knock):
            return None
        reads = knock.method in ("GET", "HEAD") and not knock.websocket
        if reads or knock.header(b"origin"):
            return Admitted(Proof.COOKIE)
        return _NO_ORIGIN

    def _has_cookie(self, knock: Knock) -> bool:
        """Any good value counts: servers on other ports can add bad ones under our name."""
        crumbs = (crumb for header in knock.header(b"cookie") for crumb in header.split(b";"))
        pairs = (crumb.strip().partition(b"=") for crumb in crumbs)
        return any(
            name == self._cookie_name and _digest(value) in self._cookies
            for name, _, value in pairs
        )

    def _new_cookie(self) -> str:
        value = secrets.token_urlsafe(32)
        _remember(self._cookies, _digest(value.encode()), None)
        return f"{self._cookie_name.decode()}={value}; HttpOnly; SameSite=Strict; Path=/"


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name.lower()):
        raise NoHostName(f"{name!r} is no host name; give a name as in box.lan or box.lan:8080")
    return name.lower()


def _addresses(name: str, port: int) -> Iterator[str]:
    """What browsers put into Host for a name: the port, unless it is the scheme's own."""
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
    """Where to send somebody without the code: `//host/…` would lead away from here."""
    return path.decode() if _PLAIN_PATH.fullmatch(path) else "/"


def _digest(secret: bytes) -> bytes:
    """What is kept of a secret. Looking it up tells nothing about the secret by its time."""
    return hashlib.sha256(secret).digest()


def _remember(kept: OrderedDict[bytes, T], digest: bytes, value: T) -> None:
    kept[digest] = value
    while len(kept) > limits.DOOR_SECRETS:
        kept.popitem(last=False)
