"""`telex agent remembered`: what is not asked about any more, and how to be asked again."""

from __future__ import annotations

import click

from telex.cli.console import say
from telex.cli.permission_rules import in_words

HELP = """List the answers that you asked to be remembered, or forget one.

Each counts in one workspace, for exactly what is listed. Agents that run read it when they start.

\b
  telex agent remembered
  telex agent remembered --forget 3
"""


@click.command(help=HELP)
@click.option("--forget", metavar="N", type=int, help="Ask about it again from now on.")
def command(forget: int | None) -> int:
    from telex.cli.event_loop import run

    return run(_list() if forget is None else _forget(forget))


async def _list() -> int:
    import json

    from telex.agent.store import Store
    from telex.config import places

    async with await Store.open(places.find().database) as store:
        decisions = await store.decisions()
    for one in decisions:
        rule = json.loads(one.rule)
        root = rule.pop("root", "")
        say(f"{one.id}  {in_words(rule)}  in {root}")
    if not decisions:
        say("nothing is remembered")
    return 0


async def _forget(number: int) -> int:
    from telex.agent.store import Store
    from telex.cli.console import explain
    from telex.config import places

    async with await Store.open(places.find().database) as store:
        if await store.revoke(number, "telex agent remembered"):
            say(f"{number} is forgotten; agents that run already keep to it until they end")
            return 0
    explain(f"telex: there is no {number}; see: telex agent remembered")
    return 1
