"""The socket of a run, and what is left of it when the run is over, however that came about."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from passthrough.person import at_terminal
from passthrough.seat import RUN

if TYPE_CHECKING:
    from pathlib import Path

SHOW = ("sh", "-c", "echo =$TELEX_SOCKET=; read line")


async def test_what_a_killed_run_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    async with at_terminal(*RUN, *SHOW, TMPDIR=str(tmp_path)) as other:
        await other.sees("escapes=")
        async with at_terminal(*RUN, *SHOW, TMPDIR=str(tmp_path)) as killed:
            await killed.sees("escapes=")
            os.kill(killed.pid, signal.SIGKILL)
            await killed.leaves()
        assert len(list(tmp_path.iterdir())) == 2
        async with at_terminal(*RUN, "true", TMPDIR=str(tmp_path)) as third:
            assert await third.leaves() == 0
        (left,) = tmp_path.iterdir()
        assert str(left) in other.seen.decode()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
async def test_a_run_that_is_told_to_end_at_its_very_start_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with at_terminal(*RUN, *SHOW, TMPDIR=str(tmp_path)) as person:
        while not any(tmp_path.iterdir()):
            await asyncio.sleep(0)  # nothing tells of it; the deadline bounds this
        os.kill(person.pid, number)
        assert await person.leaves() == 128 + number
    assert not list(tmp_path.iterdir())
