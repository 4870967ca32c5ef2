"""How an exception ends a command: what the person reads, and the exit code.

Pure: `main` prints the line and returns the code.
"""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.exceptions import Abort, Exit, NoArgsIsHelpError


@dataclass(frozen=True, slots=True)
class Ending:
    """One line for the person (None: nothing needs saying) and the process's exit code."""

    line: str | None
    code: int


def ending(error: BaseException) -> Ending:
    """An exception of ours is a sentence already, and may bring an `exit_code` of its own."""
    match error:
        case Exit():
            return Ending(None, error.exit_code)
        case KeyboardInterrupt() | Abort():
            return Ending(None, 130)
        case BrokenPipeError():
            return Ending(None, 141)  # as if SIGPIPE had done it: `telex … | head -1` is no failure
        case NoArgsIsHelpError():
            return Ending(error.format_message(), 2)
        case click.UsageError():
            what = " ".join(error.format_message().split())  # click may fold it over lines
            return Ending(f"telex: {what}{_try_help(error.ctx)}", 2)
        case click.ClickException():
            return Ending(f"telex: {error.format_message()}", error.exit_code)
        case TimeoutError():
            return Ending(f"telex: {str(error) or 'timed out'}", 124)
        case OSError():
            return Ending(f"telex: {_of_the_system(error)}", 1)
        case _ if type(error).__module__.startswith("telex."):
            return Ending(f"telex: {error}", getattr(error, "exit_code", 1))
        case _:
            what = f"{type(error).__name__}: {error}"
            return Ending(f"telex: internal error: {what} (TELEX_DEBUG=1 shows where)", 1)


def _try_help(context: click.Context | None) -> str:
    return f" (try: {context.command_path} --help)" if context else ""


def _of_the_system(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what
