"""Pages, from the terminal's side: where a program's connection begins, and where it ends.

One for each terminal. It is given the chunks that the program printed, makes a connection of them
and offers it: `opened` is called with an `Offer`, which is accepted or refused. Until it is
accepted not a byte goes to the program.

A connection begins with a chunk that opens with SETTINGS (`announcement`), printed while a program
other than an idle shell is in the foreground of a terminal that neither echoes nor edits lines;
`cat` of a hostile file is not. All other chunks are swallowed and counted. It ends with GOAWAY,
with the terminal, when those of the process group that announced it are gone, when the framing is
broken, and, if somebody elsewhere or on a terminal within this one serves it, when a PING is not
answered. From then on nothing is written but our GOAWAY, if it is HTTP/2 that was broken, and not
for long. What was written and not read is thrown away then, and when they go or stop: else a shell
would find it, or a question that the program asks its person.

At one time there is one connection, as the spec has it. Another begins in its place when it has
said GOAWAY, when somebody else is in the foreground, or when a PING waits for its answer: that is a
program started anew on another machine.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from telex.escapes.foreground import answerable
from telex.htty.announcement import Leaving, opens
from telex.htty.carried import LOOK_SECONDS, Carried, listens
from telex.htty.carrier import Aborted, Receiver
from telex.htty.connection import Side
from telex.htty.errors import ConnectionOver
from telex.htty.frames import HEADER_BYTES
from telex.htty.http2 import Http2
from telex.htty.members import Members
from telex.processes import proc
from telex.processes.group_exit import gone
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from telex.htty.carried import Line
    from telex.wire.events import Claimed, Fault

_PING_BYTES: Final = HEADER_BYTES + 8
FRESH_SECONDS: Final = 1.0
"""What was written so long ago a program that reads has read."""


class Offer:
    """A program's connection, which somebody may accept."""

    def __init__(
        self,
        line: Line,
        group: int,
        gone: Callable[[Offer], None],
        lost: Callable[[Offer], None],
        written: Callable[[bytes], None] | None = None,
        *,
        eager: bool = False,
    ) -> None:
        """`gone` is called when the program is, `lost` when it left the foreground with something
        unread."""
        self.group: Final = group
        """The process group that announced it."""
        self._gone = gone
        self.members = Members(group, partial(gone, self))
        self.carried = Carried(line, group, self._alive, partial(lost, self), written)
        self.http = Http2(self.carried, Side.CLIENT)
        self.receiver = Receiver()
        self.leaving = Leaving()
        self.announced = False
        """Whether its SETTINGS came."""
        self.asked = False
        """Whether a PING waits for its answer."""
        self.sentence: str | None = None
        """How it ended, once it has."""
        self.faulty = False
        """Whether it ended as none should."""
        if eager:
            self.receiver.answering = True
            self.carried.permit()

    def look_again(self) -> None:
        """At who is there, now that it is known that one of them serves the page."""
        self.members.close()
        self.members = Members(self.group, partial(self._gone, self))

    def _alive(self) -> bool:
        return self.members.alive()


