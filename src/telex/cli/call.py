"""`telex call`: one request to a running server, and its answer."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from telex.cli import completion_candidates
from telex.cli.console import explain, say

HELP = """Send one request to a running server.

The answer is printed as JSON. METHOD is a method of the automation protocol. PARAMS are its
parameters, a JSON object; `-` reads them from stdin. The server is the one of
`telex serve --socket`, or the one at --to.

The exit code is 1 if the server refuses the request (the reason is on stderr), 124 if a wait timed
out, and 5 if no server is running.

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


@click.command(help=HELP)
@to
@click.argument("method", shell_complete=completion_candidates.methods)
@click.argument("params", default="{}", callback=_object)
def command(address: str, method: str, params: Any) -> int:
    from msgspec import UNSET

    from telex.automation.protocol import TIMED_OUT
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
        return 124 if problem.code == TIMED_OUT else 1
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
