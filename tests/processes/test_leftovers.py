"""What a server leaves that was killed together with its guardian, and who ends it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from telex.processes import ledger, leftovers, proc
from telex.processes.tree import Root


def _server(directory: Path) -> subprocess.Popen[str]:
    """A process with a ledger in the directory and one child, whose pid it prints."""
    program = (
        "import os, sys, time\n"
        "from telex.processes import guardian\n"
        "from telex.processes.launch import launch, null\n"
        "from telex.processes.tree import Root\n"
        "from telex.processes import proc\n"
        "guardian.keep_ledger_in(sys.argv[1])\n"
        "guardian.ensure()\n"
        "pid = launch('/bin/sleep', ['sleep', '600'], os.environ, [null(0), null(1), null(2)])\n"
        "guardian.enter(Root(pid, proc.started(pid), None))\n"
        "print(pid, *guardian.pids(), flush=True)\n"
        "time.sleep(600)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, str(directory)], stdout=subprocess.PIPE, text=True
    )


def _ended(process: int) -> bool:
    return bool(select.select([process], [], [], 60)[0])


def test_the_next_command_ends_what_a_killed_server_and_guardian_have_left(tmp_path: Path) -> None:
    with _server(tmp_path) as server:
        assert server.stdout is not None
        child, watching = map(int, server.stdout.readline().split())
        handle = os.pidfd_open(child)
        try:
            assert leftovers.end_leftovers(str(tmp_path)) == 0, "it still runs"
            os.kill(watching, signal.SIGSTOP)  # it cannot act between the two kills
            server.kill()
            os.kill(watching, signal.SIGKILL)
            server.wait()
            _wait_for_lock(tmp_path)
            assert not select.select([handle], [], [], 0)[0], "nobody was left to end it"
            assert leftovers.end_leftovers(str(tmp_path)) == 1
            assert _ended(handle)
        finally:
            os.close(handle)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_of_another_boot_ends_nobody(tmp_path: Path) -> None:
    with _server(tmp_path) as server:
        assert server.stdout is not None
        child, watching = map(int, server.stdout.readline().split())
        handle = os.pidfd_open(child)
        try:
            os.kill(watching, signal.SIGSTOP)
            server.kill()
            os.kill(watching, signal.SIGKILL)
            server.wait()
            _wait_for_lock(tmp_path)
            (ledger,) = tmp_path.iterdir()
            ledger.rename(tmp_path / ledger.name.replace(proc.boot(), "another"))
            assert leftovers.end_leftovers(str(tmp_path)) == 1
            assert not select.select([handle], [], [], 0)[0]
            os.kill(child, signal.SIGKILL)
            assert _ended(handle)
        finally:
            os.close(handle)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_missing_has_no_leftovers(tmp_path: Path) -> None:
    assert leftovers.end_leftovers(str(tmp_path / "none")) == 0


def _wait_for_lock(directory: Path) -> None:
    """Wait until both holders of the ledger have ended: the kernel frees the lock after them."""
    import fcntl

    (ledger,) = directory.iterdir()
    with ledger.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def test_a_pid_that_belongs_to_another_program_by_now_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sh", "-c", "sleep 600 & exec sleep 600"], process_group=0) as foreign:
        started = proc.started(foreign.pid)
        assert started is not None
        path = leftovers.ledger_path(str(tmp_path), proc.boot(), "ab" * 8, 0)
        with open(path, "xb", buffering=0) as file:
            ledger.Ledger(file.fileno()).write(Root(foreign.pid, started - 5000, None))
        assert leftovers.end_leftovers(str(tmp_path)) == 1
        assert foreign.poll() is None
        os.killpg(foreign.pid, signal.SIGKILL)


def test_damaged_and_foreign_files_are_no_ledgers(tmp_path: Path) -> None:
    for name in ("bad.ledger", "a.b.c.ledger", "x.y.1.2.ledger", ".ledger"):
        (tmp_path / name).write_bytes(b"x")
    cut = tmp_path / f"{proc.boot()}.{'ab' * 8}.1.ledger"
    cut.write_bytes(bytes(ledger.NOTE_BYTES) + b"\1" * 7)
    assert leftovers.end_leftovers(str(tmp_path)) == 1
    assert not cut.exists()
    assert len(list(tmp_path.iterdir())) == 4


def test_files_that_others_could_have_written_end_nothing(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o700)
    record = ours / f"{'f' * 32}.token.1.ledger"
    record.write_bytes(b"")
    (ours / f"{'f' * 32}.token.2.ledger").mkdir()
    linked = tmp_path / "linked"
    linked.symlink_to(ours)
    assert leftovers.end_leftovers(str(linked)) == 0
    ours.chmod(0o770)
    assert leftovers.end_leftovers(str(ours)) == 0
    ours.chmod(0o700)
    assert leftovers.end_leftovers(str(ours)) == 1, "the directory among them is left alone"
    assert not record.exists()
