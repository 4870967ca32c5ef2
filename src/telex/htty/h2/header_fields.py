"""Header fields that RFC 9113 §8.2 and §8.3 allow, in both directions, and a cache for HPACK.

The rules are those of `h2`, nowhere laxer (a property test compares them). `h2` checks each
character in Python, which took a third of a request's time, and ends the connection for one bad
field. The gateway, which also speaks HTTP/1.1, refuses more (`gateway.header_policy`).

A page that polls sends the same header fields again and again and gets the same ones back; encoding
them in Python each time was a fifth of a request's time. With an unchanged HPACK table the same
fields are the same bytes, and vice versa, so `CachingEncoder` and `CachingDecoder` remember blocks
until the table changes. The bytes on the wire are the same as without the cache.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from hpack import Decoder, Encoder
from hpack.table import HeaderTable

if TYPE_CHECKING:
    from hpack import HeaderTuple


Headers = list[tuple[bytes, bytes]]
"""Header fields with names in lower case, pseudo-header fields first."""

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
"""The names of most fields, which need no further check."""
_OVERHEAD = 32  # per field, in RFC 9113's measure of a header list


class HeaderBlock(Enum):
    """The kind of a header block, with the pseudo-header fields that it may have."""

    REQUEST = _OF_REQUEST
    RESPONSE = frozenset((b":status",))
    TRAILERS = frozenset[bytes]()


def headers_size(headers: Headers) -> int:
    """Return the size of the fields, as SETTINGS_MAX_HEADER_LIST_SIZE counts it."""
    return sum(len(name) + len(value) + _OVERHEAD for name, value in headers)


def headers_fault(headers: Headers, block: HeaderBlock) -> str | None:
    """Return the fault in the fields, if there is one."""
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
    if block is HeaderBlock.REQUEST:
        return _request_fault(pseudo, headers)
    if block is HeaderBlock.RESPONSE and not _is_status(pseudo.get(b":status", b"")):
        return "the response has no status"
    return None


def _request_fault(pseudo: dict[bytes, bytes], headers: Headers) -> str | None:
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
        return "the request names no host, or two hosts"
    return None


_BLOCKS: Final = 64
_BLOCK_BYTES: Final = 1024
"""Longer blocks are not cached, because a peer chooses their content."""


class _BlockCache:
    """A cache that is valid for one state of an HPACK table."""

    def __init__(self, table: HeaderTable) -> None:
        self._table = table
        self._state = self._now()
        self._known: dict[Any, Any] = {}

    def _now(self) -> tuple[object, int, int]:
        """Return the state of the table: new entries come first, and old ones only leave for new
        ones or a smaller size, so the first entry and the counts identify it."""
        entries = self._table.dynamic_entries
        return (entries[0] if entries else None), len(entries), self._table.maxsize

    def get(self, key: object) -> Any:
        return self._known.get(key) if self._is_current() else None

    def keep(self, key: object, value: object) -> None:
        """Store a value, if the table has not changed since `get`."""
        if not self._is_current():
            self._known.clear()
            self._state = self._now()
        elif len(self._known) < _BLOCKS:
            self._known[key] = value

    def _is_current(self) -> bool:
        then, now = self._state, self._now()
        return now[0] is then[0] and now[1:] == then[1:]


class CachingEncoder(Encoder):
    """An encoder that reuses the block of the same fields while the table is unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self._unchanged = _BlockCache(self.header_table)

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:
        if self.header_table.resized:  # only the next block announces the new size
            return super().encode(headers, huffman)
        fields = tuple(headers)
        block: bytes | None = self._unchanged.get(fields)
        if block is None:
            block = super().encode(fields, huffman)
            if len(block) <= _BLOCK_BYTES:
                self._unchanged.keep(fields, block)
        return block


class CachingDecoder(Decoder):
    """A decoder that reuses the fields of the same block while the table is unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self._unchanged = _BlockCache(self.header_table)

    def decode(self, data: bytes, raw: bool = False) -> Iterable[HeaderTuple]:
        block = bytes(data)
        fields: list[HeaderTuple] | None = self._unchanged.get((block, raw))
        if fields is None:
            fields = list(super().decode(data, raw))
            if len(block) <= _BLOCK_BYTES:
                self._unchanged.keep((block, raw), fields)
        return fields.copy()
