"""`telex record` and `telex replay`: `telex run` with a recording, and its playback."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli.configuration import load_config
from telex.cli.console import explain, warn
from telex.cli.run import hosted, program_or_shell

if TYPE_CHECKING:
    from telex.passthrough.run_recorder import RecordOptions, RunRecorder
    from telex.redaction import Redactor
    from telex.terminal.recording import Header, Recording

RECORD_HELP = """Run a program in this terminal and record what it shows.

FILE is an asciicast, for `telex replay` and asciinema's players, and stands before `--`. Only you
can read it, and secrets that telex recognises are masked. An existing file is not replaced.
Everything else is as with `telex run`; without a command it is your shell.

With --input, typed text is recorded while the terminal echoes it. Passwords are typed without echo
and are not recorded; nor is text that a shell's line editor echoes itself. With --raw, everything
is recorded, including control strings for telex that are never shown: `telex htty dump` shows
the pages among them.

\b
  telex record demo.cast
  telex record --append demo.cast -- make test
  telex record --format 3 --input survey.cast -- ./survey.sh
"""


class _RecordCommand(click.Command):
    """Takes no word of the command for FILE: click drops the `--` between them."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        before = args[: args.index("--")] if "--" in args else []
        words = [
            word
            for word, option in zip(before, ["", *before], strict=False)
            if not word.startswith("-") and option != "--format"
        ]
        if "--" in args and not words and "--help" not in before:
            command = shlex.join(args[args.index("--") + 1 :]) or "COMMAND"
            raise click.UsageError(
                f"there is no FILE before `--`, as in: telex record demo.cast -- {command}", context
            )
        return super().parse_args(context, args)


@click.command(help=RECORD_HELP, cls=_RecordCommand)
@click.option(
    "--format",
    "version",
    type=click.Choice(["2", "3"]),
    default="2",
    show_default=True,
    help="Version of asciicast; every player reads 2.",
)
@click.option("--input", "typed", is_flag=True, help="Also record typed text.")
@click.option("--raw", is_flag=True, help="Leave secrets in, and record every key with --input.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--append", is_flag=True, help="Continue the recording in FILE.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@program_or_shell
@click.pass_context
def command(
    context: click.Context,
    version: str,
    typed: bool,
    raw: bool,
    force: bool,
    append: bool,
    file: Path,
    program: tuple[str, ...],
) -> int:
    from telex.passthrough.run_recorder import RecordOptions

    if force and append:
        raise click.UsageError("--force and --append exclude each other", context)
    wanted = RecordOptions(
        path=file,
        version=3 if version == "3" else 2,
        typed=typed,
        redactor=None if raw else _redactor(context),
        replaced=force,
        continued=append,
    )
    return _recorded(wanted, program)


def _recorded(wanted: RecordOptions, program: tuple[str, ...]) -> int:
    from telex.passthrough.escape_filter import EscapeOptions, PageOptions
    from telex.passthrough.run_recorder import RunRecorder

    made: list[RunRecorder] = []

    def record() -> RunRecorder:
        made.append(RunRecorder(wanted, _header(wanted, program)))
        return made[0]

    code = None
    try:
        code = hosted(program, record, EscapeOptions(pages=PageOptions()))
    finally:
        for one in made:
            one.finish(code)
            _tell(wanted.path, one)
    return code


def _tell(path: Path, record: RunRecorder) -> None:
    if record.failed is None:
        explain(f"telex: recorded in {path}")
    else:
        warn(f"the recording in {path} is incomplete: {record.failed.strerror}")


def _header(wanted: RecordOptions, program: tuple[str, ...]) -> Header:
    from telex.passthrough.person_terminal import terminal_size
    from telex.terminal.recording import Header

    return Header(
        wanted.version,
        terminal_size(),
        timestamp=int(time.time()),
        term=os.environ.get("TERM"),
        command=shlex.join(program),
    )


def _redactor(context: click.Context) -> Redactor:
    from telex.cli.configuration import redactor_of

    return redactor_of(load_config(context).settings)


REPLAY_HELP = """Play a recording in this terminal.

FILE is an asciicast of version 2 or 3. Space pauses and continues; q and Ctrl-C end it. If stdout
is not a terminal, everything is printed at once.

The terminal obeys the recorded bytes as it obeyed the program: only play recordings of programs
that you would run.

\b
  telex replay demo.cast
  telex replay --speed 2 --max-pause 1 demo.cast
  telex replay demo.cast > demo.txt
"""


@click.command(help=REPLAY_HELP)
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
def replay_command(speed: float, max_pause: float | None, fast: bool, file: Path) -> int:
    from telex.passthrough.player import PlaybackPace, replay

    recording = read_file(file)
    at_once = fast or not sys.stdout.isatty()
    if not at_once:
        _warn_of_size(recording)
    return replay(recording, PlaybackPace(speed, max_pause, at_once))


class _Unreadable(click.ClickException):
    exit_code = 2  # 1 is an answer of `telex when` and `telex diff`


def read_file(file: Path) -> Recording:
    """Read a recording for a command. A recording that was cut off is told on stderr."""
    from telex.terminal.recording import NotARecording, read_recording

    try:
        with file.open("rb") as lines:
            recording = read_recording(lines)
    except NotARecording as error:
        raise _Unreadable(f"{file} is not a whole recording: {error}") from error
    except OSError as error:
        raise _Unreadable(f"{file} cannot be read: {error.strerror}") from error
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
