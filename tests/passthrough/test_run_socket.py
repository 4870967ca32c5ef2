"""The socket of a run is removed, however the run ends."""

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


async def test_the_directory_of_a_killed_run_is_removed_by_the_next_run(tmp_path: Path) -> None:
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
async def test_a_signal_at_the_very_start_of_a_run_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with at_terminal(*RUN, *SHOW, TMPDIR=str(tmp_path)) as person:
        while not any(tmp_path.iterdir()):
            await asyncio.sleep(0)  # there is no event for it; the deadline bounds this
        os.kill(person.pid, number)
        assert await person.leaves() == 128 + number
    assert not list(tmp_path.iterdir())
