"""Words to a person: the only place that writes to the terminal outside of a session.

Whatever is said passes `printable`: a path, a variable or a key may carry escape sequences, and a
terminal would obey them.
"""

from __future__ import annotations

import os
import sys

import click


def printable(text: str) -> str:
    """The same text, with everything a terminal would act on spelled out; newlines stay."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def say(text: str = "") -> None:
    """A line of the answer, on stdout."""
    click.echo(printable(text))


def explain(text: str, redact: bool = True) -> None:
    """A line about the answer, on stderr, without secrets: it may end up in a log."""
    if redact:
        from telex.redaction import Redactor  # seldom needed, and not for free

        text = Redactor().redact(text)
    click.echo(printable(text), err=True)


def warn(text: str) -> None:
    explain(f"telex: warning: {text}")


def coloured() -> bool:
    """Whether the answer may have colours: only on a terminal, and not against https://no-color.org."""
    return sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
