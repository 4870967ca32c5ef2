"""`telex diff`: where the screens of two recordings differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from telex.cli.configuration import load_config, redactor_of
from telex.cli.console import say
from telex.cli.replay import read_file

if TYPE_CHECKING:
    from telex.terminal.patterns import Pattern
    from telex.terminal.recording_comparison import ComparedStep, RecordingDifference

HELP = """Show where the screens of two recordings differ.

A and B are asciicasts of version 2 or 3, such as two runs of one test. Times do not matter, nor how
the output was cut into pieces. Compared are the steps: screens that stood, because the program
paused, because something was typed, because a marker was set, or because the program left the
alternate screen or ended. A step that the other recording passed without a pause is no difference.

The answer has the first difference and the difference at the end, row by row in words; rows and
columns are counted from 0. Secrets are masked unless --raw is given. The exit code is 0 if the
recordings are the same, and 1 if they differ.

--ignore is for text that changes with each run, such as times; it can be repeated.

\b
  telex diff good.cast bad.cast
  telex diff --ignore '[0-9.]+ ?m?s' good.cast bad.cast
"""


def _patterns(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[Pattern]:
    from telex.terminal.patterns import Pattern, PatternError

    try:
        return [Pattern(source) for source in given]
    except PatternError as error:
        raise click.BadParameter(f"not a regular expression: {error}") from error


@click.command(help=HELP)
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
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option("--raw", is_flag=True, help="Do not mask secrets.")
@click.argument("a", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("b", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_context
def command(
    context: click.Context,
    ignored: list[Pattern],
    pause: float,
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
        _tell(found, a, b)
    return 1


def _tell(found: RecordingDifference, a: Path, b: Path) -> None:
    if found.first is not None:
        say(f"first difference: {_place(found.first[0], a)}; {_place(found.first[1], b)}")
        _tell_screens(found, *found.first)
    if not found.same_end and not found.first_is_last:
        say(f"at the end: {_place(found.last[0], a)}; {_place(found.last[1], b)}")
        _tell_screens(found, *found.last)
    if found.same_end:
        say("at the end the screens are the same")
    if found.exits[0] != found.exits[1]:
        old, new = ["none" if code is None else str(code) for code in found.exits]
        say(f"exit code: {old} → {new}")


def _place(step: ComparedStep, file: Path) -> str:
    return f"{file} step {step.number} at {step.time:.6f} s"


def _tell_screens(found: RecordingDifference, old: ComparedStep, new: ComparedStep) -> None:
    from telex.terminal.screen_difference import screen_differences

    rows = found.rows(old, new)
    other = screen_differences(old.screen, new.screen)
    for row in rows:
        for said in row.says:
            say(f"  {said}")
        say(f"    - {row.old}")
        say(f"    + {row.new}")
    for said in other:
        say(f"  {said}")
    if not rows and not other:
        say("  only masked text differs; --raw shows it")


def _facts(found: RecordingDifference) -> dict[str, Any]:
    return {
        "same": False,
        "first": None if found.first is None else _screens(found, *found.first),
        "end": {"same": found.same_end, **_screens(found, *found.last)},
        "exit_codes": found.exits,
    }


def _screens(found: RecordingDifference, old: ComparedStep, new: ComparedStep) -> dict[str, Any]:
    from dataclasses import asdict

    from telex.terminal.screen_difference import screen_differences

    return {
        "a": {"step": old.number, "time": old.time},
        "b": {"step": new.number, "time": new.time},
        "rows": [asdict(row) for row in found.rows(old, new)],
        "screen": screen_differences(old.screen, new.screen),
    }
