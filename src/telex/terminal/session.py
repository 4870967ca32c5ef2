"""`PtySession`: one program on a PTY, its screen, its transcript, and everyone who watches them.

The path of a byte: the PTY hands over a read; the demux takes out what somebody claimed; the rest
goes to screen, transcript, recorder and taps; one number rises, and whoever waits is woken. The way
back is `act`. Usable without any server, by anyone in an event loop:

    session = PtySession(Program(("bash",)))
    await session.act(Text("make\\n"))
    found = await session.wait(ContainsText("done"), timeout=60)

It knows nothing of escapes, pages or Lua: it is given claimants (who gets which control strings)
and a predicate runner. It redacts nothing: outlets do (`redact`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from telex.processes.termination import BRISK
from telex.terminal import actions, limits
from telex.terminal.actions import InputNotRead, NoMouse, ProgramEnded
from telex.terminal.cells import Size
from telex.terminal.keys import bracketed_paste_bytes, parse_key, paste_bytes
from telex.terminal.pty import InputQueueFull, Program, open_pty
from telex.terminal.raw_transcript import FileFailed
from telex.terminal.scheduler import Pace, output_scheduler
from telex.terminal.screen import Screen
from telex.terminal.transcript import Transcript
from telex.terminal.waits import compiler
from telex.terminal.waits.engine import Waits, with_since
from telex.terminal.waits.evidence import LiveMoment
from telex.terminal.waits.since import Mark, Marks
from telex.wire import htty_chunk, json_escape
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Event, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.processes.child import Exit
    from telex.terminal.actions import Action, Streamed
    from telex.terminal.cells import Row, Size, Snapshot
    from telex.terminal.raw_transcript import RawTranscript
    from telex.terminal.waits.compiler import PredicateRunner
    from telex.terminal.waits.engine import KeepMoment, WaitMatch
    from telex.terminal.waits.matchers import Matcher, Predicate, Since
    from telex.wire.escape import Claim


log = logging.getLogger("telex.terminal")

T = TypeVar("T")

TURN_SECONDS: Final = 0.002
"""How long one session may hold the event loop before the others get their turn."""

SIGNALS: Final = {
    "term": signal.SIGTERM,
    "hup": signal.SIGHUP,
    "quit": signal.SIGQUIT,
    "int": signal.SIGINT,
    "kill": signal.SIGKILL,
    "user1": signal.SIGUSR1,
    "user2": signal.SIGUSR2,
}


_AFTER_EXIT: Final[dict[type, str]] = {
    actions.Resize: "its terminal keeps the size it had",
    actions.Signal: "there is nothing left to signal",
    actions.Kill: "there is nothing left to kill",
    actions.MarkTranscript: "nothing more is printed after a mark",
}
"""What follows for an action that types nothing."""

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
        self.output_taps: set[Callable[[bytes], None]] = set()
        """Given the bytes that the screen gets."""
        self.input_taps: set[Callable[[bytes], None]] = set()
        """Given the bytes that callers type."""
        self.input_filter: Callable[[bytes], bytes] | None = None
        """Given what callers type, before the program gets it: it gets what this returns."""
        self.label_listeners: set[Callable[[str], None]] = set()
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
            raw.on_failure = lambda error: self.report_file_failure(
                FileFailed("raw_transcript", raw.path, error)
            )
        self._claimants = claimants or {}
        self._faults = faults
        self._predicates = None if predicates is None else functools.partial(predicates, self)
        self._demux = Demux({*OURS, *self._claimants})
        self._work: deque[Event] = deque()
        self._working = False
        self._pace = Pace()
        self._scheduler = output_scheduler()
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
        self._input_order = asyncio.Lock()
        self._line = ""
        """What was typed since the last line was sent off: its echo may still be on its way."""
        self._interrupted = asyncio.Event()
        self.refused_replies = 0
        """Answers to the program's queries that found its input full."""
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
        """The visible screen now. Only reads: for a sequence to be used as `since`, call
        `mark_sequence` too."""
        return self.screen.snapshot(self.sequence)

    def rows_above(self) -> tuple[Row, ...]:
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

    def mark_sequence(self) -> int:
        """Keep this moment as a mark, unless the session is closed, so that a later wait may ask
        what is new since its sequence. For everything that hands out a sequence."""
        if not self.closed:
            self.marks.add(self._mark_now())
        return self.sequence

    def _mark_now(self, typed: str = "") -> Mark:
        """This moment, for `since` to point back at; `typed` is what is about to be typed."""
        rows = tuple([row.text for row in self.screen.rows()])
        return Mark(self.sequence, rows, self.screen.cursor, self.transcript.cursor, typed)

    def label(self, label: str) -> None:
        """Name this place in the transcript, and in a recording."""
        self.transcript.mark(label)
        for listener in self.label_listeners:
            listener(label)

    def report_file_failure(self, failure: FileFailed) -> None:
        """A file of this session can take nothing more. The program goes on; watchers and the log
        get to know."""
        log.warning("%s", failure)
        self.failures.append(failure)
        self.failed_files += 1
        self._loop.call_soon(self._wake)

    # What can be done to it.

    async def act(self, action: Action) -> str:
        """Perform an action, after those before it. Answers the mark of the moment before.

        An interrupt waits for nobody: it overtakes a paste that is still queued, because that is
        what people press it for.
        """
        self._check_alive(action)
        match action:
            case actions.Interrupt():
                return self._interrupt()
            case actions.Kill():
                mark = self._mark_now()
                await self.kill()
                return self.marks.add_named(mark)
            case _:
                async with self._input_order:
                    self._check_alive(action)
                    return await self._perform(action)

    def resize(self, size: Size) -> None:
        """Give the terminal another size. The program hears of it by SIGWINCH."""
        self.pty.resize(size)
        if replies := self.screen.resize(size):
            self._reply(replies)
        self.notify_input(b"")
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
        keep: KeepMoment = LiveMoment.keep,
    ) -> WaitMatch:
        """Until the matcher finds what it looks for. Raises WaitFailed in one of its kinds, and at
        once what `compiler.compile` refuses."""
        condition = compiler.compile(with_since(matcher, since), self.marks.find, self._predicates)
        return await self._waits.wait(condition, timeout, keep)

    def inject_output(self, data: bytes) -> None:
        """Show it as if the program had printed it: from a claimant, right where the claimed string
        stood in the output; from anybody else, after all that was worked through."""
        if self.closed:
            return
        self._feed(data)
        if not self._working:
            self.last_output = self._loop.time()
            self._advance()

    def recheck_waits(self) -> None:
        """Look at all waits again: a predicate knows more than it did."""
        self._waits.look()

    def send_input(self, data: bytes) -> None:
        """Write what a caller types to the program. Raises what `Pty.write` raises."""
        self.pty.write(data if self.input_filter is None else self.input_filter(data))

    def notify_input(self, data: bytes) -> None:
        """Hand what was typed to the taps; empty for a resize. Stability counts from now."""
        self.last_input = self._loop.time()
        for tap in self.input_taps if data else ():
            tap(data)

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
            self._scheduler.withdraw(self._proceed)
            if self._raw is not None:
                self._raw.close()
            self.watchers.clear()
            self.output_taps.clear()
            self.input_taps.clear()
            self.label_listeners.clear()
            self.screen.close()
            self.closed = True

    # Actions as bytes. Keys and mouse are encoded by the screen, which knows the program's modes.

    async def _perform(self, action: Action) -> str:
        match action:
            case actions.Text(value) | actions.Paste(value):
                return await self._write(paste_bytes(value), value)
            case actions.BracketedPaste(value):
                return await self._write(bracketed_paste_bytes(value), value)
            case actions.Key(value):
                return await self._press(value)
            case actions.StreamText(value):
                return await self._stream(value)
            case actions.Mouse(value):
                return await self._point(value)
            case actions.Eof():
                return await self._write(self.pty.line_settings().eof, "")
            case actions.Resize(value):
                return self._resize(value)
            case actions.Signal(value):
                return self._signal(SIGNALS[value])
            case actions.MarkTranscript(value):
                mark = self.marks.add_named(self._mark_now())
                self.label(value.label)
                return mark
            case actions.Interrupt() | actions.Kill():
                raise AssertionError("these do not wait for their turn")

    async def _press(self, name: str) -> str:
        press = parse_key(name)
        data = self.screen.encode_key(press)
        typed = "\n" if data in (b"\r", b"\n") else data.decode() if data.isalnum() else ""
        return await self._write(data, typed)

    async def _point(self, event: actions.MouseEvent) -> str:
        if not self.screen.mouse_tracking:
            raise NoMouse("the program did not ask for the mouse; use keys, or wait until it does")
        return await self._write(self.screen.encode_mouse(event), "")

    async def _write(self, data: bytes, typed: str) -> str:
        mark = self._mark_typed(typed)
        for at in range(0, len(data), limits.INPUT_BYTES_QUEUED // 2):
            if at and not await self._may_continue():
                break
            self.send_input(data[at : at + limits.INPUT_BYTES_QUEUED // 2])
        self.notify_input(data)
        return mark

    async def _stream(self, value: Streamed) -> str:
        mark = self._mark_typed(value.text)
        for at in range(0, len(value.text), value.chunk_chars):
            if at and not await self._may_continue(value.delay_ms / 1000):
                break
            piece = paste_bytes(value.text[at : at + value.chunk_chars])
            self.send_input(piece)
            self.notify_input(piece)
        return mark

    async def _may_continue(self, pause: float = 0) -> bool:
        """Once there is room for the next piece: whether nobody pressed interrupt meanwhile.

        Without asking, the rest of an interrupted paste would be taken for commands.
        """
        self._interrupted.clear()
        if pause:
            await asyncio.sleep(pause)  # as the caller asked: this is its typing speed
        await self._wait_for_room()
        self._check_alive()
        return not self._interrupted.is_set()

    async def _wait_for_room(self) -> None:
        """Until all that was written is the program's, or somebody pressed interrupt."""
        waits = {
            asyncio.create_task(self.pty.drained()),
            asyncio.create_task(self._interrupted.wait()),
        }
        first = asyncio.FIRST_COMPLETED
        try:
            done, _ = await asyncio.wait(waits, timeout=limits.INPUT_SECONDS, return_when=first)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)
        if not done:
            raise InputNotRead(self.pty.unsent)

    def _interrupt(self) -> str:
        mark = self._mark_typed("")
        data = self.pty.line_settings().interrupt
        self._interrupted.set()
        self.pty.interrupt()
        self.notify_input(data)
        self._line = ""
        return mark

    def _resize(self, size: actions.TerminalSize) -> str:
        mark = self.marks.add_named(self._mark_now())
        self.resize(Size(size.rows, size.cols, size.pixel_width, size.pixel_height))
        return mark

    def _signal(self, number: signal.Signals) -> str:
        mark = self.marks.add_named(self._mark_now())
        group = self.pty.foreground() or self.pty.child.pid
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile, which will be told
            os.killpg(group, number)
        return mark

    def _mark_typed(self, typed: str) -> str:
        """The mark of the moment before this typing, which knows the line it may complete."""
        self._line += typed
        name = self.marks.add_named(self._mark_now(self._line[: limits.TYPED_CHARS]))
        self._line = self._line.rpartition("\n")[2].rpartition("\r")[2][: limits.TYPED_CHARS]
        return name

    def _check_alive(self, action: Action | None = None) -> None:
        if (ended := self.exit) is None:
            return
        if (so := _AFTER_EXIT.get(type(action))) is not None:
            raise ProgramEnded(ended, so)
        raise ProgramEnded(ended)

    def _reply(self, replies: bytes) -> None:
        """Write what the terminal answers to a query: in the turn that fed it, ahead of nothing."""
        try:
            self.pty.write(replies)
        except InputQueueFull:
            self.refused_replies += 1

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
            self._continue_later()
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
                    self._give_to_claimant(self._claimants.get(claimed.claim), claimed)
                case Fault(claim=claim) as fault:
                    self._give_to_claimant(
                        self._faults if claim in self._claimants else None, fault
                    )
            if self._work and self._loop.time() > until:
                return False
        return True

    def _continue_later(self) -> None:
        self._caught_up.clear()
        self.pty.pause()
        self._scheduler.queue(self._proceed)

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
            self._reply(replies)
        self.transcript.feed(data)
        for tap in self.output_taps:
            tap(data)

    def _give_to_claimant(self, claimant: Callable[[T], None] | None, string: T) -> None:
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
