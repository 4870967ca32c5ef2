"""A server beside programs that print without pause, and clients that never read: how long another
session's echo takes, beside the same with nothing going on, and what it all holds in memory.

For the table, and for `tests/terminal/test_floods.py`, which bounds what it finds.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

FLOOD = "the quick brown fox jumps over the lazy dog"
SETTLE_SECONDS = 2.0
"""In which whatever grows has grown."""


@dataclass(frozen=True, slots=True)
class Found:
    """Milliseconds, sorted, and megabytes."""

    idle: list[float]
    flooded: list[float]
    grown: float

    def __str__(self) -> str:
        told = [
            f"{name} p50 {_at(took, 50):.1f}, p99 {_at(took, 99):.1f} ms"
            for name, took in (("idle", self.idle), ("flooded", self.flooded))
        ]
        return f"{'; '.join(told)}; {self.grown:+.1f} MB"


def run() -> list[Row]:
    found = measure(20, 64, 200)
    figure = "20 sessions that flood, 64 clients that never read: another's echo, p99"
    idle = _at(found.idle, 99)
    return [
        Row(figure, _at(found.flooded, 99), "ms", idle, "ms idle, same run", "<= 100"),
        Row("what they hold", found.grown, "MB", target="<= 64"),
    ]


def measure(floods: int, deaf: int, rounds: int) -> Found:
    with _serving() as (process, path):
        return asyncio.run(_measured(process.pid, path, floods, deaf, rounds))


async def _measured(pid: int, path: Path, floods: int, deaf: int, rounds: int) -> Found:
    good = await _Client.connect(path)
    with ExitStack() as clients:
        mine = (await good.call("session.create", program="cat"))["session"]
        idle = [await good.echo(mine, f"idle{number}.") for number in range(rounds)]
        before = _resident(pid)
        for _ in range(deaf):
            clients.enter_context(_deaf(path))
        for _ in range(floods):
            await good.call("session.create", program="yes", args=[FLOOD])
        await asyncio.sleep(SETTLE_SECONDS)
        flooded = [await good.echo(mine, f"busy{number}.") for number in range(rounds)]
        grown = _resident(pid) - before
    good.close()
    return Found(sorted(idle), sorted(flooded), grown)


@contextmanager
def _serving() -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "s"
        argv = [sys.executable, "-m", "telex", "serve", "--socket", str(path)]
        env = {**os.environ, "TELEX_HOME": f"{directory}/home"}
        with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            process.stderr.readline()  # it listens
            try:
                yield process, path
            finally:
                process.terminate()
                process.communicate(timeout=30)


@contextmanager
def _deaf(path: Path) -> Iterator[None]:
    """One who wants to be told of everything, and reads nothing of it."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        asked = {"jsonrpc": "2.0", "id": 1, "method": "server.set_notifications"}
        client.sendall(json.dumps({**asked, "params": {"enabled": True}}).encode() + b"\n")
        client.recv(1024)
        yield


class _Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._count = 0

    @classmethod
    async def connect(cls, path: Path) -> _Client:
        return cls(*await asyncio.open_unix_connection(path, limit=2**24))

    async def call(self, method: str, **params: Any) -> Any:
        self._count += 1
        asked = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self._writer.write(json.dumps(asked).encode() + b"\n")
        answer = json.loads(await self._reader.readline())
        assert "error" not in answer, answer
        return answer["result"]

    async def echo(self, session: str, text: str) -> float:
        """Milliseconds from typing to seeing."""
        began = time.perf_counter()
        action = {"type": "text", "value": f"{text}\n"}
        await self.call("session.input", session=session, action=action)
        matcher = {"type": "contains_text", "value": text}
        await self.call("session.wait", session=session, matcher=matcher, cells="none")
        return (time.perf_counter() - began) * 1000

    def close(self) -> None:
        self._writer.close()


def _at(took: list[float], percent: int) -> float:
    return took[min(len(took) - 1, len(took) * percent // 100)]


def _resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
