"""The in-band channel seen from the terminal, and its dialect: 23198 comes in, 23199 goes out.

A demux takes control strings out of the program's output and hands them to `claimed` and `fault`;
frames that the peer sends are typed into the program's input. 23199 in the output is an echo of
ours, and only counted.

A reply goes to whatever process reads the terminal at that moment, so it is only sent while the
process group that asked is in the foreground (`TerminalDialect`). While the terminal echoes, frames
are held for a moment, in which a program that asks first and turns the echo off next can do so;
then they are dropped, because an echo would show them to the person. Replies are limited by number,
by weight, and by what the program leaves unread. The program's output is never held up: it may be
the output of `cat`, which never reads an answer.

    inband = InBandChannel(pty.write, pty.foreground)
    peer = Peer(inband, inband.dialect, service.methods)

Used by `session_responder` and by `passthrough`.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import msgspec
from msgspec import Meta, Raw, Struct

from telex.escapes import limits
from telex.escapes.program_dialect import TOO_LARGE
from telex.rpc import limits as rpc_limits
from telex.rpc.dialects.json_escapes import JsonEscapes, WaveEscapes
from telex.rpc.errors import Condition, Problem
from telex.rpc.messages import (
    Batch,
    Cancel,
    Failure,
    Id,
    Malformed,
    Message,
    Notification,
    Part,
    Reply,
    Request,
)
from telex.rpc.peer import MessageTooLarge
from telex.wire import json_escape
from telex.wire import limits as wire_limits
from telex.wire.events import Claimed, Fault, Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from telex.rpc.channel import Receiver
    from telex.wire.events import Fault


REFUSALS: Final = 100
"""ECBUSY and the like, a second. Whoever does not hear the first ones does not listen."""

BUSY: Final = Problem("ECBUSY", "The terminal has too much to answer. Ask again later.")
TOO_LONG: Final = Problem("ECLIMIT", "The frame is longer than this terminal reads.")

_PACKETS: Final = JsonEscapes()
_WAVES: Final = WaveEscapes()
_DEFAULT_SECONDS: Final = 5.0
_UNANNOUNCED: Final = limits.SENT_CONTROL_STRING_BYTES - json_escape.AROUND

_SIMPLE: Final = rb'\s*"[a-z0-9]+"\s*:\s*(?:"[^"\\]*"|[a-z0-9.]+)\s*,'
_ID: Final = rb'\s*"r(?:pc|eq)id"\s*:\s*"([A-Za-z0-9._:-]{1,64})"'
_HEAD: Final = re.compile(rb"(?:[0-9]{1,10};)?\s*\{(?:%b)*?%b" % (_SIMPLE, _ID))
"""How a packet begins whose id stands before its data: the id of one that was too long to read."""


class UnsizedPacket(bytes):
    """A packet that is sent without its length, as Wave has it."""


class RateAllowance:
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
class UnansweredCounts:
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
class _PendingRequest:
    """A request that has no last answer yet."""

    group: int
    command: str
    foreign: bool
    """Whether it is for others to answer, and none of them has said anything."""
    with_length: bool
    """Whether it had the spec's form, and not Wave's."""
    more: bool
    """Whether parts of it are still to come."""
    repeated: bool = False
    """Whether its id came once more."""


class TerminalDialect:
    """The dialect of one terminal: who asked what, and how much may be answered. Pure.

    It notes the foreground process group with each request, and encodes a reply that would reach
    another group as nothing, which the channel does not send. A reply larger than the program can
    take becomes ECLIMIT. Requests beyond the allowance become ECBUSY, and beyond a few of those are
    only counted. A request in Wave's form is answered in it, and so is everything else that is sent
    to the program that last used it.
    """

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
        self._refusals = RateAllowance(REFUSALS)
        self._asked: dict[Id, _PendingRequest] = {}
        self._cut_short: OrderedDict[Id, None] = OrderedDict()
        """Requests with their last answer, of which further parts come."""
        self._spoke: int | None = None
        """Who asked last. Only they are asked and told something."""
        self.with_length = True
        """Whether the frame that is read now, or was last, has the spec's form, and not Wave's."""
        self._told_with_length = True
        """The same of the last request, by whose form its asker is told what it did not ask."""
        self.is_foreign: Callable[[str], bool] = lambda command: False
        """Whether a command is somebody else's: no answer in time then means that there is none."""
        self.unknown_problem: Callable[[str], Problem] = lambda command: Problem.of(
            Condition.METHOD
        )
        """What is then answered."""
        self.unanswered = UnansweredCounts()
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
            case Request(id, _, data, more=more, datatype=hint) if id in self._cut_short:
                # Of one that is over: it may say the command again, and is no new request for it.
                return self._followed(Part(id, data, more, hint))
            case Part():
                return self._followed(message)
            case Cancel(id):
                self._cut_short.pop(id, None)  # nothing more comes
                return message
            case Malformed(problem, Failure()):
                return message if self._may_refuse() else Malformed(problem)
            case Request():
                return self._note(message)
            case Notification(method) if self.is_foreign(method):
                # Others answer commands. What wants no answer they have seen, and a flood of it
                # must not take the room of what is served here.
                self.unanswered.unknown += 1
                return Malformed(Problem.of(Condition.METHOD))
            case _:
                return message

    def _followed(self, part: Part) -> Part:
        if (asked := self._asked.get(part.id)) is not None:
            asked.more = part.more
        elif not part.more:
            self._cut_short.pop(part.id, None)
        return part

    def answer_to(self, fault: Fault) -> Failure | None:
        """Of a frame too long to read the beginning is known, and often the id in it."""
        self.with_length = json_escape.has_length(fault.begins)
        if fault.reason is not Reason.TOO_LONG or not (found := _HEAD.match(fault.begins)):
            return None
        return Failure(found[1].decode(), TOO_LONG) if self._may_refuse() else None

    def _note(self, request: Request) -> Message | Malformed:
        if (known := self._asked.get(request.id)) is not None:
            known.repeated, known.more = True, request.more
            return request
        if not self._has_room() or len(self._asked) >= rpc_limits.CALLS_IN_FLIGHT:
            return self._refused(request)
        asker = self._foreground()
        if asker != self._spoke:
            self._spoke = asker
            self._json_bytes = _UNANNOUNCED  # what another takes is not known
        if asker is None:
            self.unanswered.gone += 1
            return Malformed(Problem.of(Condition.REQUEST, "Nobody would read the answer."))
        self._told_with_length = self.with_length
        self._asked[request.id] = _PendingRequest(
            asker,
            request.method,
            self.is_foreign(request.method),
            self.with_length,
            request.more,
        )
        if request.method == "detect":
            self._json_bytes = _announced(request)
        seconds = _DEFAULT_SECONDS if request.timeout is None else request.timeout
        return replace(request, timeout=min(seconds, limits.ESCAPE_TIMEOUT_SECONDS))

    def _refused(self, request: Request) -> Malformed:
        self.unanswered.busy += 1
        if self._may_refuse():
            return Malformed(BUSY, Failure(request.id, BUSY))
        self.unanswered.unread += 1
        return Malformed(BUSY)

    def _may_refuse(self) -> bool:
        now = self._clock()
        if not self._refusals.left(now):
            return False
        self._refusals.spend(1, now)
        return True

    # What goes to the program.

    def encode(self, message: Message) -> bytes:
        """The packet; empty if there is nobody whom it should reach."""
        if isinstance(message, (Reply, Failure)) and message.id is not None:
            asked = self._asked.get(message.id)
            with_length = self.with_length if asked is None else asked.with_length
            reader, message = self._answer(message.id, message)
        else:
            with_length, reader = self._told_with_length, self._spoke
        if reader is None or reader != self._foreground():
            self.unanswered.gone += 1
            return b""
        body = _encoded_packet(message, with_length)
        if json_escape.json_bytes(body) <= self._json_bytes:
            return body
        if isinstance(message, (Reply, Failure)):
            self._end(message.id or "")  # nothing follows this, of a stream neither
            return _encoded_packet(Failure(message.id, TOO_LARGE), with_length)
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
        self._end(id)
        if asked.foreign and code is Condition.TIMED_OUT:  # nobody knew the command
            message = Failure(id, self.unknown_problem(asked.command))
        return asked.group, message

    def _end(self, id: Id) -> None:
        """The last answer goes out."""
        asked = self._asked.pop(id, None)
        if asked is not None and asked.more:
            self._cut_short[id] = None
            if len(self._cut_short) > rpc_limits.IDS_REMEMBERED:
                self._cut_short.popitem(last=False)


