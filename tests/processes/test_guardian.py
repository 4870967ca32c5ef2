"""Our children do not outlive us, however we exit.

Each test runs a host: another Python that uses `telex.processes`, starts trees and exits in some
way. Every process of those trees holds the lifeline, and the guardian does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from processes.trees import SHAPES, Lifeline, shape
from telex.processes import guardian, ledger
from telex.processes.tree import Root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST = """
import asyncio, json, os, signal, sys
from telex.processes import guardian
from telex.processes.spawn import PipeEnd, Pipes, start

def grow(argv): return start(argv, stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, 2))
def say(*what): print(*what, flush=True)

async def main(trees):
    children = [grow(argv) for argv in trees]
    say(*guardian.pids())
    {then}
    await asyncio.Event().wait()

asyncio.run(main(json.loads(sys.argv[1])))
"""


@contextlib.contextmanager
def host(
    names: list[str], lifeline: Lifeline, then: str = "pass"
) -> Iterator[subprocess.Popen[str]]:
    """Run a host of such trees; `then` is the code it runs once they are started."""
    trees = json.dumps([shape(name)[0] for name in names])
    process = subprocess.Popen(
        [sys.executable, "-c", HOST.replace("{then}", then), trees],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=lifeline.writing,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def count(names: list[str]) -> int:
    return sum(shape(name)[1] for name in names)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


async def ended(pid: int) -> None:
    """Wait until a process that is not our child has exited."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
    try:
        await readable
    finally:
        loop.remove_reader(fd)
        os.close(fd)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
async def test_whatever_kills_us_no_process_is_left_and_the_guardian_exits_too(
    number: signal.Signals, lifeline: Lifeline
) -> None:
    names = list(SHAPES)
    with host(names, lifeline) as process:
        pid = int(line(process))
        await lifeline.ready(count(names))
        process.send_signal(number)
        await lifeline.gone()
        await ended(pid)


@pytest.mark.counted
async def test_no_process_is_left_of_many_trees_whose_host_is_killed(
    counted: Callable[[int, int], int],
) -> None:
    rounds, each = counted(2, 40), 25
    for n in range(rounds):
        lifeline = Lifeline()
        names = [list(SHAPES)[(n + at) % len(SHAPES)] for at in range(each)]
        with host(names, lifeline) as process:
            line(process)  # all are recorded; others are found by their cookie, if they have one
            await lifeline.ready(count(names))
            process.kill()
            await lifeline.gone()
        lifeline.close()
    print(f"{rounds * each} trees of {rounds} killed hosts: 0 left")


@pytest.mark.parametrize(
    "then", ["return", "os._exit(0)", "1 / 0", "os.abort()", "os.execv('/bin/true', ['true'])"]
)
async def test_however_we_exit_no_process_is_left(then: str, lifeline: Lifeline) -> None:
    names = ["willing to go"]
    with host(names, lifeline, f"sys.stdin.readline(); {then}") as process:
        await lifeline.ready(count(names))
        process.communicate("go\n")
        await lifeline.gone()


async def test_a_child_started_in_the_moment_we_are_killed_is_found_by_its_cookie(
    lifeline: Lifeline,
) -> None:
    untold = "guardian.enter = lambda root: os.kill(os.getpid(), signal.SIGKILL)"
    again = f"{untold}; grow(json.loads(sys.argv[1])[0])"
    with host(["a daemon left behind"], lifeline, again):
        await lifeline.gone()


async def test_trees_that_were_ended_are_forgotten_and_others_not(lifeline: Lifeline) -> None:
    then = (
        "\n    from telex.processes.termination import AT_ONCE"
        "\n    await children[0].end(AT_ONCE)"
        "\n    say(len(guardian._watch.ledger._slots))"
    )
    with host(["willing to go", "willing to go"], lifeline, then) as process:
        line(process)
        assert line(process) == "1"
        process.kill()
        await lifeline.gone()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
async def test_the_guardian_exits_only_after_us(number: signal.Signals, lifeline: Lifeline) -> None:
    with host(["willing to go"], lifeline) as process:
        pid = int(line(process))
        os.kill(pid, number)
        await lifeline.ready(2)
        pending = int(status(pid, "ShdPnd"), 16)
        assert pending & 1 << number - 1
        process.kill()
        await lifeline.gone()
        await ended(pid)


def status(pid: int, field: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(field))


