"""The `telex` command: files with commands, and this one, which starts and ends them.

`main` returns an exit code and never shows a traceback: 0 ok, 1 failed, 2 usage, 3 unsupported
here, 4 refused by policy, 5 no server, 124 timed out, 130 interrupted, 141 output closed
(SIGPIPE), else the child's.
A command returns its code (None is 0) or raises; `command_end` turns an exception into one line.
Importing this module imports click alone: `LazyCommand` loads a command when it runs.
"""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from click.exceptions import Abort, Exit, NoArgsIsHelpError

from telex.cli.console import explain
from telex.cli.root import COMPLETE, root

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line, by default that of the process, and return its exit code."""
    try:
        _let_any_text_be_printed()
        code = _run(list(sys.argv[1:] if args is None else args))
        if sys.stdout is not None:
            sys.stdout.flush()  # at exit, a full disk would end in a traceback
    # Every exception: Python would print a traceback.
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        return end_command(error)
    return code


def _run(args: list[str]) -> int:
    asked = os.environ.get(COMPLETE, "")
    if asked.endswith("_complete"):
        from click.shell_completion import shell_complete

        import telex.cli.completions  # noqa: F401  registers our bash script with click

        return shell_complete(root, {}, "telex", COMPLETE, asked)
    # Not root.main(): it handles a broken pipe itself, with another exit code.
    with root.make_context("telex", args) as context:
        return root.invoke(context) or 0


def end_command(error: BaseException) -> int:
    """Explain an exception that ends the process on stderr, and return the exit code."""
    how = command_end(error)
    if how.line is not None:
        if os.environ.get("TELEX_DEBUG") == "1":
            import traceback

            traceback.print_exception(error)
        explain(how.line, redact=not isinstance(error, NoArgsIsHelpError))
    _settle_stdout()
    return how.code


def _let_any_text_be_printed() -> None:
    """Allow any text on stdout: a path may have undecodable bytes, a terminal only ASCII."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _settle_stdout() -> None:
    """Drop output that stdout did not accept: flushing it at exit would fail again."""
    if not isinstance(sys.stdout, io.TextIOWrapper):
        return
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The last line on stderr (None for none) and the exit code of the process."""

    line: str | None
    code: int


def command_end(error: BaseException) -> CommandEnd:
    """Turn an exception into a line and a code. An exception of telex may have an `exit_code`."""
    match error:
        case Exit():
            return CommandEnd(None, error.exit_code)
        case KeyboardInterrupt() | Abort():
            return CommandEnd(None, 130)
        case BrokenPipeError():
            return CommandEnd(None, 141)  # like SIGPIPE: `telex … | head -1` is not a failure
        case NoArgsIsHelpError():
            return CommandEnd(error.format_message(), 2)
        case click.UsageError():
            what = " ".join(error.format_message().split())  # click may wrap the message
            return CommandEnd(f"telex: {what}{_try_help(error.ctx)}", 2)
        case click.ClickException():
            return CommandEnd(f"telex: {error.format_message()}", error.exit_code)
        case TimeoutError():
            return CommandEnd(f"telex: {str(error) or 'timed out'}", 124)
        case OSError():
            return CommandEnd(f"telex: {_of_the_system(error)}", 1)
        case _ if type(error).__module__.partition(".")[0] == "telex":
            return CommandEnd(f"telex: {error}", getattr(error, "exit_code", 1))
        case _:
            what = f"{type(error).__name__}: {error}"
            return CommandEnd(f"telex: internal error: {what} (TELEX_DEBUG=1 shows where)", 1)


def _try_help(context: click.Context | None) -> str:
    return f" (try: {context.command_path} --help)" if context else ""


def _of_the_system(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what
