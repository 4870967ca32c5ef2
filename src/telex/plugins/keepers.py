"""A host's plugins, by name. What one does touches none of the others, also when they end.

    async with Keepers(findings.found, settings) as keepers:
        await keepers["hello"].call("runCommand", …)

Nothing is started by this; see `keeper`. Which plugins there are is `finding`'s to say.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from telex.plugins import problems
from telex.plugins.keeper import Keeper, Pace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from telex.plugins.finding import Found
    from telex.plugins.settings import Settings


class Keepers:
    """Use it as a context manager, or close it."""

    def __init__(
        self, found: Iterable[Found], settings: Settings | None = None, pace: Pace | None = None
    ) -> None:
        self._keepers = {one.name: Keeper(one, settings, pace) for one in found}

    def __getitem__(self, name: str) -> Keeper:
        try:
            return self._keepers[name]
        except KeyError:
            there = ", ".join(sorted(self._keepers)) or "none"
            raise problems.NotStarted(name, "is not there", f"there are: {there}") from None

    def __iter__(self) -> Iterator[Keeper]:
        return iter(self._keepers.values())

    def __len__(self) -> int:
        return len(self._keepers)

    async def close(self) -> None:
        """End all at once. Each goes down its own ladder, however long the others take."""
        ends = (keeper.close() for keeper in self._keepers.values())
        outcomes = await asyncio.gather(*ends, return_exceptions=True)
        if mistakes := [outcome for outcome in outcomes if isinstance(outcome, Exception)]:
            raise ExceptionGroup("plugins could not be closed", mistakes)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
