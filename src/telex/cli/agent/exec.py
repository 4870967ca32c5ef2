"""`telex agent exec`: send one message to the agent, and print the run."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from telex.cli.agent import behaving

if TYPE_CHECKING:
    from telex.cli.agent.composition import Wanted

HELP = """Send one message to the agent, and print the run.

The answer goes to stdout, everything before it to stderr. On a terminal you are asked before
anything that needs permission. Elsewhere that is denied, and also with --json, which prints every
notification as a line of JSON. Ctrl-C cancels the run. A TEXT of `-` is read from standard input.

\b
  telex agent exec "list *.py"
  telex agent exec --mode trusted "write notes.md: a line"
  telex agent exec --json "run make test" | jq .
  telex agent exec --last "and now this"
  telex agent exec "/fix 12"

A TEXT that begins with /NAME calls a command or a skill (telex agent skills).

The exit code is 0 when the run completed, 1 when it failed or its last step did, 4 when the last
step was not permitted, 130 when it was cancelled.
"""


@click.command(help=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print each notification as a line of JSON.")
@click.option("--session", metavar="ID", help="Continue this session.")
@click.option("--last", is_flag=True, help="Continue the session used last in this root.")
@behaving
@click.argument("text")
@click.pass_context
def command(
    context: click.Context,
    /,
    as_json: bool,
    session: str | None,
    last: bool,
    text: str,
    **behaviour: Any,
) -> int:
    from telex.cli.agent.one_shot import Said, one_shot
    from telex.cli.event_loop import run

    if last and session is not None:
        raise click.UsageError("--last and --session name two sessions; give one of them")
    said = Said(
        _text(text),
        session,
        last,
        as_json,
        may_ask=not as_json and sys.stdin.isatty() and sys.stderr.isatty(),
    )
    return run(one_shot(_wanted(context, behaviour), said))


def _text(given: str) -> str:
    """Return the text, or standard input for `-`. Raises `UsageError` if it is not UTF-8."""
    try:
        return sys.stdin.buffer.read().decode() if given == "-" else given.encode().decode()
    except UnicodeError:
        raise click.UsageError("TEXT is not UTF-8") from None


def _wanted(context: click.Context, behaviour: dict[str, Any]) -> Wanted:
    """Options after `exec` replace those before it."""
    given = {
        name: value
        for name, value in behaviour.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    wanted: Wanted = context.obj
    return replace(wanted, **given)
