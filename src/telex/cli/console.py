"""Output for people. No other module writes to the terminal outside of a session.

All text passes `printable`: a path, a variable or a key may contain escape sequences, which a
terminal would obey.
"""

from __future__ import annotations

import os
import sys

import click


def printable(text: str) -> str:
    """Return the text with control characters written as escapes, except newlines."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def say(text: str = "") -> None:
    """Print a line of the result on stdout."""
    click.echo(printable(text))


def explain(text: str, redact: bool = True) -> None:
    """Print a line on stderr, redacted, as it may end up in a log."""
    if redact:
        from telex.redaction import Redactor  # local: seldom needed, and slow to import

        text = Redactor().redact(text)
    click.echo(printable(text), err=True)


def warn(text: str) -> None:
    explain(f"telex: warning: {text}")


def coloured() -> bool:
    """Whether stdout is a terminal and NO_COLOR (https://no-color.org) is not set."""
    return sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
