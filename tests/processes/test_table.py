"""Looking at the system's processes, and signalling exactly the one that is meant."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telex.processes import proc
from telex.processes.child_environment import COOKIE
from telex.processes.proc import Grip
from telex.processes.spawn import PipeEnd, Pipes, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.processes.tree import Process

QUIET = Pipes(PipeEnd.NULL, PipeEnd.NULL, PipeEnd.NULL)


def row(pid: int) -> Process:
    return proc.scan().rows[pid]


async def test_a_look_sees_us_and_our_child_as_they_are() -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        seen = row(child.pid)
        assert (seen.ppid, seen.pgid, seen.sid) == (os.getpid(), child.pid, child.pid)
        assert (seen.started, seen.alive) == (child.started, True)
        assert row(os.getpid()).ppid == os.getppid()


async def test_a_program_may_have_any_name(tmp_path: Path) -> None:
    odd = tmp_path / "x) R 1 (\n"
    odd.symlink_to("/bin/sleep")
    async with start([str(odd), "1000"], stdio=QUIET) as child:
        assert row(child.pid).ppid == os.getpid()


async def test_who_appears_while_we_look_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        late, listings = str(child.pid), []

        def listdir(path: str, real: Callable[[str], list[str]] = os.listdir) -> list[str]:
            listings.append(path)
            return [name for name in real(path) if len(listings) > 1 or name != late]

        monkeypatch.setattr(os, "listdir", listdir)
        assert child.pid in proc.scan().rows
        monkeypatch.undo()


def cookie_when_there(pid: int) -> str:
    """A start is over while its exec is not quite, and nobody announces when it is."""
    while (cookie := proc._proc_cookie(pid)) is None:
        pass
    return cookie


async def test_a_cookie_is_read_as_it_was_given() -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        given = os.environ.get(COOKIE, "") + child.tree.mark.removesuffix(":")
        assert cookie_when_there(child.pid) == given
    assert proc._proc_cookie(child.pid) is None


async def test_an_empty_environment_has_no_cookie() -> None:
    async with start(["env", "-i", "sleep", "1000"], stdio=QUIET) as child:
        while cookie_when_there(child.pid) != "":
            pass


@pytest.mark.parametrize(("begins", "ends", "cookie"), [(0, 0, None), (5, 9, None), (5, 5, "")])
def test_an_environment_that_is_not_there_yet_is_not_taken_for_an_empty_one(
    begins: int, ends: int, cookie: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of exec a process shows none, for too short a time to be caught at it."""
    stat = b"7 (x) R " + b"0 " * 46 + b"%d %d 0" % (begins, ends)
    monkeypatch.setattr(proc, "_read", lambda path: stat if path.endswith("stat") else b"")
    assert proc._proc_cookie(7) == cookie


async def test_a_zombie_is_not_alive() -> None:
    async with start(["true"], stdio=QUIET) as child:
        while " Z " not in Path(f"/proc/{child.pid}/stat").read_text():
            pass  # it is not reaped before the event loop gets its turn
        assert not row(child.pid).alive


def test_the_present_is_on_the_same_clock_as_start_times() -> None:
    ours = proc.started(os.getpid())
    assert ours is not None
    assert ours <= proc.now()


async def test_what_started_later_started_later() -> None:
    before = proc.now()
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        assert before <= child.started <= proc.now()


def test_ps_says_the_same_as_proc() -> None:
    """The way of systems without /proc, on this one: only the start times differ in kind."""
    by_proc = row(os.getpid())
    by_ps = {one.pid: one for one in proc.ps_rows()}[os.getpid()]
    assert replace(by_ps, started=by_proc.started) == by_proc


def test_ps_knows_when_one_process_started() -> None:
    (ours,) = proc.ps_rows("-p", str(os.getpid()))
    seconds = (proc.now() - row(os.getpid()).started) / os.sysconf("SC_CLK_TCK")
    assert abs(time.time() - seconds - ours.started) < 5
    assert list(proc.ps_rows("-p", "999999999")) == []


@pytest.fixture(params=["pidfd", "pid"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pid":
        monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.usefixtures("_either_way")
async def test_a_grip_signals_its_process() -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        grip = Grip(row(child.pid))
        grip.send(signal.SIGTERM)
        grip.release()
        assert (await child.wait()).signal == signal.SIGTERM


@pytest.mark.usefixtures("_either_way")
async def test_a_process_that_merely_has_the_number_cannot_be_gripped() -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        with pytest.raises(ProcessLookupError):
            Grip(replace(row(child.pid), started=child.started - 1))


@pytest.mark.usefixtures("_either_way")
async def test_a_grip_on_a_process_that_ended_since_signals_nobody() -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        grip = Grip(row(child.pid))
        os.kill(child.pid, signal.SIGKILL)
        await child.wait()
        with pytest.raises(ProcessLookupError):
            grip.send(signal.SIGTERM)
        grip.release()


async def test_a_process_whose_first_thread_has_ended_is_alive() -> None:
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "print('up', flush=True)\n"
        "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[__import__('os').uname().machine], 0)"
    )
    async with start([sys.executable, "-c", code], stdio=Pipes(PipeEnd.NULL)) as child:
        while " Z " not in Path(f"/proc/{child.pid}/stat").read_text():
            pass  # no news comes of a single thread's end
        assert row(child.pid).alive
        await child.end()
