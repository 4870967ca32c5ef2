"""`telex.spawn`: `automation.client.spawn`, with the plugins that `lua` matchers name.

    with telex.spawn("make") as term:
        term.wait(match.lua("./my-plugin", "is_built", target="all"))

`telex.automation` lies below the adapters and cannot import them, so the plugins are passed in
here. No plugin is loaded or started before the first `lua` matcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.automation import client
from telex.automation.arguments import checks_arguments

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from telex.adapters.predicates import FoundPredicates
    from telex.automation.client import AsyncTerminal
    from telex.automation.portal import DualContext
    from telex.automation.sync import Terminal
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import PredicateRunner
    from telex.terminal.waits.matchers import Predicate


@checks_arguments
def spawn(
    command: str | Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    rows: int = 24,
    cols: int = 80,
    redact: bool = False,
    timeout: float = client.WAIT_SECONDS,
    pixel_width: int = 0,
    pixel_height: int = 0,
    transcript_max_chars: int | None = None,
    raw_transcript_path: str | os.PathLike[str] | None = None,
    raw_transcript_append: bool = False,
) -> DualContext[AsyncTerminal, Terminal]:
    """Start a program on a terminal and drive it from this process.

    Args:
        command: An argument list, or a string that is split as a shell splits words.
        cwd: The working directory; by default the current one.
        env: Changes to this process's environment; None removes a variable.
        rows: Height of the terminal.
        cols: Width of the terminal.
        redact: Mask secrets in what is read. By default reads show the screen as it is; what gets
            into logs by itself (exceptions, recordings) is masked in any case.
        timeout: Seconds that each wait lasts, unless it says otherwise.
        pixel_width: Width in pixels, for programs that ask; 0 if unknown.
        pixel_height: Height in pixels.
        transcript_max_chars: How many printed characters are kept; by default 131,072.
        raw_transcript_path: A file for every byte that the program prints, not masked.
        raw_transcript_append: Append to that file; otherwise it must not exist.

    Returns:
        An object for `with` (gives a `Terminal`) or `async with` (gives an `AsyncTerminal`).
        Leaving the block ends the program and everything it started.

    Raises:
        NotStarted: The program could not be started. Raised on entering.
        ValueError: The command is empty, or a number is out of its range.
        TypeError: A keyword is unknown, or an argument has a wrong type.

    Example:
        with telex.spawn("python3 -q", rows=10) as term:
            term.wait(">>> ")
    """
    asked = client.created(
        command,
        cwd=cwd,
        env=env,
        rows=rows,
        cols=cols,
        pixel_width=pixel_width,
        pixel_height=pixel_height,
        transcript_max_chars=transcript_max_chars,
        raw_transcript_path=raw_transcript_path,
        raw_transcript_append=raw_transcript_append,
    )
    return client.spawn(asked, redact=redact, timeout=timeout, predicates=_OnDemand())


class _OnDemand:
    """Loads the adapters package at the first `lua` matcher."""

    def __init__(self) -> None:
        self._found: FoundPredicates | None = None

    def runner(self, session: PtySession, predicate: Predicate) -> PredicateRunner:
        """Return the runner of one predicate. Raises PredicateFailed if there is no such plugin."""
        if self._found is None:
            from telex.adapters.predicates import FoundPredicates
            from telex.config import places

            self._found = FoundPredicates(places.find())
        return self._found.runner(session, predicate)

    async def close(self) -> None:
        if self._found is not None:
            await self._found.close()
