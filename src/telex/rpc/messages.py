"""One conversation's messages, as values. How they are spelled is `dialects`' business.

`data` of a message that came is `Raw` JSON, decoded once the receiver knows its type (or `bytes`,
where the dialect carries binary). `data` of a message to be sent is any value msgspec can encode.
`ABSENT` is not `None`: a reply without data and a reply of null are different messages. `datatype`
is a hint which of several types the data is; only some dialects carry it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Raw

if TYPE_CHECKING:
    from telex.rpc.errors import Problem

Id = int | str
"""Integer and string ids are distinct: 1 is not "1"."""

ABSENT: Final = UNSET

__all__ = ["ABSENT", "Batch", "Cancel", "Failure", "Id", "Last", "Malformed", "Message"]
__all__ += ["Notification", "Part", "Raw", "Reply", "Request", "Typed"]


@dataclass(frozen=True, slots=True)
class Request:
    """Wants an answer. With `more`, parts with the same id follow."""

    id: Id
    method: str
    data: object = ABSENT
    timeout: float | None = None
    more: bool = False
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """More of a request that said `more`."""

    id: Id
    data: object = ABSENT
    more: bool = False
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """Wants no answer, and gets none, not even an error."""

    method: str
    data: object = ABSENT
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer, or with `more` a part of it."""

    id: Id
    data: object = ABSENT
    more: bool = False
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer is no. Without an id: the request was too broken to have one."""

    id: Id | None
    problem: Problem


@dataclass(frozen=True, slots=True)
class Cancel:
    """The asker no longer wants the answer to this request."""

    id: Id


@dataclass(frozen=True, slots=True)
class Typed:
    """Data to be sent with its `datatype`: what a handler yields, or puts among a call's parts."""

    datatype: str
    data: object


@dataclass(frozen=True, slots=True)
class Last:
    """What an async generator yields as the end of its answer, where that end has data. Without
    it, the end is a packet of its own that has none."""

    data: object


Message = Request | Part | Notification | Reply | Failure | Cancel


@dataclass(frozen=True, slots=True)
class Malformed:
    """A frame that is no message."""

    problem: Problem
    answer: Failure | None = None
    """The failure to send back, where one is due."""
    spoils: Id | None = None
    """The call of ours whose answer this would have been: there will be no other."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Several messages in one frame, whose answers go back in one frame."""

    members: tuple[Message | Malformed, ...]
