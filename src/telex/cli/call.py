"""`telex call` and `telex attach`: one request to a running server, and a session of it."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from telex.cli import completion_candidates
from telex.cli.console import explain, say

CALL_HELP = """Send one request to a running server.

The answer is printed as JSON. METHOD is a method of the automation protocol. PARAMS are its
parameters, a JSON object; `-` reads them from stdin. The server is the one of
`telex serve --socket`, or the one at --to.

The exit code is 1 if the request fails (the reason is on stderr), 4 if it is not permitted, for
example because another client holds the lease, 124 if a wait timed out, and 5 if no server is
running.

\b
  telex call session.create '{"program": "bash"}'
  telex call session.input '{"session": "s1", "action": {"type": "text", "value": "ls\\n"}}'
  telex call session.snapshot '{"session": "s1", "cells": "none"}'
"""

to = click.option(
    "--to",
    "address",
    default="unix:",
    metavar="ADDRESS",
    help="unix:PATH, or ws://HOST:PORT/rpc with the token in TELEX_TOKEN.",
)


def _object(_: click.Context, __: click.Parameter, given: str) -> Any:
    text = sys.stdin.read() if given == "-" else given
    try:
        params = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(
            f"""not valid JSON: {error}; write it like '{{"session": "s1"}}'"""
        ) from error
    if not isinstance(params, (dict, list)):
        raise click.BadParameter("the parameters must be a JSON object")
    return params


@click.command(help=CALL_HELP)
@to
@click.argument("method", shell_complete=completion_candidates.methods)
@click.argument("params", default="{}", callback=_object)
def command(address: str, method: str, params: Any) -> int:
    from msgspec import UNSET

    from telex.automation.protocol import PERMISSION_DENIED, TIMED_OUT
    from telex.cli.event_loop import run
    from telex.rpc.errors import RESERVED, Condition, RpcError

    try:
        answer = run(_answer(address, method, params))
    except RpcError as refused:
        problem = refused.problem
        explain(f"telex: {problem.message} ({problem.code})")
        if problem.code == RESERVED[Condition.METHOD]:  # the message has the nearest names
            explain("telex: `telex call server.capabilities` lists every method")
        elif problem.data is not UNSET:
            explain(json.dumps(problem.data, indent=2, ensure_ascii=False))
        codes: dict[object, int] = {TIMED_OUT: 124, PERMISSION_DENIED: 4}
        return codes.get(problem.code, 1)
    indent = 2 if sys.stdout.isatty() else None
    say(_shown(answer, indent))
    return 0


def _shown(answer: Any, indent: int | None) -> str:
    """Return JSON in which unprintable characters are written as JSON escapes."""
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(answer, indent=indent, ensure_ascii=ascii_only)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


async def _answer(address: str, method: str, params: Any) -> Any:
    from telex.automation.dialer import dial

    async with await dial(address) as peer:
        return await peer.call(method, params, timeout=None)


ATTACH_HELP = """Show a running session in this terminal, and type into it.

The session gets the size of this terminal and everything you type, except the detach key, which
leaves the session running. When the program ends, this command ends with its exit code.

SESSION is a name of `telex list`, or an id; without it, that of TELEX_SESSION, or the only one.

\b
  telex open -- vim notes.txt
  telex attach
  telex attach vim --read-only
"""


class NoSession(Exception):
    """No session has the name, or there are several to choose from."""


@click.command(help=ATTACH_HELP)
@to
@click.option(
    "--detach-key",
    default="ctrl_]",
    show_default=True,
    metavar="KEY",
    help="Key that leaves the session: ctrl_ and a letter or one of [ \\ ] ^ _.",
)
@click.option("--read-only", is_flag=True, help="Only watch: do not type or resize.")
@click.argument(
    "session",
    required=False,
    envvar="TELEX_SESSION",
    shell_complete=completion_candidates.sessions,
)
def attach_command(address: str, detach_key: str, read_only: bool, session: str | None) -> int:
    from telex.cli.event_loop import run
    from telex.passthrough.attach_view import attach, control_key

    leave = control_key(detach_key)
    id, name = run(_chosen(address, session))
    code = attach(address, id, leave, read_only=read_only)
    if code is None:
        explain(f"telex: detached from {name}, which still runs")
    return code or 0


async def _chosen(address: str, asked: str | None) -> tuple[str, str]:
    """Return the id and the name of a session, or of the only one. Raises NoSession."""
    from telex.automation.dialer import dial
    from telex.automation.protocol import ListSessions, SessionList

    async with await dial(address) as peer:
        there: SessionList = await peer.call(
            "session.list", ListSessions(True), returns=SessionList
        )
    names = {id: there.names.get(id, id) for id in there.sessions}
    chosen = [id for id, name in names.items() if asked in (None, id, name)]
    if len(chosen) == 1:
        return chosen[0], names[chosen[0]]
    first = "which session?" if asked is None else f"there is no session {asked!r};"
    listed = f"there are {', '.join([*names.values()][:12])}"
    raise NoSession(
        f"{first} {listed if names else 'none is there; telex open -- PROGRAM opens one'}"
    )
