"""What a request wants of a file: all of it, a part, or to hear that it has not changed. Sans-IO.

RFC 9110 §13 (conditions) and §14 (ranges). Of several ranges in one request all are ignored, as the
RFC allows: nobody but attackers has a use for them here. Used by `directory`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_RANGE: Final = re.compile(rb"bytes=([0-9]{0,18})-([0-9]{0,18})")
_TAG: Final = re.compile(rb'(?:W/)?("[^"]*")')


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a file, and the status that says which."""

    status: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Validators:
    """What tells one version of a file from another."""

    tag: bytes
    changed: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Validators:
        tag = f'"{stat.st_ino:x}-{stat.st_size:x}-{stat.st_mtime_ns:x}"'
        return cls(tag.encode(), int(stat.st_mtime))

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"etag", self.tag),
            (b"last-modified", formatdate(self.changed, usegmt=True).encode()),
        ]


def part(headers: Mapping[bytes, bytes], size: int, now: Validators) -> Part:
    """Which part of it to send. 304 and 416 have none."""
    if _unchanged(headers, now):
        return Part(304, 0, 0)
    asked = _RANGE.fullmatch(headers.get(b"range", b"").strip())
    if asked is None or asked[0] == b"bytes=-" or not _same(headers.get(b"if-range"), now):
        return Part(200, 0, size)
    first, last = asked.groups()
    if not first:  # the last so many bytes
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
        if last and int(last) < start:
            return Part(200, 0, size)  # no range at all, §14.1.1
    return Part(206, start, end - start) if start < end else Part(416, 0, 0)


def _unchanged(headers: Mapping[bytes, bytes], now: Validators) -> bool:
    tags = headers.get(b"if-none-match")
    if tags is not None:
        return tags.strip() == b"*" or now.tag in _TAG.findall(tags)
    since = _date(headers.get(b"if-modified-since"))
    return since is not None and now.changed <= since


def _same(condition: bytes | None, now: Validators) -> bool:
    """Whether the part asked for continues what they have."""
    return condition is None or condition.strip() == now.tag or _date(condition) == now.changed


def _date(value: bytes | None) -> float | None:
    if value is None:
        return None
    try:
        return parsedate_to_datetime(value.decode("latin-1")).timestamp()
    except ValueError:
        return None
