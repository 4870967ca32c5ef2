"""A failed test for people: a text for pytest's report, and data for the HTML page.

Both come from the traces of the test's terminals, which are masked. The data is JSON, compressed
and in base64, so that it travels in a report from a worker of xdist to its controller. It is kept
below `limits.FAILURE_BYTES` by leaving out frames between others.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from bisect import bisect_left
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from telex.redaction import Redactor
from telex.terminal.playback import Playback
from telex.terminal.recording import NotARecording, OutputEvent, SizeEvent, read_recording
from telex.testing import limits
from telex.testing.golden_diff import differences
from telex.testing.golden_file import GoldenCell, GoldenScreen, from_cells, text_rows
from telex.testing.golden_fixture import GoldenMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from telex.terminal.recording import Recording
    from telex.testing.terminal_trace import TerminalTrace, TraceStep

BURST_SECONDS: Final = 0.02
"""Output that follows so closely belongs to the same frame."""
MESSAGE_CHARS: Final = 2000
STEPS_TOLD: Final = 12
"""The last steps in the text; the page has all."""


# The text.


def summary(traces: Sequence[TerminalTrace], recordings: Sequence[str]) -> str:
    """Return the last screen and the last steps of each terminal, for pytest's report.

    Args:
        traces: The terminals of the test, finished.
        recordings: The kept recordings, by their names for people.
    """
    lines: list[str] = []
    for number, trace in enumerate(traces, 1):
        which = f"terminal {number} of {len(traces)}: " if len(traces) > 1 else ""
        ended = f", {trace.exit_words}" if trace.exit_words else ""
        lines.append(f"{which}{trace.command}{ended}")
        skipped = len(trace.steps) - STEPS_TOLD
        lines += [f"  … {skipped} earlier steps"] if skipped > 0 else []
        lines += [_step_line(step) for step in trace.steps[-STEPS_TOLD:]]
        screen = trace.screen
        at = "hidden" if screen.cursor is None else "row {} column {}".format(*screen.cursor)
        lines.append(f"  the last screen, {screen.cols}x{len(screen.rows)}, cursor {at}:")
        lines += [f"  | {row}".rstrip() for row in text_rows(screen)]
    lines += [f"recording: {name}  (telex replay {name})" for name in recordings]
    return "\n".join(lines)


def _step_line(step: TraceStep) -> str:
    took = f" ({step.took * 1000:.0f} ms)" if step.took >= 0.001 else ""
    problem = f": {step.problem}" if step.problem else ""
    return f"  {step.at:7.3f} s  {step.what}{took}{problem}"


# The data.


def encode_failure(
    test: str, phase: str, error: BaseException | None, traces: Sequence[TerminalTrace]
) -> str:
    """Return the data of a failed test for the page.

    Args:
        test: The node id.
        phase: `setup`, `call` or `teardown`.
        error: The exception that failed the test.
        traces: The terminals of the test, finished.
    """
    data: dict[str, Any] = {
        "test": test,
        "phase": phase,
        "error": "" if error is None else type(error).__name__,
        "message": "" if error is None else Redactor().redact(_message(error))[:MESSAGE_CHARS],
        "golden": _golden(error),
    }
    frames, steps = [_frames(trace) for trace in traces], 200
    while True:
        terminals = [_terminal(*one, steps) for one in zip(traces, frames, strict=True)]
        packed = _packed({**data, "terminals": terminals})
        if len(packed) <= limits.FAILURE_BYTES or not (steps or data["golden"]):
            return packed
        if any(len(one) > 1 for one in frames):
            frames = [_thinned(one) for one in frames]
        elif any(frames):  # even one frame is too much: noise, or a very large screen
            frames = [[] for _ in frames]
        elif steps:
            steps //= 4
        else:
            data["golden"] = None


def _packed(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode()


def _message(error: BaseException) -> str:
    """Return the message without the screens, which the page draws."""
    message = str(error)
    if isinstance(error, GoldenMismatch):
        lines = message.split("\n")
        return f"{lines[0]}\n{lines[-1]}"
    return message.partition("\nthe screen:\n")[0]


Frame = tuple[float, GoldenScreen]


def _thinned(frames: list[Frame]) -> list[Frame]:
    """Leave out every second frame, but not the last."""
    return frames[:-1][::2] + frames[-1:] if len(frames) > 2 else frames[-1:]


def _frames(trace: TerminalTrace) -> list[Frame]:
    steps = [step.at for step in trace.steps]
    frames = list(_recorded_frames(trace.recording, steps)) if trace.recording is not None else []
    last = (frames[-1][0] if frames else 0.0, trace.screen)
    if not frames or frames[-1][1] != trace.screen:
        at = max([last[0], *[step.at + step.took for step in trace.steps]])
        frames.append((at, trace.screen))
    while len(frames) > limits.FAILURE_FRAMES:
        frames = _thinned(frames)
    return frames


def _recorded_frames(path: Path, steps: Sequence[float]) -> Iterator[Frame]:
    """Play a recording, and yield each screen that stood for a moment, or at a step of the test."""
    try:
        with path.open("rb") as file:
            recording = read_recording(file.readlines(limits.REPLAYED_BYTES))
    except (OSError, NotARecording):
        return
    yield from _played(recording, steps)


def _played(recording: Recording, steps: Sequence[float]) -> Iterator[Frame]:
    shown: GoldenScreen | None = None
    drawn = [one.time for one in recording.events if isinstance(one, OutputEvent | SizeEvent)]
    with Playback(recording) as playback:
        for at, following in zip(playback.steps(), (*drawn[1:], math.inf), strict=False):
            apart = following - at >= BURST_SECONDS
            if apart or bisect_left(steps, at) < bisect_left(steps, following):
                now = from_cells(playback.snapshot())
                if now != shown:
                    shown = now
                    yield at, now


def _terminal(trace: TerminalTrace, frames: list[Frame], steps: int) -> dict[str, Any]:
    table: dict[str, int] = {}
    encoded = [_frame(at, screen, table) for at, screen in frames]
    return {
        "command": trace.command,
        "exit": trace.exit_words,
        "steps": [
            [round(step.at, 4), step.kind, step.what, round(step.took, 4), step.problem]
            for step in (trace.steps[-steps:] if steps else ())
        ],
        "rows": [json.loads(row) for row in table],
        "frames": encoded,
    }


def _frame(at: float, screen: GoldenScreen, table: dict[str, int]) -> dict[str, Any]:
    """Return a frame whose rows are numbers in a table that the frames of a terminal share."""
    rows = [json.dumps(_runs(row), ensure_ascii=False) for row in screen.rows]
    return {
        "at": round(at, 4),
        "cols": screen.cols,
        "rows": [table.setdefault(row, len(table)) for row in rows],
        "cursor": screen.cursor,
        "title": screen.title,
    }


def _runs(row: Sequence[GoldenCell]) -> list[list[Any]]:
    """Return a row as runs `[style, text]`; a character that may not be one cell wide stands alone,
    as `[style, text, cells]`."""
    runs: list[list[Any]] = []
    for (style, simple), members in groupby(row, key=lambda cell: (cell.style, _simple(cell))):
        cells = list(members)
        if simple:
            runs.append([style, "".join([cell.text for cell in cells])])
            continue
        for cell in cells:
            if cell.text:
                runs.append([style, cell.text, 1])
            elif runs:
                runs[-1][2:] = [2]
    while runs and not runs[-1][0] and not runs[-1][1].strip(" "):
        runs.pop()
    return runs


def _simple(cell: GoldenCell) -> bool:
    return len(cell.text) == 1 and ("─" <= cell.text <= "▟" or cell.text < "\u0180")


def _golden(error: BaseException | None) -> dict[str, Any] | None:
    """Return both screens of a mismatch, and the changed cells."""
    if not isinstance(error, GoldenMismatch):
        return None
    table: dict[str, int] = {}
    found = differences(error.expected, error.actual)
    return {
        "expected": _frame(0, error.expected, table),
        "actual": _frame(0, error.actual, table),
        "rows": [json.loads(row) for row in table],
        "words": [str(one) for one in found[:60]],
        "changed": [[one.row, one.first, one.last] for one in found if one.row is not None],
    }
