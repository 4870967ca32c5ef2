"""`telex plugin`: for whoever uses plugins, and whoever writes one. Each command is in the file of
its name."""

from __future__ import annotations

import click

from telex.cli.root import LazyCommand

HELP = """Use, make and check plugins: programs in any language.

A plugin gives telex commands, tasks and tools. It is an executable that speaks JSON-RPC on its
standard input and output; docs/reference/plugin-protocol.md says how.

\b
  telex plugin new greet
  telex plugin check ./greet
"""

COMMANDS = {
    "check": "Say how well an executable speaks the plugin protocol.",
    "describe": "Say what a plugin gives, takes and may do.",
    "list": "List the plugins there are, without running any.",
    "new": "Write a plugin that works, to begin with.",
    "run": "Run a command of a plugin.",
    "task": "Run tasks of a plugin, in the order they need.",
    "trust": "Let this project's plugins be run, as they are now.",
}


@click.group(help=HELP)
def command() -> None:
    pass


for _name, _line in COMMANDS.items():
    command.add_command(LazyCommand(_name, f"telex.cli.plugin.{_name}", _line))
