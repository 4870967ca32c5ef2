"""The in-band channel seen from the terminal, and its dialect: OSC 23198 comes in, 23199 goes out.

A demux takes control strings out of the program's output and passes them to `claimed` and `fault`;
frames that the peer sends are written to the program's input. 23199 in the output is an echo of
our own frame, and only counted.

A reply reaches the process that reads the terminal at that moment, so it is only sent while the
process group of the request is in the foreground (`TerminalDialect`). While the terminal echoes,
frames are held for a moment: a program may send a request first and switch the echo off next. Then
they are dropped, because an echo would show them to the person. Replies are limited by number, by
bytes, and by the bytes that the program leaves unread. The program's output is never blocked: it
may be the output of `cat`, which never reads a reply.

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
from telex.escapes.protocol import TOO_LARGE
from telex.rpc import limits as rpc_limits
from telex.rpc.dialects.json_escapes import JsonEscapes, WaveEscapes
from telex.rpc.errors import Condition, Problem
from telex.rpc.identity import UNKNOWN
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
from telex.terminal.pty import InputQueueFull
from telex.wire import json_escape
from telex.wire import limits as wire_limits
from telex.wire.events import Claimed, Fault, Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from telex.rpc.channel import Receiver


REFUSALS: Final = 100
"""Errors such as ECBUSY per second. A program that ignores the first ones does not read them."""

BUSY: Final = Problem("ECBUSY", "The terminal has too many requests. Try again later.")
TOO_LONG: Final = Problem("ECLIMIT", "The frame is longer than this terminal reads.")

_PACKETS: Final = JsonEscapes()
_WAVES: Final = WaveEscapes()
_DEFAULT_SECONDS: Final = 5.0
_UNANNOUNCED: Final = limits.SENT_CONTROL_STRING_BYTES - json_escape.AROUND

_SIMPLE: Final = rb'\s*"[a-z0-9]+"\s*:\s*(?:"[^"\\]*"|[a-z0-9.]+)\s*,'
_ID: Final = rb'\s*"r(?:pc|eq)id"\s*:\s*"([A-Za-z0-9._:-]{1,64})"'
_HEAD: Final = re.compile(rb"(?:[0-9]{1,10};)?\s*\{(?:%b)*?%b" % (_SIMPLE, _ID))
"""The beginning of a packet whose id stands before its data, to find the id of a packet that was
too long to read."""


class UnsizedPacket(bytes):
    """A packet that is sent without its length, in Wave's form."""


class RateAllowance:
    """Limits a rate, with one second's amount as the burst after a pause. It may be overdrawn; the
    debt then has to be refilled first.
    """

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
        """Return the seconds until the allowance is positive again."""
        self._refill(now)
        return max(0.0, -self._left / self._rate)

    def _refill(self, now: float) -> None:
        self._left = min(self._rate, self._left + max(0.0, now - self._then) * self._rate)
        self._then = now


@dataclass(slots=True)
class UnansweredCounts:
    """Counts requests and replies that were dropped, by reason."""

    gone: int = 0
    """Replies to a program that is no longer in the foreground."""
    busy: int = 0
    """Requests beyond the allowance."""
    unread: int = 0
    """Requests among these that did not even get an error."""
    unknown: int = 0
    """Unknown commands without an id."""


@dataclass(slots=True)
class _PendingRequest:
    """A request without its last reply."""

    group: int
    command: str
    foreign: bool
    """Whether the fallback serves it, and has not replied yet."""
    with_length: bool
    """Whether it had the spec's form, and not Wave's."""
    more: bool
    """Whether further parts of it will come."""
    repeated: bool = False
    """Whether another request had the same id."""


