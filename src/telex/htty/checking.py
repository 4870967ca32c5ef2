"""What breaks on the way to a program that serves pages, hop by hop, and how fast the way is.

The command runs on a terminal of ours, and we are its terminal and its browser. Most of what breaks
is between: a program whose terminal is not raw, a multiplexer that swallows control strings, a
version we do not speak. Each is told by its name with what to do about it. `diagnosis` decides what
it was from what was seen; here it is seen. For `telex htty check`.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.htty import diagnosis
from telex.htty.command_stream import CommandStream
from telex.htty.connection import Side
from telex.htty.diagnosis import Finding, Seen
from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.http2 import Http2

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

ANNOUNCE_SECONDS: Final = 20.0
"""For the first chunk: a login by ssh comes before it."""
ANSWER_SECONDS: Final = 10.0
PINGS: Final = 20
FRAME: Final = 16 * 1024
"""The largest that every HTTP/2 server takes."""
FRAMES_UP: Final = 256
"""Sent at most, to measure how fast the way to the program is. They are of a kind nobody knows and
everybody must ignore (RFC 9113 §5.5), so that any server will do; too few to be taken for a flood.
"""
LONG: Final = 8 * 1024
"""More than twice what a terminal that is not raw lets through."""
MEASURED_SECONDS: Final = 1.0
"""Each way."""
GETS_AT_ONCE: Final = 8


@dataclass(slots=True)
class Report:
    """What was found."""

    findings: list[Finding] = field(default_factory=list)
    status: int | None = None
    body_bytes: int | None = None
    round_trip_ms: float | None = None
    up_mb_s: float | None = None
    down_mb_s: float | None = None
    requests_s: float | None = None

    @property
    def ok(self) -> bool:
        return not any(finding.breaks for finding in self.findings)


class _Watched(CommandStream):
    """A command whose output is looked at for what should not be there."""

    def __init__(self, argv: Sequence[str], *, eager: bool) -> None:
        self.seen = Seen(tuple(argv))
        super().__init__(argv, text=self._looked_at, eager=eager)

    def _looked_at(self, data: bytes) -> None:
        self.seen.text(data)
        if self.seen.chunk_shown and not self.seen.echo_shown:
            self.close()  # no chunk will ever come

    async def read(self) -> bytes:
        data = await super().read()
        self.seen.carried(data)
        return data

    def look(self) -> Seen:
        """All that is known by now."""
        seen, line = self.seen, self.pty.line_settings()
        seen.canonical, seen.echo = line.canonical, line.echo
        seen.asked, seen.faults = self.asked, tuple(self.faults)
        seen.exit = self.pty.child.exit
        seen.full_screen = self.screen.alternate_screen
        rows = [row.text for row in self.screen.rows()]
        seen.last_words = "".join(row if row[-1:].strip() else f"{row} " for row in rows)
        return seen


async def check(argv: Sequence[str], *, path: str = "/", eager: bool = False) -> Report:
    """Raises `StartFailed`; everything else that goes wrong is found."""
    report = Report()
    async with _Watched(argv, eager=eager) as command:
        if not eager and not await _in_time(command.announced(), ANNOUNCE_SECONDS):
            report.findings += diagnosis.without_chunks(command.look(), ANNOUNCE_SECONDS)
            return report
        report.findings += diagnosis.at_first_chunk(command.look())
        http = Http2(command, Side.CLIENT)
        running = asyncio.create_task(http.run())
        try:
            await _tried(command, http, path, report)
            http.close()
            await asyncio.wait({running}, timeout=ANSWER_SECONDS)
        finally:
            running.cancel()
            await asyncio.wait({running})
    return report


async def _tried(command: _Watched, http: Http2, path: str, report: Report) -> None:
    """Step by step; what does not come in time ends it, and the rest is not tried."""
    steps = (
        ("connection", _connect(http, report)),
        ("long lines", _long(command, http, report)),
        (f"GET {path}", _get(http, path, report)),
        ("speed", _measure(command, http, path, report)),
    )
    failed = ""
    for name, step in steps:
        if failed:
            step.close()
            continue
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await step
        except TimeoutError:
            failed = f"no answer came within {ANSWER_SECONDS:.0f} seconds"
        except (ConnectionOver, StreamReset) as error:
            failed = command.why or str(error)
        if failed:
            report.findings.append(diagnosis.of_step(name, failed, command.look()))


async def _connect(http: Http2, report: Report) -> None:
    await http.ready()
    took = sorted([await http.ping() for _ in range(PINGS)])
    report.round_trip_ms = statistics.median(took) * 1000
    report.findings.append(Finding("connection", "HTTP/2 is spoken both ways"))


async def _long(command: _Watched, http: Http2, report: Report) -> None:
    command.write(_ignored(LONG))
    await http.ping()
    report.findings.append(Finding("long lines", f"{LONG} bytes in one piece arrive"))


async def _get(http: Http2, path: str, report: Report) -> None:
    report.status, report.body_bytes = await _got(http, path)
    report.findings.append(
        Finding(f"GET {path}", f"status {report.status}, {report.body_bytes} bytes")
    )


async def _got(http: Http2, path: str) -> tuple[int, int]:
    head = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"htty.local")]
    exchange = await http.request([*head, (b":path", path.encode())], end=True)
    answer = dict(await exchange.answer())
    size = 0
    while data := await exchange.read():
        size += len(data)
    return int(answer[b":status"]), size


async def _measure(command: _Watched, http: Http2, path: str, report: Report) -> None:
    began, frames = time.perf_counter(), 0
    while frames < FRAMES_UP and time.perf_counter() - began < MEASURED_SECONDS:
        command.write(_ignored(FRAME))
        await command.drained()
        frames += 1
    await http.ping()
    report.up_mb_s = frames * FRAME / (time.perf_counter() - began) / 1e6
    began = time.perf_counter()
    sizes: list[int] = []

    async def again() -> None:
        while time.perf_counter() - began < MEASURED_SECONDS:
            sizes.append((await _got(http, path))[1])

    async with asyncio.TaskGroup() as group:
        for _ in range(GETS_AT_ONCE):
            group.create_task(again())
    took = time.perf_counter() - began
    report.requests_s, report.down_mb_s = len(sizes) / took, sum(sizes) / took / 1e6


def _ignored(size: int) -> bytes:
    """A frame of a kind that there is not, on no stream."""
    return size.to_bytes(3, "big") + b"\xbe\0\0\0\0\0" + bytes(size)


async def _in_time(wait: Awaitable[bool], seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await wait
    except TimeoutError:
        return False
