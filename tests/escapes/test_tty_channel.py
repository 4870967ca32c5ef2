"""The channel through a program's own terminal, with cut frames and lost replies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import tty
from typing import TYPE_CHECKING

import pytest

from telex.escapes import tty_channel
from telex.escapes.probe import DA1_QUERY, DeviceAttributes, RoundTrip
from telex.escapes.tty_channel import TtyChannel
from telex.wire import json_escape

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def terminal() -> Iterator[tuple[TtyChannel, int]]:
    """Return a channel on the program's end, and the terminal's end."""
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(slave, False)
    channel = TtyChannel(slave, RoundTrip())
    try:
        yield channel, master
    finally:
        channel._end("over")
        os.close(master)
        os.close(slave)


async def test_a_lost_reply_is_forgotten_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The terminal replied to the second query, and never to the first."""
    monkeypatch.setattr(tty_channel, "LOST_SECONDS", 0.05)
    with terminal() as (channel, master):
        assert await channel.attributes(0.01) is None
        await asyncio.sleep(0.1)
        asked = asyncio.create_task(channel.attributes(5))
        await asyncio.sleep(0)
        os.write(master, b"\x1b[?62;4c")
        assert await asked == DeviceAttributes(frozenset({62, 4}))
        assert os.read(master, 100) == DA1_QUERY * 2


async def test_a_late_reply_is_neither_a_keystroke_nor_the_next_reply() -> None:
    with terminal() as (channel, master):
        assert await channel.attributes(0.01) is None
        asked = asyncio.create_task(channel.attributes(5))
        await asyncio.sleep(0)
        os.write(master, b"\x1b[?1c\x1b[?62;4cx")
        assert await asked == DeviceAttributes(frozenset({62, 4}))
        assert await channel.keys.take() == b"x"


async def test_a_partly_sent_frame_is_finished_and_no_other_is_begun() -> None:
    frame = b'"' + b"x" * 100_000 + b'"'
    with terminal() as (channel, master):
        channel.send(frame)
        channel.send(frame)
        seen = b""
        whole = json_escape.encode(frame, json_escape.TO_TERMINAL)

        def show() -> None:
            nonlocal seen
            while len(seen) < len(whole):
                seen += os.read(master, 65536)

        shown = threading.Thread(target=show)
        shown.start()
        channel.finish()
        shown.join(60)
        assert seen == whole
        channel.finish()
        assert channel.unsent == len(whole)


async def test_a_terminal_that_takes_nothing_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tty_channel, "FINISH_SECONDS", 0.05)
    with terminal() as (channel, _):
        channel.send(b'"' + b"x" * 200_000 + b'"')
        assert channel.finish()
        assert channel.unsent


async def test_a_program_that_is_stopped_in_the_middle_of_a_write_stops_after_the_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal handler runs in the middle of the write that it interrupted."""
    answers: list[bool] = []
    write = os.write

    def interrupted(fd: int, data: bytes) -> int:
        count = write(fd, data)
        if not answers:
            answers.append(channel.finish())
        return count

    with terminal() as (channel, _):
        channel.finished = lambda: answers.append(channel.finish())
        monkeypatch.setattr(os, "write", interrupted)
        channel.send(b'"whole"')
        assert answers == [False, True]
        channel.send(b'"more"')
        assert answers == [False, True]
