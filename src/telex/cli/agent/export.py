"""`telex agent export`: sessions as NDJSON, to keep or to take elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

HELP = """Print sessions as NDJSON.

All of them, or one. The file can be verified while it is read again: `telex agent import`.

\b
  telex agent export > agent.ndjson
  telex agent export --session ID --to session.ndjson
"""


@click.command(help=HELP)
@click.option("--session", metavar="ID", help="Only this one.")
@click.option("--to", "target", type=click.Path(path_type=Path), help="A file, made for you alone.")
def command(session: str | None, target: Path | None) -> None:
    from telex.cli.event_loop import run

    run(_export(session, target))


async def _export(session: str | None, target: Path | None) -> None:
    import os
    import sys

    from telex.agent.store import Store
    from telex.config import places

    async with await Store.open(places.find().database) as store:
        if session is not None:
            await store.thread(session)  # before a line is written
        if target is None:
            async for piece in store.export(session):
                sys.stdout.buffer.write(piece)
            return
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                async for piece in store.export(session):
                    file.write(piece)
        except BaseException:
            os.unlink(target)
            raise
