"""Pages, from the terminal's side: where a program's connection begins, and where it ends.

One for each terminal. It is given the chunks that the program printed, makes a connection of them
and offers it: `opened` is called with an `Offer`, which is accepted or refused. Until it is
accepted not a byte goes to the program.

A connection begins with a chunk that opens with SETTINGS (`chunk_stream`), printed while a program
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

from telex.htty import limits
from telex.htty.chunk_stream import ChunkReceiver, GoAwayWatch, StreamAborted, begins_connection
from telex.htty.errors import ConnectionOver
from telex.htty.h2.http2_connection import Http2Connection
from telex.htty.h2.http2_frames import HEADER_BYTES
from telex.htty.h2.http2_state import Http2Side
from telex.htty.process_group import ProcessGroup
from telex.htty.tty_writer import LOOK_SECONDS, TtyWriter, reads_raw_input
from telex.processes import proc
from telex.processes.group_exit import gone
from telex.processes.proc import answerable_group

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from telex.htty.tty_writer import PtyLike
    from telex.wire.events import Claimed, Fault

_PING_BYTES: Final = HEADER_BYTES + 8
FRESH_SECONDS: Final = 1.0
"""What was written so long ago a program that reads has read."""


class Offer:
    """A program's connection, which somebody may accept."""

    def __init__(
        self,
        pty: PtyLike,
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
        self.process_group = ProcessGroup(group, partial(gone, self))
        self.writer = TtyWriter(pty, group, self._alive, partial(lost, self), written)
        self.http = Http2Connection(self.writer, Http2Side.CLIENT)
        self.receiver = ChunkReceiver()
        self.goaway = GoAwayWatch()
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
            self.writer.allow_writes()

    def refresh_process_group(self) -> None:
        """At who is there, now that it is known that one of them serves the page."""
        self.process_group.close()
        self.process_group = ProcessGroup(self.group, partial(self._gone, self))

    def _alive(self) -> bool:
        return self.process_group.alive()


class HttyClient:
    """One terminal's. Close it before the terminal."""

    def __init__(
        self,
        pty: PtyLike,
        opened: Callable[[Offer], None],
        ended: Callable[[Offer], None],
        *,
        eager: bool = False,
        written: Callable[[bytes], None] | None = None,
    ) -> None:
        """`written` is told each chunk that goes to a program."""
        self._pty = pty
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

    def receive_chunk(self, event: Claimed | Fault) -> None:
        """A chunk, or what was to be one."""
        if self._offer is None:
            self._outside(event)
        else:
            self._inside(self._offer, event)

    def poke(self) -> None:
        """Something was printed or typed."""
        if self._last is not None:
            self._last.writer.poke()

    def _outside(self, event: Claimed | Fault) -> None:
        """Between two connections nothing is broken off by a fault: there is nothing."""
        data = ChunkReceiver().take(event)
        if not isinstance(data, bytes):
            self.swallowed += 1
            return
        begun = self._beginning + data
        if not begins_connection(begun):
            self.swallowed += 1 + bool(self._beginning)
            begun = data if begins_connection(data) else b""
        self._beginning = begun if len(begun) < HEADER_BYTES else b""
        if len(begun) >= HEADER_BYTES:
            self._begin(begun)

    def _begin(self, data: bytes) -> None:
        group = answerable_group(self._pty.foreground())
        if group is None or not reads_raw_input(self._pty, group):
            self.swallowed += 1
            return
        offer = self._offered(group)
        offer.receiver.begun = True
        self._take(offer, data)

    def _inside(self, offer: Offer, event: Claimed | Fault) -> None:
        match offer.receiver.take(event):
            case StreamAborted(sentence):
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
        if not offer.goaway.between or len(data) < HEADER_BYTES or not begins_connection(data):
            return False
        return offer.goaway.seen or offer.asked or self._pty.foreground() != offer.group

    def _take(self, offer: Offer, data: bytes) -> None:
        offer.goaway.feed(data)
        if offer.goaway.seen:
            offer.writer.mute()
        if not offer.writer.feed(data):
            self._end(offer, "the page's program sent more than it may", faulty=True)
        elif not offer.announced and data:
            offer.announced = True
            if offer.receiver.answering:  # before, there may have been none but a shell
                offer.refresh_process_group()
            self._opened(offer)

    # Beginnings and ends.

    def _offered(self, group: int, *, eager: bool = False) -> Offer:
        if self._last is not None:
            self._last.writer.abort()
            self._last.process_group.close()
        offer = Offer(self._pty, group, self._gone, self._lost, self._written, eager=eager)
        self._offer = self._last = offer
        self._start(self._run(offer))
        if group not in self._groups:
            self._groups.add(group)
            self._start(self._until_gone(group))
        return offer

    def accept(self, offer: Offer, *, remote: bool) -> None:
        """Let it begin. Of a program on another machine (`remote`), or on another terminal, the end
        is not seen here: so it is asked whether it is there."""
        offer.writer.allow_writes()
        if remote or offer.process_group.relays:
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
            offer.writer.abort()
        if self._offer is offer:
            self._offer = None
        if offer.announced or faulty:
            self._ended(offer)

    async def _run(self, offer: Offer) -> None:
        ended = await offer.http.run()
        self._end(offer, ended.sentence, faulty=not ended.graceful, last_words=True)
        await offer.writer.closed()

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
        wrote = offer.writer.last_write
        abrupt = offer.sentence is None
        # Before anything else: the shell was told at the same time as we, and goes to its prompt.
        if wrote is not None and (abrupt or self._loop.time() - wrote < FRESH_SECONDS):
            offer.writer.last_write = None
            self._pty.discard()
            offer.writer.abort()
        self._end(offer, "the program that served the page has ended")

    async def _ask_again(self, offer: Offer) -> None:
        """With a PING, while something is said to it: without, one would type at a shell there."""
        sent_before = 0
        while offer.sentence is None:
            await asyncio.sleep(limits.HTTY_PING_SECONDS)
            writer = offer.writer
            # If something waits, it is not in the foreground, or does not read.
            if writer.written == sent_before or writer.waiting:
                continue
            sent_before = writer.written + _PING_BYTES
            offer.asked = True
            hold = self._loop.call_later(limits.HTTY_PING_SECONDS, setattr, writer, "held", True)
            try:
                async with asyncio.timeout(limits.HTTY_PONG_SECONDS):
                    await offer.http.ping()
            except TimeoutError:
                if not self._pty.paused and reads_raw_input(self._pty, offer.group):
                    self._end(offer, "the page's program does not answer any more", faulty=True)
            except ConnectionOver:
                return
            finally:
                hold.cancel()
                offer.asked = writer.held = False

    async def _look_for_servers(self) -> None:
        """Those that wait to be spoken to say nothing that could be an event."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            group, offer = answerable_group(self._pty.foreground()), self._offer
            if (
                group is None
                or not reads_raw_input(self._pty, group)
                or (offer and offer.announced)
            ):
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
            self._last.writer.abort()
            self._last.process_group.close()
        for task in [*self._tasks]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
