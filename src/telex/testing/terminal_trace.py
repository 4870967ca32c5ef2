"""The trace of one terminal in a test: what was typed, what was waited for, and its screens.

`TracedCaller` stands between a terminal and its session and notes every call, so that the methods
of `Terminal` and everything built on them are seen alike. The screens over time are a recording.
All of it is masked here, before it is kept: text typed while the terminal does not echo it (as at
a password prompt) is left out, and the redactor masks the rest.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from telex.automation import protocol as spec
from telex.automation.errors import SessionProblem
from telex.redaction import Redactor
from telex.terminal import actions
from telex.terminal.raw_transcript import FileFailed
from telex.terminal.recording import SessionRecorder
from telex.terminal.redact import Masker, mask
from telex.terminal.waits import matchers
from telex.testing import limits
from telex.testing.golden_file import GoldenScreen, from_cells

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from telex.automation.caller import Caller, ChunkRouter
    from telex.terminal.cells import Row, Snapshot
    from telex.terminal.session import PtySession

T = TypeVar("T")


@cache
def _redactor() -> Redactor:
    return Redactor()


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One call of a test: an input, a wait, a change of size, or the end."""

    at: float
    """Seconds since the program was started."""
    kind: str
    """`type`, `wait`, `resize`, `golden` or `end`."""
    what: str
    """The call in words, masked."""
    took: float = 0.0
    problem: str = ""
    """The first line of the exception; empty if the call succeeded."""


class TerminalTrace:
    """The steps of one terminal, its last screen, and its recording."""

    def __init__(self, session: PtySession, recording: Path | None) -> None:
        """Begin with a session that was just started. Without a path nothing is recorded."""
        self._redactor = _redactor()
        self.command = self._redactor.redact_command(shlex.join(session.program.argv))
        self.steps: list[TraceStep] = []
        self.dropped = 0
        """The number of steps beyond the limit."""
        self.recording = recording
        self._session = session
        self._masker = Masker(self._redactor)
        self._last: tuple[Snapshot, Sequence[Row]] | None = None
        self.exit_words = ""
        """How the program ended by itself; empty if it was running when the trace was finished."""
        self._recorder: SessionRecorder | None = None
        self._began = time.monotonic()  # the recording has its own clock, which begins now as well
        if recording is not None:
            with contextlib.suppress(FileFailed):  # a full disk fails no test
                self._recorder = SessionRecorder(session, str(recording), self._redactor)

    def now(self) -> float:
        return time.monotonic() - self._began

    def add(self, step: TraceStep) -> None:
        if len(self.steps) < limits.TRACE_STEPS:
            self.steps.append(step)
        else:
            self.dropped += 1

    @property
    def finished(self) -> bool:
        return self._last is not None

    @property
    def screen(self) -> GoldenScreen:
        """The last screen, masked. Call `finish` first."""
        assert self._last is not None
        snapshot, above = self._last
        return from_cells(mask(snapshot, self._redactor, above))

    @property
    def answered(self) -> bool:
        """Whether the program has printed since it was started, and since the last input."""
        return self._session.last_output > self._session.last_input

    def look(self, version: int) -> tuple[GoldenScreen, int]:
        """Return the present screen, masked, and its sequence, to be used as `since`. Must be
        called in the event loop of the session."""
        session = self._session
        seen = self._masker.snapshot(session.snapshot(), session.rows_above())
        return from_cells(seen, version), session.mark_sequence()

    def finish(self) -> None:
        """Keep the present screen as the last one, and end the recording. A second call does
        nothing. Must be called in the event loop of the session, before that is closed."""
        if self._last is None:
            self.exit_words = str(self._session.exit or "")
            self._last = self._session.snapshot(), self._session.rows_above()
            if self._recorder is not None:
                self._recorder.stop()

    def clean(self, text: str) -> str:
        return self._redactor.redact(text)

    def words(self, params: object) -> tuple[str, str] | None:
        """Return kind and words of a call; None if it only reads."""
        match params:
            case spec.Input(_, action):
                return "type", self._input_words(action)
            case spec.Wait():
                limit = f", at most {params.timeout_ms / 1000:g} s"
                return "wait", self.clean(f"wait for {matcher_words(params.matcher)}") + limit
            case spec.ResizeTo():
                return "resize", f"resize to {params.cols}x{params.rows}"
            case _:
                return None

    def _input_words(self, action: actions.Action) -> str:
        match action:
            case actions.Text(text):
                return f"type {self._typed(text)}"
            case actions.Paste(text) | actions.BracketedPaste(text):
                return f"paste {self._typed(text)}"
            case actions.StreamText(streamed):
                return f"type {self._typed(streamed.text)}"
            case actions.Key(key):
                shown = key if len(key) > 1 else self._typed(key)
                return f"press {shown}"
            case actions.Signal(name):
                return f"signal {name}"
            case actions.Mouse(event):
                return f"{event.event} at row {event.row} column {event.col}"
            case actions.MarkTranscript(label):
                return f"label {self.clean(label.label)!r}"
            case actions.Resize(size):
                return f"resize to {size.cols}x{size.rows}"
            case actions.Interrupt() | actions.Eof() | actions.Kill():
                return type(action).__name__.lower()

    def _typed(self, text: str) -> str:
        settings = None if self._session.closed else self._session.pty.line_settings()
        if settings is not None and settings.canonical and not settings.echo:
            return f"{len(text)} characters without echo"
        shown = repr(self.clean(text))
        return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


