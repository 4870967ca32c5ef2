"""`telex call`: one request to a running server, and its answer."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from telex.cli import completion_candidates
from telex.cli.console import explain, say

HELP = """Ask a running server one thing.

Its answer is printed as JSON.

METHOD is a method of the protocol and PARAMS its parameters, a JSON object (`-` reads it from
stdin). The server is the one that `telex serve --socket` started, or the one at --to.

If the server refuses, its reason goes to stderr and the exit code is 1; 124 if a wait timed out,
and 5 if there is no server.

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
            f"""that is not JSON: {error}; write it like '{{"session": "s1"}}'"""
        ) from error
    if not isinstance(params, (dict, list)):
        raise click.BadParameter("parameters are a JSON object")
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
        if problem.code == RESERVED[Condition.METHOD]:  # the nearest names are in the sentence
            explain("telex: `telex call server.capabilities` lists every method")
        elif problem.data is not UNSET:
            explain(json.dumps(problem.data, indent=2, ensure_ascii=False))
        return 124 if problem.code == TIMED_OUT else 1
    indent = 2 if sys.stdout.isatty() else None
    say(_shown(answer, indent))
    return 0


def _shown(answer: Any, indent: int | None) -> str:
    """JSON that stays JSON on any stdout: what cannot be printed is written in JSON's own way."""
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(answer, indent=indent, ensure_ascii=ascii_only)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


async def _answer(address: str, method: str, params: Any) -> Any:
    from telex.automation.dialer import dial

    async with await dial(address) as peer:
        return await peer.call(method, params, timeout=None)
