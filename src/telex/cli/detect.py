"""`telex detect`: whether this terminal supports JSON escapes, and which commands."""

from __future__ import annotations

import json
from typing import Any

import click

from telex.cli.console import say

HELP = """Show whether this terminal supports JSON escapes.

The request goes to the terminal even where stdin and stdout are redirected. The exit code is 0 if
the terminal answers, and 3 if it does not. `telex run -- bash` starts a shell in one that does.
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
    say(json.dumps(found) if as_json else _described(found))
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


def _described(found: dict[str, Any]) -> str:
    lines = [
        f"JSON escapes: yes, by {found['via']}",
        f"  slowest answer: {found['round_trip_ms']:g} ms",
        f"  frames of up to {found['maxframe']} bytes of JSON",
    ]
    lines += [f"  {system}: {_how_much(one)}" for system, one in found["capabilities"].items()]
    return "\n".join(lines)


def _how_much(one: Any) -> str:
    """Describe a capability. The value comes from a terminal and may be of any type."""
    capability = one if isinstance(one, dict) else {}
    level = [f"level {capability['level']}"] if "level" in capability else []
    without = " ".join(_names(capability, "exclude"))
    parts = [*level, *_names(capability, "include"), *([f"without {without}"] if without else [])]
    if unknown := " ".join(_names(capability, "unverified")):
        parts.append(f"unverified {unknown}")
    return ", ".join(parts) or "there"


def _names(capability: dict[str, Any], member: str) -> list[str]:
    listed = capability.get(member)
    return [str(name) for name in listed] if isinstance(listed, list) else []
