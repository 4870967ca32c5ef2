"""`telex agent import`: sessions from an export into the store, all of them or none."""

from __future__ import annotations

from pathlib import Path

import click

from telex.cli.console import say

HELP = """Take sessions from an export into the store.

All that the file holds, or nothing: a file that is cut short or changed is refused. Sessions that
are there already are refused too, unless they may have new ids.

\b
  telex agent import agent.ndjson
  telex agent import --new-ids agent.ndjson
"""


@click.command(help=HELP)
@click.option("--new-ids", is_flag=True, help="Give every session and run a new id.")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def command(new_ids: bool, file: Path) -> None:
    from telex.cli.event_loop import run

    run(_import(file, new_ids))


async def _import(file: Path, new_ids: bool) -> None:
    from telex.agent.store import Store
    from telex.config import places

    async with await Store.open(places.find().database) as store:
        done = await store.import_(file, new_ids=new_ids)
    say(f"{done.threads} sessions, {done.runs} runs, {done.events} events")
