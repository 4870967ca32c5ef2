"""The program of the escapes benchmarks: asks its terminal over and over.

python -m benchmarks.escape_client RESULT ROUNDS CALLS WAY...

The ways take turns, round by round. Each asks once, waits for the answer, and asks again; how many
a second is written into the result, and how many seconds the very first answer took.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Ask = Callable[[], None]

_PING = b'{"command":"ping","rpcid":"p"}'
_FRAME = b"\x1b]23198;%d;%b\x07" % (len(_PING), _PING)
_ANSWER = re.compile(rb'\x1b\]23199;\d+;\{"resid":"p"[^\x07]*\x07')


def main() -> None:
    result, rounds, calls, *ways = sys.argv[1:]
    tty.setraw(0)
    measured: dict[str, list[float]] = {way: [] for way in ways}
    began = time.perf_counter()
    _plainly(ways[0], 1)
    measured["first"] = [time.perf_counter() - began]
    for number in range(int(rounds) + 1):  # the first does not count
        for way in ways:
            rate = _library(int(calls)) if way == "library" else _plainly(way, int(calls))
            measured[way] += [rate] if number else []
    Path(result).write_text(json.dumps(measured))


def _plainly(way: str, calls: int) -> float:
    with {"frame": _frame, "status": _status, "socket": _socket}[way]() as ask:
        began = time.perf_counter()
        for _ in range(calls):
            ask()
        return calls / (time.perf_counter() - began)


@contextmanager
def _frame() -> Iterator[Ask]:
    yield lambda: _asked(_FRAME, _ANSWER)


@contextmanager
def _status() -> Iterator[Ask]:
    """What every terminal answers today: that it is there."""
    yield lambda: _asked(b"\x1b[5n", re.compile(rb"\x1b\[0n"))


def _asked(question: bytes, answer: re.Pattern[bytes]) -> None:
    os.write(1, question)
    said = os.read(0, 4096)
    while not answer.fullmatch(said):
        said += os.read(0, 4096)
    assert b'"error"' not in said, said


@contextmanager
def _socket() -> Iterator[Ask]:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.environ["TELEX_SOCKET"])

        def ask() -> None:
            line.sendall(_PING + b"\n")
            said = line.recv(4096)
            while not said.endswith(b"\n"):
                said += line.recv(4096)
            assert b'"error"' not in said, said

        yield ask


def _library(calls: int) -> float:
    return asyncio.run(_by_library(calls))


async def _by_library(calls: int) -> float:
    from telex import escapes

    async with escapes.connect() as term:
        began = time.perf_counter()
        for _ in range(calls):
            await term.call("ping")
        return calls / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
