"""`telex replay`: play a recording in this terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli.console import warn

if TYPE_CHECKING:
    from telex.terminal.recording import Recording

HELP = """Play a recording in this terminal.

FILE is an asciicast of version 2 or 3. Space pauses and continues; q and Ctrl-C end it. If stdout
is not a terminal, everything is printed at once.

The terminal obeys the recorded bytes as it obeyed the program: only play recordings of programs
that you would run.

\b
  telex replay demo.cast
  telex replay --speed 2 --max-pause 1 demo.cast
  telex replay demo.cast > demo.txt
"""


@click.command(help=HELP)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Playback speed; 2 is twice as fast.",
)
@click.option(
    "--max-pause",
    type=click.FloatRange(min=0),
    help="Longest pause in seconds; by default that of the recording.",
)
@click.option("--fast", is_flag=True, help="Play without pauses.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def command(speed: float, max_pause: float | None, fast: bool, file: Path) -> int:
    from telex.passthrough.player import PlaybackPace, replay

    recording = read_file(file)
    at_once = fast or not sys.stdout.isatty()
    if not at_once:
        _warn_of_size(recording)
    return replay(recording, PlaybackPace(speed, max_pause, at_once))


def read_file(file: Path) -> Recording:
    """Read a recording for a command. A recording that was cut off is told on stderr."""
    from telex.terminal.recording import NotARecording, read_recording

    try:
        with file.open("rb") as lines:
            recording = read_recording(lines)
    except NotARecording as error:
        raise click.ClickException(f"{file} is not a whole recording: {error}") from error
    if recording.cut_line is not None:
        warn(f"{file} was cut off in line {recording.cut_line}; it is read up to that line")
    return recording


def _warn_of_size(recording: Recording) -> None:
    from telex.passthrough.person_terminal import terminal_size

    wanted, here = recording.header.size, terminal_size()
    if wanted.rows > here.rows or wanted.cols > here.cols:
        warn(
            f"the recording is {wanted} (columns x rows), this terminal only {here}; "
            "enlarge the terminal, or it will look wrong"
        )
