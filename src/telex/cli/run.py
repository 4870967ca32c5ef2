"""`telex run`: a program in this terminal, as if telex were not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.host.run import Witness

HELP = """Run a program in this terminal, as if telex were not there.

The program gets a terminal of its own, of the same size and kind, and everything typed here. Its
exit code is telex's; a program ended by signal N gives 128+N. A program that does not exist gives
127, one that cannot be run 126.

When the program ends, what it left running in the background ends with it.

Without a terminal it is a filter: stdin is typed into the program's terminal, its end is Ctrl-D,
and what the program shows goes to stdout.

\b
  telex run -- bash
  telex run -- vim notes.txt
  telex run -- ls --color=auto | less -R
"""

program = click.argument(
    "program",
    metavar="-- COMMAND [ARGUMENT]...",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
)


@click.command(help=HELP, context_settings={"allow_interspersed_args": False})
@program
def command(program: tuple[str, ...]) -> int:
    return hosted(program)


def hosted(program: tuple[str, ...], witness: Callable[[], Witness] | None = None) -> int:
    """Its exit code."""
    from telex.host.run import run

    return run(program, witness=witness)
