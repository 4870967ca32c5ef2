"""`telex shot`: run a program, wait until its screen stops changing, and draw it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from telex.cli.configuration import load_config, redactor_of
from telex.cli.console import explain
from telex.cli.run import program as program_argument

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.redaction import Redactor
    from telex.terminal.actions import Key, Text
    from telex.terminal.cells import Size, Snapshot
    from telex.terminal.pictures import Kind
    from telex.terminal.pty import Program
    from telex.terminal.waits.matchers import Matcher


def _size(_: click.Context, __: click.Parameter, given: str) -> Size:
    from telex.terminal.cells import Size

    size = Size.parse(given)
    if size is None or not (1 <= size.cols <= 1000 and 1 <= size.rows <= 1000):
        raise click.BadParameter(f"{given!r} is not COLSxROWS, each from 1 to 1000, as in 80x24")
    if size.cols < size.rows:
        explain(
            f"telex: note: {given} was taken as {size.cols} columns and {size.rows} rows; "
            f"for {size.rows} columns and {size.cols} rows write {size.rows}x{size.cols}"
        )
    return size


size_option = click.option(
    "--size",
    default="80x24",
    show_default=True,
    metavar="COLSxROWS",
    callback=_size,
    help="Size of the terminal: columns first.",
)
"""The option of every command that makes a terminal. A size with more rows than columns is told on
stderr: before this release the rows came first."""


_OPTIONS = (
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the picture to this file.",
    ),
    click.option(
        "--kind",
        type=click.Choice(["text", "ansi", "svg", "html", "png"]),
        help="Format, whatever the suffix of the file.",
    ),
    click.option("--light", is_flag=True, help="Dark text on a light background."),
    click.option(
        "--scale", type=click.IntRange(1, 8), default=2, show_default=True, help="Scale of a PNG."
    ),
    click.option("--no-cursor", is_flag=True, help="Leave the cursor out."),
    click.option("--raw", is_flag=True, help="Do not mask secrets."),
)


def picture_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options. The command gets them as keywords, for `Picture.of`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture that a person asked for."""

    output: Path | None
    kind: Kind
    light: bool
    scale: int
    cursor: bool
    redactor: Redactor | None
    """Masks the screen before it is drawn; None for the screen as it is."""

    @classmethod
    def of(
        cls,
        context: click.Context,
        *,
        output: Path | None,
        kind: Kind | None,
        light: bool,
        scale: int,
        no_cursor: bool,
        raw: bool,
    ) -> Picture:
        """Read the options. The suffix of the file is checked before anything runs."""
        from telex.terminal.pictures import kind_of

        drawn = kind or ("text" if output is None else kind_of(output))
        redactor = None if raw else redactor_of(load_config(context).settings)
        return cls(output, drawn, light, scale, not no_cursor, redactor)

    def write(self, seen: Snapshot) -> None:
        """Draw the screen, to the file or to stdout."""
        from telex.terminal.pictures import DARK, LIGHT, draw, write_picture

        theme = LIGHT if self.light else DARK
        drawn = draw(seen, self.kind, theme=theme, cursor=self.cursor, scale=self.scale)
        if self.output is None:
            sys.stdout.buffer.write(drawn)
        else:
            write_picture(self.output, drawn)


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
  telex shot --press page_down --press down -- less notes.txt
"""


@click.command(help=HELP, context_settings={"allow_interspersed_args": False})
@size_option
@click.option("--type", "typed", multiple=True, help="Type this first; \\n is Enter, \\e Escape.")
@click.option(
    "--press", "pressed", metavar="KEY", multiple=True, help="Then press this key, such as ctrl_d."
)
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
    pressed: tuple[str, ...],
    awaited: str | None,
    still: int,
    timeout: float,
    program: tuple[str, ...],
    **options: Any,
) -> None:
    from telex.cli.event_loop import run
    from telex.terminal.actions import Key, Text
    from telex.terminal.keys import UnknownKey, parse_key
    from telex.terminal.pty import Program

    picture = Picture.of(context, **options)
    for key in pressed:
        try:
            parse_key(key)
        except UnknownKey as error:
            raise click.BadParameter(str(error), context, param_hint="--press") from error
    texts, keys = [Text(_unescaped(text)) for text in typed], [Key(key) for key in pressed]
    if awaited == "":
        raise click.BadParameter("the text is empty", context, param_hint="--wait")
    plan = Plan((*texts, *keys), awaited, still, timeout)
    picture.write(run(_seen(Program(program, size=size), plan, picture.redactor)))


@dataclass(frozen=True, slots=True)
class Plan:
    """The input and the waits before the picture."""

    inputs: tuple[Text | Key, ...]
    awaited: str | None
    still: int
    timeout: float


class NotSeen(Exception):
    """The text did not appear in time; the message shows the screen."""


async def _seen(program: Program, plan: Plan, redactor: Redactor | None) -> Snapshot:
    """Return the redacted screen. A failed wait shows it redacted, too."""
    from telex import match
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
            for action in plan.inputs:
                await wait(shown)
                await session.act(action)
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
