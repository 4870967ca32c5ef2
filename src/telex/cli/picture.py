"""The options of commands that draw a screen, and the file or the stdout that they draw to."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from telex.cli.configuration import load_config, redactor_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.redaction import Redactor
    from telex.terminal.cells import Snapshot
    from telex.terminal.pictures import Kind

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
