"""Where the screens of two recordings differ, without regard to their times.

Two runs of one program never have the same times, and their output is cut into other pieces. So the
comparison is by *steps*: screens that stood, because the program paused, because something was
typed, because a marker was set, or because the program left the alternate screen or ended. A step
of one recording that the other passed without a pause is no difference: it is looked for among all
screens between two steps of the other, character by character.

Pure; used by `telex diff`.
"""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from telex.terminal import limits
from telex.terminal.cells import Size
from telex.terminal.playback import Playback
from telex.terminal.recording import (
    ExitEvent,
    InputEvent,
    MarkerEvent,
    OutputEvent,
    SizeEvent,
)
from telex.terminal.screen_difference import differences
from telex.terminal.shown_screen import from_cells, shown_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from telex.redaction import Redactor
    from telex.terminal.cells import Row, Snapshot
    from telex.terminal.patterns import Pattern
    from telex.terminal.recording import Recording
    from telex.terminal.screen_difference import ScreenDifference

PAUSE_SECONDS: Final = 0.1
"""The pause after which a screen counts as a step."""
_KEPT_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """A step of one of the recordings, without its secrets."""

    number: int
    """Counted from 1."""
    time: float
    screen: Snapshot


@dataclass(frozen=True, slots=True)
class RecordingDifference:
    """The result of a comparison of two recordings that differ."""

    first: tuple[ComparedStep, ComparedStep] | None
    """The first steps that differ; None if only the end does."""
    last: tuple[ComparedStep, ComparedStep]
    """The last steps, which may be the same."""
    exits: tuple[int | None, int | None]
    """The exit codes; None for a recording that has none."""
    same_end: bool
    """Whether the last screens are the same."""
    ignored: Sequence[Pattern] = ()

    @property
    def first_is_last(self) -> bool:
        """Whether the first difference is the one at the end."""
        first = self.first or ()
        return [step.number for step in first] == [step.number for step in self.last]

    def told(self, old: ComparedStep, new: ComparedStep) -> list[ScreenDifference]:
        """Return how two steps differ, also beside ignored text."""
        found = differences(from_cells(old.screen), from_cells(new.screen))
        return [one for one in found if one.row is None or not self._ignores(one.row, old, new)]

    def _ignores(self, row: int, *steps: ComparedStep) -> bool:
        """Return whether two rows differ in nothing but ignored text."""
        texts = [step.screen.rows[row].text for step in steps if row < len(step.screen.rows)]
        left = [_without(self.ignored, text) for text in texts]
        return len(set(left)) == 1 and left != texts


def compare(
    old: Recording,
    new: Recording,
    redactor: Redactor | None,
    *,
    pause: float = PAUSE_SECONDS,
    ignored: Sequence[Pattern] = (),
) -> RecordingDifference | int:
    """Compare two recordings. Return their difference; if there is none, the number of steps.

    Text that matches one of the `ignored` patterns is equal to any other such text.
    """
    streams = _Stream.of(old, pause), _Stream.of(new, pause)
    exits = _exit(old), _exit(new)
    common = _common_length(streams[0].text, streams[1].text)
    same_size = old.header.size == new.header.size
    identical = common == len(streams[0].text) == len(streams[1].text) and same_size
    if identical and exits[0] == exits[1]:
        return len(streams[0].ends)
    left, right = _Player(streams[0], old, redactor), _Player(streams[1], new, redactor)
    with closing(left), closing(right):
        if same_size:
            begin = max([0, *[end.at for end in streams[0].ends if end.at <= common]])
            left.skip(begin)
            right.skip(begin)
        return _Comparison(left, right, ignored).run(exits)


def _exit(recording: Recording) -> int | None:
    codes = [event.code for event in recording.events if isinstance(event, ExitEvent)]
    return codes[-1] if codes else None


# The output as one text. A resize is written into it between marks that no output contains.


_MARK: Final = "\ud800"
_LEAVES: Final = re.compile(r"\x1b\[\?(?:47|1047|1049)l")
_SIZE: Final = f"{_MARK}(?P<size>[^{_MARK}]*){_MARK}"
_RESIZE: Final = re.compile(f"{_SIZE}|[^{_MARK}]+")
_LINE: Final = re.compile(f"{_SIZE}|[^{_MARK}\\n]*\\n|[^{_MARK}\\n]+")
_TOKEN: Final = re.compile(
    f"{_SIZE}"
    r"|(?:\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-Z\\^-~])+"
    r"|.",
    re.DOTALL,
)


