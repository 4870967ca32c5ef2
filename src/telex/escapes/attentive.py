"""JSON escapes as a terminal speaks them to the programs on it: who asked what, and how much.

A reply is typed into whatever reads the terminal when it comes. So this dialect notes which process
group was in the foreground when a request was read, and gives a reply to nobody else: what would
reach another program is encoded as nothing, which `inband` does not send. A reply that is larger
than the program can take becomes ECLIMIT; requests beyond what may be answered become ECBUSY, and
beyond a few of those are only counted.

Used with `inband`, one for each terminal. Pure: time and the foreground are asked of others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import msgspec
from msgspec import Meta, Raw, Struct

from telex.escapes.fitting import TOO_LARGE
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.errors import Condition, Problem
from telex.rpc.messages import (
    Batch,
    Failure,
    Id,
    Malformed,
    Message,
    Notification,
    Reply,
    Request,
)
from telex.rpc.peer import MessageTooLarge
from telex.wire import json_escape, limits
from telex.wire.events import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from telex.wire.events import Fault

REFUSALS: Final = 100
"""ECBUSY and the like, a second. Whoever does not hear the first ones does not listen."""

BUSY: Final = Problem("ECBUSY", "The terminal has too much to answer. Ask again later.")
TOO_LONG: Final = Problem("ECLIMIT", "The frame is longer than this terminal reads.")

_PACKETS: Final = JsonEscapes()
_DEFAULT_SECONDS: Final = 5.0
_UNANNOUNCED: Final = limits.SENT_CONTROL_STRING_BYTES - json_escape.AROUND

_SIMPLE: Final = rb'\s*"[a-z0-9]+"\s*:\s*(?:"[^"\\]*"|[a-z0-9.]+)\s*,'
_ID: Final = rb'\s*"r(?:pc|eq)id"\s*:\s*"([A-Za-z0-9._:-]{1,64})"'
_HEAD: Final = re.compile(rb"(?:[0-9]{1,10};)?\s*\{(?:%b)*?%b" % (_SIMPLE, _ID))
"""How a packet begins whose id stands before its data: the id of one that was too long to read."""


class Allowance:
    """How much may be sent: so many a second, and as many at once after a pause. May be overdrawn,
    which then takes longer to make good."""

    def __init__(self, per_second: int) -> None:
        self._rate = per_second
        self._left = float(per_second)
        self._then = 0.0

    def spend(self, amount: int, now: float) -> None:
        self._refill(now)
        self._left -= amount

    def left(self, now: float) -> bool:
        self._refill(now)
        return self._left > 0

    def wait(self, now: float) -> float:
        """Seconds until something is left again."""
        self._refill(now)
        return max(0.0, -self._left / self._rate)

    def _refill(self, now: float) -> None:
        self._left = min(self._rate, self._left + max(0.0, now - self._then) * self._rate)
        self._then = now


@dataclass(slots=True)
class Unsaid:
    """What was not answered, and why."""

    gone: int = 0
    """Replies to a program that is no longer in the foreground."""
    busy: int = 0
    """Requests that came when there was too much to answer."""
    unread: int = 0
    """Of those, the ones that were not even told so."""
    unknown: int = 0
    """Commands that nobody here knows, and that wanted no answer."""


@dataclass(slots=True)
class _Asked:
    """A request that has no last answer yet."""

    group: int
    foreign: bool
    """Whether it is for others to answer, and none of them has said anything."""
    repeated: bool = False
    """Whether its id came once more."""


class Attentive:
    """The dialect of one terminal."""

    default_timeout: ClassVar[float | None] = _DEFAULT_SECONDS
    streams: ClassVar[bool] = True
    cancels: ClassVar[bool] = True

    def __init__(
        self,
        foreground: Callable[[], int | None],
        clock: Callable[[], float],
        has_room: Callable[[], bool],
    ) -> None:
        """`has_room` says whether more may be answered now."""
        self._foreground = foreground
        self._clock = clock
        self._has_room = has_room
        self._refusals = Allowance(REFUSALS)
        self._asked: dict[Id, _Asked] = {}
        self._spoke: int | None = None
        """Who asked last. Only they are asked and told something."""
        self.foreign: Callable[[str], bool] = lambda command: False
        """Whether a command is somebody else's: no answer in time then means that there is none."""
        self.unsaid = Unsaid()
        self._json_bytes = _UNANNOUNCED
        """The longest packet that the program takes; more only after its `detect` said so."""

    def new_id(self, count: int) -> Id:
        return _PACKETS.new_id(count)

    def asker(self, id: Id | None) -> int | None:
        """The process group that asked this; for what is not to be answered, who is there now."""
        if id is None:
            return self._foreground()
        asked = self._asked.get(id)
        return None if asked is None else asked.group

    # What a program says.

    def decode(self, body: bytes) -> Message | Malformed | Batch:
        message = _PACKETS.decode(body)
        match message:
            case Malformed(problem, Failure()):
                return message if self._may_refuse() else Malformed(problem)
            case Request():
                return self._note(message)
            case Notification(method) if self.foreign(method):
                # Others answer commands. What wants no answer they have seen, and a flood of it
                # must not take the room of what is served here.
                self.unsaid.unknown += 1
                return Malformed(Problem.of(Condition.METHOD))
            case _:
                return message

    def answer_to(self, fault: Fault) -> Failure | None:
        """Of a frame too long to read the beginning is known, and often the id in it."""
        if fault.reason is not Reason.TOO_LONG or not (found := _HEAD.match(fault.begins)):
            return None
        return Failure(found[1].decode(), TOO_LONG) if self._may_refuse() else None

    def _note(self, request: Request) -> Message | Malformed:
        if (known := self._asked.get(request.id)) is not None:
            known.repeated = True
            return request
        if not self._has_room() or len(self._asked) >= limits.CALLS_IN_FLIGHT:
            return self._refused(request)
        asker = self._foreground()
        if asker != self._spoke:
            self._spoke = asker
            self._json_bytes = _UNANNOUNCED  # what another takes is not known
        if asker is None:
            self.unsaid.gone += 1
            return Malformed(Problem.of(Condition.REQUEST, "Nobody would read the answer."))
        self._asked[request.id] = _Asked(asker, self.foreign(request.method))
        if request.method == "detect":
            self._json_bytes = _announced(request)
        seconds = _DEFAULT_SECONDS if request.timeout is None else request.timeout
        return replace(request, timeout=min(seconds, limits.ESCAPE_TIMEOUT_SECONDS))

    def _refused(self, request: Request) -> Malformed:
        self.unsaid.busy += 1
        if self._may_refuse():
            return Malformed(BUSY, Failure(request.id, BUSY))
        self.unsaid.unread += 1
        return Malformed(BUSY)

    def _may_refuse(self) -> bool:
        now = self._clock()
        if not self._refusals.left(now):
            return False
        self._refusals.spend(1, now)
        return True

    # What it is told.

    def encode(self, message: Message) -> bytes:
        """The packet; empty if there is nobody whom it should reach."""
        if isinstance(message, (Reply, Failure)) and message.id is not None:
            reader, message = self._answer(message.id, message)
        else:
            reader = self._spoke
        if reader is None or reader != self._foreground():
            self.unsaid.gone += 1
            return b""
        body = _PACKETS.encode(message)
        if json_escape.json_bytes(body) <= self._json_bytes:
            return body
        if isinstance(message, (Reply, Failure)):
            self._asked.pop(message.id or "", None)  # nothing follows this, of a stream neither
            return _PACKETS.encode(Failure(message.id, TOO_LARGE))
        raise MessageTooLarge(
            f"a packet of {len(body)} bytes; the program on this terminal takes {self._json_bytes} "
            "in a frame; send bytes as the parts of a stream"
        )

    def encode_batch(self, answers: Sequence[Message]) -> bytes:
        return _PACKETS.encode_batch(answers)

    def _answer(self, id: Id, message: Reply | Failure) -> tuple[int | None, Reply | Failure]:
        """Who should get it, and what. The last answer to a request ends what is known of it."""
        asked = self._asked.get(id)
        code = message.problem.code if isinstance(message, Failure) else None
        if asked is None or (asked.repeated and code is Condition.REQUEST):
            if asked is not None:
                asked.repeated = False
            # Refused in the turn that read it: to who is there. A reply without a request is none.
            return (None if code is None else self._foreground()), message
        if isinstance(message, Reply) and message.more:
            asked.foreign = False
            return asked.group, message
        del self._asked[id]
        if asked.foreign and code is Condition.TIMED_OUT:  # nobody knew the command
            message = Failure(id, Problem.of(Condition.METHOD))
        return asked.group, message


class _Announced(Struct):
    maxframe: Annotated[int, Meta(ge=0)] = 0


def _announced(request: Request) -> int:
    """The bytes of JSON in a frame that a program says it reads. It cannot read less than any."""
    if not isinstance(request.data, Raw):
        return _UNANNOUNCED
    try:
        said = msgspec.json.decode(request.data, type=_Announced)
    except msgspec.DecodeError:
        return _UNANNOUNCED  # not what detect takes, which its handler says
    return min(max(said.maxframe, _UNANNOUNCED), limits.CONTROL_STRING_BYTES)
