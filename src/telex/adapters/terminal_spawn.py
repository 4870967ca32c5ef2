"""`telex.spawn`: the terminal's own `spawn`, given plugins for the `lua` matcher.

    with telex.spawn("make") as term:
        term.wait(match.lua("./my-plugin", "is_built", target="all"))

`telex.terminal` knows nothing of plugins, so they are passed in here. No plugin is loaded or
started before the first such matcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telex.automation import client

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from telex.adapters.predicates import FoundPredicates
    from telex.automation.client import Terminal
    from telex.automation.portal import DualContext
    from telex.automation.sync import BlockingTerminal
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import PredicateRunner
    from telex.terminal.waits.matchers import Predicate


def spawn(
    command: str | Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    rows: int = 24,
    cols: int = 80,
    **more: Any,
) -> DualContext[Terminal, BlockingTerminal]:
    """A program on a terminal of its own, to be driven from here.

    `command` is an argument list, or a string that is split as a shell would. `env` is what differs
    from our own environment. `more` is what else `session.create` takes.

    Use it by `async with`, or without an event loop by `with`.
    """
    return client.spawn(
        command, cwd=cwd, env=env, rows=rows, cols=cols, predicates=_OnDemand(), **more
    )


class _OnDemand:
    """The predicates of plugins, from the first that is asked for."""

    def __init__(self) -> None:
        self._found: FoundPredicates | None = None

    def runner(self, session: PtySession, predicate: Predicate) -> PredicateRunner:
        """Raises NoAnswer if there is no such plugin."""
        if self._found is None:
            from telex.adapters.predicates import FoundPredicates
            from telex.config import places

            self._found = FoundPredicates(places.find())
        return self._found.runner(session, predicate)

    async def close(self) -> None:
        if self._found is not None:
            await self._found.close()
