"""Recent output is kept for a search, with limits of time and size."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from passthrough.seat import RUN, frame, seated
from passthrough.test_escape_filter import program
from telex.passthrough import limits
from telex.passthrough.query_replies import UnscannedOutput


def test_output_is_taken_once_and_whole() -> None:
    overlooked = UnscannedOutput()
    for piece in (b"a\x1b", b"[", b"c" * 5000, b"b"):
        overlooked.add(piece, 1.0)
    assert overlooked.take(2.0) == b"a\x1b[" + b"c" * 5000 + b"b"
    assert overlooked.take(2.0) == b""


def test_old_output_is_forgotten() -> None:
    overlooked = UnscannedOutput()
    overlooked.add(b"\x1b[c", 1.0)
    assert overlooked.take(7.0) == b""


def test_of_a_flood_only_the_last_output_is_kept() -> None:
    for size in (1, 16 * 1024):
        overlooked = UnscannedOutput()
        most = limits.UNSEEN_BYTES // 64
        for _ in range(2 * most // size):
            overlooked.add(b"x" * size, 1.0)
        overlooked.add(b"end", 1.0)
        kept = overlooked.take(1.0)
        assert kept.endswith(b"xend")
        assert most // 2 < len(kept) <= most


# In `telex run`.


async def test_a_query_with_a_reply_before_the_first_frame_is_no_longer_open(
    tmp_path: Path,
) -> None:
    """Otherwise the reply to our query would be taken for the program's, and the report fail."""
    asked = frame('{"command":"term:report","rpcid":"r","data":{"what":"cursor"}}')
    body = f"ask(b'\\x1b[5n', b'[0n'); print(ask({asked!r}), flush=True)"
    async with seated(*RUN, *program(body), home=tmp_path) as person:
        await person.shows('"data":{"row":1,"col":1}')
        assert await person.leaves() == 0


@pytest.mark.fresh_start
async def test_the_responder_is_imported_once_the_program_is_idle(tmp_path: Path) -> None:
    async with seated(*RUN, "cat", home=tmp_path) as person:
        maps = Path(f"/proc/{person.pid}/maps")
        async with asyncio.timeout(60):
            while "ghostty" not in maps.read_text():
                await asyncio.sleep(0.05)
        person.type("still here\r")
        await person.shows("still here")
        person.type("\x04")
        assert await person.leaves() == 0
