"""`telex plugin`: commands for users and authors of plugins. Each is in the file of its name."""

from __future__ import annotations

import click

from telex.cli.root import LazyCommand

HELP = """Use, make and check plugins: programs in any language.

A plugin gives telex commands, tasks and tools. It is an executable that uses JSON-RPC on its
standard input and output; docs/reference/plugin-protocol.md describes the protocol.

\b
  telex plugin new greet
  telex plugin check ./greet
"""

COMMANDS = {
    "check": "Grade how an executable implements the plugin protocol.",
    "describe": "Show a plugin's commands, tools, values and permissions.",
    "list": "List the plugins, without running any.",
    "new": "Write a working plugin to start from.",
    "run": "Run a command of a plugin.",
    "task": "Run tasks of a plugin, ordered by their requirements.",
    "trust": "Trust this project's plugins, with their present content.",
}


@click.group(help=HELP)
def command() -> None:
    pass


for _name, _line in COMMANDS.items():
    command.add_command(LazyCommand(_name, f"telex.cli.plugin.{_name}", _line))
