"""The screens of a recording: one moment of it, each in turn, or any of them at once.

`Playback` draws a recording on a screen, as a terminal would have. Getting one moment costs all
output before it. `FrameIndex` keeps every screen of a recording in memory, so that any moment costs
a few milliseconds after the first reading. It keeps rows, which are values, and not states of the
emulator: a state that is restored lacks what was hidden, such as the screen below an alternate one.
Nothing is kept in a file, so no file can be stale.

Pure: a recording in, snapshots out. `recording_search` and `recording_comparison` use it. Snapshots
are not redacted; `masked` is.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import zlib
from array import array
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Self

from telex.terminal import limits
from telex.terminal.cells import Cursor, Size, Style
from telex.terminal.libghostty import LAYOUT
from telex.terminal.packed_rows import CELL_BYTES, Packed, PackedRow, RowUnpacker
from telex.terminal.recording import OutputEvent, SizeEvent
from telex.terminal.redact import hide_parts, mask, secrets_in
from telex.terminal.screen import Screen
from telex.terminal.session import OURS
from telex.terminal.transcript import strip_escapes
from telex.wire.demux import Demux
from telex.wire.events import Visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from telex.redaction import Redactor
    from telex.terminal.cells import Row, Snapshot
    from telex.terminal.recording import RecordedEvent, Recording


_SEARCHED_CHARS: Final = 4 * 1024 * 1024
"""Of the output, searched for secrets of which a screen shows a part: a few seconds at most."""


class Playback:
    """A recording drawn on a screen, event by event. Close it, or use it in `with`."""

    def __init__(self, recording: Recording) -> None:
        self.screen = Screen(recording.header.size)
        self.step = 0
        """The number of outputs and resizes so far."""
        self._demux = Demux(OURS)
        self._events = recording.events
        self._next = 0
        self._secrets: frozenset[str] | None = None
        """Those in the output, once they are needed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.screen.close()

    def play(self, until: float) -> None:
        """Draw everything up to a time, and at that time."""
        while self._next < len(self._events) and self._events[self._next].time <= until:
            self._draw(self._events[self._next])
            self._next += 1

    def steps(self) -> Iterator[float]:
        """Draw the rest, and yield the time of each output and each resize after it was drawn."""
        while self._next < len(self._events):
            event = self._events[self._next]
            self._next += 1
            if self._draw(event):
                yield event.time

    def _draw(self, event: RecordedEvent) -> bool:
        match event:
            case OutputEvent():
                self.output(event.text)
            case SizeEvent():
                self.resize(event.size)
            case _:
                return False
        return True

    def output(self, text: str) -> None:
        """Draw output. Control strings for telex are not drawn, as in a session."""
        self.step += 1
        for event in self._demux.feed(text.encode("utf-8", "replace")):
            if isinstance(event, Visible):
                self.screen.feed(event.data)

    def resize(self, size: Size) -> None:
        """Change the size. A size without cells is that of a terminal without a window."""
        self.step += 1
        if size.rows and size.cols:
            self.screen.resize(size)

    def snapshot(self) -> Snapshot:
        """Return the present screen, with its secrets."""
        return self.screen.snapshot(self.step)

    def masked(self, redactor: Redactor | None) -> Snapshot:
        """Return the present screen without its secrets, also without the parts of those that the
        recording has elsewhere; without a redactor, with them."""
        seen = self.snapshot()
        if redactor is None:
            return seen
        if self._secrets is None:
            texts = [event.text for event in self._events if isinstance(event, OutputEvent)]
            printed = strip_escapes("".join(texts)[:_SEARCHED_CHARS])
            self._secrets = frozenset(secrets_in(printed, redactor))
        return hide_parts(mask(seen, redactor, self._above()), self._secrets)

    def _above(self) -> tuple[Row, ...]:
        total = self.screen.scrollback_length
        count = min(total, limits.MASKED_ABOVE_ROWS)
        return self.screen.scrollback(total - count, count) if count else ()


SEGMENT_STEPS: Final = 64
SEGMENT_BYTES: Final = 96 * 1024
"""The snapshots that are compressed together, and the bytes of their rows: few enough that reading
all of them takes a millisecond."""


class FrameIndex:
    """Every screen of one recording. The recording is read as far as it is needed, once."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._playback = Playback(recording)
        self._steps = self._playback.steps()
        self._times = array("d", [0.0])
        self._segments: list[bytes] = []
        self._starts: list[int] = []
        """The number of the first snapshot of each segment."""
        self._open = [self._playback.snapshot()]
        """The last snapshots, not yet compressed."""
        self._open_bytes = 0
        self._read: tuple[int, list[Snapshot]] = (-1, [])
        """The segment read last."""
        self._ended = False

    def frame(self, at: float) -> Snapshot:
        """Return the screen at a time; after the end, the last one."""
        while not self._ended and self._times[-1] <= at:
            self._advance()
        number = max(0, bisect_right(self._times, at) - 1)
        compressed = len(self._times) - len(self._open)
        if number >= compressed:
            return self._open[number - compressed]
        segment = bisect_right(self._starts, number) - 1
        if self._read[0] != segment:
            self._read = segment, _unpacked(self._segments[segment])
        return self._read[1][number - self._starts[segment]]

    @property
    def kept_bytes(self) -> int:
        """The memory of the compressed snapshots."""
        return sum(map(len, self._segments))

    def _advance(self) -> None:
        time = next(self._steps, None)
        if time is None:
            self._ended = True
            self._playback.screen.close()
            return
        before, now = self._open[-1].rows, self._playback.snapshot()
        if now.rows is not before:
            old = set(before)
            fresh = sum([row not in old for row in now.rows])
            self._open_bytes += fresh * now.size.cols * CELL_BYTES
        if len(self._open) >= SEGMENT_STEPS or self._open_bytes >= SEGMENT_BYTES:
            self._starts.append(len(self._times) - len(self._open))
            self._segments.append(_packed(self._open))
            self._open = []
            self._open_bytes = len(now.rows) * now.size.cols * CELL_BYTES
        self._times.append(time)
        self._open.append(now)


# A segment is pickled, because pickle writes a row that several snapshots share once, and refers to
# it from then on. The bytes never leave the process, so reading them runs nothing foreign.


_UNPACKER: Final = RowUnpacker(LAYOUT)


def _row(packed: Packed, text: str) -> PackedRow:
    return PackedRow(packed, text, _UNPACKER)


def _by_fields(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Write a small value as a call with its fields: pickle's own way to read it is slow."""
    read = attrgetter(*kind.__slots__)
    return lambda value: (kind, read(value))


class _SnapshotPickler(pickle.Pickler):
    dispatch_table = copyreg.dispatch_table | {
        PackedRow: lambda row: (_row, (row.packed, row.text)),
        Cursor: _by_fields(Cursor),
        Size: _by_fields(Size),
        Style: _by_fields(Style),
    }


def _packed(snapshots: list[Snapshot]) -> bytes:
    written = io.BytesIO()
    _SnapshotPickler(written, pickle.HIGHEST_PROTOCOL).dump(snapshots)
    return zlib.compress(written.getbuffer(), 1)


def _unpacked(segment: bytes) -> list[Snapshot]:
    snapshots: list[Any] = pickle.loads(zlib.decompress(segment))
    return snapshots
