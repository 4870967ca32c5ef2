"""`telex when`, `telex frame` and `telex diff`: search, draw and compare recordings."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from telex.cli.configuration import load_config, redactor_of
from telex.cli.console import explain, say
from telex.cli.record import read_file
from telex.cli.shot import Picture, picture_options

if TYPE_CHECKING:
    from telex.terminal.patterns import Pattern
    from telex.terminal.recording import Recording
    from telex.terminal.recording_comparison import ComparedStep, RecordingDifference
    from telex.terminal.recording_search import Sighting
    from telex.terminal.screen_difference import ScreenDifference

WHEN_HELP = """Show when a text stood on the screen of a recording.

FILE is an asciicast of version 2 or 3. Each line of the answer is one time that the text was on the
screen: when it appeared, when it was gone (or "end"), where it appeared, and its whole line. Times
are in seconds since the beginning, for `telex frame --at`; rows and columns are counted from 0. The
exit code is 0 if the text was found, 1 if not, and 2 if FILE is not a recording.

A line that was too long for its row is searched as one line. A text that scrolls, or is redrawn at
its place within 0.1 s, has not gone.

The search reads the screens as they were recorded; the lines that are shown are masked, unless
--raw is given.

\b
  telex when demo.cast error
  telex when --regex demo.cast 'passed|failed'
  telex frame demo.cast --at 12.300412 -o error.png
"""


@click.command(help=WHEN_HELP)
@click.option("-e", "--regex", is_flag=True, help="TEXT is a regular expression (RE2).")
@click.option("-i", "--ignore-case", is_flag=True, help="Upper and lower case are the same.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option("--raw", is_flag=True, help="Do not mask secrets.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("text")
@click.pass_context
def when_command(
    context: click.Context,
    regex: bool,
    ignore_case: bool,
    as_json: bool,
    raw: bool,
    file: Path,
    text: str,
) -> int:
    from telex.terminal.recording_search import search

    pattern = _pattern(text, regex, ignore_case)
    redactor = None if raw else redactor_of(load_config(context).settings)
    recording = read_file(file)
    found = search(recording, pattern, redactor)
    if as_json:
        say(json.dumps([asdict(one) for one in found], ensure_ascii=False))
    else:
        for one in found:
            say(_sighting_line(one))
    if not found:
        explain(f"telex: {text!r} never stood on the screen of {file}")
    return 0 if found else 1


def _pattern(text: str, regex: bool, ignore_case: bool) -> Pattern:
    from telex.terminal.patterns import Pattern, PatternError
    from telex.terminal.recording_search import text_pattern

    if not text:
        raise click.UsageError("TEXT is empty")
    if not regex:
        return text_pattern(text, ignore_case=ignore_case)
    try:
        return Pattern(f"(?i){text}" if ignore_case else text)
    except PatternError as error:
        raise click.UsageError(f"{text!r} is not a regular expression: {error}") from error


def _sighting_line(one: Sighting) -> str:
    gone = "end" if one.gone is None else f"{one.gone:.6f}"
    place = f"row {one.row}, column {one.col}"
    return f"{one.appeared:12.6f} {gone:>12}  {place:<19} {one.line}"


FRAME_HELP = """Show the screen of a recording at one time.

FILE is an asciicast of version 2 or 3. The time is in seconds since its beginning, as `telex when`
prints it. The screen is that after everything printed up to that time. If it is blank, because a
program left its full screen, for example, stderr has the last time at which it was not.

The picture is text on stdout, or a file whose suffix chooses the format: .txt, .ansi (text with
colours), .svg, .html or .png. Secrets on the screen are masked unless --raw is given.

\b
  telex frame demo.cast --at 12.3
  telex frame demo.cast --at end -o last.png
"""


def _time(_: click.Context, __: click.Parameter, given: str) -> float:
    try:
        at = math.inf if given == "end" else float(given)
    except ValueError:
        at = math.nan
    if not at >= 0 or (math.isinf(at) and given != "end"):
        raise click.BadParameter(f"{given!r} is not a time in seconds, as in 12.3, or end")
    return at


@click.command(help=FRAME_HELP)
@click.option(
    "--at",
    default="end",
    show_default=True,
    metavar="SECONDS|end",
    callback=_time,
    help="Time since the beginning.",
)
@picture_options
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_context
def frame_command(context: click.Context, /, at: float, file: Path, **options: Any) -> None:
    from telex.terminal.playback import Playback

    picture = Picture.of(context, **options)
    recording = read_file(file)
    if recording.duration < at < math.inf:
        explain(f"telex: note: {file} ends at {recording.duration:.6f} s; this is its last screen")
    with Playback(recording) as playback:
        playback.play(at)
        seen = playback.masked(picture.redactor)
    if not seen.plain_text and (said := _before_blank(recording, at)):
        explain(f"telex: note: {said}")
    picture.write(seen)


def _before_blank(recording: Recording, at: float) -> str:
    """Return since when the screen is blank, and the time to ask for instead; empty if it always
    was. Several events may have the same time, and the screen after the last of them counts."""
    from telex.terminal.playback import Playback

    shown: tuple[float, bool] | None = None
    gone = 0.0
    with Playback(recording) as playback:
        last = 0.0, False, False  # time, whether there is text, whether it is a full screen
        for time in chain(playback.steps(), [math.inf]):
            if time > last[0]:
                shown, gone = (last[::2], time) if last[1] else (shown, gone)
            if time > at:
                break
            text = any(row.text.strip() for row in playback.screen.rows())
            last = time, text, playback.screen.alternate_screen
    if shown is None:
        return ""
    what = "the program left its full screen" if shown[1] else "the screen was cleared"
    return f"{what} at {gone:.6f} s, and this is blank; try --at {shown[0]:.6f}"


DIFF_HELP = """Show where the screens of two recordings differ.