_SHOWN: Final = 200
"""The longest text of a step."""


class TracedCaller:
    """A `Caller` that notes each call in a trace."""

    def __init__(self, caller: Caller, trace: TerminalTrace) -> None:
        self.caller = caller
        self.trace = trace
        self.chunks: ChunkRouter = caller.chunks

    async def call(self, method: str, params: object, returns: type[T]) -> T:
        __tracebackhide__ = True
        if method == "session.close":
            self.trace.finish()
        said = self.trace.words(params)
        if said is None:
            return await self.caller.call(method, params, returns)
        at = self.trace.now()
        problem = "was cancelled"
        try:
            result = await self.caller.call(method, params, returns)
            problem = ""
            return result
        except SessionProblem as error:
            problem = self.trace.clean(str(error.args[0]))
            raise
        finally:
            self.trace.add(TraceStep(at, *said, self.trace.now() - at, problem))

    async def notify(self, method: str, params: object) -> None:
        await self.caller.notify(method, params)

    async def close(self) -> None:
        self.trace.finish()
        await self.caller.close()


_MATCHER_WORDS: Final = {
    "contains_text": "{!r}",
    "screen_regex": "the pattern {!r}",
    "transcript_contains": "the printed text {!r}",
    "transcript_regex": "the printed pattern {!r}",
    "text_absent": "{!r} to be gone",
    "title": "the title {!r}",
    "cursor_at": "the cursor at row {0.row} column {0.col}",
    "screen_changed": "a change of the screen",
    "screen_stable": "no change for {0.min_ms} ms",
    "process_exited": "the exit",
    "exit_code": "the exit with code {}",
    "lua": "the predicate {0.plugin}.{0.predicate}",
}
"""A matcher in words, by its tag; another one is named by its tag."""


def matcher_words(matcher: matchers.Matcher) -> str:
    """Return a matcher in words, as in: any of 'done', the exit."""
    match matcher:
        case matchers.AnyOf(several):
            return f"any of {', '.join(map(matcher_words, several))}"
        case matchers.AllOf(several):
            return f"all of {', '.join(map(matcher_words, several))}"
        case matchers.Not(inner):
            return f"not {matcher_words(inner)}"
        case _:
            tag = str(matcher.__struct_config__.tag)
            return _MATCHER_WORDS.get(tag, tag).format(getattr(matcher, "value", None))
