"""Bracketed paste into a real bash: whatever is pasted, nothing runs until somebody presses enter."""

from __future__ import annotations

import os
import random
import select
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from telex.terminal.keys import bracketed_paste_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PIECES = (
    "\x1b[201~",
    "\x1b",
    "[201~",
    "\u009b201~",
    "\x9b",
    "\x03",
    "\x04",
    "\x15",
    "\x16",
    "\x1a",
    "\r",
    "\n",
)


def payload(chance: random.Random, ran: Path) -> str:
    attack = f"touch {ran}"
    return "".join(chance.choices([*PIECES, f"\r{attack}\r", f"\n{attack}\n", "ě x"], k=12))


def until(fd: int, mark: bytes) -> bytes:
    """What bash prints up to the mark. Bounded: a minute."""
    seen, deadline = b"", time.monotonic() + 60
    while mark not in seen:
        ready, _, _ = select.select([fd], [], [], deadline - time.monotonic())
        assert ready, f"no {mark!r} in {seen[-300:]!r}"
        seen += os.read(fd, 65536)
    return seen


@pytest.mark.counted
def test_nothing_that_is_pasted_into_bash_runs(
    counted: Callable[[int, int], int], program: Callable[[str], str], tmp_path: Path
) -> None:
    chance, ran = random.Random(9), tmp_path / "ran"
    ours, theirs = os.openpty()
    env = {
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "PS1": "ready> ",
        "LANG": "C.UTF-8",
    }
    bash = subprocess.Popen(
        [program("bash"), "--norc", "--noprofile", "-i"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True, cwd=tmp_path,
    )  # fmt: skip
    os.close(theirs)
    try:
        os.write(ours, b"bind 'set enable-bracketed-paste on'; PS1='ready'; PS1+='! '\r")
        until(ours, b"ready! ")
        for n in range(counted(50, 5000)):
            os.write(ours, bracketed_paste_bytes(payload(chance, ran)))
            os.write(ours, b"\x05\x15echo a''sked-%d\r" % n)  # from its end, all of it is deleted
            until(ours, b"asked-%d\r\n\x1b[?2004hready! " % n)
            assert not ran.exists()
    finally:
        bash.kill()
        bash.wait()
        os.close(ours)