class _StepEnd(NamedTuple):
    """The place in a stream where a step ends, and its time."""

    at: int
    time: float


@dataclass(frozen=True, slots=True)
class _Stream:
    """The output of a recording, and the places where it paused."""

    text: str
    ends: tuple[_StepEnd, ...]

    @classmethod
    def of(cls, recording: Recording, pause: float) -> _Stream:
        parts: list[str] = []
        ends: list[_StepEnd] = []
        size, last = 0, 0.0
        for event in recording.events:
            match event:
                case OutputEvent():
                    text = event.text.replace(_MARK, "")
                    if size and event.time - last >= pause:
                        ends.append(_StepEnd(size, last))
                    leaves = [size + found.start() for found in _LEAVES.finditer(text)]
                    ends += [_StepEnd(at, event.time) for at in leaves if at]
                case SizeEvent():
                    text = f"{_MARK}{event.size}{_MARK}"
                case InputEvent() | MarkerEvent():
                    ends.append(_StepEnd(size, last))
                    continue
                case _:
                    continue
            parts.append(text)
            size += len(text)
            last = event.time
        ends.append(_StepEnd(size, last))
        return cls("".join(parts), tuple({end.at: end for end in ends}.values()))


def _common_length(old: str, new: str) -> int:
    """Return the length of the longest common beginning."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class _StreamPlayback:
    """A stream drawn up to a place."""

    def __init__(self, stream: _Stream, recording: Recording) -> None:
        self.playback = Playback(recording)
        self.at = 0
        self._text = stream.text

    def draw(self, to: int) -> None:
        """Draw everything up to a place."""
        for _ in self._pieces(to, _RESIZE):
            pass

    def screens(self, to: int) -> list[tuple[Row, ...]]:
        """Draw everything up to a place, and return all screens on the way, from the present one
        on: after each character or, for much text, after each line."""
        found = [self.playback.screen.rows()]
        fine = to - self.at <= limits.COMPARED_CHARS
        for _ in self._pieces(to, _TOKEN if fine else _LINE):
            rows = self.playback.screen.rows()
            if rows is not found[-1]:
                found.append(rows)
        return found

    def _pieces(self, to: int, piece: re.Pattern[str]) -> Iterator[None]:
        text, self.at = self._text[self.at : to], to
        for match in piece.finditer(text):
            if match["size"] is None:
                self.playback.output(match[0])
            elif size := Size.parse(match["size"]):
                self.playback.resize(size)
            yield


class _Stretch:
    """The screens from one step to the next. The step itself is the last."""

    def __init__(self, text: str, rows: tuple[Row, ...], behind: _StreamPlayback) -> None:
        self.text = text
        self.rows = rows
        self._behind = behind
        self._screens: list[tuple[Row, ...]] | None = None

    def passed(self, step: _Stretch, same: Callable[..., bool]) -> bool:
        """Return whether the screen of another step is among these, and drop all before it.

        If the other output begins this one, only the screen after it is looked at. Else all
        screens are, from the step before on: a program may show that again.
        """
        if self._screens is None and self.text.startswith(step.text):
            self._behind.draw(self._behind.at + len(step.text))
            self.text = self.text[len(step.text) :]
            return same(step.rows, self._behind.playback.screen.rows())
        if self._screens is None:
            self._screens = self._behind.screens(self._behind.at + len(self.text))
        for number, rows in enumerate(self._screens):
            if same(step.rows, rows):
                self._screens = self._screens[number:]
                return True
        return False


class _Player:
    """Draws a recording up to each step in turn. A second playback stays one step behind, for the
    screens between two steps, which are seldom needed."""

    def __init__(self, stream: _Stream, recording: Recording, redactor: Redactor | None) -> None:
        self._stream = stream
        self._ends = stream.ends
        self._ahead = _StreamPlayback(stream, recording)
        self._behind = _StreamPlayback(stream, recording)
        self._redactor = redactor
        self.step_number = 0
        """The number of steps drawn."""

    def close(self) -> None:
        for each in (self._ahead, self._behind):
            each.playback.screen.close()

    def skip(self, to: int | None = None) -> None:
        """Draw everything up to a place, by default the end, without looking."""
        to = self._ends[-1].at if to is None else to
        self._ahead.draw(to)
        self.step_number = sum([end.at <= to for end in self._ends])

    def screen(self) -> Snapshot:
        """Return the present screen, with its secrets."""
        return self._ahead.playback.snapshot()

    def step(self) -> ComparedStep:
        """Return the step that was drawn last; the empty screen is step 0."""
        time = self._ends[self.step_number - 1].time if self.step_number else 0.0
        return ComparedStep(self.step_number, time, self._ahead.playback.masked(self._redactor))

    def next(self) -> _Stretch | None:
        """Draw up to the next step."""
        if self.step_number == len(self._ends):
            return None
        end = self._ends[self.step_number].at
        self.step_number += 1
        begin = self._ahead.at
        self._behind.draw(begin)
        self._ahead.draw(end)
        text = self._stream.text[begin:end]
        return _Stretch(text, self._ahead.playback.screen.rows(), self._behind)


class _Comparison:
    """Walks through the steps of two recordings together."""

    def __init__(self, old: _Player, new: _Player, ignored: Sequence[Pattern]) -> None:
        self._old, self._new = old, new
        self._ignored = ignored
        self._texts: dict[Row, str] = {}
        self._equal: dict[Row, Row] = {}
        """Rows that look the same; most are compared again with the next step."""

    def run(self, exits: tuple[int | None, int | None]) -> RecordingDifference | int:
        first = self._first()
        self._old.skip()
        self._new.skip()
        same_end = self._same_screen(self._old.screen(), self._new.screen())
        if first is None and same_end and exits[0] == exits[1]:
            return self._steps
        last = self._old.step(), self._new.step()
        return RecordingDifference(first, last, exits, same_end, self._ignored)

    def _first(self) -> tuple[ComparedStep, ComparedStep] | None:
        """Return the first steps that differ. A step that the other recording passed without a
        pause is left out."""
        last, self._steps = self._old.screen().rows, self._old.step_number
        old, new = self._old.next(), self._new.next()
        while old is not None and new is not None:
            if self._same(old.rows, new.rows):
                last, self._steps = old.rows, self._steps + 1
                old, new = self._old.next(), self._new.next()
            elif new.passed(old, self._same) and (more := self._old.next()):
                old = more
            elif old.passed(new, self._same) and (more := self._new.next()):
                new = more
            else:
                return self._old.step(), self._new.step()
        return self._more(last, old or new)

    def _more(
        self, last: tuple[Row, ...], more: _Stretch | None
    ) -> tuple[ComparedStep, ComparedStep] | None:
        """Return the first step that one recording has after the end of the other."""
        while more is not None:
            if not self._same(last, more.rows):
                return self._old.step(), self._new.step()
            more = self._old.next() or self._new.next()
        return None

    def _same_screen(self, old: Snapshot, new: Snapshot) -> bool:
        """Return whether rows, title and cursor are the same. A cursor beside ignored text may be
        anywhere."""
        row = old.rows[old.cursor.row]
        shown = from_cells(old), from_cells(new)
        titles = [_without(self._ignored, one.title) for one in shown]
        return (
            self._same(old.rows, new.rows)
            and titles[0] == titles[1]
            and (shown[0].cursor == shown[1].cursor or self._text(row) != row.text)
        )

    def _same(self, old: tuple[Row, ...], new: tuple[Row, ...]) -> bool:
        if len(old) != len(new) or old[0].cols != new[0].cols:
            return False
        unknown = [
            pair for pair in zip(old, new, strict=True) if self._equal.get(pair[0]) is not pair[1]
        ]
        if any(self._text(before) != self._text(after) for before, after in unknown):
            return False
        if len(self._equal) > _KEPT_ROWS:
            self._equal.clear()
        for before, after in unknown:
            if self._text(before) is before.text:
                shown = [shown_row(row, row.cols) for row in (before, after)]
                if shown[0] != shown[1]:
                    return False
            self._equal[before] = after
        return True

    def _text(self, row: Row) -> str:
        """Return the text to compare; that of the row itself if nothing in it is ignored."""
        if not self._ignored:
            return row.text
        if row not in self._texts:
            if len(self._texts) > _KEPT_ROWS:
                self._texts.clear()
            self._texts[row] = _without(self._ignored, row.text)
        return self._texts[row]


def _without(ignored: Sequence[Pattern], text: str) -> str:
    """Return the text with a NUL for each match; the same object if nothing matches."""
    for pattern in ignored:
        at, parts = 0, []
        for match in pattern.finditer(text):
            start, end = match.span
            parts += [text[at:start], "\0"]
            at = end
        text = "".join([*parts, text[at:]]) if parts else text
    return text
