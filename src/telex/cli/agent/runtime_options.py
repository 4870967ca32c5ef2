"""The options of a runtime, which `telex agent` and `telex agent exec` share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[..., Any]


class ModeName(click.Choice[str]):
    """A mode by its name in telex, or by its name in Codelia."""

    def __init__(self) -> None:
        super().__init__(["minimal", "trusted", "full"])

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert("full" if value == "full-access" else value, param, ctx)


def _asked_by_codelia() -> bool:
    """Read a variable of Codelia. An unknown value counts as off and is not an error."""
    said = os.environ.get("CODELIA_DIAGNOSTICS", "")
    return said.strip().lower() in ("1", "true", "yes", "on")


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
        "--approval-mode",
        "mode",
        type=ModeName(),
        default="minimal",
        envvar="TELEX_AGENT_MODE",
        show_default=True,
        help=(
            "Default permission when no rule matches. --approval-mode is the same option for UIs"
            " of Codelia, and full-access is full."
        ),
    ),
    click.option(
        "--script",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Use a JSON file of steps in place of a model, for tests and demos.",
    ),
    click.option(
        "--diagnostics",
        is_flag=True,
        envvar="TELEX_DIAGNOSTICS",
        default=_asked_by_codelia,
        help=(
            "Send the cost of each model call (run.diagnostics). CODELIA_DIAGNOSTICS=1, which"
            " Codelia's TUI sets, does the same."
        ),
    ),
)


def behaving(command: Function) -> Function:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