async def test_a_killed_guardian_is_replaced_by_one_with_the_same_children(
    lifeline: Lifeline,
) -> None:
    # The first child clears its environment and is known from the ledger alone.
    names = ["with an empty environment, left behind"]
    then = "sys.stdin.readline(); grow(['true']); say(*guardian.pids()); say(*guardian.fds())"
    with host(names, lifeline, then) as process:
        first = int(line(process))
        await lifeline.ready(count(names))
        os.kill(first, signal.SIGKILL)
        await ended(first)
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
        second = int(line(process))
        assert second != first
        process.kill()
        await lifeline.gone()
        await ended(second)


async def test_a_forked_copy_of_us_does_not_keep_the_guardian_waiting(lifeline: Lifeline) -> None:
    then = "say(os.fork() or [signal.pause() for _ in [0]])"
    with host(["willing to go"], lifeline, then) as process:
        pid = int(line(process))
        copy = int(line(process))
        try:
            process.kill()
            await ended(pid)
        finally:
            os.kill(copy, signal.SIGKILL)
        await lifeline.gone()


async def test_a_forked_copy_of_us_has_children_and_a_guardian_of_its_own(
    lifeline: Lifeline,
) -> None:
    then = (
        "\n    if os.fork() == 0:"
        "\n        asyncio.events._set_running_loop(None)"
        "\n        async def other():"
        "\n            grow(trees[0])"
        "\n            say(*guardian.pids())"
        "\n            await asyncio.Event().wait()"
        "\n        say(os.getpid())"
        "\n        asyncio.run(other())"
    )
    with host(["willing to go"], lifeline, then) as process:
        first, copy, second = (int(line(process)) for _ in range(3))
        assert first != second
        await lifeline.ready(4)
        os.kill(copy, signal.SIGKILL)
        await ended(second)
        process.kill()
        await ended(first)
        await lifeline.gone()


async def test_a_telex_inside_a_telex_belongs_to_both(lifeline: Lifeline) -> None:
    """Without the inner guardian, the outer one ends processes that are not in its ledger."""
    deed = HOST.replace("{then}", "os.kill(*guardian.pids(), signal.SIGKILL)")
    inner = [sys.executable, "-c", deed, json.dumps([shape("a nest")[0]])]
    outer = HOST.replace("{then}", "pass")
    with subprocess.Popen(
        [sys.executable, "-c", outer, json.dumps([inner])],
        stdout=subprocess.DEVNULL,
        stderr=lifeline.writing,
    ) as process:
        await lifeline.ready(count(["a nest"]))
        process.kill()
        await lifeline.gone()


def test_the_guardian_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1]); import telex.processes.guardian\n"
        "print(*sys.modules)"
    )
    argv = [sys.executable, "-I", "-S", "-c", code, guardian._SOURCE]
    loaded = set(subprocess.check_output(argv, text=True).split())
    assert loaded.isdisjoint({"asyncio", "subprocess", "socket", "tempfile", "logging", "json"})
    ours = {name for name in loaded if name.startswith("telex.") and "processes" not in name}
    assert ours == {"telex.version"}


def pipes_of(pid: int) -> set[str]:
    """Return its open pipes. It may still be importing, so it may have a file open as well."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return {what for what in found if what.startswith("pipe:")}


async def test_the_guardian_holds_no_descriptor_of_ours(lifeline: Lifeline) -> None:
    with host(["willing to go"], lifeline) as process:
        pid = int(line(process))
        await lifeline.ready(2)
        held = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in "012"}
        assert held["0"].startswith("pipe:")
        assert held["1"].startswith("/memfd:")
        assert held["2"] == os.devnull
        assert pipes_of(pid) == {held["0"]}
        assert os.getsid(pid) == pid
        process.kill()
        await lifeline.gone()


def test_the_guardians_pids_and_descriptors_are_reported_for_leak_checks() -> None:
    guardian.ensure()
    (pid,) = guardian.pids()
    assert os.getsid(pid) == pid
    assert all(os.path.exists(f"/proc/self/fd/{fd}") for fd in guardian.fds())
    assert not any(os.get_inheritable(fd) for fd in guardian.fds())


def test_the_ledger_keeps_its_records_and_reuses_free_slots() -> None:
    fd = ledger.memory()
    book = ledger.Ledger(fd)
    roots = [Root(pid, pid * 10) for pid in range(1, 6)]
    for root in roots:
        book.write(root)
    book.erase(roots[1].identity)
    book.erase((99, 99))
    book.write(Root(3, 30, ended=77))
    book.write(Root(9, 90))
    expected = {
        Root(1, 10, 500),
        Root(3, 30, 77),
        Root(4, 40, 500),
        Root(5, 50, 500),
        Root(9, 90, 500),
    }
    assert set(ledger.read(fd, now=500)) == expected
    assert os.fstat(fd).st_size == ledger.NOTE_BYTES + 5 * 24
    os.close(fd)
