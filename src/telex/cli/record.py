"""`telex record`: `telex run` with a recording."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from telex.cli.configuration import load_config
from telex.cli.console import explain, warn
from telex.cli.run import hosted, program_or_shell

if TYPE_CHECKING:
    from telex.passthrough.run_recorder import RecordOptions, RunRecorder
    from telex.redaction import Redactor
    from telex.terminal.recording import Header

HELP = """Run a program in this terminal and record what it shows.

FILE is an asciicast, for `telex replay` and asciinema's players. Only you can read it, and secrets
that telex recognises are masked. An existing file is not replaced. Everything else is as with
`telex run`; without a command it is your shell.

With --input, typed text is recorded while the terminal echoes it. Passwords are typed without echo
and are not recorded; nor is text that a shell's line editor echoes itself. With --raw, everything
is recorded, including control strings for telex that are never shown: `telex htty dump` shows
the pages among them.

\b
  telex record demo.cast
  telex record --append demo.cast -- make test
  telex record --format 3 --input survey.cast -- ./survey.sh
"""


@click.command(help=HELP)
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
        version=_version(version),
        typed=typed,
        redactor=None if raw else _redactor(context),
        replaced=force,
        continued=append,
    )
    return _recorded(wanted, program)


def _recorded(wanted: RecordOptions, program: tuple[str, ...]) -> int:
    from telex.passthrough.escape_filter import EscapeOptions
    from telex.passthrough.page_filter import PageOptions
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


def _version(text: str) -> Literal[2, 3]:
    return 3 if text == "3" else 2


def _redactor(context: click.Context) -> Redactor:
    from telex.cli.configuration import redactor_of

    return redactor_of(load_config(context).settings)
