"""Pages, from the terminal's side: where a program's connection begins, and where it ends.

There is one `HttyClient` for each terminal. It gets the chunks that the program printed, builds a
connection from them, and offers it: `opened` is called with an `Offer`, which is accepted or
refused.

Theory. Any program can print a chunk, and every byte that is written to the terminal is typed into
whatever program reads it. So a connection goes through these states, and only one of them writes:

- None. Chunks are dropped and counted. A connection begins with a chunk that opens with SETTINGS
  (`chunk_stream`), printed while a program other than an idle shell is in the foreground of a
  terminal that neither echoes nor edits lines; `cat` of a hostile file does not meet that.
- Offered. `opened` was called; no byte is written to the program. (With `eager`, HTTP/2 begins
  before that, for servers that wait for the client's preface.)
- Accepted (`accept`). HTTP/2 runs, and `TtyWriter` writes while the program reads. If the program
  is on another machine, or on a terminal inside this one, its exit cannot be seen here, so PINGs
  check whether it is alive.
- Ended (`Offer.sentence`). It ends with GOAWAY, with the terminal, when the processes of the group
  that announced it have exited, when the framing is broken, or when a PING is not answered. From
  then on nothing is written, except our own GOAWAY if HTTP/2 itself was violated, for a short time.

Bytes that were written and not read are discarded at the end, and whenever the program exits or
stops: otherwise a shell would read them, or a prompt of the program.

There is one connection at a time, as the spec requires. Another begins in its place when it has
sent GOAWAY, when another program is in the foreground, or while a PING waits for its answer: then
a program was restarted on another machine.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING, Final

from telex.htty import limits
from telex.htty.chunk_stream import ChunkReceiver, GoAwayWatch, StreamAborted, begins_connection
from telex.htty.errors import ConnectionOver
from telex.htty.h2.http2_connection import Http2Connection
from telex.htty.h2.http2_frames import HEADER_BYTES
from telex.htty.h2.http2_state import Http2Side
from telex.htty.tty_writer import POLL_SECONDS, TtyWriter, reads_raw_input
from telex.processes import proc
from telex.processes.child import group_gone
from telex.processes.proc import answerable_group

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from telex.processes.tree import Process
    from telex.terminal.pty import Pty
    from telex.wire.events import Claimed, Fault

_PING_BYTES: Final = HEADER_BYTES + 8
FRESH_SECONDS: Final = 1.0
"""A program that reads has read everything that was written longer ago."""


class Offer:
    """A program's connection, which can be accepted or refused."""

    def __init__(
        self,
        pty: Pty,
        group: int,
        gone: Callable[[Offer], None],
        lost: Callable[[Offer], None],
        written: Callable[[bytes], None] | None = None,
        *,
        eager: bool = False,
    ) -> None:
        """Begin the connection.

        Args:
            gone: Called when the program has exited.
            lost: Called when the program left the foreground with unread bytes.
            written: Called with each chunk that is written to the program.
            eager: Write before the program has announced a page.
        """
        self.group: Final = group
        """The process group that announced the connection."""
        self._gone = gone
        self.process_group = ProcessGroup(group, partial(gone, self))
        self.writer = TtyWriter(pty, group, self._alive, partial(lost, self), written)
        self.http = Http2Connection(self.writer, Http2Side.CLIENT)
        self.receiver = ChunkReceiver()
        self.goaway = GoAwayWatch()
        self.announced = False
        """Whether its SETTINGS were received."""
        self.pinged = False
        """Whether a PING waits for its answer."""
        self.sentence: str | None = None
        """How it ended, once it has."""
        self.faulty = False
        """Whether it ended with an error."""
        if eager:
            self.receiver.answering = True
            self.writer.allow_writes()

    def refresh_process_group(self) -> None:
        """Watch the processes that exist now, when one of them is known to serve the page."""
        self.process_group.close()
        self.process_group = ProcessGroup(self.group, partial(self._gone, self))

    def _alive(self) -> bool:
        return self.process_group.alive()


