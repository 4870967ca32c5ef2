"""The thread that reads, with a connection that only reads; and logs played from it in pages."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from telex.agent.store import reading
from telex.agent.store.files import conditions, connect_reader
from telex.agent.store.problems import StoreClosed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from telex.agent.store.records import Event

T = TypeVar("T")
P = ParamSpec("P")


class Reader:
    """A thread with a connection that only reads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "telex-store-reader")
        self._database: sqlite3.Connection | None = None
        self._closed = False

    async def read(
        self,
        work: Callable[Concatenate[sqlite3.Connection, P], T],
        *given: P.args,
        **named: P.kwargs,
    ) -> T:
        if self._closed:
            raise StoreClosed(f"{self._path} was closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(self._read, work, *given, **named))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            loop = asyncio.get_running_loop()
            await asyncio.shield(loop.run_in_executor(self._thread, self._disconnect))
            self._thread.shutdown()

    def _read(
        self,
        work: Callable[Concatenate[sqlite3.Connection, P], T],
        *given: P.args,
        **named: P.kwargs,
    ) -> T:
        with conditions(self._path):
            if self._database is None:
                self._database = connect_reader(self._path)
            return work(self._database, *given, **named)

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()


class History:
    """How much will be played again, and then that: `async for event in history`."""

    def __init__(self, window: reading.Window, reader: Reader) -> None:
        self.runs = window.runs
        self.events = window.events
        self.truncated = window.truncated
        self._spans = window.spans
        self._reader = reader

    async def __aiter__(self) -> AsyncIterator[Event]:
        for span in self._spans:
            async for event in played(self._reader, span):
                yield event


async def played(reader: Reader, span: reading.Span) -> AsyncIterator[Event]:
    async for events in pages(reader, span):
        for event in events:
            yield event


async def pages(reader: Reader, span: reading.Span) -> AsyncIterator[list[Event]]:
    while span.first < span.end:
        events, span = await reader.read(reading.page, span)
        yield events
