"""Decides whether a program may send a page through its terminal, and in what way.

`HTTY` in the environment decides first, as the spec requires: a positive number means yes; zero or
anything else means no and is never overridden. Where it is absent, as behind `ssh`, the terminal is
queried in band, by JSON escapes: DA1 names 23198, and then `detect` names `htty`. A terminal that
did not confirm this never gets a byte of a chunk, because it might show it. Inside a multiplexer a
yes is verified too: the variable was meant for the outer terminal, and tmux drops sequences that it
may not pass on.
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
"""The highest version of the framing that is supported."""
STDIN, STDOUT = 0, 1

_ADVICE: Final = "Run it by `telex run -- COMMAND`, here or where your ssh begins."
_TERMINAL_ADVICE: Final = "With `ssh -t` it gets a terminal."
_TMUX_ADVICE: Final = "Let tmux pass them on: `tmux set -g allow-passthrough on`."


class NoPages(NotSupported):
    """Pages are not shown here; the message gives the reason and the remedy."""

    __module__ = "telex.htty"


@dataclass(frozen=True, slots=True)
class Support:
    """How a page is sent to the terminal that shows it."""

    version: int
    wrap: MultiplexerWrap | None
    """The wrapping that a multiplexer in between needs around each chunk."""
    round_trip: RoundTrip
    typed: bytes = b""
    """The bytes that the person typed while the terminal was queried."""


def standard_terminal() -> int | None:
    """Return the descriptor of this program's terminal: its stdout, or else its stdin.

    Not the controlling terminal: a program that has one may still send its page through pipes.
    """
    return next((fd for fd in (STDOUT, STDIN) if os.isatty(fd)), None)


def advertised_version(environ: Mapping[str, str]) -> int | None:
    """Return the version to use, 0 for none; None if the environment does not define it."""
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
    """Find out how to send a page on the terminal of `fd`, or on pipes.

    Args:
        force: Assume a yes if the support is unknown, but never override a no.

    Raises:
        NoPages: Pages are not shown here.
    """
    version = advertised_version(environ)
    if version == 0:
        raise NoPages(
            f"{VARIABLE}={environ[VARIABLE]} in the environment: pages are not shown here. "
            f"{_ADVICE}"
        )
    wrap = multiplexer(environ) if fd is not None else None
    if force or (version is not None and wrap is None):
        return Support(
            version or HIGHEST_VERSION, wrap if wrap is not SCREEN else None, RoundTrip()
        )
    if wrap is SCREEN and version is not None:
        raise NoPages("screen does not pass pages on. Run it by `telex run -- COMMAND` inside.")
    if fd is None:
        why = f"there is no terminal here, and {VARIABLE} is not set."
        raise NoPages(f"{why} {_ADVICE} {_TERMINAL_ADVICE}")
    return await _ask_terminal(environ, fd)


async def _ask_terminal(environ: Mapping[str, str], fd: int) -> Support:
    # Imported here: it takes a tenth of a second, and is not needed if the environment decides.
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
    typed = await term.typed()  # after the end, so that it is complete
    if not version or via in (SOCKET_VIA, SCREEN.name):
        name = wrap.name if wrap is not None else via
        what = f"{name} does not pass them on" if version else "it responds, but without `htty`"
        raise NoPages(f"this terminal shows no pages: {what}. {advice}")
    round_trip = RoundTrip()
    round_trip.took(seconds or 0.0)
    return Support(version, wrap if via != "terminal" else None, round_trip, typed)


def _level(value: Any) -> int:
    """Return the level of a capability, whose value is from a terminal and may be anything."""
    level = value.get("level") if isinstance(value, dict) else None
    return min(level, HIGHEST_VERSION) if type(level) is int and level > 0 else 0
