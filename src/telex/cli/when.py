"""`telex when`: the times at which a text stood on the screen of a recording."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli.configuration import load_config, redactor_of
from telex.cli.console import explain, say
from telex.cli.replay import read_file

if TYPE_CHECKING:
    from telex.terminal.patterns import Pattern
    from telex.terminal.recording_search import Sighting

HELP = """Show when a text stood on the screen of a recording.

FILE is an asciicast of version 2 or 3. Each line of the answer is one time that the text was on the
screen: when it appeared, when it was gone (or "end"), where it appeared, and its whole line. Times
are in seconds since the beginning, for `telex frame --at`; rows and columns are counted from 0. The
exit code is 0 if the text was found, and 1 if not.

A line that was too long for its row is searched as one line. A text that scrolls, or is redrawn at
its place within 0.1 s, has not gone.

The search reads the screens as they were recorded; the lines that are shown are masked, unless
--raw is given.

\b
  telex when demo.cast error
  telex when --regex demo.cast 'passed|failed'
  telex frame demo.cast --at 12.300412 -o error.png
"""


@click.command(help=HELP)
@click.option("-e", "--regex", is_flag=True, help="TEXT is a regular expression (RE2).")
@click.option("-i", "--ignore-case", is_flag=True, help="Upper and lower case are the same.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option("--raw", is_flag=True, help="Do not mask secrets.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("text")
@click.pass_context
def command(
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
            say(_line(one))
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


def _line(one: Sighting) -> str:
    gone = "end" if one.gone is None else f"{one.gone:.6f}"
    place = f"row {one.row}, column {one.col}"
    return f"{one.appeared:12.6f} {gone:>12}  {place:<19} {one.line}"
