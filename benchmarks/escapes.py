"""JSON escapes: how often a program can ask its terminal, and what frames in its output cost.

The peer of a question is the one that terminals answer today, `CSI 5 n`, put to the same terminal
by the same program in the same run (`asking`). The peer of a stream with frames is the one without.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import uvloop

from benchmarks import streams
from benchmarks.figures import Row, against, in_turns
from benchmarks.passthrough import rate
from telex.adapters.server import AutomationServer
from telex.automation import protocol as spec
from telex.automation.notices import Connection
from telex.escapes.escape_sessions import EscapeSessions
from telex.redaction import Redactor
from telex.terminal.waits import matchers
from telex.wire import json_escape

ROUNDS, CALLS = 9, 500
STREAM_ROUNDS, STREAM_BYTES = 5, 8 * streams.MEGABYTE
RUN = [sys.executable, "-m", "telex", "run"]
STATUS, BARE = "CSI 5 n, the same way", "CSI 5 n, without telex"


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        return [*_under_run(Path(directory)), *_in_a_session(Path(directory)), *_streams()]


# Questions.


def _under_run(directory: Path) -> list[Row]:
    """On a terminal that answers at once. What is no escape goes through telex to it and back."""
    wrapped = _at_a_terminal([*RUN, "--"], directory, "frame", "status", "socket", "library")
    bare = _at_a_terminal([], directory, "status")["status"]
    peers = {STATUS: wrapped["status"], BARE: bare}
    return [
        Row("the first ping under telex run", wrapped["first"][0] * 1e3, "ms"),
        *against("ping under telex run", "/s", {"telex": wrapped["frame"], **peers}, {}),
        *against("the same by TELEX_SOCKET", "/s", {"telex": wrapped["socket"], **peers}, {}),
        *against("the same by telex.escapes", "/s", {"telex": wrapped["library"], **peers}, {}),
    ]


def _in_a_session(directory: Path) -> list[Row]:
    """Here both are answered by telex: one by the service, the other by the screen."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        said = runner.run(_at_a_session(directory))
    measured = {"telex": said["frame"], STATUS: said["status"]}
    return against("ping in a session", "/s", measured, {})


def _asking(result: Path, *ways: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "benchmarks.escape_client",
        str(result),
        str(ROUNDS),
        str(CALLS),
        *ways,
    ]


def _at_a_terminal(wrapper: list[str], directory: Path, *ways: str) -> dict[str, list[float]]:
    result = directory / "result"
    master, slave = pty.openpty()
    argv = [*wrapper, *_asking(result, *ways)]
    with subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True):
        os.close(slave)
        _answer(master)
    os.close(master)
    return _rates(result)


def _answer(master: int) -> None:
    """Until nobody has the terminal open any more."""
    while True:
        try:
            printed = os.read(master, 65536)
        except OSError:
            return
        if there := printed.count(b"\x1b[5n"):
            os.write(master, b"\x1b[0n" * there)
        if asked := printed.count(b"\x1b[c"):
            os.write(master, b"\x1b[?62;22c" * asked)


async def _at_a_session(directory: Path) -> dict[str, list[float]]:
    result = directory / "result"
    server = AutomationServer([], extend=(EscapeSessions,))
    who = Connection(None, Redactor())
    program, *args = _asking(result, "frame", "status")
    create = spec.Create(program=program, args=tuple(args), cwd=os.getcwd(), escapes=True)
    try:
        session = server.automation.handlers["session.create"](create, who).session
        wait = spec.Wait(session=session, matcher=matchers.ProcessExited(), timeout_ms=60_000)
        await server.automation.handlers["session.wait"](wait, who)
    finally:
        await server.close()
    return _rates(result)


def _rates(result: Path) -> dict[str, list[float]]:
    measured: Mapping[str, list[float]] = json.loads(result.read_text())
    return {way: sorted(rates) for way, rates in measured.items()}


# Frames in a stream.


def _streams() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        plain, framed, painted = (Path(directory) / name for name in ("plain", "framed", "painted"))
        plain.write_bytes(streams.plain(STREAM_BYTES))
        framed.write_bytes(_framed(STREAM_BYTES))
        painted.write_bytes(streams.ansi(STREAM_BYTES))
        unframed = {"telex run, no frames in it": rate([*RUN, "--", "cat", str(plain)], plain)}
        measured = in_turns({**_ways(framed), **unframed}, STREAM_ROUNDS)
        without = in_turns(_ways(painted), STREAM_ROUNDS)
    return [
        *against("passed through, a tenth of it frames", "MB/s", measured, {}),
        *against("passed through, painted, no frames", "MB/s", without, {}),
    ]


def _ways(file: Path) -> dict[str, Callable[[], float]]:
    return {
        "telex": rate([*RUN, "--", "cat", str(file)], file),
        "telex run --no-escapes": rate([*RUN, "--no-escapes", "--", "cat", str(file)], file),
        "script": rate(["script", "-qec", f"cat {file}", "/dev/null"], file),
    }


def _framed(size: int) -> bytes:
    """The build log, in which now and then a frame changes the colour: every tenth byte of it."""
    rng = random.Random(8)
    log, out, at = streams.plain(size), bytearray(), 0
    while at < size * 9 // 10:
        style = b'{"command":"term:setstyle","data":{"color":%d}}' % rng.randint(31, 36)
        out += (frame := json_escape.encode(style))
        out += log[at : (at := at + 9 * len(frame))]
    return bytes(out)
