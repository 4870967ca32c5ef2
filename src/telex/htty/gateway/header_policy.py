"""Which header fields the gateway forwards, either way. Sans-IO.

To the program goes what the browser said, without what concerned the connection to us and without
what proves to us who asks. To the browser goes what the program said, as it said it, except for
what would give its page, or ours, to somebody else. What could be read as two messages, or as
another one, is refused whole: the HTTP/2 library refuses it too, and this is the last place before
it would become lines of text.
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
"""RFC 9110 §7.6.1, RFC 9113 §8.2.2. TE could stay as `trailers`; trailers end here."""
_OURS_TO_SAY: Final = frozenset([b"host", b"expect"])
"""Host crosses as :authority; Expect is answered when there is a stream for the body."""
_OF_THE_HANDSHAKE: Final = frozenset([b"sec-websocket-key", b"sec-websocket-extensions"])
"""RFC 8441 §5: a stream needs no key; and frames end here, so extensions would not get across."""
_FORBIDDEN: Final = frozenset(
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"]
)
_KEPT_BACK: Final = frozenset([b"alt-svc", b"cross-origin-resource-policy", *_ABOUT_THE_CONNECTION])
"""Alt-Svc speaks of a server's address, and the browser's server is us."""

_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE: Final = re.compile(rb"(?:[!-~\x80-\xff]+(?:[ \t]+[!-~\x80-\xff]+)*)?")
_STATUS: Final = re.compile(rb"[2-5][0-9][0-9]")
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_WITHOUT_BODY: Final = (204, 205, 304)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """A response's beginning, fit for HTTP/1.1."""

    status: int
    headers: Headers
    length: int | None
    """How long the body is, if the program said so and there is one."""
    bodiless: bool


@dataclass(frozen=True, slots=True)
class MalformedResponse:
    """An answer that must not be passed on. The sentence has nothing of the answer in it."""

    sentence: str


def request_headers(scope: Scope, auth: Authenticator) -> Headers:
    """The header fields of an authenticated request, for the program."""
    method: bytes = scope["method"].encode()
    return [(b":method", method), *_target(scope), *_passed_on(scope["headers"], auth)]


def connect_headers(scope: Scope, auth: Authenticator) -> Headers:
    """The same for a WebSocket: an extended CONNECT, RFC 8441 §4."""
    headers = _passed_on(scope["headers"], auth)
    return [
        (b":method", b"CONNECT"),
        (b":protocol", b"websocket"),
        *_target(scope),
        *(pair for pair in headers if pair[0] not in _OF_THE_HANDSHAKE),
    ]


def has_body(scope: Scope) -> bool:
    """Whether anything follows the headers. `Content-Length: 0` announces nothing."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in scope["headers"]
    )


def response_head(
    answer: Headers, method: str, auth: Authenticator
) -> ResponseHead | MalformedResponse:
    """What the browser is told, or why nothing of it."""
    if (problem := _problem(answer)) is not None:
        return MalformedResponse(problem)
    status = int(answer[0][1])
    bodiless = method == "HEAD" or status in _WITHOUT_BODY
    lengths = [int(value) for name, value in answer if name == b"content-length"]
    headers = [pair for pair in answer[1:] if _may_leave(*pair, auth)]
    if status in (204, 205):
        headers = [pair for pair in headers if pair[0] != b"content-length"]  # RFC 9110 §8.6
    if status == 205:
        headers.append((b"content-length", b"0"))  # §15.3.6: it has a body, and that is empty
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
        dropped |= {b"content-length"}  # the other one counts, RFC 9112 §6.3, and it ends here
    return list(_without_credentials((pair for pair in given if pair[0] not in dropped), auth))


def _named_by_connection(headers: Headers) -> set[bytes]:
    lists = (value for name, value in headers if name == b"connection")
    return {word.strip().lower() for value in lists for word in value.split(b",")}


def _without_credentials(
    headers: Iterable[tuple[bytes, bytes]], auth: Authenticator
) -> Iterator[tuple[bytes, bytes]]:
    """What lets somebody in here is none of the program's business."""
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
        return "The program's answer does not begin with a status."
    names = [name for name, _ in answer[1:]]
    if not all(_NAME.fullmatch(name) for name in names):
        return "The program's answer has a header whose name is none."
    if not all(_VALUE.fullmatch(value) for _, value in answer[1:]):
        return "The program's answer has a header whose value cannot be sent."
    if not _FORBIDDEN.isdisjoint(names):
        return "The program's answer speaks of a connection that is not its own."
    lengths = [value for name, value in answer if name == b"content-length"]
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(value) for value in lengths):
        return "The program's answer has no single length."
    return None


def _may_leave(name: bytes, value: bytes, auth: Authenticator) -> bool:
    if name == b"set-cookie":
        return not _exceeds_page(value, auth)
    return name not in _KEPT_BACK and not name.startswith(b"access-control-")


def _exceeds_page(cookie: bytes, auth: Authenticator) -> bool:
    """A cookie for more than this page, or one that would stand in ours' place."""
    first, *attributes = cookie.split(b";")
    return _is_named(first, auth.cookie_name) or any(
        attribute.partition(b"=")[0].strip().lower() == b"domain" for attribute in attributes
    )


def _is_named(crumb: bytes, name: bytes) -> bool:
    return crumb.partition(b"=")[0].strip() == name
