"""Recordings: any moment of one, the times at which a text stood on its screen, and differences.

A recording is an asciicast of version 2 or 3, such as `Terminal.record` and `telex record` write.
The commands `telex frame`, `telex when` and `telex diff` answer the same questions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from telex.match import matcher
from telex.terminal.patterns import Pattern
from telex.terminal.playback import FrameIndex
from telex.terminal.recording import NotARecording, read_recording
from telex.terminal.recording_comparison import RecordingDifference, compare
from telex.terminal.recording_search import Sighting, search, text_pattern
from telex.terminal.waits.matchers import ScreenRegex

if TYPE_CHECKING:
    import os
    import re

    from telex.terminal.cells import Snapshot
    from telex.terminal.recording import Recording

__all__ = ["NotARecording", "RecordedScreens", "Sighting", "read"]


def __dir__() -> list[str]:
    return __all__


def read(path: str | os.PathLike[str]) -> RecordedScreens:
    """Read a recording.

    Args:
        path: An asciicast of version 2 or 3. An incomplete last line is skipped.

    Raises:
        NotARecording: The file is something else, or damaged. The text names the line.
        OSError: The file cannot be read.

    Example:
        with telex.spawn("echo hello") as term:
            term.record("demo.cast")
            term.wait("hello")
        recording = telex.recordings.read("demo.cast")
        assert "hello" in recording.text()
    """
    with Path(path).open("rb") as lines:
        return RecordedScreens(read_recording(lines))


class RecordedScreens:
    """The screens of a recording. The first look at a moment reads everything up to it; from then
    on any moment takes a few milliseconds.

    The screens are as they were recorded. A recording is redacted when it is made, unless its maker
    chose otherwise; nothing more is masked here.
    """

    __module__ = "telex.recordings"

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._index = FrameIndex(recording)

    def __repr__(self) -> str:
        return f"<RecordedScreens of {self.duration:g} s>"

    @property
    def duration(self) -> float:
        """The time of the last event, in seconds since the beginning."""
        return self._recording.duration

    def text(self, at: float | None = None) -> str:
        """Return the text of the screen at a time.

        Args:
            at: Seconds since the beginning; None for the end.

        Returns:
            The rows joined by newlines, without blanks at their ends and blank rows at the end.
        """
        return self._frame(at).plain_text

    def screenshot(self, path: str | os.PathLike[str], at: float | None = None) -> Path:
        """Draw the screen at a time to a file. Its suffix selects the kind of picture: .png, .svg,
        .html, .ansi (text with colours) or .txt.

        Args:
            path: The file. It is replaced if it exists.
            at: Seconds since the beginning; None for the end.

        Returns:
            The path of the file.

        Raises:
            ValueError: The suffix is unknown, or a PNG would be too large.
        """
        from telex.terminal.pictures import draw, kind_of, write_picture

        path = Path(path)
        write_picture(path, draw(self._frame(at), kind_of(path)))
        return path

    def when(self, text: str | re.Pattern[str]) -> list[Sighting]:
        """Return each time that a text stood on the screen, in the order of appearance.

        A text that scrolls, or is redrawn at its place within 0.1 s, has not gone.

        Args:
            text: A text, or a pattern that is matched in each line; a line that was too long for
                its row is one line.

        Example:
            with telex.spawn("echo hello") as term:
                term.record("hello.cast")
                term.wait("hello")
            recording = telex.recordings.read("hello.cast")
            for seen in recording.when("hello"):
                print(seen.appeared, seen.gone, seen.row, seen.col, seen.line)
        """
        return search(self._recording, _pattern(text), None)

    def differences(
        self, other: RecordedScreens, *, ignore: tuple[str | re.Pattern[str], ...] = ()
    ) -> list[str]:
        """Compare with another recording, without regard to times.

        Args:
            other: The recording to compare with.
            ignore: Texts and patterns that change with each run; text that matches one is equal to
                any other text that matches it.

        Returns:
            The first difference in words, a line for each place; empty if there is none.
        """
        ignored = [_pattern(one) for one in ignore]
        found = compare(self._recording, other._recording, None, ignored=ignored)
        return _words(found) if isinstance(found, RecordingDifference) else []

    def _frame(self, at: float | None) -> Snapshot:
        return self._index.frame(float("inf") if at is None else at)


def _pattern(given: str | re.Pattern[str]) -> Pattern:
    match matcher(given):
        case ScreenRegex(value=source):
            return Pattern(source)
        case _:
            return text_pattern(str(given))


def _words(found: RecordingDifference) -> list[str]:
    words: list[str] = []
    if found.first is not None or not found.same_end:
        old, new = found.first or found.last
        words += map(str, found.told(old, new))
    if found.exits[0] != found.exits[1]:
        words.append(f"exit code: {found.exits[0]} → {found.exits[1]}")
    return words
