"""`telex shot`: run a program, wait until its screen stops changing, and draw it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from telex.cli.picture import Picture, picture_options
from telex.cli.run import program as program_argument
from telex.cli.size import size_option

if TYPE_CHECKING:
    from telex.redaction import Redactor
    from telex.terminal.cells import Size, Snapshot
    from telex.terminal.pty import Program
    from telex.terminal.waits.matchers import Matcher

HELP = """Run a program and take a picture of its screen.

The picture is taken when the screen has not changed for a moment, or when the program ends. The
program is ended afterwards.

The picture is text on stdout, or a file whose suffix chooses the format: .txt, .ansi (text with
colours), .svg, .html or .png. Secrets on the screen are masked unless --raw is given. If the screen
never stops changing, the exit code is 124 and no picture is made; it is 127 for a program that does
not exist, and 126 for one that cannot be run.

\b
  telex shot -- ls --color=always
  telex shot -o top.png --size 100x30 -- top
  telex shot -o help.svg --type ':help\\n' --wait 'Move around' -- vim
"""


@click.command(help=HELP, context_settings={"allow_interspersed_args": False})
@size_option
@click.option("--type", "typed", multiple=True, help="Type this first; \\n is Enter, \\e Escape.")
@click.option("--wait", "awaited", help="Wait for this text before the picture.")
@click.option(
    "--still",
    type=click.IntRange(0, 60_000),
    default=250,
    show_default=True,
    help="Milliseconds without a change before the picture.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, 3600),
    default=15.0,
    show_default=True,
    help="Seconds to wait before giving up.",
)
@picture_options
@program_argument
@click.pass_context
def command(
    context: click.Context,
    /,
    size: Size,
    typed: tuple[str, ...],
    awaited: str | None,
    still: int,
    timeout: float,
    program: tuple[str, ...],
    **options: Any,
) -> None:
    from telex.cli.event_loop import run
    from telex.terminal.pty import Program

    picture = Picture.of(context, **options)
    plan = Plan(tuple(map(_unescaped, typed)), awaited, still, timeout)
    picture.write(run(_seen(Program(program, size=size), plan, picture.redactor)))


@dataclass(frozen=True, slots=True)
class Plan:
    """The input and the waits before the picture."""

    typed: tuple[str, ...]
    awaited: str | None
    still: int
    timeout: float


class NotSeen(Exception):
    """The text did not appear in time; the message shows the screen."""


async def _seen(program: Program, plan: Plan, redactor: Redactor | None) -> Snapshot:
    """Return the redacted screen. A failed wait shows it redacted, too."""
    from telex import match
    from telex.terminal.actions import Text
    from telex.terminal.redact import Masker
    from telex.terminal.session import PtySession
    from telex.terminal.waits.engine import WaitFailed, WaitTimedOut

    shown = match.any_of(match.all_of(match.regex(r"\S"), match.stable(plan.still)), match.exited())
    masker = None if redactor is None else Masker(redactor)
    async with PtySession(program) as session:

        async def wait(matcher: Matcher) -> Snapshot:
            found = await session.wait(
                matcher, plan.timeout, keep=lambda moment: moment.keep(redactor, masker)
            )
            return found.moment.snapshot

        what = "the screen did not stop changing"
        try:
            for text in plan.typed:
                await wait(shown)
                await session.act(Text(text))
            if plan.awaited is not None:
                what = f"{plan.awaited!r} did not appear"
                await wait(match.text(plan.awaited))
            what = "the screen did not stop changing"
            return await wait(shown)
        except WaitTimedOut as late:
            said = f"{what} within {plan.timeout:g} s; it shows:\n{late.moment.text}"
            raise TimeoutError(said) from late
        except WaitFailed as failed:
            ended = f"the program {failed.moment.exit}"
            raise NotSeen(f"{what}: {ended}; it shows:\n{failed.moment.text}") from failed


def _unescaped(text: str) -> str:
    """Replace `\\n` and `\\e`, which are awkward to write in a shell."""
    named = {"n": "\n", "r": "\r", "t": "\t", "e": "\x1b", "\\": "\\"}
    return re.sub(r"\\([nrte\\])", lambda found: named[found[1]], text)
