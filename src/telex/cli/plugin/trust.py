"""`telex plugin trust`: trust in the plugins of a project."""

from __future__ import annotations

from pathlib import Path

import click

from telex.cli.console import say, warn

HELP = """Trust this project's plugins, with their present content.

They are the programs in `.telex/plugins` of the current project. Read them first: they can do
whatever you can do. When a file there is changed, added or removed, none is run until you trust
them again.

\b
  telex plugin trust
  telex plugin trust --remove
"""


@click.command(help=HELP)
@click.option("--remove", is_flag=True, help="Take that back.")
@click.argument(
    "where",
    metavar="[DIRECTORY]",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
def command(remove: bool, where: Path | None) -> None:
    from telex.config import places
    from telex.plugins import discovery, project_trust

    start, here = (where or Path()).resolve(), places.find()
    directory = project_trust.of_project(start)
    if directory is None:
        raise click.ClickException(f"there is no {project_trust.NAME} in {start} or its project")
    directory = directory.resolve()
    if remove:
        was = project_trust.untrust(directory, here)
        say(f"{directory} is no longer trusted" if was else f"{directory} was not trusted")
        return
    project_trust.trust(project_trust.read(directory, here), here)
    findings = discovery.find(here, {}, start)
    for problem in findings.problems:
        warn(problem)
    theirs = [one for one in findings.found if one.project]
    for one in theirs:
        if one.problem:
            warn(one.problem)
    names = ", ".join(one.name for one in theirs) or "no plugins"
    say(f"trusted {directory} as it is, with: {names}")
