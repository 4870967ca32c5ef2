"""What a child inherits: our environment, without what would lie to it, plus what the caller says.

Pure. `spawn.start` uses it when no environment is given; callers who build one of their own start
here too, so that the rules hold for every child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

COOKIE: Final = "TELEX_TREE"
"""The variable by which a tree recognises its own, however far they moved; see `tree.Tree.mark`."""

NEVER_INHERITED: Final = ("HTTY", "TELEX_SOCKET", "TELEX_TOKEN", "TMUX", "STY")
"""Most say that something is at the other end of *this* terminal. A child's terminal is another
one, and so it gets them on purpose (as an override) or not at all. The token is the key to every
session of a server, and no program that runs in one of them should hold it."""

OUTER_TERMINAL: Final = ("TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LINES", "COLUMNS")
"""The name and the size of the terminal around us. Programs believe them, and the size even before
they ask the kernel; a child on a terminal of ours must not hear of them."""

TERMINAL: Final = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TELEX": __version__}
"""What a child on a terminal of ours is told about it."""


def child_environment(
    parent: Mapping[str, str],
    overrides: Mapping[str, str | None] | None = None,
    *,
    terminal: bool = False,
) -> dict[str, str]:
    """The environment of a child of a process with the environment `parent`.

    An override has the last word; None removes. `telex run`, whose child is on the person's own
    terminal in all but name, passes TERM, COLORTERM and TERM_PROGRAM as overrides.
    """
    hidden = (*NEVER_INHERITED, *OUTER_TERMINAL) if terminal else NEVER_INHERITED
    inherited = {name: value for name, value in parent.items() if name not in hidden}
    told: dict[str, str | None] = {**inherited, **(TERMINAL if terminal else {})}
    told |= overrides or {}
    return {name: value for name, value in told.items() if value is not None}
