"""The header fields that the gateway forwards, in both directions. Sans-IO.

The program gets the browser's fields, without those about the connection to us and without our
credentials. The browser gets the program's fields unchanged, except for those that would open the
page, or telex itself, to another origin. A message that could be parsed as two messages, or as a
different one, is refused as a whole: the HTTP/2 library refuses it too, and this is the last place
before it would become lines of text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.types import Scope

    from telex.transports.auth import Authenticator

Headers = list[tuple[bytes, bytes]]

_ABOUT_THE_CONNECTION: Final = frozenset(
    [
        *(b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"),
        *(b"te", b"trailer", b"http2-settings", b"proxy-authorization", b"proxy-authenticate"),
    ]
)
"""RFC 9110 §7.6.1, RFC 9113 §8.2.2. TE could stay as `trailers`, but trailers are not forwarded."""
_OURS_TO_SAY: Final = frozenset([b"host", b"expect"])
"""Host becomes :authority; Expect is answered when there is a stream for the body."""
_OF_THE_HANDSHAKE: Final = frozenset([b"sec-websocket-key", b"sec-websocket-extensions"])
"""RFC 8441 §5: a stream needs no key. Frames are not forwarded, so extensions cannot be either."""
_FORBIDDEN: Final = frozenset(
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"]
)
_KEPT_BACK: Final = frozenset([b"alt-svc", b"cross-origin-resource-policy", *_ABOUT_THE_CONNECTION])
"""Alt-Svc names a server's address, but the browser's server is the gateway."""

_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE: Final = re.compile(rb"(?:[!-~\x80-\xff]+(?:[ \t]+[!-~\x80-\xff]+)*)?")
_STATUS: Final = re.compile(rb"[2-5][0-9][0-9]")
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_WITHOUT_BODY: Final = (204, 205, 304)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response, suitable for HTTP/1.1."""

    status: int
    headers: Headers
    length: int | None
    """The length of the body, if the program gave it and there is a body."""
    bodiless: bool


@dataclass(frozen=True, slots=True)
class MalformedResponse:
    """A response that must not be forwarded. The sentence contains nothing of the response."""

    sentence: str


def request_headers(scope: Scope, auth: Authenticator) -> Headers:
    """Return the header fields of an authenticated request, for the program."""
    method: bytes = scope["method"].encode()
    return [(b":method", method), *_target(scope), *_passed_on(scope["headers"], auth)]


def connect_headers(scope: Scope, auth: Authenticator) -> Headers:
    """Return the header fields of a WebSocket request: an extended CONNECT, RFC 8441 §4."""
    headers = _passed_on(scope["headers"], auth)
    return [
        (b":method", b"CONNECT"),
        (b":protocol", b"websocket"),
        *_target(scope),
        *(pair for pair in headers if pair[0] not in _OF_THE_HANDSHAKE),
    ]


def has_body(scope: Scope) -> bool:
    """Whether a body follows the headers. `Content-Length: 0` announces none."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in scope["headers"]
    )


def response_head(
    answer: Headers, method: str, auth: Authenticator
) -> ResponseHead | MalformedResponse:
    """Return the head for the browser, or why the response cannot be forwarded."""
    if (problem := _problem(answer)) is not None:
        return MalformedResponse(problem)
    status = int(answer[0][1])
    bodiless = method == "HEAD" or status in _WITHOUT_BODY
    lengths = [int(value) for name, value in answer if name == b"content-length"]
    headers = [pair for pair in answer[1:] if _may_leave(*pair, auth)]
    if status in (204, 205):
        headers = [pair for pair in headers if pair[0] != b"content-length"]  # RFC 9110 §8.6
    if status == 205:
        headers.append((b"content-length", b"0"))  # §15.3.6: it has a body, which is empty
    headers.append((b"cross-origin-resource-policy", b"same-origin"))
    return ResponseHead(status, headers, lengths[0] if lengths and not bodiless else None, bodiless)


def _target(scope: Scope) -> Headers:
    path: bytes = scope["raw_path"]
    if scope["query_string"]:
        path += b"?" + scope["query_string"]
    host = next(value for name, value in scope["headers"] if name == b"host")
    return [(b":scheme", b"http"), (b":authority", host), (b":path", path)]


def _passed_on(headers: Iterable[tuple[bytes, bytes]], auth: Authenticator) -> Headers:
    given = [(name.lower(), value) for name, value in headers]
    dropped = _ABOUT_THE_CONNECTION | _OURS_TO_SAY | _named_by_connection(given)
    if any(name == b"transfer-encoding" for name, _ in given):
        dropped |= {b"content-length"}  # transfer-encoding takes precedence, RFC 9112 §6.3
    return list(_without_credentials((pair for pair in given if pair[0] not in dropped), auth))


def _named_by_connection(headers: Headers) -> set[bytes]:
    lists = (value for name, value in headers if name == b"connection")
    return {word.strip().lower() for value in lists for word in value.split(b",")}


def _without_credentials(
    headers: Iterable[tuple[bytes, bytes]], auth: Authenticator
) -> Iterator[tuple[bytes, bytes]]:
    """Drop the credentials of the gateway, which the program must not see."""
    for name, value in headers:
        if name == b"cookie":
            crumbs = (crumb.strip() for crumb in value.split(b";"))
            kept = [crumb for crumb in crumbs if crumb and not _is_named(crumb, auth.cookie_name)]
            if kept:
                yield name, b"; ".join(kept)
        elif name != b"authorization" or not auth.is_bearer(value):
            yield name, value


def _problem(answer: Headers) -> str | None:
    if not answer or answer[0][0] != b":status" or not _STATUS.fullmatch(answer[0][1]):
        return "The program's response does not begin with a status."
    names = [name for name, _ in answer[1:]]
    if not all(_NAME.fullmatch(name) for name in names):
        return "The program's response has a header field with an invalid name."
    if not all(_VALUE.fullmatch(value) for _, value in answer[1:]):
        return "The program's response has a header field with an invalid value."
    if not _FORBIDDEN.isdisjoint(names):
        return "The program's response has a header field that is not allowed in HTTP/2."
    lengths = [value for name, value in answer if name == b"content-length"]
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(value) for value in lengths):
        return "The program's response has more than one length, or an invalid one."
    return None


def _may_leave(name: bytes, value: bytes, auth: Authenticator) -> bool:
    if name == b"set-cookie":
        return not _exceeds_page(value, auth)
    return name not in _KEPT_BACK and not name.startswith(b"access-control-")


def _exceeds_page(cookie: bytes, auth: Authenticator) -> bool:
    """Whether a cookie is for more than this page, or would replace our own cookie."""
    first, *attributes = cookie.split(b";")
    return _is_named(first, auth.cookie_name) or any(
        attribute.partition(b"=")[0].strip().lower() == b"domain" for attribute in attributes
    )


def _is_named(crumb: bytes, name: bytes) -> bool:
    return crumb.partition(b"=")[0].strip() == name
