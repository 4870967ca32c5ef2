"""Finds what breaks between a terminal and a program that serves pages, hop by hop; also its speed.

For `telex htty check`. The command runs on a terminal of ours, and this module is its terminal and
its browser. Most faults are in between: a program whose terminal is not raw, a multiplexer that
drops control strings, an unsupported version. The first half of this file decides, without I/O,
what a set of `CommandObservations` means: a `CheckFinding` states the result and the remedy, for a
reader who does not know how terminals work. The second half makes the observations.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.h2.http2_connection import Http2Connection
from telex.htty.h2.http2_state import Http2Side
from telex.htty.tools.command_stream import CommandStream
from telex.htty.tools.transcript_dump import PREFACE
from telex.wire import htty_chunk
from telex.wire.events import Fault, Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from telex.processes.child import Exit


MULTIPLEXERS: Final = frozenset({"tmux", "screen", "mosh", "zellij", "byobu"})
NO_PAGES_CODE: Final = 3
_KEPT: Final = 64
_FIRST: Final = 4096
_WORDS: Final = 200
"""How many characters of the command's screen are quoted."""
_CHUNK_SHOWN: Final = re.compile(rb"HTTY;[0-9]+;")
_ECHO_SHOWN: Final = re.compile(rb"\^\[PHTTY;")


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The result of one check."""

    name: str
    sentence: str
    breaks: bool = False
    advice: str = ""


@dataclass(slots=True)
class CommandObservations:
    """The facts about one command so far."""

    argv: tuple[str, ...]
    canonical: bool = False
    echo: bool = False
    asked: bool = False
    full_screen: bool = False
    faults: tuple[Fault, ...] = ()
    exit: Exit | None = None
    screen_text: str = ""
    chunk_shown: bool = False
    """A chunk arrived as text: something in between removed the ESC."""
    echo_shown: bool = False
    """Our own bytes were echoed: as text, or as a chunk."""
    _tail: bytes = b""
    _first: bytes = field(default=b"")

    def text(self, data: bytes) -> None:
        """Examine visible output for chunks and echoes."""
        examined = self._tail + data
        self.echo_shown |= bool(_ECHO_SHOWN.search(examined))
        self.chunk_shown |= bool(_CHUNK_SHOWN.search(examined))
        self._tail = examined[-_KEPT:]

    def carried(self, data: bytes) -> None:
        """Examine the content of chunks. Only the client, which is us, sends the preface."""
        if len(self._first) < _FIRST:
            self._first += data[:_FIRST]
            self.echo_shown |= PREFACE in self._first

    @property
    def is_raw(self) -> bool:
        """Whether the program announced the raw form."""
        return any(fault.claim == htty_chunk.RAW for fault in self.faults)

    @property
    def multiplexer(self) -> str:
        names = [PurePath(word).name for words in self.argv for word in words.split()]
        return next((name for name in names if name in MULTIPLEXERS), "")


def at_first_chunk(seen: CommandObservations) -> list[CheckFinding]:
    """Return the findings once the command has begun, before anything is sent to it."""
    return [_environment(seen), CheckFinding("chunks", "they arrive, in version 1"), *_line(seen)]


def _environment(seen: CommandObservations) -> CheckFinding:
    if seen.asked:
        return CheckFinding(
            "environment",
            "HTTY did not reach the program, as behind ssh; it queried the terminal instead",
        )
    return CheckFinding("environment", "HTTY=1 reached the program, or it does not check it")


def _line(seen: CommandObservations) -> list[CheckFinding]:
    raw = CheckFinding("raw mode", "the terminal passes every byte on at once")
    if seen.canonical:
        raw = _not_raw("the program began while its terminal still buffers lines")
    echo = CheckFinding("echo", "typed bytes are not echoed")
    if seen.echo:
        echo = _echo("the program began while its terminal still echoes typed bytes")
    return [raw, echo]


def _not_raw(what: str) -> CheckFinding:
    return _failed(
        "raw mode",
        f"{what}: no byte reaches it before a newline, and lines are cut at 4096 bytes",
        "Have the program switch ICANON off before its first chunk (TCSADRAIN keeps typed bytes); "
        "with ssh, give -tt so that there is a terminal at the far end to switch.",
    )


def _echo(what: str) -> CheckFinding:
    return _failed(
        "echo",
        f"{what}: bytes from the terminal would come back, and appear on the screen",
        "Have the program switch ECHO off before its first chunk.",
    )


def no_chunks(seen: CommandObservations, seconds: float) -> CheckFinding:
    """Return why the command sent no chunk: the first finding that explains it."""
    if seen.is_raw:
        return _raw_form()
    if any(fault.reason is Reason.VERSION for fault in seen.faults):
        return _failed(
            "version",
            "the program sends chunks of a version that telex does not support",
            "Update telex, or the program. Telex supports only version 1.",
        )
    if seen.faults:
        return _malformed(seen.faults[0])
    if seen.chunk_shown:
        return _failed(
            "DCS",
            "chunks arrive as text: something in between removes the ESC of control strings",
            "Remove the program that filters the terminal's output, or have it pass DCS strings "
            "on.",
        )
    if seen.exit is not None and seen.exit.code == NO_PAGES_CODE:
        return _failed(
            "environment",
            f"the program reports that no pages are shown here{_quoted(seen)}",
            "Check whether HTTY=0 is set where it runs; with ssh, give -tt: it needs a terminal.",
        )
    if seen.multiplexer or seen.full_screen:
        return _multiplexer(seen)
    if seen.exit is not None:
        return _failed(
            "command",
            f"it {seen.exit} before it sent a chunk{_quoted(seen)}",
            "Run it by itself and check its output.",
        )
    return _failed(
        "chunks",
        f"no chunk arrived within {seconds:.0f} seconds{_quoted(seen)}",
        "Check whether it serves pages at all; give --eager if it waits for the client to begin.",
    )


def _failed(name: str, sentence: str, advice: str) -> CheckFinding:
    return CheckFinding(name, sentence, True, advice)


def _raw_form() -> CheckFinding:
    return _failed(
        "form",
        f"the program speaks {htty_chunk.RAW_FORM}",
        "Serve the page with `telex htty serve`, or with a library that sends chunks, as "
        "protocol-htty 0.1.0 does. The raw form leaves no room for text, keys and Ctrl-C.",
    )


def _malformed(fault: Fault) -> CheckFinding:
    return _failed(
        "chunks",
        f"at byte {fault.offset} of the output a chunk is broken: {fault.detail}",
        "Something in between cuts or changes control strings, or two programs write at once; "
        "try the command without multiplexers and wrappers.",
    )


def _multiplexer(seen: CommandObservations) -> CheckFinding:
    name = seen.multiplexer or "a full-screen program"
    advice = (
        "Run `tmux set -g allow-passthrough on` in it (tmux 3.3 or later)."
        if name == "tmux"
        else "Run the command without it; only tmux passes chunks on, with allow-passthrough on."
    )
    return _failed(
        "passthrough", f"{name} is in between and passed no chunk on{_quoted(seen)}", advice
    )


def failed_step(name: str, what: str, seen: CommandObservations) -> CheckFinding:
    """Return the finding of a step that failed after data was sent."""
    if seen.is_raw:
        return _raw_form()
    if seen.echo_shown:
        return _echo("the sent bytes came back")
    if seen.canonical:
        return _not_raw("its terminal buffers lines")
    if seen.faults:
        return _malformed(seen.faults[-1])
    if name == "long lines":
        return _failed(
            name,
            f"short messages arrive and one of 8192 bytes does not: {what}",
            "Something in between is not raw and cuts lines at 4096 bytes: a terminal at a hop in "
            "between, often from `script` or a second ssh without -tt.",
        )
    return _failed(name, what, "Check the program's own output.")


def _quoted(seen: CommandObservations) -> str:
    last = " ".join(seen.screen_text.split())[-_WORDS:]
    return f'; its screen shows "{last}"' if last else ""


ANNOUNCE_SECONDS: Final = 20.0
"""Deadline of the first chunk: an ssh login may come before it."""
ANSWER_SECONDS: Final = 10.0
PINGS: Final = 20
FRAME: Final = 16 * 1024
"""The largest frame that every HTTP/2 server accepts."""
FRAMES_UP: Final = 256
"""How many frames are sent at most, to measure the speed to the program. They have an unknown type,
which every server must ignore (RFC 9113 §5.5), so any server works; too few to count as a flood.
"""
LONG: Final = 8 * 1024
"""More than twice the line limit of a terminal that is not raw."""
MEASURED_SECONDS: Final = 1.0
"""Duration of each of the two measurements."""
GETS_AT_ONCE: Final = 8


@dataclass(slots=True)
class ConnectionReport:
    """The result of a check: its findings and measurements."""

    findings: list[CheckFinding] = field(default_factory=list)
    status: int | None = None
    body_bytes: int | None = None
    round_trip_ms: float | None = None
    up_mb_s: float | None = None
    down_mb_s: float | None = None
    requests_s: float | None = None

    @property
    def ok(self) -> bool:
        return not any(finding.breaks for finding in self.findings)


class _ObservedCommand(CommandStream):
    """A command whose output is examined for chunks and echoes."""

    def __init__(self, argv: Sequence[str], *, eager: bool) -> None:
        self.seen = CommandObservations(tuple(argv))
        super().__init__(argv, text=self._examine, eager=eager)

    def _examine(self, data: bytes) -> None:
        self.seen.text(data)
        if self.seen.chunk_shown and not self.seen.echo_shown:
            self.close()  # no chunk will ever arrive

    async def read(self) -> bytes:
        data = await super().read()
        self.seen.carried(data)
        return data

    def observe(self) -> CommandObservations:
        """Return all facts known by now."""
        seen, line = self.seen, self.pty.line_settings()
        seen.canonical, seen.echo = line.canonical, line.echo
        seen.asked, seen.faults = self.asked, tuple(self.faults)
        seen.exit = self.pty.child.exit
        seen.full_screen = self.screen.alternate_screen
        rows = [row.text for row in self.screen.rows()]
        seen.screen_text = "".join(row if row[-1:].strip() else f"{row} " for row in rows)
        return seen


async def check(argv: Sequence[str], *, path: str = "/", eager: bool = False) -> ConnectionReport:
    """Run all checks. Raises `StartFailed`; every other problem is a finding."""
    report = ConnectionReport()
    async with _ObservedCommand(argv, eager=eager) as command:
        if not eager and not await _in_time(command.announced(), ANNOUNCE_SECONDS):
            report.findings.append(no_chunks(command.observe(), ANNOUNCE_SECONDS))
            return report
        report.findings += at_first_chunk(command.observe())
        http = Http2Connection(command, Http2Side.CLIENT)
        running = asyncio.create_task(http.run())
        try:
            await _run_steps(command, http, path, report)
            http.close()
            await asyncio.wait({running}, timeout=ANSWER_SECONDS)
        finally:
            running.cancel()
            await asyncio.wait({running})
    return report


async def _run_steps(
    command: _ObservedCommand, http: Http2Connection, path: str, report: ConnectionReport
) -> None:
    """Run the steps in order; the first that fails or times out ends the check."""
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
            failed = f"no response within {ANSWER_SECONDS:.0f} seconds"
        except (ConnectionOver, StreamReset) as error:
            failed = command.why or str(error)
        if failed:
            report.findings.append(failed_step(name, failed, command.observe()))


async def _connect(http: Http2Connection, report: ConnectionReport) -> None:
    await http.ready()
    took = sorted([await http.ping() for _ in range(PINGS)])
    report.round_trip_ms = statistics.median(took) * 1000
    report.findings.append(CheckFinding("connection", "HTTP/2 works in both directions"))


async def _long(command: _ObservedCommand, http: Http2Connection, report: ConnectionReport) -> None:
    command.write(_ignored(LONG))
    await http.ping()
    report.findings.append(CheckFinding("long lines", f"{LONG} bytes in one piece arrive"))


async def _get(http: Http2Connection, path: str, report: ConnectionReport) -> None:
    report.status, report.body_bytes = await _got(http, path)
    report.findings.append(
        CheckFinding(f"GET {path}", f"status {report.status}, {report.body_bytes} bytes")
    )


async def _got(http: Http2Connection, path: str) -> tuple[int, int]:
    head = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"htty.local")]
    http_stream = await http.request([*head, (b":path", path.encode())], end=True)
    answer = dict(await http_stream.answer())
    size = 0
    while data := await http_stream.read():
        size += len(data)
    return int(answer[b":status"]), size


async def _measure(
    command: _ObservedCommand, http: Http2Connection, path: str, report: ConnectionReport
) -> None:
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
    """Return a frame of an unknown type, on stream 0."""
    return size.to_bytes(3, "big") + b"\xbe\0\0\0\0\0" + bytes(size)


async def _in_time(wait: Awaitable[bool], seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await wait
    except TimeoutError:
        return False
