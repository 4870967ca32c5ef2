"""Who does not move: header fields that do not end, and exchanges that wait for the peer too long.

A server's, for the most part. A client waits for as long as its person does: whoever closes the tab
resets the stream. Used by `http2`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from h2.errors import ErrorCodes

from telex.htty.connection import Broken, Connection, Side
from telex.htty.exchange import Exchange
from telex.wire import limits

LOOKS_AT_HEADERS = 2
LOOK_SECONDS = limits.HTTY_HEADER_SECONDS / LOOKS_AT_HEADERS
LOOKS_AT_STALL = int(limits.HTTY_STALL_SECONDS / LOOK_SECONDS)
"""Looks, not seconds: a program that was stopped for an hour has not been stalled by its peer."""


class Watch:
    """Looks from time to time, while there is something to look at."""

    def __init__(
        self,
        connection: Connection,
        exchanges: dict[int, Exchange],
        broken: Callable[[Broken], None],
    ) -> None:
        self._connection = connection
        self._exchanges = exchanges
        self._broken = broken
        self._timer: asyncio.TimerHandle | None = None
        self._amid_headers = 0

    def came(self) -> None:
        """After something was received."""
        if not self._connection.amid_headers:
            self._amid_headers = 0
        self._arm()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        wanted = self._connection.amid_headers or self._watched()
        if wanted and self._timer is None and not self._connection.broken:
            self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.look()
        self._arm()

    def look(self) -> None:
        """Count those that stand still, and give up those that did so for too long."""
        self._amid_headers += self._connection.amid_headers
        if self._amid_headers >= LOOKS_AT_HEADERS:
            code = ErrorCodes.ENHANCE_YOUR_CALM
            self._broken(self._connection.give_up(code, "its header fields do not end"))
        for exchange in self._watched():
            exchange.still = exchange.still + 1 if exchange.waits_for_peer else 0
            if exchange.still >= LOOKS_AT_STALL:
                exchange.stalled()

    def _watched(self) -> list[Exchange]:
        if self._connection.side is Side.CLIENT or self._connection.broken:
            return []
        return list(self._exchanges.values())
