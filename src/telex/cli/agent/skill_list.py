"""`telex agent skills`: the skills and commands of a workspace, and why one is not used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from telex.cli.console import say, warn

if TYPE_CHECKING:
    from telex.agent.protocol.extensions import CommandsListResult, OfferedCommand
    from telex.cli.agent.composition import Wanted

SKILLS_HELP = """List the skills and commands of this directory, and why one is not used.

\b
  skills    .agents/skills, .claude/skills and .opencode/skills of the project and of your home
  commands  .telex/commands of the project, and commands beside your config.toml

Those of a project are used once you trust it (telex config trust). A model loads a skill when it
needs it. You call both at the beginning of an input: telex agent exec "/NAME ARGUMENTS".

\b
With --json, one object:
  commands   each with name, description, argument_hint, kind (command or skill), source
             (project or user) and path; not_offered is the reason why /NAME does not call it
  errors     files that are not valid, each with path and message
  truncated  whether there are more
"""


@click.command(help=SKILLS_HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a list.")
@click.pass_obj
def skills_command(wanted: Wanted, as_json: bool) -> None:
    from telex.cli.event_loop import run

    listed = run(_listed(wanted))
    if as_json:
        import msgspec

        say(json.dumps(msgspec.to_builtins(listed), indent=2))
        return
    for one in listed.commands:
        say(_line(one))
        if one.not_offered is not None:
            say(f"      not used: {one.not_offered}")
    for error in listed.errors:
        warn(f"{error.path}: {error.message}")
    if listed.truncated:
        warn("there are more")
    if not listed.commands:
        say("There are no skills and no commands; see docs/how-to/give-the-agent-skills.md")


async def _listed(wanted: Wanted) -> CommandsListResult:
    from telex.agent.runtime_access import in_process
    from telex.cli.agent.composition import served_agent

    async with (
        served_agent(wanted, wanted.load()) as server,
        in_process(server.converse) as agent,
    ):
        return await agent.commands_list()


def _line(one: OfferedCommand) -> str:
    parts = [f"/{one.name}", one.argument_hint, f"({one.kind}, {one.path})"]
    return f"{' '.join(filter(None, parts))}\n      {one.description}"
