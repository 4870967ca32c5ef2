"""`telex agent exec`: one thing said to the agent, and what it does about it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from telex.cli.agent.making import Wanted

HELP = """Say one thing to the agent, and print what it does.

What it answers goes to stdout, what it does on the way to stderr. With --json every notification is
a line of JSON on stdout instead. On a terminal you are asked before anything that needs permission;
elsewhere that is denied. Ctrl-C cancels the run.

\b
  telex agent exec "list *.py"
  telex agent exec --json "run make test" | jq .
  telex agent exec --session ID "and now this"

The exit code is 0 when the run completed, 1 when it failed, 130 when it was cancelled.
"""


@click.command(help=HELP)
@click.option("--json", "as_json", is_flag=True, help="Each notification as a line of JSON.")
@click.option("--session", metavar="ID", help="Go on with a session.")
@click.argument("text")
@click.pass_obj
def command(wanted: Wanted, as_json: bool, session: str | None, text: str) -> int:
    from telex.cli.agent.one_shot import one_shot
    from telex.cli.event_loop import run

    may_ask = not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    return run(one_shot(wanted, as_json, may_ask, text, session))