class TerminalSide:
    """One terminal's. Close it before the terminal."""

    def __init__(
        self,
        line: Line,
        opened: Callable[[Offer], None],
        ended: Callable[[Offer], None],
        *,
        eager: bool = False,
        written: Callable[[bytes], None] | None = None,
    ) -> None:
        """`written` is told each chunk that goes to a program."""
        self._line = line
        self._opened, self._ended, self._written = opened, ended, written
        self._loop = asyncio.get_running_loop()
        self._offer: Offer | None = None
        self._beginning = b""
        """Too little to tell whether it begins a connection."""
        self.swallowed = 0
        """Chunks that belonged to no connection, and broken ones."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: Offer | None = None
        """The latest, ended or not."""
        self._groups: set[int] = set()
        """Whose end is waited for."""
        self._tried: tuple[int, int | None] | None = None
        if eager:
            self._start(self._look_for_servers())

    # What the program prints.

    def chunk(self, event: Claimed | Fault) -> None:
        """A chunk, or what was to be one."""
        if self._offer is None:
            self._outside(event)
        else:
            self._inside(self._offer, event)

    def stir(self) -> None:
        """Something was printed or typed."""
        if self._last is not None:
            self._last.carried.stir()

    def _outside(self, event: Claimed | Fault) -> None:
        """Between two connections nothing is broken off by a fault: there is nothing."""
        data = Receiver().take(event)
        if not isinstance(data, bytes):
            self.swallowed += 1
            return
        begun = self._beginning + data
        if not opens(begun):
            self.swallowed += 1 + bool(self._beginning)
            begun = data if opens(data) else b""
        self._beginning = begun if len(begun) < HEADER_BYTES else b""
        if len(begun) >= HEADER_BYTES:
            self._begin(begun)

    def _begin(self, data: bytes) -> None:
        group = answerable(self._line.foreground())
        if group is None or not listens(self._line, group):
            self.swallowed += 1
            return
        offer = self._offered(group)
        offer.receiver.begun = True
        self._take(offer, data)

    def _inside(self, offer: Offer, event: Claimed | Fault) -> None:
        match offer.receiver.take(event):
            case Aborted(sentence):
                self._end(offer, sentence, faulty=True)
            case bytes(data) if self._is_anew(offer, data):
                self._end(offer, "another program took its place")
                self._begin(data)
            case bytes(data):
                self._take(offer, data)
            case None:
                self.swallowed += 1

    def _is_anew(self, offer: Offer, data: bytes) -> bool:
        """A server may send SETTINGS again: there must be a reason to take them for another's."""
        if not offer.leaving.between or len(data) < HEADER_BYTES or not opens(data):
            return False
        return offer.leaving.seen or offer.asked or self._line.foreground() != offer.group

    def _take(self, offer: Offer, data: bytes) -> None:
        offer.leaving.feed(data)
        if offer.leaving.seen:
            offer.carried.mute()
        if not offer.carried.feed(data):
            self._end(offer, "the page's program sent more than it may", faulty=True)
        elif not offer.announced and data:
            offer.announced = True
            if offer.receiver.answering:  # before, there may have been none but a shell
                offer.look_again()
            self._opened(offer)

    # Beginnings and ends.

    def _offered(self, group: int, *, eager: bool = False) -> Offer:
        if self._last is not None:
            self._last.carried.abort()
            self._last.members.close()
        offer = Offer(self._line, group, self._gone, self._lost, self._written, eager=eager)
        self._offer = self._last = offer
        self._start(self._run(offer))
        if group not in self._groups:
            self._groups.add(group)
            self._start(self._until_gone(group))
        return offer

    def accept(self, offer: Offer, *, remote: bool) -> None:
        """Let it begin. Of a program on another machine (`remote`), or on another terminal, the end
        is not seen here: so it is asked whether it is there."""
        offer.carried.permit()
        if remote or offer.members.relays:
            self._start(self._ask_again(offer))

    def refuse(self, offer: Offer) -> None:
        """Nobody wants it. Nothing is said to the program, which may be none."""
        self._end(offer, "the page was not wanted")

    def hang_up(self) -> None:
        """The terminal has ended, and what was on it is over."""
        if self._offer is not None:
            self._end(self._offer, "the terminal ended")

    def _end(
        self, offer: Offer, sentence: str, *, faulty: bool = False, last_words: bool = False
    ) -> None:
        """`last_words` may be on their way still."""
        if offer.sentence is not None:
            return
        offer.sentence, offer.faulty = sentence, faulty
        if not last_words:
            offer.carried.abort()
        if self._offer is offer:
            self._offer = None
        if offer.announced or faulty:
            self._ended(offer)

    async def _run(self, offer: Offer) -> None:
        ended = await offer.http.run()
        self._end(offer, ended.sentence, faulty=not ended.graceful, last_words=True)
        await offer.carried.closed()

    async def _until_gone(self, group: int) -> None:
        await gone(group)
        self._groups.remove(group)
        if self._last is not None and self._last.group == group:
            self._gone(self._last)

    def _lost(self, offer: Offer) -> None:
        sentence = "the page's program left the terminal before it had read what was said to it"
        self._end(offer, sentence, faulty=True)

    def _gone(self, offer: Offer) -> None:
        """What the program has not read must not be read by who comes after it."""
        if offer is not self._last:
            return
        wrote = offer.carried.last_write
        abrupt = offer.sentence is None
        # Before anything else: the shell was told at the same time as we, and goes to its prompt.
        if wrote is not None and (abrupt or self._loop.time() - wrote < FRESH_SECONDS):
            offer.carried.last_write = None
            self._line.discard()
            offer.carried.abort()
        self._end(offer, "the program that served the page has ended")

    async def _ask_again(self, offer: Offer) -> None:
        """With a PING, while something is said to it: without, one would type at a shell there."""
        heard = 0
        while offer.sentence is None:
            await asyncio.sleep(limits.HTTY_PING_SECONDS)
            carried = offer.carried
            # If something waits, it is not in the foreground, or does not read.
            if carried.written == heard or carried.waiting:
                continue
            heard = carried.written + _PING_BYTES
            offer.asked = True
            hold = self._loop.call_later(limits.HTTY_PING_SECONDS, setattr, carried, "held", True)
            try:
                async with asyncio.timeout(limits.HTTY_PONG_SECONDS):
                    await offer.http.ping()
            except TimeoutError:
                if not self._line.paused and listens(self._line, offer.group):
                    self._end(offer, "the page's program does not answer any more", faulty=True)
            except ConnectionOver:
                return
            finally:
                hold.cancel()
                offer.asked = carried.held = False

    async def _look_for_servers(self) -> None:
        """Those that wait to be spoken to say nothing that could be an event."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            group, offer = answerable(self._line.foreground()), self._offer
            if group is None or not listens(self._line, group) or (offer and offer.announced):
                continue
            tried, self._tried = self._tried, (group, proc.started(group))
            if self._tried != tried:
                if offer is not None:
                    self._end(offer, "it was no server")
                self._offered(group, eager=True)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """The terminal ends, and with it the connection: nothing more is said to the program."""
        self.hang_up()
        if self._last is not None:
            self._last.carried.abort()
            self._last.members.close()
        for task in [*self._tasks]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
