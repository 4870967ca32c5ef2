"""Whether a program may send a page through its terminal, and in what way.

`HTTY` in the environment says it first, as the spec has it: a positive number is yes, zero or
anything else is no and never overridden. Where it is absent, which it is behind `ssh`, the terminal
is asked in band, by JSON escapes: DA1 names 23198, and then `detect` names `htty`. A terminal that
did not say so gets not one byte of a chunk: it might show it. Inside a multiplexer a yes is asked
for too: the variable was for who is outside, and tmux swallows what it may not pass on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from telex.escapes.errors import NotSupported
from telex.escapes.probe import SCREEN, TMUX, MultiplexerWrap, RoundTrip, multiplexer

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "HTTY"
HIGHEST_VERSION: Final = 1
"""The highest version of the framing that is spoken here."""
STDIN, STDOUT = 0, 1

_ADVICE: Final = "Run it by `telex run -- COMMAND`, here or where your ssh begins."
_TERMINAL_ADVICE: Final = "By ssh it gets one with `ssh -t`."
_TMUX_ADVICE: Final = "Let tmux pass them on: `tmux set -g allow-passthrough on`."


class NoPages(NotSupported):
    """Nobody here would show a page; the sentence says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Support:
    """How a page gets to who shows it."""

    version: int
    wrap: MultiplexerWrap | None
    """What a multiplexer on the way wants around each chunk."""
    round_trip: RoundTrip
    typed: bytes = b""
    """What the person typed while the terminal was asked."""


def standard_terminal() -> int | None:
    """The descriptor by which this program is on a terminal: its stdout, or else its stdin.

    Not the terminal that controls it: a page may go by pipes from a program that has one too.
    """
    return next((fd for fd in (STDOUT, STDIN) if os.isatty(fd)), None)


def advertised_version(environ: Mapping[str, str]) -> int | None:
    """The version to speak, 0 for none; None if the environment does not say."""
    given = environ.get(VARIABLE)
    if given is None:
        return None
    if not given.isascii() or not given.isdecimal():
        return 0
    digits = given.lstrip("0")
    return HIGHEST_VERSION if len(digits) > 3 else min(int(digits or "0"), HIGHEST_VERSION)


async def find_support(
    environ: Mapping[str, str], fd: int | None, *, force: bool = False
) -> Support:
    """On the terminal of `fd`, or on pipes. Raises `NoPages` if nobody would show one.

    `force` takes silence for a yes, but not a no.
    """
    version = advertised_version(environ)
    if version == 0:
        raise NoPages(
            f"{VARIABLE}={environ[VARIABLE]} in the environment says that no pages are shown here. "
            f"{_ADVICE}"
        )
    wrap = multiplexer(environ) if fd is not None else None
    if force or (version is not None and wrap is None):
        return Support(
            version or HIGHEST_VERSION, wrap if wrap is not SCREEN else None, RoundTrip()
        )
    if wrap is SCREEN and version is not None:
        raise NoPages("screen passes no page on. Run it by `telex run -- COMMAND` inside.")
    if fd is None:
        why = f"there is no terminal here, and {VARIABLE} is not set."
        raise NoPages(f"{why} {_ADVICE} {_TERMINAL_ADVICE}")
    return await _ask_terminal(environ, fd)


async def _ask_terminal(environ: Mapping[str, str], fd: int) -> Support:
    # A tenth of a second, which nobody need wait for where the environment says it.
    from telex.escapes.client import connect
    from telex.escapes.terminal_discovery import SOCKET_VIA

    wrap = multiplexer(environ)
    advice = f"{_TMUX_ADVICE} Or: {_ADVICE}" if wrap is TMUX else _ADVICE
    try:
        async with connect(fd=fd, environ=environ) as term:
            via, version = term.via, _level(term.capabilities.get("htty"))
            seconds = term.round_trip
    except NotSupported as error:
        raise NoPages(f"this terminal shows no pages: {error.why}. {advice}") from None
    typed = await term.typed()  # after the end, and so all of it
    if not version or via in (SOCKET_VIA, SCREEN.name):
        name = wrap.name if wrap is not None else via
        what = f"{name} does not pass them on" if version else "it answers, but without `htty`"
        raise NoPages(f"this terminal shows no pages: {what}. {advice}")
    round_trip = RoundTrip()
    round_trip.took(seconds or 0.0)
    return Support(version, wrap if via != "terminal" else None, round_trip, typed)


def _level(told: Any) -> int:
    """It comes from a terminal, and may be anything."""
    level = told.get("level") if isinstance(told, dict) else None
    return min(level, HIGHEST_VERSION) if type(level) is int and level > 0 else 0
