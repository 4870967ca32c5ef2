"""`telex shot`: run a program, wait until its screen stops changing, and draw it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli.configuration import load_config
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
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the picture to this file.",
)
@click.option(
    "--kind",
    type=click.Choice(["text", "ansi", "svg", "html", "png"]),
    help="Format, whatever the suffix of the file.",
)
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
@click.option("--light", is_flag=True, help="Dark text on a light background.")
@click.option(
    "--scale", type=click.IntRange(1, 8), default=2, show_default=True, help="Scale of a PNG."
)
@click.option("--no-cursor", is_flag=True, help="Leave the cursor out.")
@click.option("--raw", is_flag=True, help="Do not mask secrets.")
@program_argument
@click.pass_context
def command(
    context: click.Context,
    output: Path | None,
    kind: str | None,
    size: Size,
    typed: tuple[str, ...],
    awaited: str | None,
    still: int,
    timeout: float,
    light: bool,
    scale: int,
    no_cursor: bool,
    raw: bool,
    program: tuple[str, ...],
) -> None:
    from telex.cli.configuration import redactor_of
    from telex.cli.event_loop import run
    from telex.terminal.pictures import DARK, LIGHT, draw, kind_of, write_picture
    from telex.terminal.pty import Program

    drawn_as = kind or ("text" if output is None else kind_of(output))
    redactor = None if raw else redactor_of(load_config(context).settings)
    plan = Plan(tuple(map(_unescaped, typed)), awaited, still, timeout)
    seen = run(_seen(Program(program, size=size), plan, redactor))
    theme = LIGHT if light else DARK
    picture = draw(seen, drawn_as, theme=theme, cursor=not no_cursor, scale=scale)  # type: ignore[arg-type]  # by click's Choice
    if output is None:
        sys.stdout.buffer.write(picture)
    else:
        write_picture(output, picture)


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
            raise NotSeen(f"{what}: {failed}; it shows:\n{failed.moment.text}") from failed


def _unescaped(text: str) -> str:
    """Replace `\\n` and `\\e`, which are awkward to write in a shell."""
    named = {"n": "\n", "r": "\r", "t": "\t", "e": "\x1b", "\\": "\\"}
    return re.sub(r"\\([nrte\\])", lambda found: named[found[1]], text)
