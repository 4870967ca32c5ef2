"""`telex adapter`: commands for authors of adapters. Each is in the file of its name (`try_`, as
`try` is a keyword); `adapter_target` has what they share."""

from __future__ import annotations

import click

from telex.cli.root import LazyCommand

HELP = """Make, try and test adapters, which know a program's states.

An adapter is a plugin in Lua: a directory with a manifest, its sources, and fixtures, which are
screens with their states. NAME is the name of a built-in or installed adapter, or a path, such as
./mine.

\b
  telex adapter list
  telex adapter new mine
  telex adapter try ./mine -- bash
  telex adapter record ./mine -- bash
  telex adapter test ./mine
"""

COMMANDS = {
    "list": "List the adapters and their permissions.",
    "new": "Write a working adapter to start from.",
    "record": "Run a program and save its screens as fixtures.",
    "test": "Run the fixtures of adapters and show differences.",
    "try": "Run a program with its adapter's state below it.",
}


@click.group(help=HELP)
def command() -> None:
    pass


for _name, _line in COMMANDS.items():
    _file = "try_" if _name == "try" else _name
    command.add_command(LazyCommand(_name, f"telex.cli.adapter.{_file}", _line))
