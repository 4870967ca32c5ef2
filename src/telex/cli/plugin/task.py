"""`telex plugin task`: run tasks from a file, ordered by their requirements."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli import completion_candidates
from telex.cli.console import say, warn

if TYPE_CHECKING:
    from telex.cli.plugin.plugin_target import Host
    from telex.plugins.discovery import FoundPlugin
    from telex.plugins.plugin_tasks import TasksOutcome
    from telex.plugins.task_plan import RequestedTask, TaskPlan

HELP = """Run tasks of a plugin, ordered by their requirements.

FILE is TOML. Each task has an id, a type of the plugin, the tasks it requires, and its values:

\b
  [[task]]
  id = "motd"
  type = "write"
  requires = ["folder"]
  config = { path = "motd", text = "Good morning" }

All tasks are validated before any is run. Independent tasks run at the same time. A failed task
stops the tasks that require it; the others continue. Relative paths start in FILE's directory.

The exit code is 0 if all tasks succeeded, 1 if one failed, 2 if FILE is not valid, and 3 if the
plugin does not exist, is not trusted, or does not start.

\b
  telex plugin task greet --config tasks.toml --dry-run
  telex plugin task greet --config tasks.toml
"""


@click.command(help=HELP)
@click.option(
    "--config",
    "file",
    metavar="FILE",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The tasks.",
)
@click.option("--dry-run", is_flag=True, help="Validate all tasks and print their order; run none.")
@click.argument("name", shell_complete=completion_candidates.plugins)
@click.pass_context
def command(context: click.Context, file: Path, dry_run: bool, name: str) -> int:
    from telex.cli import event_loop
    from telex.cli.plugin import plugin_target
    from telex.config.places import read_file
    from telex.plugins import task_plan

    host, found = plugin_target.host(context), plugin_target.plugin(name)
    where = file.absolute()
    wanted = task_plan.read(read_file(where) or b"", str(file))
    outcome = event_loop.run(_run(host, found, wanted, where, dry_run=dry_run))
    if outcome is None:
        return 0
    for line in _lines(outcome):
        say(line)
    return 0 if outcome.ok else 1


async def _run(
    host: Host, found: FoundPlugin, wanted: list[RequestedTask], where: Path, *, dry_run: bool
) -> TasksOutcome | None:
    from telex.cli.plugin.plugin_target import Saying, ended
    from telex.plugins import plugin_commands, plugin_tasks, task_plan
    from telex.plugins.errors import PluginError
    from telex.plugins.supervisor import PluginSupervisors

    def ends(one: str, failure: str | None) -> None:
        saying.line(f"{one}: {'failed' if failure else 'done'}")  # the reason is printed at the end

    with Saying(host.redactor, host.level) as saying:
        async with PluginSupervisors([found], host.settings(saying.line)) as supervisors:
            supervisor = supervisors[found.name]
            try:
                async with supervisor.acquire() as plugin:
                    introduced = plugin.introduced
                plugin_commands.check(found.name, introduced)
                plan = task_plan.plan(wanted, found, introduced, where, os.environ.get("HOME", "/"))
                for hint in plan.hints:
                    warn(hint)
                await plugin_tasks.validate(supervisor, introduced, plan)
            except PluginError as failure:
                raise ended(failure) from failure
            if dry_run:
                _tell_order(plan)
                return None
            observer = plugin_tasks.TaskObserver(saying.progress, ends)
            return await plugin_tasks.run(supervisor, introduced, plan, observer)


def _tell_order(plan: TaskPlan) -> None:
    from telex.plugins import task_plan

    types = {task.id: task.type for task in plan.tasks}
    for number, stage in enumerate(task_plan.stages(plan.requires), 1):
        say(f"{number}. {', '.join(f'{one} ({types[one]})' for one in stage)}")


def _lines(outcome: TasksOutcome) -> list[str]:
    lines = [f"{one}: failed: {why}" for one, why in outcome.failed.items()]
    lines += [f"{one}: not run, it requires {why}" for one, why in outcome.stopped.items()]
    counts = (
        f"{len(outcome.done)} done, {len(outcome.failed)} failed, {len(outcome.stopped)} not run"
    )
    return [*lines, counts]
