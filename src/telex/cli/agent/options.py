"""How an agent behaves, as options: the same for `telex agent` and `telex agent exec`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[..., Any]

_OPTIONS: Final[tuple[Callable[[Function], Function], ...]] = (
    click.option(
        "--root",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False, exists=True),
        help=(
            "The sandbox root; else the nearest directory with .git, .jj or .telex, else this one."
        ),
    ),
    click.option(
        "--mode",
        type=click.Choice(["minimal", "trusted", "full"]),
        default="minimal",
        envvar="TELEX_AGENT_MODE",
        show_default=True,
        help="What goes without a question where no rule says anything.",
    ),
    click.option(
        "--script",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Think by a JSON file of steps, for tests and demos.",
    ),
    click.option(
        "--diagnostics",
        is_flag=True,
        envvar="TELEX_DIAGNOSTICS",
        help="Tell what each model call costs (run.diagnostics).",
    ),
)


def behaving(command: Function) -> Function:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
