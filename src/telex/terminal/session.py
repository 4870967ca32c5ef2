"""`PtySession`: one program on a PTY, its screen, its transcript, and everyone who watches them.

The path of a byte: the PTY hands over a read; the demux takes out what somebody claimed; the rest
goes to screen, transcript, recorder and taps; one number rises, and whoever waits is woken. The way
back is `act`. Usable without any server, by anyone in an event loop:

    session = PtySession(Program(("bash",)))
    await session.act(Text("make\n"))
    found = await session.wait(ContainsText("done"), timeout=60)

It knows nothing of escapes, pages or Lua: it is given claimants (who gets which control strings)
and a predicate runner. It redacts nothing: outlets do (`telling`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from telex.processes.termination import BRISK
from telex.terminal import matchers
from telex.terminal.acting import Acting
from telex.terminal.marks import Marks
from telex.terminal.moment import LiveMoment
from telex.terminal.pace import Pace
from telex.terminal.program import Program
from telex.terminal.pty import open_pty
from telex.terminal.raw_transcript import FileFailed
from telex.terminal.screen import Screen
from telex.terminal.since import Mark
from telex.terminal.transcript import Transcript
from telex.terminal.turns import turns
from telex.terminal.waiting import Waits, with_since
from telex.wire import htty_chunk, json_escape, limits
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Event, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.processes.child import Exit
    from telex.protocols.pty_automation import Action, Matcher, Predicate, Since
    from telex.terminal.cells import Row, Size, Snapshot
    from telex.terminal.matchers import PredicateRunner
    from telex.terminal.raw_transcript import RawTranscript
    from telex.terminal.waiting import Found, Keep
    from telex.wire.escape import Claim

log = logging.getLogger("telex.terminal")

T = TypeVar("T")

TURN_SECONDS: Final = 0.002
"""How long one session may hold the event loop before the others get their turn."""

OURS: Final = (json_escape.TO_TERMINAL, json_escape.TO_PROGRAM, htty_chunk.CHUNK)
"""What never reaches a screen. Where nobody claims it, it is swallowed and counted."""


class PtySession:
    """A child on a PTY with its screen and transcript. Close it, or use it in `async with`.

    Making one starts the program, in the running event loop; it raises what `processes.spawn`
    raises. After its program ended a session can still be read.
    """

    def __init__(
        self,
        program: Program,
        *,
        transcript_chars: int = limits.TRANSCRIPT_CHARS,
        raw: RawTranscript | None = None,
        claimants: Mapping[Claim, Callable[[Claimed], None]] | None = None,
        faults: Callable[[Fault], None] | None = None,
        predicates: Callable[[PtySession, Predicate], PredicateRunner] | None = None,
        attributes: tuple[int, ...] = (),
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.program = program
        self.sequence = 0
        """Rises with each fed read and each resize, and travels in every message."""
        self.exit: Exit | None = None
        """How the program ended, once it has and all it printed was read."""
        self.closed = False
        """Whether there is no screen any more."""
        self.screen = Screen(program.size, attributes=attributes)
        self.transcript = Transcript(transcript_chars)
        self.marks = Marks()
        self.watchers: set[Callable[[], None]] = set()
        """Called after each change, and once more at the end; they must be quick."""
        self.taps: set[Callable[[bytes], None]] = set()
        """Given the bytes that the screen gets."""
        self.typists: set[Callable[[bytes], None]] = set()
        """Given the bytes that callers type."""
        self.keyboard: Callable[[bytes], bytes] | None = None
        """Given what callers type, before the program gets it: it gets what this returns."""
        self.labellers: set[Callable[[str], None]] = set()
        """Given the labels that callers put on places in the transcript."""
        self.swallowed = 0
        """Control strings that nobody claimed, and broken ones."""
        self.failures: deque[FileFailed] = deque(maxlen=limits.FILE_FAILURES)
        """Files of this session that could not be written to their end, newest last."""
        self.failed_files = 0
        """How many there were."""
        self.last_output = self.last_input = self._changed = self._loop.time()
        self._seen = self.screen.rows()
        self._above: tuple[int, tuple[Row, ...]] = (-1, ())
        self._raw = raw
        if raw is not None:
            raw.on_failure = lambda error: self.fail(FileFailed("raw_transcript", raw.path, error))
        self._claimants = claimants or {}
        self._faults = faults
        self._predicates = None if predicates is None else functools.partial(predicates, self)
        self._demux = Demux({*OURS, *self._claimants})
        self._work: deque[Event] = deque()
        self._working = False
        self._pace = Pace()
        self._turns = turns()
        self._caught_up = asyncio.Event()
        self._caught_up.set()
        self._waits = Waits(self)
        self._quiet = asyncio.Event()
        self._over = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        try:
            self.pty = open_pty(
                program.argv,
                size=program.size,
                env=program.env,
                cwd=program.cwd,
                output=self._output,
                ended=self._quiet.set,
            )
        except BaseException:
            self.screen.close()
            raise
        self._acting = Acting(self)
        self._ending = asyncio.create_task(self._watch())

    async def __aenter__(self) -> PtySession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # What it looks like.

    @property
    def size(self) -> Size:
        return self.screen.size

    def snapshot(self) -> Snapshot:
        """The visible screen now. Its sequence may be used as `since`."""
        self.tell()
        return self.screen.snapshot(self.sequence)

    def above(self) -> tuple[Row, ...]:
        """The rows that scrolled away last: a secret may have begun there."""
        if self.screen.alternate_screen or not (total := self.screen.scrollback_length):
            return ()
        if self._above[0] != self.screen.version:
            count = min(total, limits.MASKED_ABOVE_ROWS)
            self._above = self.screen.version, self.screen.scrollback(total - count, count)
        return self._above[1]

    def last_change(self) -> float:
        """When something visible last changed, or somebody typed or resized.

        Nobody looks at the screen while nobody asks, so what changed since the last look changed,
        for all we know, with the last output.
        """
        if (rows := self.screen.rows()) is not self._seen:
            self._seen = rows
            self._changed = self.last_output
        return max(self._changed, self.last_input)

    def tell(self) -> None:
        """Somebody is being told the sequence, and may ask what is new since, unless it is over."""
        if not self.closed:
            self.marks.tell(self.mark())

    def mark(self, typed: str = "") -> Mark:
        """This moment, to be pointed back at."""
        rows = tuple([row.text for row in self.screen.rows()])
        return Mark(self.sequence, rows, self.screen.cursor, self.transcript.cursor, typed)

    def label(self, label: str) -> None:
        """Name this place in the transcript, and in a recording."""
        self.transcript.mark(label)
        for labeller in self.labellers:
            labeller(label)

    def fail(self, failure: FileFailed) -> None:
        """A file of this session can take nothing more. The program goes on; who follows it, and
        the log, are told."""
        log.warning("%s", failure)
        self.failures.append(failure)
        self.failed_files += 1
        self._loop.call_soon(self._wake)

    # What can be done to it.

    async def act(self, action: Action) -> str:
        """Perform an action, after those before it. Answers the mark of the moment before."""
        return await self._acting.perform(action)

    def resize(self, size: Size) -> None:
        """Give the terminal another size. The program hears of it by SIGWINCH."""
        self.pty.resize(size)
        if replies := self.screen.resize(size):
            self._acting.answer(replies)
        self.typed(b"")
        self._changed = self.last_input
        self._seen = self.screen.rows()
        self._advance()

    async def kill(self) -> None:
        """End the program and all it started. What it left on the screen can still be read."""
        await self.pty.end(BRISK)
        await self._over.wait()

    async def ended(self) -> Exit:
        """How the program ended, once it has."""
        await self._over.wait()
        assert self.exit is not None
        return self.exit

    async def wait(
        self,
        matcher: Matcher,
        timeout: float = 30.0,
        since: Since | None = None,
        keep: Keep = LiveMoment.keep,
    ) -> Found:
        """Until the matcher finds what it looks for. Raises WaitFailed in one of its kinds, and at
        once what `matchers.compile` refuses."""
        condition = matchers.compile(with_since(matcher, since), self.marks.find, self._predicates)
        return await self._waits.wait(condition, timeout, keep)

    def show(self, data: bytes) -> None:
        """As if the program had printed it: from a claimant, right where the claimed string stood
        in the output; from anybody else, after all that was worked through."""
        if self.closed:
            return
        self._feed(data)
        if not self._working:
            self.last_output = self._loop.time()
            self._advance()

    def look_again(self) -> None:
        """A predicate knows more than it did: whose wait is over?"""
        self._waits.look()

    def type(self, data: bytes) -> None:
        """Give the program what a caller types. Raises what `Pty.write` raises."""
        self.pty.write(data if self.keyboard is None else self.keyboard(data))

    def typed(self, data: bytes) -> None:
        """Somebody typed this, or resized: stability counts from now."""
        self.last_input = self._loop.time()
        for typist in self.typists if data else ():
            typist(data)

    async def close(self) -> None:
        """End the program and let go of everything. Idempotent; cancelling it does not stop it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._waits.cancel_all("the session was closed")
        try:
            await self.kill()
        finally:
            self.pty.close()
            self._ending.cancel()
            await asyncio.wait({self._ending})
            self._turns.withdraw(self._proceed)
            if self._raw is not None:
                self._raw.close()
            self.watchers.clear()
            self.taps.clear()
            self.typists.clear()
            self.labellers.clear()
            self.screen.close()
            self.closed = True

    # The path of a byte.

    def _output(self, data: bytes) -> None:
        """A read. Raw bytes go to the raw transcript before anything else looks at them."""
        if self._raw is not None:
            self._raw.write(data)
        self._work += self._demux.feed(data)
        self._proceed()

    def _proceed(self) -> None:
        """Work through what was read, as long as it is our turn; then read no further meanwhile.

        One read of nothing but terminal resets would otherwise hold up every other session.
        """
        until = self._loop.time() + TURN_SECONDS
        self._working = True
        try:
            done = self._work_through(until)
        finally:
            self._working = False
        if not done:
            self._go_on_later()
            return
        if not self._caught_up.is_set():
            self._caught_up.set()
            self.pty.resume()
        self.last_output = self._loop.time()
        self._advance()

    def _work_through(self, until: float) -> bool:
        """Whether all of it is done."""
        while self._work:
            match self._work.popleft():
                case Visible(data):
                    self._show(data, until)
                case Claimed() as claimed:
                    self._hand_over(self._claimants.get(claimed.claim), claimed)
                case Fault(claim=claim) as fault:
                    self._hand_over(self._faults if claim in self._claimants else None, fault)
            if self._work and self._loop.time() > until:
                return False
        return True

    def _go_on_later(self) -> None:
        self._caught_up.clear()
        self.pty.pause()
        self._turns.queue(self._proceed)

    def _show(self, data: bytes, until: float) -> None:
        """Give it to the screen at its pace. What our turn is too short for goes back to work."""
        stride = self._pace.stride(data)
        began = self._loop.time()
        for at in range(0, len(data), stride):
            self._feed(data[at : at + stride])
            now = self._loop.time()
            if (self._pace.took(now - began) or now > until) and at + stride < len(data):
                self._work.appendleft(Visible(data[at + stride :]))
                return
            began = now

    def _feed(self, data: bytes) -> None:
        if replies := self.screen.feed(data):
            self._acting.answer(replies)
        self.transcript.feed(data)
        for tap in self.taps:
            tap(data)

    def _hand_over(self, claimant: Callable[[T], None] | None, string: T) -> None:
        if claimant is None:
            self.swallowed += 1
            return
        try:
            claimant(string)
        except Exception:  # a fault of ours, which must not stop the program's output
            log.exception("a control string could not be handled")

    def _advance(self) -> None:
        self.sequence += 1
        if self._waits:
            self._waits.look()
        self._wake()

    def _wake(self) -> None:
        for watcher in [*self.watchers]:
            watcher()

    # The end.

    async def _watch(self) -> None:
        """The program is over when it was reaped and all it printed was worked through."""
        await self._quiet.wait()
        await self._caught_up.wait()
        self._work += self._demux.eof()
        if self._work:
            self._proceed()
            await self._caught_up.wait()
        self.transcript.finish()
        self.exit = self.pty.child.exit
        self._over.set()
        self._waits.program_gone()
        self._wake()
