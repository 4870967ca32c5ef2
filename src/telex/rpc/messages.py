"""The messages of a conversation, as values. `dialects` defines how they are encoded.

`data` of a received message is `Raw` JSON, decoded once the receiver knows its type (or `bytes`,
where the dialect carries binary). `data` of a message to send is any value that msgspec can encode.
`ABSENT` is not `None`: a reply without data and a reply of null are different messages. `datatype`
is a hint for the type of the data; only some dialects carry it.
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
    """A message that requires a response. With `more`, parts with the same id follow."""

    id: Id
    method: str
    data: object = ABSENT
    timeout: float | None = None
    more: bool = False
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A further part of a request that had `more` set."""

    id: Id
    data: object = ABSENT
    more: bool = False
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that gets no response, not even an error."""

    method: str
    data: object = ABSENT
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The response, or with `more` a part of it."""

    id: Id
    data: object = ABSENT
    more: bool = False
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error response. It has no id if the request was too broken to have one."""

    id: Id | None
    problem: Problem


@dataclass(frozen=True, slots=True)
class Cancel:
    """The caller no longer wants the response to this request."""

    id: Id


@dataclass(frozen=True, slots=True)
class Typed:
    """Data to send with its `datatype`: yielded by a handler, or one of a call's parts."""

    datatype: str
    data: object


@dataclass(frozen=True, slots=True)
class Last:
    """The end of a streamed response, with data: yielded by an async generator as its last value.

    Without it, the end of the stream is a packet of its own without data.
    """

    data: object


Message = Request | Part | Notification | Reply | Failure | Cancel


@dataclass(frozen=True, slots=True)
class Malformed:
    """A frame that is not a valid message."""

    problem: Problem
    answer: Failure | None = None
    """The failure to send back, if any."""
    spoils: Id | None = None
    """The call of ours to which this was the response: no other response will arrive."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Several messages in one frame. Their responses are sent in one frame too."""

    members: tuple[Message | Malformed, ...]
