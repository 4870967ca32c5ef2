"""`telex agent verify`: whether the store is as it was written."""

from __future__ import annotations

import os

import click

from telex.cli.console import explain, say

HELP = """Say whether the store is as it was written.

Looks for what SQLite finds broken, for gaps in sequences, and for events that were changed or lost.
It only reads, and may be run while agents run. The exit code is 1 if something is wrong.
"""


@click.command(help=HELP)
def command() -> int:
    from telex.agent.store import verify
    from telex.config import places

    path = places.find().database
    if not os.path.lexists(path):
        say("nothing is stored yet")
        return 0
    found = verify(path)
    for problem in found.problems:
        explain(f"telex: {problem}")
    say(f"{found.threads} sessions, {found.runs} runs, {found.events} events")
    return 1 if found.problems else 0