A and B are asciicasts of version 2 or 3, such as two runs of one test. Times do not matter, nor how
the output was cut into pieces. Compared are the steps: screens that stood, because the program
paused, because something was typed, because a marker was set, or because the program left the
alternate screen or ended. A step that the other recording passed without a pause is no difference.

The answer has the first difference and the difference at the end, row by row in words; rows and
columns are counted from 0. Of each, 10 rows are shown; --all shows every row. Secrets are masked
unless --raw is given. The exit code is 0 if the recordings are the same, 1 if they differ, and 2 if
A or B is not a recording.

--ignore is for text that changes with each run, such as times; it can be repeated.

\b
  telex diff good.cast bad.cast
  telex diff --ignore '[0-9.]+ ?m?s' good.cast bad.cast
"""


ROWS_SHOWN = 10
"""Rows of one difference: with their words, no more than a screen."""


def _patterns(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[Pattern]:
    from telex.terminal.patterns import Pattern, PatternError

    try:
        return [Pattern(source) for source in given]
    except PatternError as error:
        raise click.BadParameter(f"not a regular expression: {error}") from error


@click.command(help=DIFF_HELP)
@click.option(
    "--ignore",
    "ignored",
    metavar="REGEX",
    multiple=True,
    callback=_patterns,
    help="Text that matches is equal to any other text that matches.",
)
@click.option(
    "--pause",
    type=click.FloatRange(min=0),
    default=0.1,
    show_default=True,
    help="Seconds without output after which a screen counts as a step.",
)
@click.option("--all", "everything", is_flag=True, help="Show every row that differs.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option("--raw", is_flag=True, help="Do not mask secrets.")
@click.argument("a", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("b", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_context
def diff_command(
    context: click.Context,
    ignored: list[Pattern],
    pause: float,
    everything: bool,
    as_json: bool,
    raw: bool,
    a: Path,
    b: Path,
) -> int:
    from telex.terminal.recording_comparison import compare

    redactor = None if raw else redactor_of(load_config(context).settings)
    found = compare(read_file(a), read_file(b), redactor, pause=pause, ignored=ignored)
    if isinstance(found, int):
        said = f"no difference in {found} step{'s' if found != 1 else ''}"
        say(json.dumps({"same": True, "steps": found}) if as_json else said)
        return 0
    if as_json:
        say(json.dumps(_facts(found), ensure_ascii=False))
    else:
        _tell(found, a, b, None if everything else ROWS_SHOWN)
    return 1


def _tell(found: RecordingDifference, a: Path, b: Path, most: int | None) -> None:
    if found.first is not None:
        say(f"first difference: {_place(found.first[0], a)}; {_place(found.first[1], b)}")
        _tell_screens(found, *found.first, most)
    if not found.same_end and not found.first_is_last:
        say(f"at the end: {_place(found.last[0], a)}; {_place(found.last[1], b)}")
        _tell_screens(found, *found.last, most)
    if found.same_end:
        say("at the end the screens are the same")
    if found.exits[0] != found.exits[1]:
        old, new = ["none" if code is None else str(code) for code in found.exits]
        say(f"exit code: {old} → {new}")


def _place(step: ComparedStep, file: Path) -> str:
    return f"{file} step {step.number} at {step.time:.6f} s"


def _tell_screens(
    found: RecordingDifference, old: ComparedStep, new: ComparedStep, most: int | None
) -> None:
    told = found.told(old, new)
    rows = _rows(told, old, new)
    for row in rows[:most]:
        for said in row["says"]:
            say(f"  {said}")
        say(f"    - {row['old']}")
        say(f"    + {row['new']}")
    if rows[most or len(rows) :]:
        say(f"  … and {len(rows) - len(rows[:most])} more rows; --all shows them")
    for one in told:
        if one.row is None:
            say(f"  {one}")
    if not told:
        say("  only masked text differs; --raw shows it")


def _rows(
    told: list[ScreenDifference], old: ComparedStep, new: ComparedStep
) -> list[dict[str, Any]]:
    """Return the rows that differ: the places in words, and both texts."""
    rows = []
    for number, places in groupby(told, key=lambda one: one.row):
        if number is not None:
            texts = [
                step.screen.rows[number].text if number < len(step.screen.rows) else ""
                for step in (old, new)
            ]
            says = list(map(str, places))
            rows.append({"row": number, "says": says, "old": texts[0], "new": texts[1]})
    return rows


def _facts(found: RecordingDifference) -> dict[str, Any]:
    return {
        "same": False,
        "first": None if found.first is None else _screens(found, *found.first),
        "end": {"same": found.same_end, **_screens(found, *found.last)},
        "exit_codes": found.exits,
    }


def _screens(found: RecordingDifference, old: ComparedStep, new: ComparedStep) -> dict[str, Any]:
    told = found.told(old, new)
    return {
        "a": {"step": old.number, "time": old.time},
        "b": {"step": new.number, "time": new.time},
        "rows": _rows(told, old, new),
        "screen": [str(one) for one in told if one.row is None],
    }
