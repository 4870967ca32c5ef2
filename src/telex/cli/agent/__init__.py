"""`telex agent`: serves the agent runtime. `exec` has a file of its own; the commands on the store
of sessions are in `store_commands`."""

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

With no door named, on standard input and output: a line of JSON each way, stdout for the protocol
alone. It is the runtime of the agent UI protocol; docs/reference/agent-protocol.md says how.

\b
  telex agent
  telex agent --socket /tmp/agent.sock --http 127.0.0.1:8024
  telex agent exec "list *.py"

With nothing configured it has no language model, says so, and obeys plain commands.
"""

COMMANDS = {
    "exec": "Say one thing to the agent, and print what it does.",
    "sessions": "List the stored sessions.",
    "remembered": "List the answers you asked to be remembered, or forget one.",
    "export": "Print sessions as NDJSON.",
    "import": "Take sessions from an export into the store.",
    "verify": "Say whether the store is as it was written.",
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
            raise click.UsageError(
                f"{context.invoked_subcommand} serves nobody: leave out the door"
            )
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
        explain('telex: a UI speaks here, in JSON. Say something yourself: telex agent exec "help"')
    run(serve_agent(wanted, listeners))


for _name, _line in COMMANDS.items():
    if _name == "exec":
        command.add_command(LazyCommand(_name, "telex.cli.agent.exec", _line))
    else:
        _place = ("telex.cli.agent.store_commands", _line, f"{_name}_command")
        command.add_command(LazyCommand(_name, *_place))
