"""The agent's runtime as a UI sees it: `telex agent` in its own process, over a unix socket.

An event counts when the UI has its line, and it was stored durably before. Peer: the store alone in
the same shape, measured by `agent`; the difference is what running, telling and reading cost.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.figures import Row

ROUNDS, STEPS, RUNS = 5, 200, 20
TEXT = "word " * 30


class Ui:
    """One connection that has said hello."""

    def __init__(self, path: Path, **capabilities: bool) -> None:
        self._ids = count(1)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        hello = {"protocol_version": "0", "client": {"name": "benchmark", "version": "0"}}
        self.say("initialize", {**hello, "ui_capabilities": capabilities})
        self.until(b'"result"')

    def say(self, method: str, params: object) -> None:
        message = {"jsonrpc": "2.0", "id": f"{next(self._ids)}", "method": method}
        self._socket.sendall(json.dumps({**message, "params": params}).encode() + b"\n")

    def until(self, *seen: bytes) -> int:
        """How many events came before the line that has all of this."""
        events = 0
        while line := self._lines.readline():
            if all(text in line for text in seen):
                return events
            events += b'"agent.event"' in line
        raise EOFError("the agent is gone")

    def start(self) -> None:
        self.say("run.start", {"input": {"type": "text", "text": "go"}, "new_session": True})

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@contextmanager
def _served(home: Path) -> Iterator[Ui]:
    with tempfile.TemporaryDirectory() as directory:
        script, path = Path(directory) / "s.json", Path(directory) / "s"
        steps: list[dict[str, Any]] = [{"text": TEXT}] * (STEPS - 1)
        script.write_text(json.dumps({"steps": [*steps, {"final": TEXT}]}))
        command = [sys.executable, "-m", "telex", "agent", "--socket", str(path)]
        with subprocess.Popen(
            [*command, "--root", directory, "--script", str(script)],
            env={**os.environ, "TELEX_HOME": str(home)},
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stderr
            child.stderr.readline()  # it listens
            ui = Ui(path)
            try:
                yield ui
            finally:
                ui.close()
                child.terminate()


def live(home: Path, alone: list[float], together: list[float]) -> list[Row]:
    """`alone` and `together` are what the store does in the same shape, lowest first."""
    with _served(home) as ui:
        _one(ui)  # the first loads what the others have
        ones = [_one(ui) for _ in range(ROUNDS)]
        many = sorted(_many(ui) for _ in range(ROUNDS))
    rates, first = sorted(rate for rate, _ in ones), min(first for _, first in ones)
    name = "the store alone"
    figure = "events stored and delivered"
    return [
        Row(f"{figure}, one run", rates[-1], "/s", alone[-1], name, "", (rates[0], rates[-1])),
        Row(f"{figure}, 20 runs", many[-1], "/s", together[-1], name, "", (many[0], many[-1])),
        Row("run.start to its first event", first * 1e3, "ms"),
    ]


def _one(ui: Ui) -> tuple[float, float]:
    """Events a second, and seconds to the first."""
    began = time.perf_counter()
    ui.start()
    ui.until(b'"agent.event"')
    first = time.perf_counter() - began
    assert ui.until(b'"run.status"', b'"completed"') == STEPS - 1
    return STEPS / (time.perf_counter() - began), first


def _many(ui: Ui) -> float:
    began = time.perf_counter()
    for _ in range(RUNS):
        ui.start()
    events = sum(ui.until(b'"run.status"', b'"completed"') for _ in range(RUNS))
    assert events == STEPS * RUNS
    return events / (time.perf_counter() - began)


def replayed(home: Path, session_id: str, events: int) -> list[Row]:
    with _served(home) as ui:
        began = time.perf_counter()
        wanted = {"session_id": session_id, "max_events": 2 * events, "max_runs": 1_000}
        ui.say("session.history", wanted)
        ui.until(b'"agent.event"')
        first = time.perf_counter() - began
        ui.until(b'"result"', b'"truncated"')
        whole = time.perf_counter() - began
    size = f"{events:,} events"
    return [
        Row(f"session.history of {size}, the first", first * 1e3, "ms"),
        Row(f"session.history of {size}, all", whole * 1e3, "ms"),
    ]
