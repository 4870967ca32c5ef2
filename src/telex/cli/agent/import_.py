"""`telex agent import`: sessions from an export into the store, all of them or none."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import click

from telex.cli.console import say

if TYPE_CHECKING:
    from collections.abc import Iterator

HELP = """Take sessions from an export into the store.

All that the file holds, or nothing: a file that is cut short or changed is refused. Sessions that
are there already are refused too, unless they may have new ids, which are printed then.

\b
  telex agent import agent.ndjson
  telex agent import --new-ids agent.ndjson
  zcat agent.ndjson.gz | telex agent import -
"""


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


@click.command(help=HELP)
@click.option("--new-ids", is_flag=True, help="Give new ids in place of those that are taken.")
@click.argument("file", type=_FILE)
def command(new_ids: bool, file: Path) -> None:
    from telex.cli.event_loop import run

    run(_import(file, new_ids))


@contextmanager
def _regular(file: Path) -> Iterator[Path]:
    """It is read twice, which a pipe cannot be."""
    if str(file) != "-":
        yield file
        return
    with NamedTemporaryFile(prefix="telex-import-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name)


async def _import(file: Path, new_ids: bool) -> None:
    from telex.agent.store import Store
    from telex.config import places

    with _regular(file) as path:
        async with await Store.open(places.find().database) as store:
            done = await store.import_(path, new_ids=new_ids)
    for old, new in done.sessions.items():
        say(f"session {old} is {new} here")
    say(f"{done.threads} sessions, {done.runs} runs, {done.events} events")
