"""What was printed is kept for a look at it, but not for ever and not all of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from passthrough.seat import RUN, frame, seated
from passthrough.test_escape_filter import program
from telex.passthrough import limits
from telex.passthrough.query_replies import UnscannedOutput


def test_it_is_taken_once_and_whole() -> None:
    overlooked = UnscannedOutput()
    for piece in (b"a\x1b", b"[", b"c" * 5000, b"b"):
        overlooked.add(piece, 1.0)
    assert overlooked.take(2.0) == b"a\x1b[" + b"c" * 5000 + b"b"
    assert overlooked.take(2.0) == b""


def test_what_nobody_waits_for_any_more_is_forgotten() -> None:
    overlooked = UnscannedOutput()
    overlooked.add(b"\x1b[c", 1.0)
    assert overlooked.take(7.0) == b""


def test_of_a_flood_only_the_last_is_kept_however_it_comes() -> None:
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


async def test_a_question_that_was_answered_before_the_first_frame_is_no_longer_open(
    tmp_path: Path,
) -> None:
    """Else the answer to ours would be taken for that one, and nobody told where the cursor is."""
    asked = frame('{"command":"term:report","rpcid":"r","data":{"what":"cursor"}}')
    body = f"ask(b'\\x1b[5n', b'[0n'); print(ask({asked!r}), flush=True)"
    async with seated(*RUN, *program(body), home=tmp_path) as person:
        await person.shows('"data":{"row":1,"col":1}')
        assert await person.leaves() == 0


async def test_what_answers_is_loaded_once_the_program_is_quiet(tmp_path: Path) -> None:
    async with seated(*RUN, "cat", home=tmp_path) as person:
        maps = Path(f"/proc/{person.pid}/maps")
        async with asyncio.timeout(10):
            while "ghostty" not in maps.read_text():
                await asyncio.sleep(0.05)
        person.type("still here\r")
        await person.shows("still here")
        person.type("\x04")
        assert await person.leaves() == 0
