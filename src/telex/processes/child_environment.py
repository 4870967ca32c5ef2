"""The environment of a child: ours, without misleading variables, plus the caller's overrides.

Pure. `spawn.start` uses it when no environment is given. Callers that build an environment of their
own start from it too, so the rules apply to every child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

COOKIE: Final = "TELEX_TREE"
"""The variable that marks all processes of a tree, wherever they moved; see `tree.Tree.mark`."""

NEVER_INHERITED: Final = ("HTTY", "TELEX_SOCKET", "TELEX_TOKEN", "TELEX_TOKENS", "TMUX", "STY")
"""Most of these say that a certain program is at the other end of *this* terminal. A child's
terminal is another one, so the child gets them as an override or not at all. A token grants
access to every session of a server, and no program inside a session should have it."""

OUTER_TERMINAL: Final = ("TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LINES", "COLUMNS")
"""The name and the size of the terminal around us. Programs trust them, and the size even before
they ask the kernel. A child on a terminal of ours must not inherit them."""

TERMINAL: Final = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TELEX": __version__}
"""The variables that describe a terminal of ours to its child."""


def child_environment(
    parent: Mapping[str, str],
    overrides: Mapping[str, str | None] | None = None,
    *,
    terminal: bool = False,
) -> dict[str, str]:
    """Return the environment of a child of a process with the environment `parent`.

    An override takes precedence; None removes a variable. The child of `telex run` is in effect on
    the person's own terminal, so TERM, COLORTERM and TERM_PROGRAM are passed as overrides.
    """
    hidden = (*NEVER_INHERITED, *OUTER_TERMINAL) if terminal else NEVER_INHERITED
    inherited = {name: value for name, value in parent.items() if name not in hidden}
    merged: dict[str, str | None] = {**inherited, **(TERMINAL if terminal else {})}
    merged |= overrides or {}
    return {name: value for name, value in merged.items() if value is not None}
