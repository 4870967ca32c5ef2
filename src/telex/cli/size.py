"""`--size COLSxROWS`: the size of a terminal on a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from telex.cli.console import explain

if TYPE_CHECKING:
    from telex.terminal.cells import Size


def _size(_: click.Context, __: click.Parameter, given: str) -> Size:
    from telex.terminal.cells import Size

    size = Size.parse(given)
    if size is None or not (1 <= size.cols <= 1000 and 1 <= size.rows <= 1000):
        raise click.BadParameter(f"{given!r} is not COLSxROWS, each from 1 to 1000, as in 80x24")
    if size.cols < size.rows:
        explain(
            f"telex: note: {given} was taken as {size.cols} columns and {size.rows} rows; "
            f"for {size.rows} columns and {size.cols} rows write {size.rows}x{size.cols}"
        )
    return size


size_option = click.option(
    "--size",
    default="80x24",
    show_default=True,
    metavar="COLSxROWS",
    callback=_size,
    help="Size of the terminal: columns first.",
)
"""The option of every command that makes a terminal. A size with more rows than columns is told on
stderr: before this release the rows came first."""
