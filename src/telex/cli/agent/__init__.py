"""`telex agent`: serve the agent runtime. `exec` has its own file, and `store_commands` has the
commands on the store of sessions, `model_commands` those on language models, `mcp_commands` those
on MCP servers, `skill_list` the list of skills."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from telex.cli.address import address
from telex.cli.configuration import flags_of
from telex.cli.console import explain
from telex.cli.root import LazyCommand

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[..., Any]


class ModeName(click.Choice[str]):
    """A mode by its name in telex, or by its name in Codelia."""

    def __init__(self) -> None:
        super().__init__(["minimal", "trusted", "full"])

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert("full" if value == "full-access" else value, param, ctx)


def _asked_by_codelia() -> bool:
    """Read a variable of Codelia. An unknown value counts as off and is not an error."""
    said = os.environ.get("CODELIA_DIAGNOSTICS", "")
    return said.strip().lower() in ("1", "true", "yes", "on")


_OPTIONS: Final[tuple[Callable[[Function], Function], ...]] = (
    click.option(
        "--root",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False, exists=True),
        help=(
            "The sandbox root; else the nearest directory with .git, .jj or .telex, else this one."
        ),
    ),
    click.option(
        "--mode",
        "--approval-mode",
        "mode",
        type=ModeName(),
        default="minimal",
        envvar="TELEX_AGENT_MODE",
        show_default=True,
        help=(
            "Default permission when no rule matches. --approval-mode is the same option for UIs"
            " of Codelia, and full-access is full."
        ),
    ),
    click.option(
        "--script",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Use a JSON file of steps in place of a model, for tests and demos.",
    ),
    click.option(
        "--max-steps",
        metavar="N",
        type=click.IntRange(1),
        help="Calls of a language model in one run; 200 by default. The run ends there.",
    ),
    click.option(
        "--max-tokens",
        metavar="N",
        type=click.IntRange(1),
        help="Tokens that all calls of a language model in one run may use, input and output.",
    ),
    click.option(
        "--max-cost",
        metavar="USD",
        type=click.FloatRange(0, min_open=True),
        help="US dollars that one run may spend, if the costs of the model are configured.",
    ),
    click.option(
        "--diagnostics",
        is_flag=True,
        envvar="TELEX_DIAGNOSTICS",
        default=_asked_by_codelia,
        help=(
            "Send the cost of each model call (run.diagnostics). CODELIA_DIAGNOSTICS=1, which"
            " Codelia's TUI sets, does the same."
        ),
    ),
)


def behaving(command: Function) -> Function:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


HELP = """Serve an agent to any UI, by JSON-RPC.

Without a listener it serves standard input and output: one line of JSON for each message, and
stdout carries only the protocol, which docs/reference/agent-protocol.md describes. With --socket or
--http it is the server of `telex serve`, with this root and mode for its agent.

\b
  telex agent
  telex agent --socket /tmp/agent.sock --http 127.0.0.1:8024
  telex agent exec "list *.py"

Without a configured model it executes plain commands, and says that it has no language model.
"""

COMMANDS = {
    "exec": "Send one message to the agent, and print the run.",
    "models": "List the language models that were found, and why.",
    "login": "Store the key of a provider or model.",
    "logout": "Forget stored keys.",
    "skills": "List the skills and commands, and why one is not used.",
    "mcp": "List, add and remove the MCP servers whose tools the agent has.",
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
    max_steps: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    diagnostics: bool,
) -> None:
    from telex.cli.agent.composition import Wanted

    bounds = (max_steps, max_tokens, max_cost)
    wanted = Wanted(flags_of(context), root, mode, script, diagnostics, *bounds)
    if context.invoked_subcommand is not None:
        if stdio or socket or http:
            name = context.invoked_subcommand
            raise click.UsageError(f"{name} opens no listener; remove --stdio, --socket and --http")
        context.obj = wanted
        return
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
    if socket is None and http is None:
        from telex.cli.agent.composition import serve_agent

        run(serve_agent(wanted))
    else:
        from telex.cli.serve import serve_everything

        run(serve_everything(wanted, listeners))


_FILES: Final = {
    **dict.fromkeys(("models", "login", "logout"), "model_commands"),
    "skills": "skill_list",
    "mcp": "mcp_commands",
}
for _name, _line in COMMANDS.items():
    if _name == "exec":
        command.add_command(LazyCommand(_name, "telex.cli.agent.exec", _line))
    else:
        _file = _FILES.get(_name, "store_commands")
        _place = (f"telex.cli.agent.{_file}", _line, f"{_name}_command")
        command.add_command(LazyCommand(_name, *_place))
