"""`PtySession`: one program on a PTY with its screen, its transcript, its waits and its watchers.

The path of a byte: the PTY delivers a read; the demux removes claimed control strings; the rest
goes to screen, transcript, recorder and taps; `sequence` rises by one, and waits are woken. Input
goes the other way through `act`. A session needs an event loop, but no server:

    session = PtySession(Program(("bash",)))
    await session.act(Text("make\\n"))
    found = await session.wait(ContainsText("done"), timeout=60)

It does not know escapes, pages or Lua: it is given claimants (handlers of control strings) and a
predicate runner. It redacts nothing: code that sends its content to others does (`redact`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from telex.processes.termination import BRISK
from telex.rpc.identity import IN_PROCESS, Identity
from telex.terminal import actions, limits
from telex.terminal.actions import InputNotRead, NoMouse, ProgramEnded
from telex.terminal.cells import Size
from telex.terminal.input_log import AuthoredInput, InputLog, described
from telex.terminal.input_watch import InputWatch
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
    from collections.abc import Callable, Iterator, Mapping

    from telex.processes.child import Exit
    from telex.terminal.actions import Action, Streamed
    from telex.terminal.cells import Row, Size, Snapshot
    from telex.terminal.input_state import InputState
    from telex.terminal.raw_transcript import RawTranscript
    from telex.terminal.waits.compiler import PredicateRunner
    from telex.terminal.waits.engine import KeepMoment, WaitMatch
    from telex.terminal.waits.matchers import Matcher, Predicate, Since
    from telex.wire.escape import Claim


log = logging.getLogger("telex.terminal")

T = TypeVar("T")

TURN_SECONDS: Final = 0.002
"""How long one session may use the event loop before other sessions get their turn."""

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
"""The second half of the error, for actions that type nothing."""

OURS: Final = (json_escape.TO_TERMINAL, json_escape.TO_PROGRAM, htty_chunk.CHUNK)
"""Control strings that never reach a screen. Unclaimed ones are dropped and counted."""


def _echoed_by_key(data: bytes) -> str:
    """Return the bytes of a key as typed text: characters, Enter, and those that edit the line."""
    if data in (b"\r", b"\n"):
        return "\n"
    text = data.decode(errors="replace")
    return text if text.isprintable() or text in ("\t", "\b", "\x7f", "\x15") else ""


class PtySession:
    """A child on a PTY with its screen and transcript. Close it, or use it in `async with`.

    The constructor starts the program in the running event loop, and raises what
    `processes.spawn` raises. A session can still be read after its program has ended.
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
        """Rises with each read and each resize; every message has it."""
        self.exit: Exit | None = None
        """The exit of the program, set when it has ended and all its output was read."""
        self.closed = False
        """Whether the session was closed and its screen freed."""
        self.screen = Screen(program.size, attributes=attributes)
        self.transcript = Transcript(transcript_chars)
        self.inputs = InputLog(self.transcript)
        """The inputs of callers, and who they are."""
        self.marks = Marks()
        self.watchers: set[Callable[[], None]] = set()
        """Callbacks for each change, and once more at the end; they must be quick."""
        self.output_taps: set[Callable[[bytes], None]] = set()
        """Callbacks that get the bytes for the screen."""
        self.input_taps: set[Callable[[bytes], None]] = set()
        """Callbacks that get the bytes that callers type."""
        self.input_filter: Callable[[bytes], bytes] | None = None
        """Filters of typed bytes: the program gets what a filter returns."""
        self.label_listeners: set[Callable[[str], None]] = set()
        """Callbacks that get the labels of marks in the transcript."""
        self.use_listeners: set[Callable[[], None]] = set()
        """Callbacks for each time that a caller types, reads, or stops waiting or following."""
        self.followers = 0
        """How many callers wait for this session, or follow its output, at this moment."""
        self.swallowed = 0
        """The number of unclaimed and broken control strings."""
        self.failures: deque[FileFailed] = deque(maxlen=limits.FILE_FAILURES)
        """Files of this session whose writing failed, newest last."""
        self.failed_files = 0
        """How many files failed."""
        self.last_output = self.last_input = self._changed = self._loop.time()
        self._seen = self.screen.rows()
        self._changed_sequence = 0
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
        self.input_watch = InputWatch(self)
        """What the program waits for, and who is told of it."""
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
        """Text typed since the last Enter: its echo may still arrive."""
        self._interrupted = asyncio.Event()
        self.refused_replies = 0
        """How many replies to queries were dropped because the program's input was full."""
        self._ending = asyncio.create_task(self._watch())

    async def __aenter__(self) -> PtySession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Reading.

    @property
    def size(self) -> Size:
        return self.screen.size

    def snapshot(self) -> Snapshot:
        """Return the visible screen. To use its sequence as `since`, call `mark_sequence` too."""
        return self.screen.snapshot(self.sequence)

    def rows_above(self) -> tuple[Row, ...]:
        """Return the last rows of the scrollback: a secret may begin there."""
        if self.screen.alternate_screen or not (total := self.screen.scrollback_length):
            return ()
        if self._above[0] != self.screen.version:
            count = min(total, limits.MASKED_ABOVE_ROWS)
            self._above = self.screen.version, self.screen.scrollback(total - count, count)
        return self._above[1]

    def input_state(self) -> InputState:
        """Look what the program waits for now. It can be asked after the end, too."""
        return self.input_watch.state()

    def last_change(self) -> float:
        """Return when the screen last changed, or the last input or resize.

        The screen is compared only when it is read. A change since the last read is dated by the
        last output.
        """
        self._compare_screen()
        return max(self._changed, self.last_input)

    def last_change_sequence(self) -> int:
        """Return the sequence of the last visible change, dated as `last_change`."""
        self._compare_screen()
        return self._changed_sequence

    def _compare_screen(self) -> None:
        if (rows := self.screen.rows()) is not self._seen:
            self._seen = rows
            self._changed = self.last_output
            self._changed_sequence = self.sequence

    def mark_sequence(self) -> int:
        """Store this moment as a mark, so that a later wait may use its sequence as `since`. Does
        nothing when the session is closed. Called wherever a sequence is given to a caller."""
        if not self.closed:
            self.marks.add(self._mark_now())
        return self.sequence

    def _mark_now(self, typed: str = "") -> Mark:
        """Store this moment for `since`; `typed` is the text about to be typed."""
        self._compare_screen()  # a change so far is older than the mark
        rows = tuple([row.text for row in self.screen.rows()])
        return Mark(self.sequence, rows, self.screen.cursor, self.transcript.cursor, typed)

    def note_use(self) -> None:
        """Tell the listeners that a caller uses this session."""
        for listener in self.use_listeners:
            listener()

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Count a caller who waits for this session or follows it, in this block."""
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1
            self.note_use()

    def label(self, label: str) -> None:
        """Put a label at this place of the transcript and the recording."""
        self.transcript.mark(label)
        for listener in self.label_listeners:
            listener(label)

    def report_file_failure(self, failure: FileFailed) -> None:
        """Note that a file of this session failed, in the log and to watchers. The program
        continues."""
        log.warning("%s", failure)
        self.failures.append(failure)
        self.failed_files += 1
        self._loop.call_soon(self._wake)

    # Input.

    async def act(
        self,
        action: Action,
        who: Identity = IN_PROCESS,
        check: Callable[[PtySession, Action], None] | None = None,
    ) -> str:
        """Perform an action after the earlier ones. Returns a mark of the moment before. `who` is
        the author of the input, for `inputs`. `check` is called directly before the input is
        written, and raises if it must not be.

        An interrupt does not queue: it overtakes a paste that is still queued, which is what people
        press it for.
        """
        self.note_use()
        self._check_alive(action)
        if check is not None and isinstance(action, actions.Interrupt | actions.Kill):
            check(self, action)
        match action:
            case actions.Interrupt():
                self._log(described(action, who))
                return self._interrupt()
            case actions.Kill():
                mark = self._mark_now()
                await self.kill(who)
                return self.marks.add_named(mark)
            case _:
                async with self._input_order:
                    self._check_alive(action)
                    if check is not None:
                        check(self, action)
                    entry = self._log(described(action, who))
                    try:
                        return await self._perform(action)
                    except (NoMouse, InputQueueFull):
                        if entry is not None:
                            self.inputs.withdraw(entry)
                        raise

    def log_input(self, entry: AuthoredInput) -> None:
        """Record an input that is no action, such as a reply to an escape."""
        self._log(entry)

    def _log(self, entry: AuthoredInput | None) -> AuthoredInput | None:
        """Record an input before it is written: after that, the program may switch the echo."""
        if entry is None:
            return None
        entry.at, entry.sequence = time.time(), self.sequence
        if entry.typed and self.inputs.at_line_start:
            cursor = self.screen.cursor
            entry.prompt = self.screen.rows()[cursor.row].text[: cursor.col]
        self.inputs.add(entry, hidden=bool(entry.typed) and self.pty.hides_typing())
        return entry

    def resize(self, size: Size) -> None:
        """Change the size of the terminal. The program gets SIGWINCH."""
        self.pty.resize(size)
        if replies := self.screen.resize(size):
            self._reply(replies)
        self.notify_input(b"")
        self._changed = self.last_input
        self._seen = self.screen.rows()
        self._changed_sequence = self.sequence + 1
        self._advance()

    async def kill(self, who: Identity | None = None) -> None:
        """Kill the program and everything it started. Its screen can still be read."""
        if who is not None and self.exit is None:
            self._log(described(actions.Kill(), who))
        await self.pty.end(BRISK)
        await self._over.wait()

    async def ended(self) -> Exit:
        """Wait until the program has ended, and return its exit."""
        await self._over.wait()
        assert self.exit is not None
        return self.exit

    async def wait(
        self,
        matcher: Matcher,
        timeout: float = 30.0,
        since: Since | None = None,
        keep: KeepMoment = LiveMoment.keep,
        keep_failed: KeepMoment | None = None,
    ) -> WaitMatch:
        """Wait until the matcher matches. Raises a subclass of WaitFailed, and at once what
        `compiler.compile` raises."""
        condition = compiler.compile(with_since(matcher, since), self.marks.find, self._predicates)
        with self.followed(), contextlib.ExitStack() as watched:
            if condition.watches_input:
                watched.enter_context(self.input_watch.waited_for(self.recheck_waits))
            return await self._waits.wait(condition, timeout, keep, keep_failed)

    def inject_output(self, data: bytes) -> None:
        """Show bytes as if the program had printed them: called by a claimant, at the place of the
        claimed string; otherwise after all processed output."""
        if self.closed:
            return
        self._feed(data)
        if not self._working:
            self.last_output = self._loop.time()
            self._advance()

    def recheck_waits(self) -> None:
        """Check all waits again: a predicate has a new result, or the input state changed."""
        self._waits.look()

    def send_input(self, data: bytes) -> None:
        """Write typed bytes to the program. Raises what `Pty.write` raises."""
        self.pty.write(data if self.input_filter is None else self.input_filter(data))

    def notify_input(self, data: bytes) -> None:
        """Pass typed bytes (none for a resize) to the taps, and restart the time of stability."""
        self.last_input = self._loop.time()
        self.input_watch.input_typed(data)
        for tap in self.input_taps if data else ():
            tap(data)

    async def close(self) -> None:
        """End the program and free everything; cancelling does not stop it. May be repeated."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._waits.cancel_all("the session was closed")
        self.input_watch.close()
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
            self.use_listeners.clear()
            self.screen.close()
            self.closed = True

    # Actions as bytes. The screen encodes keys and mouse, as it knows the program's modes.

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
                raise AssertionError("these actions do not queue")

    async def _press(self, name: str) -> str:
        press = parse_key(name)
        data = self.screen.encode_key(press)
        return await self._write(data, _echoed_by_key(data))

    async def _point(self, event: actions.MouseEvent) -> str:
        if not self.screen.mouse_tracking:
            raise NoMouse(
                "the program did not ask for the mouse, so it would not see a click; press keys "
                "instead (tab, down, enter), or wait until it asks"
            )
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
        """Wait for room for the next piece. Returns false if an interrupt came meanwhile: the rest
        of an interrupted paste would be read as commands.
        """
        self._interrupted.clear()
        if pause:
            await asyncio.sleep(pause)  # the typing speed that the caller asked for
        await self._wait_for_room()
        self._check_alive()
        return not self._interrupted.is_set()

    async def _wait_for_room(self) -> None:
        """Wait until the kernel has taken all written bytes, or an interrupt was pressed."""
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
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.killpg(group, number)
        return mark

    def _mark_typed(self, typed: str) -> str:
        """Store the mark before this input, with the line that the input may complete."""
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
        """Write the terminal's replies to queries, after input that is already queued."""
        try:
            self.pty.write(replies)
        except InputQueueFull:
            self.refused_replies += 1

    # The path of a byte.

    def _output(self, data: bytes) -> None:
        """Handle a read. The raw transcript gets the bytes first."""
        if self._raw is not None:
            self._raw.write(data)
        self._work += self._demux.feed(data)
        self._proceed()

    def _proceed(self) -> None:
        """Process read bytes for the length of one turn; if some are left, pause reading.

        Otherwise one read full of terminal resets would block every other session.
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
        self.input_watch.output_ended()
        self._advance()

    def _work_through(self, until: float) -> bool:
        """Process bytes. Returns whether all were processed."""
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
        """Feed the screen in pieces. Bytes left when the turn ends are queued again."""
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
        self.input_watch.program_printed(data)
        for tap in self.output_taps:
            tap(data)

    def _give_to_claimant(self, claimant: Callable[[T], None] | None, string: T) -> None:
        if claimant is None:
            self.swallowed += 1
            return
        try:
            claimant(string)
        except Exception:  # a bug of ours must not stop the program's output
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
        """Finish when the program was reaped and all its output was processed."""
        await self._quiet.wait()
        await self._caught_up.wait()
        self._work += self._demux.eof()
        if self._work:
            self._proceed()
            await self._caught_up.wait()
        self.transcript.finish()
        self.exit = self.pty.child.exit
        self._over.set()
        self.input_watch.event()
        self._waits.program_gone()
        self._wake()
