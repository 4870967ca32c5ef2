"""`kill -9` of a client, the server, its guardian, or both at once: nothing is left, nothing blocks."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Telex

SECONDS = 60.0
"""A bound for a slow machine; `make soak` prints the longest time."""
VICTIMS = ("client", "server", "guardian", "both")


def processes(telex: Telex) -> dict[int, str]:
    """The command line of each process that has this environment, but not of ended ones."""
    mark = f"TELEX_HOME={telex.environ['TELEX_HOME']}".encode()
    found = {}
    for entry in os.listdir("/proc"):
        try:
            if entry.isdecimal() and mark in Path(f"/proc/{entry}/environ").read_bytes().split(
                b"\0"
            ):
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                found[int(entry)] = b" ".join(words).decode()
        except OSError:
            continue
    return found


def guardians(telex: Telex) -> list[int]:
    return [pid for pid, line in processes(telex).items() if "processes.guardian" in line]


def wait_until_only(telex: Telex, kept: set[int]) -> float:
    """Wait until no process besides these is left, and return the seconds."""
    begin = time.monotonic()
    while left := {pid: line for pid, line in processes(telex).items() if pid not in kept}:
        assert time.monotonic() - begin < SECONDS, left
        time.sleep(0.01)  # processes of others: there is no event to wait for
    return time.monotonic() - begin


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.counted
@pytest.mark.deadline(1800)
def test_kills_at_random_leave_no_process_and_no_socket_in_the_way(
    telex: Telex, counted: Callable[[int, int], int]
) -> None:
    chance, kills = random.Random(18), counted(4, 200)
    seen: Counter[str] = Counter()
    longest = 0.0
    for number in range(kills):
        victim = VICTIMS[number % len(VICTIMS)]
        opened = telex("open", f"n{number}", "--", "bash", "-c", "sleep 1000 & exec sleep 1000")
        assert opened.returncode == 0, opened.stderr
        (server,) = telex.servers()
        (guardian,) = guardians(telex)
        client = telex.start("do", 'type "x"', "wait never --max 60s")
        time.sleep(chance.uniform(0, 0.1))  # a random point is what is wanted here
        match victim:
            case "client":
                client.kill()
            case "server":
                kill(server)
            case "guardian":
                kill(guardian)
            case "both":
                os.kill(server, signal.SIGSTOP)
                kill(guardian)
                kill(server)
        if victim in ("client", "guardian"):
            closed = telex("close", "--all")
            assert closed.returncode == 0, closed.stderr
            client.communicate(timeout=SECONDS)
            alive = {server} | ({guardian} if victim == "client" else set())
            longest = max(longest, wait_until_only(telex, alive | set(guardians(telex))))
        else:
            client.communicate(timeout=SECONDS)
            if victim == "server":
                # A client that had not connected yet has started another server.
                new = {*telex.servers(), *guardians(telex)} - {server, guardian}
                longest = max(longest, wait_until_only(telex, new))
        again = telex("list")
        assert again.returncode == 0, again.stderr
        assert "no session" in again.stdout
        seen[victim] += 1
        if victim == "both":
            kept = {*telex.servers(), *guardians(telex)}
            longest = max(longest, wait_until_only(telex, kept))
    assert telex("server", "stop").returncode == 0
    wait_until_only(telex, set())
    assert not telex.socket.exists()
    assert not list(telex.runtime.glob("*.ledger"))
    if kills > 4:
        print(f"\n{kills} kills -9 ({dict(seen)}): 0 processes left, longest {longest:.2f} s")