def _encoded_packet(message: Message, with_length: bool) -> bytes:
    if with_length:
        return _PACKETS.encode(message)
    return UnsizedPacket(json_escape.printable(_WAVES.encode(message)))


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
    return min(max(said.maxframe, _UNANNOUNCED), wire_limits.CONTROL_STRING_BYTES)


GRACE_SECONDS: Final = 0.05
"""How long a frame waits for the terminal to stop echoing."""


async def _at_once() -> None:
    return


class InBandChannel:
    """The channel of one terminal. Its peer is made with `dialect`."""

    binary = False

    def __init__(
        self,
        write: Callable[[bytes], None],
        foreground: Callable[[], int | None],
        *,
        echoes: Callable[[], bool] = lambda: False,
        unread: Callable[[], int] = lambda: 0,
        read: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        """`write` types into the program, and `foreground` says which process group reads that,
        None if it is none that should be answered. `echoes` says whether the terminal shows what is
        typed, `unread` how many typed bytes wait for the program, and `read` waits until none do.
        """
        self._write, self._foreground = write, foreground
        self._echoes, self._unread, self._read = echoes, unread, read
        self._loop = asyncio.get_running_loop()
        self.dialect = TerminalDialect(foreground, self._loop.time, self._has_room)
        self.echoed = 0
        """Frames of ours that came back."""
        self.undelivered = 0
        """Frames for a terminal that went on echoing."""
        self.ignored = 0
        """Frames that came when there was no room for what they ask, or nobody to serve them."""
        self._count = RateAllowance(limits.ESCAPE_REPLIES)
        self._weight = RateAllowance(limits.ESCAPE_REPLY_BYTES)
        self._held: deque[tuple[int | None, bytes]] = deque()
        self._release_timer: asyncio.TimerHandle | None = None
        self._receiver: Receiver | None = None
        self._paused = False
        self._closed = False

    # What the program says.

    def claimed(self, string: Claimed) -> None:
        """A control string of either number, from the program's output."""
        if string.claim == json_escape.TO_PROGRAM:
            self.echoed += 1
        elif self._receiver is None or self._closed or self._paused:
            self.ignored += 1
        else:
            self.dialect.with_length = json_escape.has_length(string.body)
            self._receiver.received([json_escape.parse(string)])

    def fault(self, fault: Fault) -> None:
        """A control string that was too long, or cut short."""
        if fault.claim == json_escape.TO_PROGRAM:
            self.echoed += 1
        elif self._receiver is not None and not self._closed:
            self._receiver.received([fault])

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def pause(self) -> None:
        """What comes now is not served, rather than kept, and the program is not held up."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    # What goes to the program.

    @property
    def unsent(self) -> int:
        held = sum([len(frame) for _, frame in self._held]) if self._held else 0
        return held + self._unread()

    def send(self, frame: bytes) -> None:
        if not frame or self._closed:  # empty is what the dialect makes of what reaches nobody
            return
        length = not isinstance(frame, UnsizedPacket)
        sent = json_escape.encode(frame, json_escape.TO_PROGRAM, length=length)
        now = self._loop.time()
        self._count.spend(1, now)
        self._weight.spend(len(sent), now)
        if self._held or self._echoes():
            self._hold(sent)
        else:
            self._write(sent)

    async def drained(self) -> None:
        """Until more may be sent. A stream waits here, so that it is paced and never cut."""
        if self._unread() > limits.ESCAPE_UNREAD_BYTES:
            await self._read()
        now = self._loop.time()
        if (pause := max(self._count.wait(now), self._weight.wait(now))) > 0:
            await asyncio.sleep(pause)  # the rate is the point

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._held.clear()
        if self._release_timer is not None:
            self._release_timer.cancel()
        if self._receiver is not None:
            self._receiver.lost("closed here")

    def _has_room(self) -> bool:
        now = self._loop.time()
        allowed = self._count.left(now) and self._weight.left(now)
        return allowed and self.unsent <= limits.ESCAPE_UNREAD_BYTES

    def _hold(self, sent: bytes) -> None:
        if self.unsent > limits.ESCAPE_UNREAD_BYTES:
            self.undelivered += 1
            return
        self._held.append((self._foreground(), sent))
        if self._release_timer is None:
            self._release_timer = self._loop.call_later(GRACE_SECONDS, self._release)

    def _release(self) -> None:
        """To the program for which it was held, if that still is there and does not echo now."""
        self._release_timer = None
        reader = None if self._echoes() else self._foreground()
        while self._held:
            meant, sent = self._held.popleft()
            if reader is not None and meant == reader:
                self._write(sent)
            else:
                self.undelivered += 1
