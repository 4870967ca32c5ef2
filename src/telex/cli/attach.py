"""`telex attach`: a session of a running server, in this terminal."""

from __future__ import annotations

import click

from telex.cli import completion_candidates
from telex.cli.call import to
from telex.cli.console import explain

HELP = """Show a running session in this terminal, and type into it.

The session gets this terminal's size, and everything typed here but the detach key, which leaves
it running. When its program ends, so does this, with the program's exit code.

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
    help="What leaves the session: ctrl_ and a letter or one of [ \\ ] ^ _.",
)
@click.option("--read-only", is_flag=True, help="Look, and neither type nor resize.")
@click.argument("session", shell_complete=completion_candidates.sessions)
def command(address: str, detach_key: str, read_only: bool, session: str) -> int:
    from telex.passthrough.attach_view import attach, control_key

    code = attach(address, session, control_key(detach_key), read_only=read_only)
    if code is None:
        explain(f"telex: detached from {session}, which goes on")
    return code or 0
