"""`telex agent sessions`: what is stored, to go on with or to take out."""

from __future__ import annotations

import click

from telex.cli.console import say

HELP = """List the stored sessions, those used last first.

\b
  telex agent sessions
  telex agent exec --session ID "and now this"
  telex agent exec --last "and now this"
"""


@click.command(help=HELP)
@click.option("--limit", default=20, show_default=True, help="How many at most; 0 is all.")
def command(limit: int) -> None:
    from telex.cli.event_loop import run

    run(_list(limit))


async def _list(limit: int) -> None:
    from datetime import datetime

    from telex.agent.store import Store
    from telex.config import places

    async with await Store.open(places.find().database) as store:
        threads = await store.threads(limit if limit > 0 else None)
    for thread in threads:
        when = datetime.fromtimestamp(thread.updated_at / 1000).astimezone()
        said = (thread.last_user_message or "").partition("\n")[0]
        say(f"{thread.session_id}  {when:%Y-%m-%d %H:%M}  {said}")
    if not threads:
        say("nothing is stored yet")
