"""A session beside tmux, tui-test and pexpect with pyte: how fast output is shown, how soon a
typed line is answered, and what looking at the screen costs.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from benchmarks import peers, streams
from benchmarks.figures import Row, against, in_turns
from telex.automation import protocol as spec
from telex.automation.notices import Connection
from telex.automation.server import AutomationService
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.peer import Peer
from telex.terminal import actions
from telex.terminal.cells import Size
from telex.terminal.pty import Program
from telex.terminal.screen import Screen
from telex.terminal.session import PtySession
from telex.terminal.waits import matchers
from telex.transports import unix

TYPED = 400
SLOW_PEER_BYTES = streams.MEGABYTE // 2
STREAMS: dict[str, Callable[[], bytes]] = {
    "ASCII log": streams.plain,
    "colour": streams.colour,
    "vim, less, top": streams.programs,
}
TARGETS = {"tmux": ">= 1.5 x", "tui-test": ">= 2 x", "pexpect + pyte": ">= 50 x"}


def run() -> list[Row]:
    return [*_shown(), *_answered(), *_looked_at(), *_starting()]


# Output.


def _shown() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        for name, stream in STREAMS.items():
            file, some = Path(directory) / "stream", Path(directory) / "some"
            file.write_bytes(stream())
            some.write_bytes(stream()[:SLOW_PEER_BYTES])
            rows += _shown_by_each(f"shown, {name}", file, some)
    return rows


def _shown_by_each(figure: str, file: Path, some: Path) -> list[Row]:
    def rate(show: Callable[[Path], float]) -> Callable[[], float]:
        return lambda: file.stat().st_size / 1e6 / show(file)

    quick = {
        "telex": rate(_shown_by_telex),
        "tmux": rate(peers.shown_by_tmux),
        "tui-test": rate(peers.shown_by_tui_test),
    }
    measured = in_turns(quick, rounds=7)
    rows = against(figure, "MB/s", measured, TARGETS)
    name = "pexpect + pyte"
    try:
        slow = some.stat().st_size / 1e6 / peers.shown_by_pyte(some)
    except TypeError:  # pyte, at a sequence that vim sends
        return [*rows, Row(figure, rows[0].ours, "MB/s", None, f"{name} raises TypeError")]
    return [*rows, Row(figure, rows[0].ours, "MB/s", slow, name, TARGETS[name])]


def _shown_by_telex(file: Path) -> float:
    async def show() -> float:
        began = time.perf_counter()
        async with PtySession(Program(("cat", str(file)))) as session:
            await session.ended()
            return time.perf_counter() - began

    return asyncio.run(show())


# Type, the child says it again, the wait returns.


def _answered() -> list[Row]:
    took = {
        "telex": asyncio.run(_typed_here()),
        "a socket": _typed_over_a_socket(),
        "tui-test": peers.echoed_to_tui_test(TYPED),
        "pexpect": peers.echoed_to_pexpect(TYPED),
    }
    rows = []
    for figure, name, middle, late in [
        ("typed to found", "telex", "<= 0.4", "<= 2"),
        ("the same by telex serve --socket", "a socket", "<= 1", ""),
    ]:
        for peer in "tui-test", "pexpect":
            theirs = took[peer]
            rows += [
                Row(f"{figure}, p50", _ms(took[name], 50), "ms", _ms(theirs, 50), peer, middle),
                Row(f"{figure}, p99", _ms(took[name], 99), "ms", _ms(theirs, 99), peer, late),
            ]
    return rows


def _ms(took: list[float], percent: int) -> float:
    return statistics.quantiles(took, n=100)[percent - 1] * 1e3


async def _typed_here() -> list[float]:
    took = []
    async with PtySession(Program(tuple(peers.ECHO))) as session:
        await session.wait(matchers.ContainsText("ready"))
        for n in range(TYPED):
            began = time.perf_counter()
            await session.act(actions.Text(f"said{n}.\n"))
            await session.wait(matchers.ContainsText(f"said{n}."))
            took.append(time.perf_counter() - began)
    return took


def _typed_over_a_socket() -> list[float]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_typed_at_a_server())


async def _typed_at_a_server() -> list[float]:
    took = []
    async with _serving() as peer:
        program, *args = peers.ECHO
        made: Any = await peer.call("session.create", {"program": program, "args": args})
        session = made["session"]
        await peer.call("session.wait", _until(session, "ready"))
        for n in range(TYPED):
            began = time.perf_counter()
            action = {"type": "text", "value": f"said{n}.\n"}
            await peer.call("session.input", {"session": session, "action": action})
            await peer.call("session.wait", _until(session, f"said{n}."))
            took.append(time.perf_counter() - began)
    return took


def _until(session: str, text: str) -> dict[str, object]:
    """A wait that is answered with the screen as text; its cells would be 390 KB of JSON."""
    matcher = {"type": "contains_text", "value": text}
    return {"session": session, "matcher": matcher, "timeout_ms": 5000, "cells": "none"}


@asynccontextmanager
async def _serving() -> AsyncIterator[Peer]:
    """`telex serve` in a process of its own, and a connection to it."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "bench.sock"
        with _server(path) as child:
            async with Peer(await unix.connect(path), JsonRpc()) as peer:
                yield peer
            child.terminate()