class TerminalDialect:
    """The dialect of one terminal: it tracks the requesters, and limits replies. Pure.

    It notes the foreground process group with each request. A reply that would reach another group
    is encoded as nothing, which the channel does not send. A reply larger than the program's limit
    becomes ECLIMIT. Requests beyond the allowance become ECBUSY; after many of those they are only
    counted. The reply to a request in Wave's form has Wave's form, and so has every other message
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
        """
        Args:
            foreground: Returns the foreground process group, None if it must not get replies.
            clock: Returns the time in seconds.
            has_room: Returns whether further requests may be accepted now.
        """
        self._foreground = foreground
        self._clock = clock
        self._has_room = has_room
        self._refusals = RateAllowance(REFUSALS)
        self._asked: dict[Id, _PendingRequest] = {}
        self._cut_short: OrderedDict[Id, None] = OrderedDict()
        """Requests that have their last reply, while further parts of them come."""
        self._last_asker: int | None = None
        """The process group of the last request. Requests and notifications go to it alone."""
        self.addressee: int | None = None
        """The process group for the packet that was encoded last."""
        self.with_length = True
        """Whether the last frame that was read has the spec's form, and not Wave's."""
        self._notify_with_length = True
        """The same for the last request, for messages that are not replies."""
        self.is_foreign: Callable[[str], bool] = lambda command: False
        """Whether the fallback serves a command: a timeout then means that it is unknown."""
        self.unknown_problem: Callable[[str], Problem] = lambda command: Problem.of(
            Condition.METHOD
        )
        """The error for such a command."""
        self.unanswered = UnansweredCounts()
        self._json_bytes = _UNANNOUNCED
        """The longest packet that the program reads; the default until its `detect` says more."""

    def new_id(self, count: int) -> Id:
        return _PACKETS.new_id(count)

    def asker(self, id: Id | None) -> int | None:
        """Return the process group of a request; without an id, the one in the foreground now."""
        if id is None:
            return self._foreground()
        asked = self._asked.get(id)
        return None if asked is None else asked.group

    # From the program.

    def decode(self, body: bytes) -> Message | Malformed | Batch:
        message = _PACKETS.decode(body)
        match message:
            case Request(id, _, data, more=more, datatype=hint) if id in self._cut_short:
                # A part of a finished request: it may repeat the command, and is no new request.
                return self._note_part(Part(id, data, more, hint))
            case Part():
                return self._note_part(message)
            case Cancel(id):
                self._cut_short.pop(id, None)  # no further parts come
                return message
            case Malformed(problem, Failure()):
                return message if self._may_refuse() else Malformed(problem)
            case Request():
                return self._note_request(message)
            case Notification(method) if self.is_foreign(method):
                # The fallback only replies to requests; clients have seen this notification. A
                # flood of them must not use up the room of commands that are served here.
                self.unanswered.unknown += 1
                return Malformed(Problem.of(Condition.METHOD))
            case _:
                return message

    def _note_part(self, part: Part) -> Part:
        if (asked := self._asked.get(part.id)) is not None:
            asked.more = part.more
        elif not part.more:
            self._cut_short.pop(part.id, None)
        return part

    def answer_to(self, fault: Fault) -> Failure | None:
        """Return an error for a frame that was too long, if its beginning has the id."""
        self.with_length = json_escape.has_length(fault.begins)
        if fault.reason is not Reason.TOO_LONG or not (found := _HEAD.match(fault.begins)):
            return None
        return Failure(found[1].decode(), TOO_LONG) if self._may_refuse() else None

    def _note_request(self, request: Request) -> Message | Malformed:
        if (known := self._asked.get(request.id)) is not None:
            known.repeated, known.more = True, request.more
            return request
        if not self._has_room() or len(self._asked) >= rpc_limits.CALLS_IN_FLIGHT:
            return self._refused(request)
        asker = self._foreground()
        if asker != self._last_asker:
            self._last_asker = asker
            self._json_bytes = _UNANNOUNCED  # the limit of another program is not known
        if asker is None:
            self.unanswered.gone += 1
            return Malformed(Problem.of(Condition.REQUEST, "No process would read the response."))
        self._notify_with_length = self.with_length
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

    # To the program.

    def encode(self, message: Message) -> bytes:
        """Encode a packet; empty if its addressee is not in the foreground."""
        if isinstance(message, (Reply, Failure)) and message.id is not None:
            asked = self._asked.get(message.id)
            with_length = self.with_length if asked is None else asked.with_length
            reader, message = self._address(message.id, message)
        else:
            with_length, reader = self._notify_with_length, self._last_asker
        if reader is None or reader != self._foreground():
            self.unanswered.gone += 1
            return b""
        self.addressee = reader
        body = _encoded_packet(message, with_length)
        if json_escape.json_bytes(body) <= self._json_bytes:
            return body
        if isinstance(message, (Reply, Failure)):
            self._end(message.id or "")  # this is the last reply, also of a stream
            return _encoded_packet(Failure(message.id, TOO_LARGE), with_length)
        raise MessageTooLarge(
            f"a packet has {len(body)} bytes, but the program on this terminal reads at most "
            f"{self._json_bytes} in a frame; send bytes as the parts of a stream"
        )

    def encode_batch(self, answers: Sequence[Message]) -> bytes:
        return _PACKETS.encode_batch(answers)

    def _address(self, id: Id, message: Reply | Failure) -> tuple[int | None, Reply | Failure]:
        """Return the addressee of a reply, and the reply. The last reply ends its request."""
        asked = self._asked.get(id)
        code = message.problem.code if isinstance(message, Failure) else None
        if asked is None or (asked.repeated and code is Condition.REQUEST):
            if asked is not None:
                asked.repeated = False
            # An error in the turn that read the request goes to the foreground. A result without a
            # request goes nowhere.
            return (None if code is None else self._foreground()), message
        if isinstance(message, Reply) and message.more:
            asked.foreign = False
            return asked.group, message
        self._end(id)
        if asked.foreign and code is Condition.TIMED_OUT:  # no client knew the command
            message = Failure(id, self.unknown_problem(asked.command))
        return asked.group, message

    def _end(self, id: Id) -> None:
        """Forget a request with its last reply, except that parts of it may still come."""
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
    """Return the bytes of JSON in a frame that a program reads, as announced by its `detect`."""
    if not isinstance(request.data, Raw):
        return _UNANNOUNCED
    try:
        announced = msgspec.json.decode(request.data, type=_Announced)
    except msgspec.DecodeError:
        return _UNANNOUNCED  # invalid data, for which the handler of `detect` returns an error
    return min(max(announced.maxframe, _UNANNOUNCED), wire_limits.CONTROL_STRING_BYTES)


GRACE_SECONDS: Final = 0.05
"""How long to hold a frame while the terminal echoes."""


async def _at_once() -> None:
    return


class InBandChannel:
    """The channel through one terminal, for a `Peer` with its `dialect`."""

    binary = False
    identity = UNKNOWN

    def __init__(
        self,
        write: Callable[[bytes], None],
        foreground: Callable[[], int | None],
        *,
        echoes: Callable[[], bool] = lambda: False,
        unread: Callable[[], int] = lambda: 0,
        read: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        """
        Args:
            write: Writes to the program's input.
            foreground: Returns the process group that reads it, None if it must not get replies.
            echoes: Returns whether the terminal echoes input.
            unread: Returns how many bytes of input the program has not read.
            read: Waits until the program has read all of them.
        """
        self._type, self._foreground = write, foreground
        self._echoes, self._unread, self._read = echoes, unread, read
        self._loop = asyncio.get_running_loop()
        self.dialect = TerminalDialect(foreground, self._loop.time, self._has_room)
        self.echoed = 0
        """Frames of ours that the terminal echoed."""
        self.undelivered = 0
        """Frames for a terminal that continued to echo, or whose input queue was full."""
        self.ignored = 0
        """Frames that came while the peer was paused, closed, or not yet there."""
        self._count = RateAllowance(limits.ESCAPE_REPLIES)
        self._weight = RateAllowance(limits.ESCAPE_REPLY_BYTES)
        self._held: deque[tuple[int | None, bytes]] = deque()
        self._release_timer: asyncio.TimerHandle | None = None
        self._receiver: Receiver | None = None
        self._paused = False
        self._closed = False

    # From the program.

    def claimed(self, string: Claimed) -> None:
        """Handle a control string of either number from the program's output."""
        if string.claim == json_escape.TO_PROGRAM:
            self.echoed += 1
        elif self._receiver is None or self._closed or self._paused:
            self.ignored += 1
        else:
            self.dialect.with_length = json_escape.has_length(string.body)
            self._receiver.received([json_escape.parse(string)])

    def fault(self, fault: Fault) -> None:
        """Handle a control string that was too long, or cut short."""
        if fault.claim == json_escape.TO_PROGRAM:
            self.echoed += 1
        elif self._receiver is not None and not self._closed:
            self._receiver.received([fault])

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def pause(self) -> None:
        """Drop further frames instead of buffering them; the program's output is not paused."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    # To the program.

    @property
    def unsent(self) -> int:
        held = sum([len(frame) for _, frame in self._held]) if self._held else 0
        return held + self._unread()

    def send(self, frame: bytes) -> None:
        if not frame or self._closed:  # the dialect encodes a frame without addressee as empty
            return
        length = not isinstance(frame, UnsizedPacket)
        sent = json_escape.encode(frame, json_escape.TO_PROGRAM, length=length)
        now = self._loop.time()
        self._count.spend(1, now)
        self._weight.spend(len(sent), now)
        addressee = self.dialect.addressee
        if self._held or self._echoes():
            self._hold(addressee, sent)
        else:
            self._write(addressee, sent)

    def _write(self, addressee: int | None, sent: bytes) -> None:
        """Write a frame if its program is still in the foreground. This is checked after the echo:
        a program may end in between, and then it was the shell that switched the echo off."""
        if addressee is None or addressee != self._foreground():
            self.undelivered += 1
            return
        try:
            self._type(sent)
        except InputQueueFull:
            self.undelivered += 1

    async def drained(self) -> None:
        """Wait until more may be sent. A stream waits here, so that it is paced and never cut."""
        if self._unread() > limits.ESCAPE_UNREAD_BYTES:
            await self._read()
        now = self._loop.time()
        if (pause := max(self._count.wait(now), self._weight.wait(now))) > 0:
            await asyncio.sleep(pause)  # this sleep enforces the rate

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

    def _hold(self, addressee: int | None, sent: bytes) -> None:
        if self.unsent > limits.ESCAPE_UNREAD_BYTES:
            self.undelivered += 1
            return
        self._held.append((addressee, sent))
        if self._release_timer is None:
            self._release_timer = self._loop.call_later(GRACE_SECONDS, self._release)

    def _release(self) -> None:
        """Write held frames to their programs, if these are in the foreground without echo."""
        self._release_timer = None
        reader = self._foreground()
        echoes = self._echoes()
        while self._held:
            addressee, sent = self._held.popleft()
            if addressee == reader and not echoes:
                self._write(addressee, sent)
            else:
                self.undelivered += 1
