"""`telex frame`: one screen of a recording, as text or as a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from telex.cli.console import explain
from telex.cli.picture import Picture, picture_options
from telex.cli.replay import read_file

HELP = """Show the screen of a recording at one time.

FILE is an asciicast of version 2 or 3. The time is in seconds since its beginning, as `telex when`
prints it. The screen is that after everything printed up to that time.

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


@click.command(help=HELP)
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
def command(context: click.Context, /, at: float, file: Path, **options: Any) -> None:
    from telex.terminal.playback import Playback

    picture = Picture.of(context, **options)
    recording = read_file(file)
    if recording.duration < at < math.inf:
        explain(f"telex: note: {file} ends at {recording.duration:.6f} s; this is its last screen")
    with Playback(recording) as playback:
        playback.play(at)
        seen = playback.masked(picture.redactor)
    picture.write(seen)