def _server(path: Path) -> subprocess.Popen[bytes]:
    """A server that listens."""
    child = subprocess.Popen(
        [sys.executable, "-m", "telex", "serve", "--socket", str(path)], stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    child.stderr.readline()
    return child


# Looking.


def _looked_at() -> list[Row]:
    plain, coloured = _frame(streams.plain), _frame(streams.colour)
    line = [b"\x1b[5H%d" % n for n in range(10)]
    screen = Screen(Size())
    rows = [
        Row(f"snapshot {what}", _looks(screen, frames, look), "us", target=target)
        for what, frames, look, target in [
            ("as text, all changed", [plain, plain.upper()], _text, "<= 60"),
            ("as text, all changed and in colour", [plain, coloured], _text, ""),
            ("as text, a row changed", line, _text, ""),
            ("as cells, all changed", [plain, plain.upper()], _cells, "<= 1,000"),
            ("as cells, all changed and in colour", [plain, coloured], _cells, "<= 1,000"),
            ("of an unchanged screen", [], _text, "<= 5"),
        ]
    ]
    screen.close()
    return [*rows, *asyncio.run(_asked([plain, coloured]))]


def _frame(stream: Callable[[int], bytes]) -> bytes:
    """A full screen."""
    lines = stream(3000).split(b"\r\n")[:23]
    return b"\x1b[H\x1b[2J" + b"\r\n".join(lines)


def _text(screen: Screen, sequence: int) -> object:
    return screen.snapshot(sequence).plain_text


def _cells(screen: Screen, sequence: int) -> object:
    return [row.cells for row in screen.snapshot(sequence).rows]


def _looks(
    screen: Screen, frames: list[bytes], look: Callable[[Screen, int], object], times: int = 100
) -> float:
    """Microseconds of a look, the best median of five rounds. What is fed between does not
    count."""
    medians = []
    for _ in range(5):
        took = []
        for n in range(times):
            if frames:
                screen.feed(frames[n % len(frames)])
            began = time.perf_counter()
            look(screen, n if frames else 0)
            took.append(time.perf_counter() - began)
        medians.append(statistics.median(took))
    return min(medians) * 1e6


async def _asked(frames: list[bytes]) -> list[Row]:
    """The same by the service: without secrets, and encoded as it goes out."""
    service = AutomationService()
    who = Connection(None, service.redactor)
    with tempfile.TemporaryDirectory() as directory:
        for n, frame in enumerate(frames):
            (Path(directory) / f"{n}").write_bytes(frame + b"frame %d" % n)
        draw = f"cd {directory}; stty -echo; while read n; do cat $n; done"
        asked = spec.Create(program="sh", args=("-c", draw))
        try:
            session = (await _awaited(service.create(asked, who))).session
            text = spec.ReadScreen(session=session, cells="none")
            cells = spec.ReadScreen(session=session)
            return [
                Row(f"session.snapshot as JSON, {what}", await _answers(service, who, *how), "us")
                for what, how in [
                    ("text", (text, True)),
                    ("cells", (cells, True)),
                    ("text, unchanged", (text, False)),
                    ("cells, unchanged", (cells, False)),
                ]
            ]
        finally:
            await service.close()


async def _answers(
    service: AutomationService, who: Connection, asked: spec.ReadScreen, change: bool
) -> float:
    encoder = msgspec.json.Encoder()
    took = []
    for n in range(200):
        if change:
            await service.input(spec.Input(asked.session, actions.Text(f"{n % 2}\n")), who)
            drawn = matchers.ContainsText(f"frame {n % 2}")
            await service.wait(spec.Wait(session=asked.session, matcher=drawn), who)
        began = time.perf_counter()
        encoder.encode(await _awaited(service.snapshot(asked, who)))
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6


async def _awaited(answer: object) -> Any:
    """What a handler answers, whether or not it had to wait for it."""
    return await answer if asyncio.iscoroutine(answer) else answer


# Starting.


def _starting() -> list[Row]:
    figures = in_turns({"help": _help, "serve": _serve}, rounds=5)
    return [
        Row("telex --help", statistics.median(figures["help"]), "s", target="<= 0.15"),
        Row("telex serve --socket, ready", statistics.median(figures["serve"]), "s", target="0.4"),
    ]


def _help() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "telex", "--help"], check=True, capture_output=True)
    return time.perf_counter() - began


def _serve() -> float:
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        with _server(Path(directory) / "bench.sock") as child:
            took = time.perf_counter() - began
            child.terminate()
    return took