class HttyClient:
    """The pages of one terminal. Close it before the terminal."""

    def __init__(
        self,
        pty: Pty,
        opened: Callable[[Offer], None],
        ended: Callable[[Offer], None],
        *,
        eager: bool = False,
        written: Callable[[bytes], None] | None = None,
    ) -> None:
        """Begin to accept chunks. `written` is called with each chunk that is sent to a program."""
        self._pty = pty
        self._opened, self._ended, self._written = opened, ended, written
        self._loop = asyncio.get_running_loop()
        self._offer: Offer | None = None
        self._beginning = b""
        """Bytes that are too few to decide whether they begin a connection."""
        self.dropped = 0
        """Dropped chunks: outside any connection, or broken."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: Offer | None = None
        """The latest offer, ended or not."""
        self._groups: set[int] = set()
        """The process groups whose end is awaited."""
        self._tried: tuple[int, int | None] | None = None
        if eager:
            self._start(self._find_servers())

    # From the program

    def receive_chunk(self, event: Claimed | Fault) -> None:
        """Handle a chunk, or a faulty one."""
        if self._offer is None:
            self._outside(event)
        else:
            self._inside(self._offer, event)

    def poke(self) -> None:
        """Check the foreground after something was printed or typed."""
        if self._last is not None:
            self._last.writer.poke()

    def _outside(self, event: Claimed | Fault) -> None:
        """Handle a chunk between two connections, where a fault has nothing to abort."""
        data = ChunkReceiver().take(event)
        if not isinstance(data, bytes):
            self.dropped += 1
            return
        begun = self._beginning + data
        if not begins_connection(begun):
            self.dropped += 1 + bool(self._beginning)
            begun = data if begins_connection(data) else b""
        self._beginning = begun if len(begun) < HEADER_BYTES else b""
        if len(begun) >= HEADER_BYTES:
            self._begin(begun)

    def _begin(self, data: bytes) -> None:
        group = answerable_group(self._pty.foreground())
        if group is None or not reads_raw_input(self._pty, group):
            self.dropped += 1
            return
        offer = self._offered(group)
        offer.receiver.begun = True
        self._take(offer, data)

    def _inside(self, offer: Offer, event: Claimed | Fault) -> None:
        match offer.receiver.take(event):
            case StreamAborted(sentence):
                self._end(offer, sentence, faulty=True)
            case bytes(data) if self._begins_another(offer, data):
                self._end(offer, "another program took its place")
                self._begin(data)
            case bytes(data):
                self._take(offer, data)
            case None:
                self.dropped += 1

    def _begins_another(self, offer: Offer, data: bytes) -> bool:
        """Whether SETTINGS begin another connection: a server may also send them again."""
        if not offer.goaway.between or len(data) < HEADER_BYTES or not begins_connection(data):
            return False
        return offer.goaway.seen or offer.pinged or self._pty.foreground() != offer.group

    def _take(self, offer: Offer, data: bytes) -> None:
        offer.goaway.feed(data)
        if offer.goaway.seen:
            offer.writer.mute()
        if not offer.writer.feed(data):
            self._end(offer, "the page's program sent more than its windows allow", faulty=True)
        elif not offer.announced and data:
            offer.announced = True
            if offer.receiver.answering:  # eager: at that time there may have been only a shell
                offer.refresh_process_group()
            self._opened(offer)

    # Beginning and end

    def _offered(self, group: int, *, eager: bool = False) -> Offer:
        if self._last is not None:
            self._last.writer.abort()
            self._last.process_group.close()
        offer = Offer(self._pty, group, self._gone, self._lost, self._written, eager=eager)
        self._offer = self._last = offer
        self._start(self._run(offer))
        if group not in self._groups:
            self._groups.add(group)
            self._start(self._wait_for_exit(group))
        return offer

    def accept(self, offer: Offer, *, remote: bool) -> None:
        """Let the connection begin.

        Args:
            remote: Whether the program is on another machine, so that its exit cannot be seen here.
                PINGs then check whether it is alive, as for a program on another terminal.
        """
        offer.writer.allow_writes()
        if remote or offer.process_group.relays:
            self._start(self._ping_periodically(offer))

    def refuse(self, offer: Offer) -> None:
        """End the connection without a byte to the program, which may not be a server."""
        self._end(offer, "the page was refused")

    def hang_up(self) -> None:
        """End the connection, because the terminal has ended."""
        if self._offer is not None:
            self._end(self._offer, "the terminal ended")

    def _end(
        self, offer: Offer, sentence: str, *, faulty: bool = False, flushing: bool = False
    ) -> None:
        """End an offer. `flushing` lets the last bytes still be written."""
        if offer.sentence is not None:
            return
        offer.sentence, offer.faulty = sentence, faulty
        if not flushing:
            offer.writer.abort()
        if self._offer is offer:
            self._offer = None
        if offer.announced or faulty:
            self._ended(offer)

    async def _run(self, offer: Offer) -> None:
        ended = await offer.http.run()
        self._end(offer, ended.sentence, faulty=not ended.graceful, flushing=True)
        await offer.writer.closed()

    async def _wait_for_exit(self, group: int) -> None:
        await group_gone(group)
        self._groups.remove(group)
        if self._last is not None and self._last.group == group:
            self._gone(self._last)

    def _lost(self, offer: Offer) -> None:
        sentence = "the page's program left the terminal before it had read all requests"
        self._end(offer, sentence, faulty=True)

    def _gone(self, offer: Offer) -> None:
        """Discard the bytes that the program has not read, before the next program reads them."""
        if offer is not self._last:
            return
        wrote = offer.writer.last_write
        abrupt = offer.sentence is None
        # First of all: the shell was notified at the same time, and goes to its prompt.
        if wrote is not None and (abrupt or self._loop.time() - wrote < FRESH_SECONDS):
            offer.writer.last_write = None
            self._pty.discard()
            offer.writer.abort()
        self._end(offer, "the program that served the page has ended")

    async def _ping_periodically(self, offer: Offer) -> None:
        """Check with PINGs whether the program is alive while data is sent to it; otherwise the
        data might be typed into a shell there."""
        sent_before = 0
        while offer.sentence is None:
            await asyncio.sleep(limits.HTTY_PING_SECONDS)
            writer = offer.writer
            # Waiting bytes mean that it is not in the foreground, or does not read.
            if writer.written == sent_before or writer.waiting:
                continue
            sent_before = writer.written + _PING_BYTES
            offer.pinged = True
            hold = self._loop.call_later(limits.HTTY_PING_SECONDS, setattr, writer, "held", True)
            try:
                async with asyncio.timeout(limits.HTTY_PONG_SECONDS):
                    await offer.http.ping()
            except TimeoutError:
                if not self._pty.paused and reads_raw_input(self._pty, offer.group):
                    self._end(offer, "the page's program no longer responds", faulty=True)
            except ConnectionOver:
                return
            finally:
                hold.cancel()
                offer.pinged = writer.held = False

    async def _find_servers(self) -> None:
        """Poll for servers that wait for the client's preface, and so cause no event."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
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
                    self._end(offer, "it was not a server")
                self._offered(group, eager=True)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End the connection because the terminal ends, without a byte to the program."""
        self.hang_up()
        if self._last is not None:
            self._last.writer.abort()
            self._last.process_group.close()
        for task in [*self._tasks]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


# The processes of a group that may serve a page, and the moment in which the last of them exits.
#
# `processes.child.group_gone` detects the end of a group reliably, after a scan of all processes.
# In the same time a shell is back at its prompt and reads the bytes that were written for another
# program. So the processes that exist at the beginning are watched by descriptors, and their exit
# is handled in the same turn of the event loop. (A dedicated thread was not faster: the shell and
# the thread are woken together.) A killed process takes a millisecond to exit, in which it reads
# nothing: `alive` also checks whether a process is exiting. On systems without such descriptors no
# process is watched.
#
# It is unknown which of them serves the page. A shell in the same group (`sh -c "serve; bash"`, or
# one without job control) continues when the program has exited, and reads; so shells count only if
# there is no other process. A process that has a terminal for others (a relay) shows their output:
# then the processes in the foreground of that terminal count, if there are any but shells.


_MASTERS: Final = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})


class ProcessGroup:
    """The processes of one group that existed when this was created. Close it afterwards."""

    def __init__(self, group: int, on_exit: Callable[[], None]) -> None:
        """Watch the group; `on_exit` is called when all of its processes have exited."""
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        rows = [one for one in proc.scan().rows.values() if one.alive]
        found = [one.pid for one in rows if one.pgid == group]
        relays = {pid for pid in found if _relays(pid)}
        self.relays = bool(relays)
        """Whether one of them has a terminal for other processes, whose exit cannot be seen here
        (`script`, `sudo`, `expect`), or hides its descriptors."""
        near = [pid for pid in (*found, *_on_terminals_of(relays, rows)) if pid not in relays]
        serving = [pid for pid in near if not proc.is_shell(pid)] or found
        self._fds = {fd: proc.open_stat(pid) for pid in serving if (fd := _pidfd(pid))}
        """The pidfds of the running processes, each with a descriptor of its stat file."""
        self._known = bool(self._fds)
        for fd in self._fds:
            self._loop.add_reader(fd, self._exited, fd)

    def alive(self) -> bool:
        """Whether a process is left that may still read, even if its exit was not reported yet."""
        if not self._known:
            return True  # nothing is known, so assume it
        return not all(_is_exiting(stat) for stat in self._fds.values())

    def close(self) -> None:
        for fd in [*self._fds]:
            self._forget(fd)

    def _exited(self, fd: int) -> None:
        if self._fds.keys() == {fd}:
            self._on_exit()
        self._forget(fd)

    def _forget(self, fd: int) -> None:
        stat = self._fds.pop(fd)
        self._loop.remove_reader(fd)
        for one in (fd, stat):
            if one is not None:
                os.close(one)


def _is_exiting(stat: int | None) -> bool:
    if stat is None:
        return False
    try:
        return proc.Stat.parse(os.pread(stat, 512, 0)).is_exiting
    except ProcessLookupError:
        return True


def _relays(pid: int) -> bool:
    if not proc.HAS_PROC:
        return False
    try:
        opened = proc.descriptors(pid)
    except PermissionError:  # a process of another user
        return True
    except OSError:  # it has exited
        return False
    return any(_leads_to(pid, fd) in _MASTERS for fd in opened)


def _on_terminals_of(relays: set[int], rows: list[Process]) -> Iterator[int]:
    """Yield the descendants of the relays that are in the foreground of a terminal."""
    above, unseen = {one.pid: one.ppid for one in rows}, set(relays)
    below: set[int] = set()
    while unseen:
        below |= unseen
        unseen = {pid for pid, parent in above.items() if parent in unseen} - below
    for one in rows:
        if one.pid in below - relays and one.pgid == _foreground_group(one.pid):
            yield one.pid


def _foreground_group(pid: int) -> int | None:
    try:
        return proc.stat(pid).foreground
    except OSError:  # it has exited
        return None


def _leads_to(pid: int, fd: str) -> str | None:
    try:
        return proc.link(pid, f"fd/{fd}")
    except OSError:  # it was closed
        return None


def _pidfd(pid: int) -> int | None:
    try:
        return proc.pidfd(pid)
    except ProcessLookupError:
        return None
