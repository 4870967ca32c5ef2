"""A command behind a reaper: no orphan is lost, and the exit status is the command's."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from signal import SIGHUP, SIGKILL, SIGTERM
from typing import TYPE_CHECKING

import pytest

from processes.trees import SHAPES, Lifeline, shape
from telex.processes.child import Exit
from telex.processes.sandbox import Confinement
from telex.processes.spawn import PipeEnd, Pipes, start
from telex.processes.termination import Rung

if TYPE_CHECKING:
    from pathlib import Path

    from telex.processes.child import Child

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")

HURRIED = (Rung(SIGHUP, 0.02), Rung(SIGTERM, 0.02), Rung(SIGKILL, 20.0))
HIDDEN = """setsid env -i sh -c '(setsid sh "$0" &)' "$0" & """
"""A process that leaves its session, its parent and its environment."""
BESIDE = 'exec sh "$0" willing'


def grow(script: str, lifeline: Lifeline, *, reaping: bool = True) -> Child:
    argv = ["sh", "-c", script, shape("alone")[0][-1]]
    return start(argv, stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, lifeline.writing), reaping=reaping)


@pytest.mark.parametrize("name", SHAPES)
async def test_no_process_of_any_tree_is_left(name: str, lifeline: Lifeline) -> None:
    script, count = SHAPES[name]
    child = grow(script, lifeline)
    await lifeline.ready(count)
    await child.end(HURRIED)
    await lifeline.gone()


async def test_a_completely_hidden_process_is_ended_with_the_command(lifeline: Lifeline) -> None:
    child = grow(HIDDEN + BESIDE, lifeline)
    await lifeline.ready(2)
    await child.end(HURRIED)
    await lifeline.gone()


async def test_a_completely_hidden_process_is_ended_after_the_command_exited(
    lifeline: Lifeline,
) -> None:
    child = grow(HIDDEN + "wait", lifeline)
    await lifeline.ready(1)
    assert await child.wait() == Exit(code=0)
    await lifeline.gone()


@pytest.mark.parametrize("milliseconds", [0, 5, 10, 15, 20, 30, 50])
async def test_a_command_that_is_ended_during_its_start_does_not_wait_for_the_next_rung(
    milliseconds: int, lifeline: Lifeline
) -> None:
    """Whether or not the command was running when its reaper got the signal."""
    child = grow("exec sleep 1000", lifeline)
    await asyncio.sleep(milliseconds / 1000)
    async with asyncio.timeout(60):
        assert await child.end((Rung(SIGTERM, 900.0),)) == Exit(signal=SIGTERM)
    await lifeline.gone()


async def test_a_reaper_that_was_signalled_before_its_start_starts_nothing(
    tmp_path: Path, lifeline: Lifeline
) -> None:
    async with grow(f"touch {tmp_path}/ran", lifeline) as child:
        os.kill(child.pid, SIGTERM)
        assert await child.wait() == Exit(signal=SIGTERM)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("unknown", ["", None])
async def test_without_a_python_a_command_runs_without_a_reaper(
    unknown: str | None, lifeline: Lifeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with grow("exit 0", lifeline):
        pass  # the guardian runs, which needs one
    monkeypatch.setattr(sys, "executable", unknown)
    async with grow("exit 77", lifeline) as child:
        assert await child.wait() == Exit(code=77)


async def test_a_command_that_killed_its_reaper_is_found_in_the_usual_way(
    lifeline: Lifeline,
) -> None:
    child = grow('kill -9 $PPID; sh "$0" & exec sh "$0"', lifeline)
    await lifeline.ready(2)
    assert await child.end(HURRIED) == Exit(signal=SIGKILL)
    await lifeline.gone()


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("exit 0", Exit(code=0)),
        ("exit 77", Exit(code=77)),
        *((f"kill -{int(n)} $$", Exit(signal=n)) for n in (SIGTERM, SIGKILL, signal.SIGPIPE)),
    ],
)
async def test_the_reaper_exits_with_the_commands_status(
    script: str, ended: Exit, lifeline: Lifeline
) -> None:
    async with grow(script, lifeline) as child:
        assert await child.wait() == ended


@pytest.mark.parametrize("locale", [{}, *({"LC_CTYPE": it} for it in ("", "C", "POSIX", "x"))])
async def test_the_command_gets_the_same_environment_as_without_a_reaper(
    locale: dict[str, str],
) -> None:
    """The same arguments, directory, environment, signal dispositions and descriptors."""
    script = 'echo "$0" "$@"; pwd; env | sort; grep ^Sig /proc/self/status; ls /proc/self/fd'
    outputs = []
    held = Confinement(filtered=True, limits=())
    for reaping, confinement in ((False, None), (True, None), (True, held)):
        reading, writing = os.pipe()
        async with start(
            ["sh", "-c", script, "a b", "\u00e9", ""],
            stdio=Pipes(PipeEnd.NULL, writing, PipeEnd.NULL),
            env={"PATH": os.environ["PATH"], "X": "1\n2", **locale},
            cwd="/",
            reaping=reaping,
            confinement=confinement,
        ) as child:
            os.close(writing)
            assert await child.wait() == Exit(code=0)
        with open(reading) as output:
            rows = output.read().splitlines()
        outputs.append([row for row in rows if not row.startswith(("TELEX_TREE=", "SigQ"))])
    assert outputs[0] == outputs[1] == outputs[2]
