"""An hour of recording: reading it, any moment of it, and a search through all of its screens."""

from __future__ import annotations

import random
import statistics
import time
from itertools import cycle

from benchmarks import streams
from benchmarks.figures import Row, rate
from telex.terminal.cells import Size
from telex.terminal.playback import FrameIndex, Playback
from telex.terminal.recording import AsciicastWriter, Header, Recording, read_recording
from telex.terminal.recording_search import search, text_pattern

HOUR = 3600
EVENTS = 20_000
LOOKS = 1000
CONTROL_LOOKS = 20


def run() -> list[Row]:
    file = _hour()
    megabytes = len(file) / 1e6
    lines = file.splitlines(keepends=True)
    recording = read_recording(lines)

    def read() -> float:
        read_recording(lines)
        return megabytes

    began = time.perf_counter()
    index = FrameIndex(recording)
    index.frame(HOUR)
    first = time.perf_counter() - began
    looks = _looks(index)
    control = statistics.median(_played(recording)) * 1e3
    peer = "played from the beginning"
    began = time.perf_counter()
    search(recording, text_pattern("src/main.py:42 [ok]"), None)
    searched = time.perf_counter() - began
    percent = statistics.quantiles(looks, n=100)
    what = f"an hour of {megabytes:.0f} MB"
    return [
        Row("a recording read", rate(read, runs=3), "MB/s"),
        Row(f"{what}, first reading of all screens", megabytes / first, "MB/s"),
        Row(f"{what}, screens kept", index.kept_bytes / 1e6, "MB"),
        Row(f"{what}, any frame, p50", percent[49] * 1e3, "ms", control, peer, "<= 50"),
        Row(f"{what}, any frame, p99", percent[98] * 1e3, "ms", control, peer, "<= 50"),
        Row(f"{what}, searched for a text", searched, "s"),
    ]


def _hour() -> bytes:
    """A working hour: full-screen programs and logs in turn, in reads of a few hundred bytes."""
    chance = random.Random(11)
    sources = [(stream(), 0) for stream in (streams.programs, streams.plain, streams.colour)]
    writer = AsciicastWriter(Header(2, Size()), 0.0, None)
    lines = [writer.header()]
    turns = cycle(range(len(sources)))
    source = next(turns)
    for n in range(EVENTS):
        if n % 500 == 499:
            source = next(turns)
        stream, at = sources[source]
        size = chance.choice((20, 80, 200, 400, 1500))
        sources[source] = stream, at + size
        text = stream[at : at + size].decode("utf-8", "replace")
        lines.append(writer.output(text, n * HOUR / EVENTS))
    return b"".join(lines)


def _looks(index: FrameIndex) -> list[float]:
    chance, took = random.Random(5), []
    for _ in range(LOOKS):
        at = chance.uniform(0, HOUR)
        began = time.perf_counter()
        _ = index.frame(at).plain_text
        took.append(time.perf_counter() - began)
    return took


def _played(recording: Recording) -> list[float]:
    """The same without an index."""
    chance, took = random.Random(5), []
    for _ in range(CONTROL_LOOKS):
        at = chance.uniform(0, HOUR)
        began = time.perf_counter()
        with Playback(recording) as playback:
            playback.play(at)
            _ = playback.snapshot().plain_text
        took.append(time.perf_counter() - began)
    return took
