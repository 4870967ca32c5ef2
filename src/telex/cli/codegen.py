"""`telex codegen`: work in a program, and get a pytest test of it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli.configuration import load_config
from telex.cli.console import explain
from telex.cli.run import program

if TYPE_CHECKING:
    from telex.testing.codegen_log import CodegenLog

HELP = """Run a program, and write a pytest test of what you do in it.

The test types what you type, clicks where you click, and waits for what you saw before you went on.
Press the key to mark a screen as a golden: enter a name, or Enter alone. FILE must not exist; its
goldens are written to `__golden__` beside it. The last row of your terminal belongs to telex
meanwhile.

Secrets are not written: what you type without echo or as dots, and what telex recognises in a text
or in the command. The test reads them from the environment (SECRET_1 and so on), and is skipped
without them. They are masked in goldens.

\b
  telex codegen -o test_todo.py -- python examples/todo.py
  pytest test_todo.py
"""


@click.command(help=HELP)
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("test_recorded.py"),
    show_default=True,
    metavar="FILE",
    help="The test to write.",
)
@click.option("--name", help="Name of the test function; by default from FILE.")
@click.option(
    "--key",
    default="ctrl_]",
    show_default=True,
    metavar="KEY",
    help="Key that marks a golden: ctrl_ and a letter or one of [ \\ ] ^ _.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@program
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    name: str | None,
    key: str,
    force: bool,
    program: tuple[str, ...],
) -> int:
    from telex.cli.configuration import redactor_of
    from telex.passthrough.attach_view import control_key
    from telex.passthrough.panel_view import run_with_panel
    from telex.testing.codegen_panel import CodegenPanel

    if problem := _place_problem(file, force):
        raise click.UsageError(problem, context)
    test = name or re.sub(r"\W", "_", file.stem)
    if not test.isidentifier() or not test.startswith("test"):
        raise click.UsageError(f"{test!r} is not the name of a test; use --name test_…", context)
    pressed = control_key(key)
    if pressed.fullmatch(b"\x03"):
        raise click.UsageError(
            f"{key} interrupts the program; choose another --key, such as ctrl_]", context
        )
    panel = CodegenPanel(key, redactor_of(load_config(context).settings))
    explain(f"telex: {key} marks a golden; end the program to write {file}")
    code = run_with_panel(program, panel, pressed, {})
    _write(panel.log, program, file, test)
    return code


def _place_problem(file: Path, force: bool) -> str:
    """Return why the test cannot be written, before the person works for it; empty if it can."""
    from telex.testing.golden_place import DIRECTORY

    if file.suffix != ".py" or not file.stem.isidentifier():
        return (
            f"{file.name} is not a module that pytest imports; use letters, digits and _, as in "
            "test_menu.py"
        )
    if file.exists() and not force:
        return f"{file} already exists; --force replaces it"
    for place in (file.parent / DIRECTORY / file.stem, file.parent / DIRECTORY, *file.parents):
        if place.exists() and not place.is_dir():
            return f"{place} is not a directory, as {file} needs it; move it, or use another -o"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        return f"{file} cannot be written: {error.strerror}; use another -o"
    return ""


def _write(log: CodegenLog, program: tuple[str, ...], file: Path, test: str) -> None:
    from telex.testing.codegen import write_test
    from telex.testing.golden_place import DIRECTORY

    written = write_test(log, program, test)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(written.source, "utf-8")
    directory = file.parent / DIRECTORY / file.stem
    for name, text in written.goldens.items():
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, "utf-8", newline="\n")
    count = len(written.goldens)
    goldens = f" and {count} golden{'s' if count > 1 else ''}" if count else ""
    secrets = "".join([f"{name}=… " for name in written.secrets])
    explain(f"telex: wrote {file}{goldens}; run it with: {secrets}pytest {file}")
