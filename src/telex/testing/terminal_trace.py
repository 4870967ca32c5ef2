"""The trace of one terminal in a test: what was typed, what was waited for, and its screens.

`TracedCaller` stands between a terminal and its session and notes every call, so that the methods
of `Terminal` and everything built on them are seen alike. The screens over time are a recording.
All of it is masked before it leaves this file: typed text is left out if the terminal did not echo
it, or the program did not show it (`told`), the redactor masks the rest, and a secret that was
found in either way is hidden also elsewhere (`conceal`), and where only a part of it is left on the
screen (`hide`).
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import time
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from telex.automation import protocol as spec
from telex.automation.errors import SessionProblem
from telex.redaction import Redactor
from telex.terminal import actions
from telex.terminal.line_discipline import LineSettings
from telex.terminal.raw_transcript import FileFailed
from telex.terminal.recording import SessionRecorder
from telex.terminal.redact import FILL, Masker, hide_parts, hide_parts_of_text, mask, secrets_in
from telex.terminal.shown_screen import from_cells
from telex.terminal.transcript import strip_escapes
from telex.terminal.waits import matchers
from telex.testing import limits
from telex.testing.golden_file import GoldenScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
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
    typed: TypedStep | None = None


@dataclass(frozen=True, slots=True)
class TypedStep:
    """A typed text, not masked. It stays in memory."""

    text: str
    echoed: bool
    """Whether the kernel echoes what is typed."""
    shown: bool
    """Whether anybody echoes it: the kernel, or the program that reads key by key."""
    cursor: int
    """The place in the transcript before it."""


class TerminalTrace:
    """The steps of one terminal, its last screen, and its recording."""

    def __init__(self, session: PtySession, recording: Path | None) -> None:
        """Begin with a session that was just started. Without a path nothing is recorded."""
        self._redactor = _redactor()
        self._line = self._redactor.redact_command(shlex.join(session.program.argv))
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
        return from_cells(self.hide(mask(snapshot, self._redactor, above)))

    @property
    def command(self) -> str:
        """The command and its arguments. Call `finish` first."""
        return cut(self.conceal(self._line), limits.COMMAND_CHARS)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The secrets that were printed, or typed and not shown. Call `finish` first."""
        assert self._last is not None
        printed = strip_escapes(self._session.transcript.tail(limits.SEARCHED_CHARS))
        rows = "\n".join([row.text for row in self._last[0].rows])
        found = secrets_in(printed, self._redactor) | secrets_in(rows, self._redactor)
        return frozenset(found.union(*[self._own_secrets(run) for run in self._runs]))

    def _own_secrets(self, run: list[int]) -> set[str]:
        """Return the unseen fields of a typed text. A word that the program had shown before, such
        as a command of its help, is no secret elsewhere."""
        transcript, typed = self._session.transcript, self._typed_in(run)
        begin = typed[0].cursor
        printed = transcript.tail(transcript.cursor - transcript.start)
        before = strip_escapes(printed[: max(begin - transcript.start, 0)])
        public = all(one.shown for one in typed)
        return {one for one in self._unseen(run) if not (public and one in before)}

    def conceal(self, text: str, fill: str = "") -> str:
        """Return a text without the known secrets and parts of them, also where a report has cut or
        quoted one. With `fill` each character is replaced by it."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            if len(secret) > _SHORT:
                for form in (secret, repr(secret)[1:-1]):
                    text = text.replace(form, fill * len(form) or self._redactor.replacement)
                text = _without_cut(text, secret)
        long = [one for one in self.secrets if len(one) > _SHORT]
        return hide_parts_of_text(text, long, fill, self._redactor.replacement)

    def keep_recording(self, target: Path) -> bool:
        """Copy the recording, without the known secrets; return whether there was one."""
        if self.recording is None or not self.recording.exists():
            return False
        with self.recording.open("rb") as recorded, target.open("wb") as kept:
            target.chmod(0o600)
            kept.writelines([_concealed_line(line, self.conceal) for line in recorded])
        return True

    def hide(self, snapshot: Snapshot) -> Snapshot:
        """Hide parts of known secrets in a masked screen: a program may have drawn a secret in
        pieces, or over the half of it, so that no rule recognises the rest."""
        return hide_parts(snapshot, [one for one in self.secrets if len(one) > _SHORT])

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
                what = cut(self.clean(f"wait for {matcher_words(params.matcher)}"))
                return "wait", what + limit
            case spec.ResizeTo():
                return "resize", f"resize to {params.cols}x{params.rows}"
            case _:
                return None

    def _input_words(self, action: actions.Action) -> str:
        """Return an input in words; `told` adds the typed text."""
        match action:
            case actions.Text() | actions.StreamText():
                return "type"
            case actions.Paste() | actions.BracketedPaste():
                return "paste"
            case actions.Key(key):
                return "press" if len(key) == 1 else f"press {self.clean(key)}"
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

    def typed(self, params: object) -> TypedStep | None:
        """Return the text that a call types; None if it types none."""
        text = typed_text(params.action) if isinstance(params, spec.Input) else ""
        if not text:
            return None
        session = self._session
        settings = LineSettings() if session.closed else session.pty.line_settings()
        shown = settings.echo or not settings.canonical
        return TypedStep(text, settings.echo, shown, session.transcript.cursor)

    @cached_property
    def _runs(self) -> list[list[int]]:
        """The numbers of steps that typed one text: key by key, up to the end of a field."""
        runs, run = list[list[int]](), list[int]()
        for number, step in enumerate([*self.steps, None]):
            ends = step is None or (step.kind == "type" and step.typed is None)
            if run and (ends or _ENDS.search(self._text_of(run[-1]))):
                runs.append(run)
                run = []
            if step is not None and step.typed is not None:
                run.append(number)
        return runs

    @cached_property
    def told(self) -> list[TraceStep]:
        """The steps, masked. A text that was typed key by key is judged as a whole."""
        told = list(self.steps)
        for run in self._runs:
            self._tell(run, told)
        return [
            replace(step, what=self.conceal(step.what), problem=self.conceal(step.problem))
            for step in told
        ]

    def _text_of(self, number: int) -> str:
        typed = self.steps[number].typed
        return typed.text if typed is not None else ""

    def _tell(self, run: list[int], told: list[TraceStep]) -> None:
        """Add the typed texts to the words of some steps, or their length if they are secret."""
        text = "".join(map(self._text_of, run))
        masked = self.conceal(self.clean(text))
        part = len(text.strip()) > _SHORT and any(text.strip() in one for one in self.secrets)
        silent = any(not typed.shown for typed in self._typed_in(run))
        whole = part or silent or (len(run) > 1 and masked != text) or bool(self._unseen(run))
        for number in run:
            typed = self._text_of(number)
            kept = masked if len(run) == 1 else typed
            shown = _counted(len(typed)) if whole else repr(kept)
            told[number] = replace(told[number], what=cut(f"{told[number].what} {shown}"))

    def _typed_in(self, run: list[int]) -> list[TypedStep]:
        return [typed for number in run if (typed := self.steps[number].typed) is not None]

    def _unseen(self, run: list[int]) -> list[str]:
        """Return the fields of a typed text that did not come to the screen. Fewer than four
        characters are commands of the program."""
        typed = self._typed_in(run)
        silent = any(not one.shown for one in typed)
        if typed[0].echoed and not silent:
            return []
        printed = strip_escapes(self._session.transcript.since(typed[0].cursor).text)
        joined = "".join(printed.split())
        fields = [
            field.strip() for field in _FIELD_ENDS.split("".join([one.text for one in typed]))
        ]
        return [
            field
            for field in fields
            if len(field) > _SHORT
            and (silent or (len({*field}) > 1 and not _is_printed("".join(field.split()), joined)))
        ]


def _without_cut(text: str, secret: str) -> str:
    """Return a text without the beginning of a secret before a sign that something was cut."""
    head, *rest = text.split("…")
    for piece in rest:
        most = min(len(secret) - 1, len(head))
        begins = (n for n in range(most, _SHORT, -1) if head[-n] == secret[0])
        begun = next((n for n in begins if head.endswith(secret[:n])), 0)
        head = f"{head[: len(head) - begun]}…{piece}"
    return head


def _is_printed(field: str, printed: str) -> bool:
    """Return whether all of a field was printed, but perhaps for its first key, which may be the
    command that opened it. A program draws a long field in pieces."""
    return any(
        all(text[at : at + _SEEN] in printed for at in [*range(0, last, _SEEN), max(last, 0)])
        for text in (field, field[1:])
        if len(text) > _SHORT
        for last in [len(text) - _SEEN]
    )


def _concealed_line(line: bytes, conceal: Callable[..., str]) -> bytes:
    """Return a line of a recording without secrets: an event, or the header."""
    try:
        told = json.loads(line)
    except ValueError:  # a full disk cut it
        return b""
    match told:
        case [time, kind, str(text)] if (shown := conceal(text, FILL)) != text:
            return json.dumps([time, kind, shown]).encode() + b"\n"
        case {"command": str(command)} if (shown := conceal(command)) != command:
            return json.dumps({**told, "command": shown}).encode() + b"\n"
    return line


def typed_text(action: actions.Action) -> str:
    match action:
        case actions.Text(text) | actions.Paste(text) | actions.BracketedPaste(text):
            return text
        case actions.StreamText(streamed):
            return streamed.text
        case actions.Key(key) if len(key) == 1:
            return key
        case _:
            return ""


def _counted(count: int) -> str:
    return f"{count} hidden character{'' if count == 1 else 's'}"


def cut(text: str, most: int = 200) -> str:
    """Return a text from outside, with a sign where it is too long for a report."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


