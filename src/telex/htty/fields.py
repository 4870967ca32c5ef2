"""Header fields as RFC 9113 §8.2 and §8.3 allow them, for both directions.

The same rules as h2's own, and no laxer anywhere (a property test compares them): h2 looks at each
character in Python, which took a third of a request's time, and ends the connection over one bad
field. What a gateway must refuse beyond this, since it speaks HTTP/1.1, is the gateway's.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from hpack.table import HeaderTable

Headers = list[tuple[bytes, bytes]]
"""Names in lower case, pseudo-header fields first."""

_is_name: Final = re.compile(rb":?[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_is_value: Final = re.compile(rb"(?:[^\0\r\n\t ](?:[^\0\r\n]*[^\0\r\n\t ])?)?").fullmatch
_is_status: Final = re.compile(rb"[1-9][0-9][0-9]").fullmatch
_OF_CONNECTION: Final = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade")
)
_OF_REQUEST: Final = frozenset((b":method", b":scheme", b":authority", b":path", b":protocol"))
_ORDINARY: Final = frozenset(
    name for name, _ in HeaderTable.STATIC_TABLE if name not in _OF_CONNECTION and name[0] != 0x3A
)
"""Names that most fields have, and of which nothing more is to be known."""
_OVERHEAD = 32  # of a field, in RFC 9113's measure of a header list


class Block(Enum):
    """What the fields are of, and the pseudo-header fields it may have."""

    REQUEST = _OF_REQUEST
    RESPONSE = frozenset((b":status",))
    TRAILERS = frozenset[bytes]()


def size(headers: Headers) -> int:
    """As SETTINGS_MAX_HEADER_LIST_SIZE counts."""
    return sum(len(name) + len(value) + _OVERHEAD for name, value in headers)


def fault(headers: Headers, block: Block) -> str | None:
    """What is wrong with them, if anything is."""
    pseudo: dict[bytes, bytes] = {}
    plain = False
    for name, value in headers:
        if not _is_value(value):
            return f"the value of the header field {name!r} has a character that is not allowed"
        if name in _ORDINARY:
            plain = True
            continue
        if not _is_name(name):
            return f"the header field {name!r} has a character that is not allowed"
        if name[0] == 0x3A:
            if plain or name in pseudo or name not in block.value:
                return f"the pseudo-header field {name!r} is out of place"
            pseudo[name] = value
            continue
        plain = True
        if name in _OF_CONNECTION or (name == b"te" and value.lower() != b"trailers"):
            return f"the header field {name!r} is for HTTP/1.1"
    if block is Block.REQUEST:
        return _fault_of_request(pseudo, headers)
    if block is Block.RESPONSE and not _is_status(pseudo.get(b":status", b"")):
        return "the response has no status"
    return None


def _fault_of_request(pseudo: dict[bytes, bytes], headers: Headers) -> str | None:
    method = pseudo.get(b":method")
    extended = b":protocol" in pseudo
    if not method or (extended and method != b"CONNECT"):
        return "the request's method is missing or does not fit"
    wanted = 2 if method != b"CONNECT" or extended else 0
    if (b":scheme" in pseudo) + (b":path" in pseudo) != wanted:
        return "the request's scheme and path do not fit its method"
    if pseudo.get(b":path") == b"":
        return "the request's path is empty"
    hosts = [value for name, value in headers if name == b"host"]
    named = {*hosts, pseudo[b":authority"]} if b":authority" in pseudo else {*hosts}
    if len(hosts) > 1 or len(named) != 1:
        return "the request names no host, or two"
    return None
