"""`telex attach`: a session of a running server, in this terminal."""

from __future__ import annotations

import click

from telex.cli import completion_candidates
from telex.cli.call import to
from telex.cli.console import explain

HELP = """Show a running session in this terminal, and type into it.

The session gets the size of this terminal and everything you type, except the detach key, which
leaves the session running. When the program ends, this command ends with its exit code.

\b
  telex call session.list
  telex attach s1
"""


@click.command(help=HELP)
@to
@click.option(
    "--detach-key",
    default="ctrl_]",
    show_default=True,
    metavar="KEY",
    help="Key that leaves the session: ctrl_ and a letter or one of [ \\ ] ^ _.",
)
@click.option("--read-only", is_flag=True, help="Only watch: do not type or resize.")
@click.argument("session", shell_complete=completion_candidates.sessions)
def command(address: str, detach_key: str, read_only: bool, session: str) -> int:
    from telex.passthrough.attach_view import attach, control_key

    code = attach(address, session, control_key(detach_key), read_only=read_only)
    if code is None:
        explain(f"telex: detached from {session}, which still runs")
    return code or 0