_SEEN: Final = 12
"""The length of the pieces in which a typed field must have been printed."""
_SHORT: Final = 3
"""A text that is not longer is in half of all others."""
_ENDS: Final = re.compile(r"[\r\n\t]\Z")
_FIELD_ENDS: Final = re.compile(r"[\r\n\t]+")


class TracedCaller:
    """A `Caller` that notes each call in a trace."""

    def __init__(self, caller: Caller, trace: TerminalTrace) -> None:
        self.caller = caller
        self.trace = trace
        self.chunks: ChunkRouter = caller.chunks
        self._in_step: ContextVar[bool] = ContextVar("in_step", default=False)

    async def call(self, method: str, params: object, returns: type[T]) -> T:
        __tracebackhide__ = True
        if method == "session.close":
            self.trace.finish()
        said = self.trace.words(params)
        if said is None or self._in_step.get():
            return await self.caller.call(method, params, returns)
        with self._noted(*said, self.trace.typed(params)):
            return await self.caller.call(method, params, returns)

    def step(self, kind: str, words: str) -> AbstractContextManager[None]:
        """Note the calls of the block, in the same task, as one step."""
        return self._noted(kind, cut(self.trace.clean(words)), None)

    @contextlib.contextmanager
    def _noted(self, kind: str, words: str, typed: TypedStep | None) -> Iterator[None]:
        __tracebackhide__ = True
        at = self.trace.now()
        problem = "was cancelled"
        inner = self._in_step.set(True)
        try:
            yield
            problem = ""
        except SessionProblem as error:
            problem = cut(self.trace.clean(str(error.args[0]).partition("\n")[0]))
            raise
        finally:
            self._in_step.reset(inner)
            took = self.trace.now() - at
            self.trace.add(TraceStep(at, kind, words, took, problem, typed))

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
    "input_wanted": "a wait for input",
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
