"""`telex agent`: serve the agent runtime. `exec` has its own file, and `store_commands` has the
commands on the store of sessions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from telex.cli.address import address
from telex.cli.agent.runtime_options import behaving
from telex.cli.configuration import flags_of
from telex.cli.console import explain
from telex.cli.root import LazyCommand

HELP = """Serve an agent to any UI, by JSON-RPC.

Without a listener it serves standard input and output: one line of JSON for each message, and
stdout carries only the protocol, which docs/reference/agent-protocol.md describes.

\b
  telex agent
  telex agent --socket /tmp/agent.sock --http 127.0.0.1:8024
  telex agent exec "list *.py"

Without a configured model it executes plain commands, and says that it has no language model.
"""

COMMANDS = {
    "exec": "Send one message to the agent, and print the run.",
    "sessions": "List the stored sessions.",
    "remembered": "List the remembered answers, or forget one.",
    "export": "Print sessions as NDJSON.",
    "import": "Import sessions from an export.",
    "verify": "Check the store for damage.",
}


@click.group(help=HELP, invoke_without_command=True)
@click.option("--stdio", is_flag=True, help="Standard input and output; the default.")
@click.option("--socket", metavar="PATH", type=click.Path(path_type=Path), help="A unix socket.")
@click.option("--http", metavar="HOST:PORT", callback=address, help="HTTP and WebSocket.")
@click.option("--allow-remote", is_flag=True, help="Let --http listen beyond this machine.")
@behaving
@click.pass_context
def command(
    context: click.Context,
    stdio: bool,
    socket: Path | None,
    http: tuple[str, int] | None,
    allow_remote: bool,
    root: Path | None,
    mode: str,
    script: Path | None,
    diagnostics: bool,
) -> None:
    from telex.cli.agent.composition import Wanted

    wanted = Wanted(flags_of(context), root, mode, script, diagnostics)
    if context.invoked_subcommand is not None:
        if stdio or socket or http:
            name = context.invoked_subcommand
            raise click.UsageError(f"{name} opens no listener; remove --stdio, --socket and --http")
        context.obj = wanted
        return
    from telex.cli.agent.composition import serve_agent
    from telex.cli.event_loop import run
    from telex.cli.listeners import Listeners

    listeners = Listeners(
        stdio=stdio or (socket is None and http is None),
        socket=socket,
        http=http,
        allow_remote=allow_remote,
    )
    if listeners.stdio and sys.stdin.isatty():
        explain('telex: this expects JSON from a UI. To send a message: telex agent exec "help"')
    run(serve_agent(wanted, listeners))


for _name, _line in COMMANDS.items():
    if _name == "exec":
        command.add_command(LazyCommand(_name, "telex.cli.agent.exec", _line))
    else:
        _place = ("telex.cli.agent.store_commands", _line, f"{_name}_command")
        command.add_command(LazyCommand(_name, *_place))
