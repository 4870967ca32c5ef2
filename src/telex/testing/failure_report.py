"""A failed test for people: a text for pytest's report, and data for the HTML page.

Both come from the traces of the test's terminals, which are masked. The data is JSON, compressed
and in base64, so that it travels in a report from a worker of xdist to its controller. It is kept
below `limits.FAILURE_BYTES` by leaving out frames between others.
"""

from __future__ import annotations

import base64
import json
import linecache
import math
import os
import sysconfig
import traceback
import zlib
from bisect import bisect_left
from itertools import groupby
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final

from telex.automation.errors import SessionProblem
from telex.redaction import Redactor
from telex.terminal.playback import Playback
from telex.terminal.recording import NotARecording, OutputEvent, SizeEvent, read_recording
from telex.terminal.redact import FILL
from telex.terminal.screen_difference import differences
from telex.terminal.shown_screen import from_cells, row_text, text_rows
from telex.testing import limits
from telex.testing.golden_file import GoldenCell, GoldenScreen
from telex.testing.golden_fixture import GoldenMismatch, MissingGolden
from telex.testing.terminal_trace import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from telex.terminal.recording import Recording
    from telex.testing.terminal_trace import TerminalTrace, TraceStep

BURST_SECONDS: Final = 0.02
"""Output that follows so closely belongs to the same frame."""
MESSAGE_CHARS: Final = 2000
LINES_TOLD: Final = 8
"""Of one call in the source of a test."""
CALLS_TOLD: Final = 3
LINE_CHARS: Final = 600
_NOT_THE_TEST: Final = tuple(
    [
        os.path.join(place, "")
        for place in (
            os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
            *[sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")],
        )
    ]
)
"""Where source is that no test is written in."""
SCREEN: Final = "\nthe screen:\n"
"""Stands before the screen in the message of an exception."""
INVERSE_TOLD: Final = 5
STEPS_TOLD: Final = 12
"""The last steps in the text; the page has all."""


# The text.


def summary(
    traces: Sequence[TerminalTrace], recordings: Sequence[str], error: BaseException | None = None
) -> str:
    """Return the last screen and the last steps of each terminal, for pytest's report.

    Args:
        traces: The terminals of the test, finished.
        recordings: The kept recordings, by their names for people.
        error: The exception. If its message shows the screen, the text does not repeat it.
    """
    shows = isinstance(error, SessionProblem | MissingGolden) and SCREEN in str(error)
    told = len(traces) == 1 and shows
    lines: list[str] = []
    for number, trace in enumerate(traces, 1):
        which = f"terminal {number} of {len(traces)}: " if len(traces) > 1 else ""
        ended = f", {trace.exit_words}" if trace.exit_words else ""
        lines.append(f"{which}{trace.command}{ended}")
        skipped = len(trace.told) - STEPS_TOLD
        lines += [f"  … {skipped} earlier steps"] if skipped > 0 else []
        lines += [_step_line(step) for step in trace.told[-STEPS_TOLD:]]
        screen = trace.screen
        at = "hidden" if screen.cursor is None else "row {} column {}".format(*screen.cursor)
        where = " is shown above" if told else ""
        colon = "" if told else ":"
        size = f"{screen.cols}x{len(screen.rows)}"
        lines.append(f"  the last screen{where}, {size}, cursor {at}{colon}")
        lines += [] if told else [f"  | {row}".rstrip() for row in text_rows(screen)]
        lines += [f"  inverse: {one}" for one in _inverse(screen)[:INVERSE_TOLD]]
    lines += [f"recording: {name}  (telex replay {name})" for name in recordings]
    return "\n".join(lines)


def _inverse(screen: GoldenScreen) -> list[str]:
    """Return the inverse texts with their places, which a text cannot show."""
    found = []
    for number, row in enumerate(screen.rows):
        col = 0
        for inverse, members in groupby(row, key=lambda cell: "inverse" in cell.style.split()):
            cells = list(members)
            if inverse:
                last = col + len(cells) - 1
                found.append(f"row {number}, columns {col}-{last}: {row_text(cells)!r}")
            col += len(cells)
    return found


def _step_line(step: TraceStep) -> str:
    took = f" ({step.took * 1000:.0f} ms)" if step.took >= 0.001 else ""
    problem = f": {step.problem}" if step.problem else ""
    return f"  {step.at:7.3f} s  {step.what}{took}{problem}"


# The data.


def encode_failure(
    test: str,
    phase: str,
    error: BaseException | None,
    traces: Sequence[TerminalTrace],
    shown: Callable[[str], str] = str,
) -> str:
    """Return the data of a failed test for the page.

    Args:
        test: The node id.
        phase: `setup`, `call` or `teardown`.
        error: The exception that failed the test.
        traces: The terminals of the test, finished.
        shown: Returns the path of a source file as a person would write it.
    """
    message = "" if error is None else Redactor().redact(_message(error))
    data: dict[str, Any] = {
        "test": cut(_concealed(Redactor().redact(test), traces), limits.COMMAND_CHARS),
        "phase": phase,
        "error": "" if error is None else cut(type(error).__name__),
        "message": cut(_concealed(message, traces), MESSAGE_CHARS),
        "lines": _lines(error, traces, shown),
        "golden": _golden(error, traces),
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


def _concealed(text: str, traces: Sequence[TerminalTrace], fill: str = "") -> str:
    """Return a text without what any of the terminals hides."""
    for trace in traces:
        text = trace.conceal(text, fill)
    return text


def _packed(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode()


def _message(error: BaseException) -> str:
    """Return the message without the screens, which the page draws."""
    message = str(error)
    if isinstance(error, GoldenMismatch):
        lines = message.split("\n")
        return f"{lines[0]}\n{lines[-1]}"
    return message.partition(SCREEN)[0]


def _lines(
    error: BaseException | None, traces: Sequence[TerminalTrace], shown: Callable[[str], str]
) -> list[list[str]]:
    """Return place and source of the lines of the test at which it failed, the innermost last.
    Secrets that the redactor does not know are hidden as in the steps."""
    called = traceback.extract_tb(error.__traceback__ if error is not None else None)
    found = []
    for one in [one for one in called if not one.filename.startswith(_NOT_THE_TEST)]:
        first = one.lineno or 1
        last = min(one.end_lineno or first, first + LINES_TOLD - 1)
        source = dedent(
            "".join([linecache.getline(one.filename, n) for n in range(first, last + 1)])
        )
        told = [f"{shown(one.filename)}:{first}", source.strip()]
        found.append(
            [cut(Redactor().redact(_concealed(text, traces)), LINE_CHARS) for text in told]
        )
    return [one for one in found if one[1]][-CALLS_TOLD:]


Frame = tuple[float, GoldenScreen]


def _thinned(frames: list[Frame]) -> list[Frame]:
    """Leave out every second frame, but not the last."""
    return frames[:-1][::2] + frames[-1:] if len(frames) > 2 else frames[-1:]


def _frames(trace: TerminalTrace) -> list[Frame]:
    steps = [step.at for step in trace.steps]
    frames = list(_recorded_frames(trace, steps))
    last = (frames[-1][0] if frames else 0.0, trace.screen)
    if not frames or frames[-1][1] != trace.screen:
        at = max([last[0], *[step.at + step.took for step in trace.steps]])
        frames.append((at, trace.screen))
    while len(frames) > limits.FAILURE_FRAMES:
        frames = _thinned(frames)
    return frames


def _recorded_frames(trace: TerminalTrace, steps: Sequence[float]) -> Iterator[Frame]:
    """Play a recording, and yield each screen that stood for a moment, or at a step of the test."""
    if trace.recording is None:
        return
    try:
        with trace.recording.open("rb") as file:
            recording = read_recording(file.readlines(limits.REPLAYED_BYTES))
    except (OSError, NotARecording):
        return
    yield from _played(recording, steps, trace)


def _played(recording: Recording, steps: Sequence[float], trace: TerminalTrace) -> Iterator[Frame]:
    shown: GoldenScreen | None = None
    redactor = Redactor()
    drawn = [one.time for one in recording.events if isinstance(one, OutputEvent | SizeEvent)]
    with Playback(recording) as playback:
        for at, following in zip(playback.steps(), (*drawn[1:], math.inf), strict=False):
            apart = following - at >= BURST_SECONDS
            if apart or bisect_left(steps, at) < bisect_left(steps, following):
                now = from_cells(trace.hide(playback.masked(redactor)))
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
            [
                round(step.at, 4),
                step.kind,
                cut(step.what, 250),
                round(step.took, 4),
                cut(step.problem),
            ]
            for step in (trace.told[-steps:] if steps else ())
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
        "title": cut(screen.title),
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


def _golden(error: BaseException | None, traces: Sequence[TerminalTrace]) -> dict[str, Any] | None:
    """Return both screens of a mismatch, and the changed cells."""
    if not isinstance(error, GoldenMismatch):
        return None
    table: dict[str, int] = {}
    found = differences(error.expected, error.actual)
    return {
        "expected": _frame(0, error.expected, table),
        "actual": _frame(0, error.actual, table),
        "rows": [
            [[style, _concealed(text, traces, FILL), *cells] for style, text, *cells in row]
            for row in map(json.loads, table)
        ],
        "words": [cut(_concealed(str(one), traces)) for one in found[:60]],
        "changed": [[one.row, one.first, one.last] for one in found if one.row is not None],
    }
