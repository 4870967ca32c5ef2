"""How an agent behaves, as options: the same for `telex agent` and `telex agent exec`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[..., Any]


class ModeName(click.Choice[str]):
    """A mode by our name for it, or by that of the protocol's original."""

    def __init__(self) -> None:
        super().__init__(["minimal", "trusted", "full"])

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert("full" if value == "full-access" else value, param, ctx)


def _asked_by_codelia() -> bool:
    """Another program's variable: what it cannot mean is a no, and never an error of ours."""
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
            "What goes without a question where no rule says anything. --approval-mode is the"
            " same for UIs of Codelia, and full-access is full."
        ),
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
        default=_asked_by_codelia,
        help=(
            "Tell what each model call costs (run.diagnostics). CODELIA_DIAGNOSTICS=1, which"
            " Codelia's TUI sets, does the same."
        ),
    ),
)


def behaving(command: Function) -> Function:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
