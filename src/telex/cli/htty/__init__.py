"""`telex htty`: pages through a terminal. Each command is in the file of its name."""

from __future__ import annotations

import click

from telex.cli.root import LazyCommand

HELP = """Serve web pages through a terminal, and test the connection.

A program in a terminal, here or behind any number of ssh hops, serves a page, and the `telex run`
around it shows the page in a browser. No port has to be opened; text and Ctrl-C work as before.

\b
  telex run -- telex htty serve --dir .
  telex run -- ssh -t host telex htty serve --dir .
  telex htty check -- ssh -t host telex htty serve --dir .
"""

COMMANDS = {
    "bridge": "Test a program that serves pages with tools that speak HTTP/2 over TCP.",
    "check": "Run a program that serves pages, and report what breaks its connection.",
    "dump": "Decode a transcript of a terminal into requests and responses.",
    "serve": "Serve a page through this terminal.",
}


@click.group(help=HELP)
def command() -> None:
    pass


for _name, _line in COMMANDS.items():
    command.add_command(LazyCommand(_name, f"telex.cli.htty.{_name}", _line))
