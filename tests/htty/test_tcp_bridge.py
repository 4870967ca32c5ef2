"""TCP on one side, a command on a terminal on the other, and every byte between them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from htty.far_ends import Shown
from telex.htty.h2.http2_frames import HEADER_BYTES, FrameType, frame_header, goaway_frame
from telex.htty.tools.command_stream import CommandStream
from telex.htty.tools.tcp_bridge import Bridge, NotLoopback

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PROGRAMS = Path(__file__).parent / "programs"
ECHOING = (sys.executable, str(PROGRAMS / "echoing.py"))
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
MB = 1_000_000


class Bridged:
    """A bridge, and the reasons that it reported."""

    def __init__(self, *argv: str, eager: bool = False) -> None:
        self.text = b""
        self.ended: dict[int, str] = {}
        self.news = asyncio.Event()
        self.bridge = Bridge(argv, on_end=self._on_end, text=self._text, eager=eager)

    def _on_end(self, number: int, why: str) -> None:
        self.ended[number] = why
        self.news.set()

    def _text(self, number: int, data: bytes) -> None:
        self.text += data

    @contextlib.asynccontextmanager
    async def connected(
        self,
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.bridge.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def reason(self, number: int) -> str:
        while number not in self.ended:
            self.news.clear()
            await self.news.wait()
        return self.ended[number]


@pytest.mark.counted
@pytest.mark.each_loop
async def test_every_byte_comes_back_in_order(
    loop: str, counted: Callable[[int, int], int]
) -> None:
    bridged = Bridged(*ECHOING, "chatty")
    rng = random.Random(5)
    sizes = [rng.randrange(1, 50_000) for _ in range(counted(40, 2000))]
    async with bridged.bridge, bridged.connected() as (reader, writer):
        assert await reader.readexactly(len(SETTINGS)) == SETTINGS
        sent, got = hashlib.sha256(), hashlib.sha256()

        async def send() -> None:
            for size in sizes:
                piece = frame_header(FrameType.DATA, size, stream=1) + rng.randbytes(size)
                sent.update(piece)
                writer.write(piece)
                await writer.drain()

        sending = asyncio.create_task(send())
        left = sum(sizes) + HEADER_BYTES * len(sizes)
        while left:
            piece = await reader.read(min(left, 65536))
            assert piece
            got.update(piece)
            left -= len(piece)
        await sending
        assert got.digest() == sent.digest()
        writer.write(b"end!")
        assert await reader.read() == b""
        assert await bridged.reason(1) == "the command exited with code 0"
    assert bridged.text.startswith(b"HTTY is 1\r\n")
    assert set(bridged.text.split(b"\r\n")) == {b"HTTY is 1", b"some text", b"leaving", b""}


async def test_each_connection_has_a_command_of_its_own() -> None:
    bridged = Bridged("sh", "-c", f"echo pid $$; exec {shlex.join(ECHOING)}")
    async with bridged.bridge:
        async with bridged.connected() as (one, _), bridged.connected() as (two, _):
            await one.readexactly(len(SETTINGS))
            await two.readexactly(len(SETTINGS))
        assert {await bridged.reason(n) for n in (1, 2)} == {"the client closed the connection"}
    pids = [line for line in bridged.text.split(b"\r\n") if line.startswith(b"pid")]
    assert len(set(pids)) == 2


async def test_nothing_is_sent_to_a_command_before_its_first_chunk() -> None:
    """The bytes would be echoed and cut: the terminal is not raw yet."""
    bridged = Bridged("sh", "-c", f"read -r line; echo got $line; exec {shlex.join(ECHOING)}")
    async with bridged.bridge, bridged.connected() as (reader, writer):
        writer.write(b"early bird")
        await writer.drain()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await reader.read(1)
        assert bridged.text == b""


async def test_an_eager_bridge_begins_by_itself() -> None:
    script = "import os; print(os.read(0, 100)[:7].hex(), flush=True)"
    python = shlex.join([sys.executable, "-c", script])
    bridged = Bridged("sh", "-c", f"stty -icanon -echo; {python}", eager=True)
    async with bridged.bridge, bridged.connected() as (reader, writer):
        writer.write(b"PRI * HTTP/2.0")
        assert await reader.read() == b""
    assert b"\x1bPHTTY;".hex().encode() in bridged.text


async def test_a_client_that_disconnects_ends_its_command() -> None:
    script = f"trap '' HUP; sleep 1000 & {shlex.join(ECHOING)}"
    bridged = Bridged("sh", "-c", script)
    async with bridged.bridge:
        async with bridged.connected() as (reader, _):
            await reader.readexactly(len(SETTINGS))
        assert await bridged.reason(1) == "the client closed the connection"


async def test_a_client_that_disconnects_before_the_first_chunk_ends_its_command() -> None:
    bridged = Bridged("sleep", "1000")
    async with bridged.bridge:
        async with bridged.connected() as (_, writer):
            writer.write(b"x")
            await writer.drain()
        assert await bridged.reason(1) == "the client closed the connection"


async def test_a_malformed_chunk_ends_the_connection_with_a_reason() -> None:
    bridged = Bridged(*ECHOING, "bad")
    async with bridged.bridge, bridged.connected() as (reader, writer):
        await reader.readexactly(len(SETTINGS))
        writer.write(b"bad!")
        assert await reader.read() == b""
        assert "not base64" in await bridged.reason(1)
    assert b"HTTY;" not in bridged.text


async def test_a_program_of_the_raw_form_is_ended_and_named() -> None:
    bridged = Bridged("sh", "-c", r"printf '\033P+Hraw\033\\'; exec sleep 1000")
    async with bridged.bridge, bridged.connected() as (reader, _):
        assert await reader.read() == b""
        assert "speaks the raw form of later HTTY releases" in await bridged.reason(1)


async def test_nothing_is_typed_into_the_program_that_follows() -> None:
    bridged = Bridged("bash", "-mc", f"{shlex.join(ECHOING)}; echo next; cat -v")
    async with bridged.bridge, bridged.connected() as (reader, writer):
        await reader.readexactly(len(SETTINGS))
        writer.write(b"end!")
        while b"next" not in bridged.text:
            await asyncio.sleep(0.01)  # no event reports the command's output
        writer.write(b"rm -rf /")
        assert await reader.read() == b""
        assert "another program has the terminal" in await bridged.reason(1)
    assert b"HTTY;" not in bridged.text


async def test_nothing_is_typed_after_goaway_although_the_group_stays_the_same() -> None:
    shown = Shown()
    script = f"{shlex.join(ECHOING)}; echo next; cat -v"
    async with CommandStream(["sh", "-c", script], text=shown.add) as stream:
        assert await stream.announced()
        stream.write(goaway_frame(0, 0, ""))
        await shown.sees("next")
        stream.write(b"rm -rf /")
        stream.pty.write(b"typed\n")
        await shown.sees("typed")
    assert "HTTY;" not in shown.text


async def test_a_command_that_cannot_start_is_reported_and_the_next_may_try() -> None:
    bridged = Bridged("no-such-program-at-all")
    async with bridged.bridge:
        for number in (1, 2):
            async with bridged.connected() as (reader, _):
                assert await reader.read() == b""
            assert "no-such-program-at-all" in await bridged.reason(number)


async def test_connections_over_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_BRIDGE_COMMANDS", 1)
    bridged = Bridged(*ECHOING)
    async with bridged.bridge, bridged.connected() as (first, _):
        await first.readexactly(len(SETTINGS))
        async with bridged.connected() as (second, _):
            assert await second.read() == b""
        assert "refused" in await bridged.reason(2)


async def test_a_client_that_does_not_read_blocks_the_command_and_costs_no_memory(
    tmp_path: Path,
) -> None:
    count = tmp_path / "count"
    count.touch()
    flood = (
        "import os, sys; from telex.wire.htty_chunk import encode\n"
        "os.write(1, encode(b'begin')); zeros = encode(bytes(12000), 12000)\n"
        f"with open({str(count)!r}, 'ab', buffering=0) as count:\n"
        "  while True:\n"
        "    os.write(1, zeros)\n"
        "    count.write(b'.')\n"
    )
    bridged = Bridged(sys.executable, "-c", flood)
    async with bridged.bridge, bridged.connected() as (reader, writer):
        transport = writer.transport
        assert isinstance(transport, asyncio.Transport)
        assert await reader.readexactly(5) == b"begin"
        transport.pause_reading()
        before, seen = -1, 0
        while not seen or before != seen:
            await asyncio.sleep(0.3)  # the absence of output is tested
            before, seen = seen, count.stat().st_size
        assert seen * 12_000 < 16 * MB, "the kernel's buffers, and a little of ours"
        transport.resume_reading()
        more = seen * 12_000 + MB
        assert await reader.readexactly(more) == bytes(more)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_it_listens_on_loopback_only(host: str) -> None:
    with pytest.raises(NotLoopback, match=r"127\.0\.0\.1"):
        Bridge(["true"], on_end=lambda n, w: None, text=lambda n, d: None, host=host)
