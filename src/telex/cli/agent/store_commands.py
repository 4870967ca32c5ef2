"""`telex agent export|import|verify|sessions|remembered`: commands on the store of sessions."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import click

from telex.cli.config import in_words
from telex.cli.console import explain, say

if TYPE_CHECKING:
    from collections.abc import Iterator


EXPORT_HELP = """Print sessions as NDJSON.

All of them, or one. The file can be verified while it is read again: `telex agent import`.

\b
  telex agent export > agent.ndjson
  telex agent export --session ID --to session.ndjson
"""


@click.command(help=EXPORT_HELP)
@click.option("--session", metavar="ID", help="Only this session.")
@click.option("--to", "target", type=click.Path(path_type=Path), help="A new file, private to you.")
def export_command(session: str | None, target: Path | None) -> None:
    from telex.cli.event_loop import run

    run(_export(session, target))


async def _export(session: str | None, target: Path | None) -> None:
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


# `telex agent import`: sessions from an export into the store, all of them or none.


IMPORT_HELP = """Import sessions from an export.

The whole file is imported, or nothing: a file that was cut or changed is refused. Sessions that
exist already are refused too, unless --new-ids gives them new ids, which are printed.

\b
  telex agent import agent.ndjson
  telex agent import --new-ids agent.ndjson
  zcat agent.ndjson.gz | telex agent import -
"""


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


@click.command(help=IMPORT_HELP)
@click.option("--new-ids", is_flag=True, help="Give new ids to sessions whose ids are taken.")
@click.argument("file", type=_FILE)
def import_command(new_ids: bool, file: Path) -> None:
    from telex.cli.event_loop import run

    run(_import(file, new_ids))


@contextmanager
def _regular(file: Path) -> Iterator[Path]:
    """Copy standard input to a file, because an import is read twice."""
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


# `telex agent verify`: whether the store is as it was written.


VERIFY_HELP = """Check the store for damage.

Checks SQLite's own structures, and looks for gaps in sequences and for changed or lost events. It
only reads, and can be used while agents run. The exit code is 1 if the store is damaged.
"""


@click.command(help=VERIFY_HELP)
def verify_command() -> int:
    from telex.agent.store import verify
    from telex.config import places

    path = places.find().database
    if not os.path.lexists(path):
        say("nothing is stored yet")
        return 0
    found = verify(path)
    for problem in found.problems:
        explain(f"telex: {problem}")
    say(f"{found.threads} sessions, {found.runs} runs, {found.events} events")
    return 1 if found.problems else 0


# `telex agent sessions`: what is stored, to go on with or to take out.


SESSIONS_HELP = """List the stored sessions, those used last first.

\b
  telex agent sessions
  telex agent exec --session ID "and now this"
  telex agent exec --last "and now this"
"""


@click.command(help=SESSIONS_HELP)
@click.option("--limit", default=20, show_default=True, help="How many at most; 0 is all.")
def sessions_command(limit: int) -> None:
    from telex.cli.event_loop import run

    run(_list_sessions(limit))


async def _list_sessions(limit: int) -> None:
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


# `telex agent remembered`: what is not asked about any more, and how to be asked again.


REMEMBERED_HELP = """List the remembered answers, or forget one.

Each answer applies to one workspace, for exactly the listed call. Agents read the list when they
start.

\b
  telex agent remembered
  telex agent remembered --forget 3
"""


@click.command(help=REMEMBERED_HELP)
@click.option("--forget", metavar="N", type=int, help="Ask about it again from now on.")
def remembered_command(forget: int | None) -> int:
    from telex.cli.event_loop import run

    return run(_list_remembered() if forget is None else _forget(forget))


async def _list_remembered() -> int:
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
            say(f"{number} is forgotten; running agents keep it until they end")
            return 0
    explain(f"telex: there is no {number}; see: telex agent remembered")
    return 1
