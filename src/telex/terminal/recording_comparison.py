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
from telex.terminal.screen_difference import same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.redaction import Redactor
    from telex.terminal.cells import Row, Snapshot
    from telex.terminal.patterns import Pattern
    from telex.terminal.recording import Recording

PAUSE_SECONDS: Final = 0.1
"""The pause after which a screen counts as a step."""
_KEPT_TEXTS: Final = 10_000


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

    @property
    def first_is_last(self) -> bool:
        """Whether the first difference is the one at the end."""
        first = self.first or ()
        return [step.number for step in first] == [step.number for step in self.last]


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
    with Playback(old) as left, Playback(new) as right:
        players = _Player(streams[0], left, redactor), _Player(streams[1], right, redactor)
        if same_size:
            begin = max([0, *[end.at for end in streams[0].ends if end.at <= common]])
            for player in players:
                player.skip(begin)
        return _Comparison(*players, ignored).run(exits)


def _exit(recording: Recording) -> int | None:
    codes = [event.code for event in recording.events if isinstance(event, ExitEvent)]
    return codes[-1] if codes else None


# The output as one text. A resize is written into it between marks that no output contains.


_MARK: Final = "\ud800"
_LEAVES: Final = re.compile(r"\x1b\[\?(?:47|1047|1049)l")
_TOKEN: Final = re.compile(
    rf"{_MARK}[^{_MARK}]*{_MARK}"
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


class _Stretch(NamedTuple):
    """The screens from one step to the next; the last is the step itself."""

    screens: list[tuple[Row, ...]]
    """The first is the step before, which a program may show again."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.screens[-1]


class _Player:
    """Draws a stream up to each step in turn."""

    def __init__(self, stream: _Stream, playback: Playback, redactor: Redactor | None) -> None:
        self._stream = stream
        self._playback = playback
        self._redactor = redactor
        self._at = 0
        self.step_number = 0
        """The number of steps drawn."""

    def skip(self, to: int | None = None) -> None:
        """Draw everything up to a place, by default the end, without looking."""
        to = self._stream.ends[-1].at if to is None else to
        for _ in self._draw(to, fine=False):
            pass
        self.step_number = sum([end.at <= to for end in self._stream.ends])

    def screen(self) -> Snapshot:
        """Return the present screen, with its secrets."""
        return self._playback.snapshot()

    def step(self) -> ComparedStep:
        """Return the step that was drawn last; the empty screen is step 0."""
        time = self._stream.ends[self.step_number - 1].time if self.step_number else 0.0
        return ComparedStep(self.step_number, time, self._playback.masked(self._redactor))

    def next(self) -> _Stretch | None:
        """Draw up to the next step, and return all screens on the way."""
        if self.step_number == len(self._stream.ends):
            return None
        end = self._stream.ends[self.step_number]
        self.step_number += 1
        screens = [self._playback.screen.rows()]
        fine = end.at - self._at <= limits.COMPARED_CHARS
        for _ in self._draw(end.at, fine=fine):
            rows = self._playback.screen.rows()
            if rows is not screens[-1]:
                screens.append(rows)
        return _Stretch(screens)

    def _draw(self, to: int, *, fine: bool) -> Iterator[None]:
        """Draw up to a place, and yield after each character or, for much text, each line."""
        text, self._at = self._stream.text[self._at : to], to
        parts = re.split(f"(\n|{_MARK}[^{_MARK}]*{_MARK})", text)
        pieces = [match[0] for match in _TOKEN.finditer(text)] if fine else parts
        for piece in pieces:
            if not piece:
                continue
            size = Size.parse(piece.strip(_MARK)) if piece.startswith(_MARK) else None
            if size is not None:
                self._playback.resize(size)
            else:
                self._playback.output(piece)
            yield


class _Comparison:
    """Walks through the steps of two recordings together."""

    def __init__(self, old: _Player, new: _Player, ignored: Sequence[Pattern]) -> None:
        self._old, self._new = old, new
        self._ignored = ignored
        self._texts: dict[Row, str] = {}

    def run(self, exits: tuple[int | None, int | None]) -> RecordingDifference | int:
        first = self._first()
        self._old.skip()
        self._new.skip()
        same_end = self._same_screen(self._old.screen(), self._new.screen())
        if first is None and same_end and exits[0] == exits[1]:
            return self._steps
        return RecordingDifference(first, (self._old.step(), self._new.step()), exits, same_end)

    def _first(self) -> tuple[ComparedStep, ComparedStep] | None:
        """Return the first steps that differ. A step that the other recording passed without a
        pause is left out."""
        last, self._steps = self._old.screen().rows, self._old.step_number
        old, new = self._old.next(), self._new.next()
        while old is not None and new is not None:
            if self._same(old.rows, new.rows):
                last, self._steps = old.rows, self._steps + 1
                old, new = self._old.next(), self._new.next()
            elif (rest := self._passed(old, new)) is not None and (more := self._old.next()):
                old, new = more, rest
            elif (rest := self._passed(new, old)) is not None and (more := self._new.next()):
                old, new = rest, more
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

    def _passed(self, step: _Stretch, other: _Stretch) -> _Stretch | None:
        """Return the part of the other stretch after the screen of a step; None if it has none."""
        for number, rows in enumerate(other.screens):
            if self._same(step.rows, rows):
                return _Stretch(other.screens[number:])
        return None

    def _same_screen(self, old: Snapshot, new: Snapshot) -> bool:
        """Return whether rows, title and cursor are the same. A cursor beside ignored text may be
        anywhere."""
        row = old.rows[old.cursor.row]
        return (
            self._same(old.rows, new.rows)
            and self._without_ignored(old.title or "") == self._without_ignored(new.title or "")
            and (old.cursor == new.cursor or self._text(row) != row.text)
        )

    def _same(self, old: tuple[Row, ...], new: tuple[Row, ...]) -> bool:
        if len(old) != len(new) or old[0].cols != new[0].cols:
            return False
        for before, after in zip(old, new, strict=True):
            if self._text(before) != self._text(after):
                return False
        return all(
            self._text(before) is not before.text or same_rows(before, after)
            for before, after in zip(old, new, strict=True)
        )

    def _text(self, row: Row) -> str:
        """Return the text to compare; that of the row itself if nothing in it is ignored."""
        if not self._ignored:
            return row.text
        if row not in self._texts:
            if len(self._texts) > _KEPT_TEXTS:
                self._texts.clear()
            self._texts[row] = self._without_ignored(row.text)
        return self._texts[row]

    def _without_ignored(self, text: str) -> str:
        for pattern in self._ignored:
            at, parts = 0, []
            for match in pattern.finditer(text):
                start, end = match.span
                parts += [text[at:start], "\0"]
                at = end
            text = "".join([*parts, text[at:]]) if parts else text
        return text
