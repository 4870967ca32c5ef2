"""`telex detect`: whether the terminal this runs in speaks JSON escapes, and which commands."""

from __future__ import annotations

import json
from typing import Any

import click

from telex.cli.console import say

HELP = """Say whether this terminal speaks JSON escapes, and which.

The terminal is asked, also where stdin and stdout are redirected. The exit code is 0 if it does,
and 3 if nobody here speaks them. `telex run -- bash` starts a shell in a terminal that does.
"""


@click.command(help=HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def command(as_json: bool) -> int:
    from telex.cli.event_loop import run
    from telex.escapes.errors import NotSupported

    try:
        found = run(_found())
    except NotSupported as error:
        if not as_json:
            raise
        say(json.dumps({"supported": False, "reason": error.why, "advice": error.advice}))
        return error.exit_code
    say(json.dumps(found) if as_json else _told(found))
    return 0


async def _found() -> dict[str, Any]:
    from telex.escapes.client import connect

    async with connect() as term:
        return {
            "supported": True,
            "via": term.via,
            "round_trip_ms": round((term.round_trip or 0) * 1000, 1),
            "maxframe": term.maxframe,
            "capabilities": term.capabilities,
        }


def _told(found: dict[str, Any]) -> str:
    lines = [
        f"JSON escapes: yes, by {found['via']}",
        f"  its slowest answer took {found['round_trip_ms']:g} ms",
        f"  frames of up to {found['maxframe']} bytes of JSON",
    ]
    lines += [f"  {system}: {_how_much(one)}" for system, one in found["capabilities"].items()]
    return "\n".join(lines)


def _how_much(one: Any) -> str:
    """In words. It comes from a terminal, and may be anything."""
    told = one if isinstance(one, dict) else {}
    level = [f"level {told['level']}"] if "level" in told else []
    without = " ".join(_names(told, "exclude"))
    parts = [*level, *_names(told, "include"), *([f"without {without}"] if without else [])]
    if unknown := " ".join(_names(told, "unverified")):
        parts.append(f"unverified {unknown}")
    return ", ".join(parts) or "there"


def _names(told: dict[str, Any], member: str) -> list[str]:
    listed = told.get(member)
    return [str(name) for name in listed] if isinstance(listed, list) else []
