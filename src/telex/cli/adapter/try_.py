"""`telex adapter try`: a program, with the state that its adapter sees below it."""

from __future__ import annotations

import click

from telex.cli import completion_candidates
from telex.cli.adapter.adapter_target import default_program, environment, target
from telex.config import places

HELP = """Run a program with its adapter's state below it.

The panel shows the state, its confidence, the rule that decided, the evidence, the metadata and the
adapter's time; errors of the adapter are red. The adapter is asked whenever the screen changes, and
again when it has not changed for 300 ms.

All input goes to the program, except the key that ends it. Without a COMMAND, the program of the
manifest is run. The exit code is the program's.

\b
  telex adapter try shell
  telex adapter try ./mine -- vim notes.txt
"""


@click.command(help=HELP)
@click.option(
    "--key",
    default="ctrl_]",
    show_default=True,
    metavar="KEY",
    help="Key that ends it: ctrl_ and a letter or one of [ \\ ] ^ _.",
)
@click.argument("name", shell_complete=completion_candidates.adapters)
@target
@click.pass_context
def command(context: click.Context, key: str, name: str, program: tuple[str, ...]) -> int:
    from telex.adapters.plugin_registry import find_plugin
    from telex.passthrough.adapter_panels import TryPanel
    from telex.passthrough.attach_view import control_key
    from telex.passthrough.panel_view import run_with_panel

    leave = control_key(key)
    plugin = find_plugin(name, places.find())
    argv = program or default_program(context, plugin)
    return run_with_panel(argv, TryPanel(plugin, key), leave, environment(plugin))
