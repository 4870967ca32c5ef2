"""Channels in memory: an end that opens late still receives every frame, and the close."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from telex.rpc.memory import memory_channels
from telex.rpc.testing import MemoryChannel, Script
from telex.rpc.testing import memory_channels as shipped_for_tests
from telex.wire.events import Frame

if TYPE_CHECKING:
    from telex.wire.events import Event


class Log:
    """A receiver that writes down every call."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def received(self, events: list[Event]) -> None:
        self.calls += [event.body for event in events if isinstance(event, Frame)]

    def finished(self) -> None:
        self.calls.append("finished")

    def lost(self, why: str) -> None:
        self.calls.append(why)


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_an_end_that_opens_after_the_close_receives_the_frames_and_the_close() -> None:
    one, other = memory_channels()
    one.send(b"1")
    one.send(b"2")
    await one.close()
    log = Log()
    other.open(log)
    await turns()
    assert log.calls == [b"1", b"2", "closed by the other side"]
    await other.close()
    assert log.calls[3:] == []


async def test_an_end_that_opens_after_eof_receives_the_eof_once() -> None:
    one, other = memory_channels()
    one.send(b"1")
    one.finish()
    one.finish()
    log = Log()
    other.open(log)
    await turns()
    assert log.calls == [b"1", "finished"]
    await one.close()
    assert log.calls[2:] == ["closed by the other side"]


async def test_a_closed_end_sends_nothing_and_does_not_wait() -> None:
    one, other = memory_channels()
    log = Log()
    other.open(log)
    await other.close()
    one.send(b"late")
    await one.drained()
    await turns()
    assert log.calls == ["closed here"]


async def test_the_test_kit_has_the_same_channels() -> None:
    assert shipped_for_tests is memory_channels
    one, other = memory_channels()
    assert isinstance(one, MemoryChannel)
    script = Script(other)
    one.send(b"x")
    assert await script.hear() == b"x"
