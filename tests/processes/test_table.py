"""Scanning the system's processes, and signalling exactly the intended one."""

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
from telex.processes.proc import ProcessHandle
from telex.processes.spawn import PipeEnd, Pipes, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.processes.tree import Process

QUIET = Pipes(PipeEnd.NULL, PipeEnd.NULL, PipeEnd.NULL)


def row(pid: int) -> Process:
    return proc.scan().rows[pid]


async def test_a_scan_shows_us_and_our_child() -> None:
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


async def test_a_process_that_appears_during_a_scan_is_included(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        late, listings = str(child.pid), []

        def listdir(path: str, real: Callable[[str], list[str]] = os.listdir) -> list[str]:
            listings.append(path)
            return [name for name in real(path) if len(listings) > 1 or name != late]

        monkeypatch.setattr(os, "listdir", listdir)
        assert child.pid in proc.scan().rows
        monkeypatch.undo()


def cookie_when_there(pid: int) -> str:
    """Read the cookie once exec has completed, which no event reports."""
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
def test_an_environment_that_is_not_set_up_yet_is_not_taken_for_an_empty_one(
    begins: int, ends: int, cookie: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During exec a process shows no environment, for too short a time to reproduce."""
    stat = b"7 (x) R " + b"0 " * 46 + b"%d %d 0" % (begins, ends)
    monkeypatch.setattr(proc, "_read", lambda path: stat if path.endswith("stat") else b"")
    assert proc._proc_cookie(7) == cookie


async def test_a_zombie_is_not_alive() -> None:
    async with start(["true"], stdio=QUIET) as child:
        while " Z " not in Path(f"/proc/{child.pid}/stat").read_text():
            pass  # it is not reaped before the event loop runs again
        assert not row(child.pid).alive


def test_the_present_is_on_the_same_clock_as_start_times() -> None:
    ours = proc.started(os.getpid())
    assert ours is not None
    assert ours <= proc.now()


async def test_a_later_process_has_a_later_start_time() -> None:
    before = proc.now()
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        assert before <= child.started <= proc.now()


def test_ps_gives_the_same_rows_as_proc() -> None:
    """`ps` is for systems without /proc; here only the resolution of start times differs."""
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
async def test_a_handle_signals_its_process() -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        handle = ProcessHandle(row(child.pid))
        handle.send(signal.SIGTERM)
        handle.release()
        assert (await child.wait()).signal == signal.SIGTERM


@pytest.mark.usefixtures("_either_way")
async def test_a_process_with_a_recycled_pid_gets_no_handle() -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        with pytest.raises(ProcessLookupError):
            ProcessHandle(replace(row(child.pid), started=child.started - 1))


@pytest.mark.usefixtures("_either_way")
async def test_a_handle_on_a_process_that_has_exited_signals_no_process() -> None:
    async with start(["sleep", "1000"], stdio=QUIET) as child:
        handle = ProcessHandle(row(child.pid))
        os.kill(child.pid, signal.SIGKILL)
        await child.wait()
        with pytest.raises(ProcessLookupError):
            handle.send(signal.SIGTERM)
        handle.release()


async def test_a_process_whose_first_thread_has_ended_is_alive() -> None:
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "print('up', flush=True)\n"
        "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[__import__('os').uname().machine], 0)"
    )
    async with start([sys.executable, "-c", code], stdio=Pipes(PipeEnd.NULL)) as child:
        while " Z " not in Path(f"/proc/{child.pid}/stat").read_text():
            pass  # no event reports the exit of a single thread
        assert row(child.pid).alive
        await child.end()
