"""`telex escape` and `telex detect`: one JSON escape to this terminal, and which it supports."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

import click

from telex.cli import completion_candidates
from telex.cli.console import explain, say

ESCAPE_HELP = """Send a JSON escape to this terminal.

COMMAND is a command of JSON terminal escapes, and DATA its JSON value; `-` reads DATA from stdin.
The escape goes to the terminal even where stdout is redirected. Without --wait it is sent without a
request for an answer, so that an error of the terminal is not seen. With --wait the answer is
printed as JSON.

The exit code is 0 if the escape was sent or answered, 1 if it failed, 2 if telex does not know the
command or a member of its data (--unchecked sends it all the same), 3 if this terminal does not
support JSON escapes or the command, 4 if the person or the policy said no, and 124 if no answer
came in time.

\b
  telex escape term:title '{"title": "building"}'
  telex escape --wait term:report '{"what": "cursor"}'
  telex escape --raw progress:set '{"value": 40}' > /dev/pts/3
"""


def _json(_: click.Context, __: click.Parameter, given: str | None) -> Any:
    if given is None:
        return None
    try:
        return json.loads(sys.stdin.read() if given == "-" else given)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not valid JSON: {error}") from error


@click.command(help=ESCAPE_HELP)
@click.option("--wait", is_flag=True, help="Wait for the answer, and print it.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)
@click.option("--raw", is_flag=True, help="Print the bytes on stdout instead of sending them.")
@click.option(
    "--unchecked",
    is_flag=True,
    help="Send a command or data that telex does not know: another terminal may.",
)
@click.argument("name", metavar="COMMAND", shell_complete=completion_candidates.escapes)
@click.argument("data", required=False, callback=_json)
def command(wait: bool, timeout: float, raw: bool, unchecked: bool, name: str, data: Any) -> int:
    if not unchecked:
        _check(name, data)
    if wait and raw:
        raise click.UsageError("--raw excludes --wait: it sends nothing to the terminal")
    if wait:
        return _ask(name, data, timeout)
    frame = _frame(name, data)
    if raw:
        sys.stdout.buffer.write(frame)
        sys.stdout.buffer.flush()
    else:
        _send(frame)
    return 0


def _check(name: str, data: Any) -> None:
    """Check the command and its data here: without --wait the terminal reports no error."""
    import msgspec

    from telex.escapes.commands import COMMANDS
    from telex.rpc.nearest import did_you_mean, nearest_names
    from telex.rpc.unknown_members import unknown_members

    if name not in COMMANDS:
        hint = did_you_mean(nearest_names(name, COMMANDS)) or "--unchecked sends it anyway."
        raise click.UsageError(f"unknown command {name}. {hint}")
    payload = COMMANDS[name].payload
    given = {} if data is None else data
    if unknown := unknown_members(given, payload):
        raise click.UsageError(f"the data of {name} has an {unknown[0]}")
    try:
        msgspec.convert(given, payload, str_keys=True)
    except msgspec.ValidationError as error:
        raise click.BadParameter(f"the data of {name} is not valid: {error}") from error


def _frame(name: str, data: Any) -> bytes:
    from telex.escapes.probe import multiplexer
    from telex.escapes.tty_channel import ProgramDialect
    from telex.rpc.messages import ABSENT, Notification
    from telex.wire import json_escape

    notification = Notification(name, ABSENT if data is None else data)
    frame = json_escape.encode(ProgramDialect().encode(notification))
    wrap = multiplexer(os.environ)
    return frame if wrap is None else wrap.around(frame)


def _send(frame: bytes) -> None:
    from telex.escapes.own_tty import terminal_path

    with open(terminal_path(), "wb", buffering=0, opener=_without_controlling) as terminal:
        while frame:
            frame = frame[terminal.write(frame) :]


def _without_controlling(path: str, flags: int) -> int:
    return os.open(path, flags & ~(os.O_CREAT | os.O_TRUNC) | os.O_NOCTTY)


_CODES: Final[dict[object, int]] = {"ECDENIED": 4, "ECUNSUP": 3, "ECNOCMD": 3}
"""The exit code of an error of the terminal."""


def _ask(name: str, data: Any, timeout: float) -> int:
    from telex.cli.event_loop import run
    from telex.rpc.errors import CallError, CallTimedOut, RpcError

    try:
        answer = run(_answer(name, data, timeout))
    except CallTimedOut:
        explain(f"telex: {name}: no answer within {timeout:g} s")
        return 124
    except CallError as error:
        explain(f"telex: {error}")
        return _CODES.get(error.problem.code, 1) if isinstance(error, RpcError) else 1
    say(json.dumps(answer, indent=2 if sys.stdout.isatty() else None))
    return 0


async def _answer(name: str, data: Any, timeout: float) -> Any:
    from msgspec import UNSET

    from telex.escapes.client import connect

    async with connect() as term:
        answer: Any = await term.call(name, UNSET if data is None else data, timeout=timeout)
    if isinstance(answer, bytes):
        import base64

        return {"data64": base64.b64encode(answer).decode()}
    return None if answer is UNSET else answer


DETECT_HELP = """Show whether this terminal supports JSON escapes.

The request goes to the terminal even where stdin and stdout are redirected. The exit code is 0 if
the terminal answers, and 3 if it does not. `telex run -- bash` starts a shell in one that does.
"""


@click.command(help=DETECT_HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def detect_command(as_json: bool) -> int:
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
