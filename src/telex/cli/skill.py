"""`telex skill`: the texts that teach an agent to use telex, of this version."""

from __future__ import annotations

from importlib.resources import files

import click

from telex.cli.console import say

HELP = """Print the skill that teaches an agent to use telex.

Without more, print the skill's file: put it where your agent looks for skills, as
`skills/telex/SKILL.md`. It is short and never goes stale, as it tells the agent to read the manual
by `telex skill get core`, which is always that of the installed version.
"""


@click.group(help=HELP, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        say(_text("stub"))


@command.command("get", help="Print a manual for agents: core has all the verbs.")
@click.argument("name", type=click.Choice(["core"]))
def get(name: str) -> None:
    say(_text(name))


def _text(name: str) -> str:
    return files("telex.server").joinpath("skills", f"{name}.md").read_text("utf-8").rstrip("\n")
