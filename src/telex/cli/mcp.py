"""`telex mcp`: the MCP server on standard input and output."""

from __future__ import annotations

import click

HELP = """Serve terminal programs to an MCP client, on standard input and output.

The client starts this command; set it to `telex mcp`. The tools are telex_open, telex_do,
telex_see, telex_wait and telex_close. Sessions belong to the server that the verbs use too, which
is started with the first message: `telex list` shows them, and `telex attach` shows one to you.

The settings of `[mcp_server]` decide which programs clients may use. The same tools are at /mcp of
`telex serve --http`.
"""


@click.command(help=HELP)
def command() -> int:
    from telex.server.mcp_relay import run

    return run()
