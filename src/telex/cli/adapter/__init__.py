"""`telex adapter`: for whoever writes one. Each command is in the file of its name, `try_` for the
one whose name is Python's; what they share is in `adapter_target`."""

from __future__ import annotations

import click

from telex.cli.root import LazyCommand

HELP = """Make, try and test adapters: what a program's screen means.

An adapter is a plugin in Lua: a directory with a manifest, its sources, and fixtures, which are
screens and what the plugin is to say of them. Where a command wants a NAME, that is the name of a
plugin that comes with telex or is installed, or a path, such as ./mine.

\b
  telex adapter list
  telex adapter new mine
  telex adapter try ./mine -- bash
  telex adapter record ./mine -- bash
  telex adapter test ./mine
"""

COMMANDS = {
    "list": "List the adapters there are, and what each may do.",
    "new": "Write a plugin that works, to begin with.",
    "record": "Run a program and keep its screens as fixtures.",
    "test": "Run the fixtures of plugins and show what differs.",
    "try": "Run a program with what a plugin says of it below.",
}


@click.group(help=HELP)
def command() -> None:
    pass


for _name, _line in COMMANDS.items():
    _file = "try_" if _name == "try" else _name
    command.add_command(LazyCommand(_name, f"telex.cli.adapter.{_file}", _line))
