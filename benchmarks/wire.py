"""Demux and codecs, in MB/s at 4 KiB reads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from benchmarks import streams
from benchmarks.figures import Row, rate, reads_of
from telex.wire import content_length, htty_chunk, json_escape, ndjson
from telex.wire.demux import Demux
from telex.wire.events import Event, Frame, Visible

CLAIMS = [json_escape.TO_TERMINAL, json_escape.TO_PROGRAM, htty_chunk.CHUNK]
MESSAGE = b'{"jsonrpc":"2.0","id":12345,"method":"session.wait","params":{"session":"s1"}}'


def run() -> list[Row]:
    return [*_demux_rows(), *_codec_rows()]


def _demux_rows() -> list[Row]:
    rows = []
    for name, stream, target in [
        ("plain", streams.plain(), ""),
        ("ANSI-heavy", streams.ansi(), ">= 1,000"),
        ("chunk-heavy", streams.chunks(), ""),
        ("JSON escapes", streams.escapes(), ""),
    ]:
        reads = reads_of(stream)
        ours = _megabytes(reads, lambda: Demux(CLAIMS).feed)
        peer = _megabytes(reads, _one_regex)
        rows.append(Row(f"demux, {name}", ours, "MB/s", peer, "one regex", target))
    return rows


def _codec_rows() -> list[Row]:
    lines = reads_of(ndjson.encode(MESSAGE) * 40_000)
    framed = reads_of(content_length.encode(MESSAGE) * 40_000)
    chunked = reads_of(streams.chunks())
    data = bytes(4 * streams.MEGABYTE)
    return [
        Row(
            "decode ndjson",
            _megabytes(lines, lambda: ndjson.NdjsonDecoder().feed),
            "MB/s",
            _stream_reader(lines, _lines),
            "StreamReader",
        ),
        Row(
            "decode content-length",
            _megabytes(framed, lambda: content_length.ContentLengthDecoder().feed),
            "MB/s",
            _stream_reader(framed, _framed),
            "StreamReader",
        ),
        Row(
            "decode HTTY chunks",
            _megabytes(chunked, lambda: htty_chunk.HttyChunkDecoder().feed),
            "MB/s",
        ),
        Row("encode HTTY chunks", rate(lambda: len(htty_chunk.encode(data)) / 1e6), "MB/s"),
    ]


def _megabytes(reads: list[bytes], decoder: Callable[[], Callable[[bytes], list[Event]]]) -> float:
    def work() -> float:
        feed = decoder()
        for read in reads:
            feed(read)
        return sum(map(len, reads)) / 1e6

    return rate(work)


def _one_regex() -> Callable[[bytes], list[Event]]:
    """The short way to write a demux: one regex a read, and nothing held between reads."""
    string = re.compile(rb"\x1b\]2319[89];([^\x07\x1b]*)(?:\x07|\x1b\\)|\x1bPHTTY;([^\x1b]*)\x1b\\")

    def feed(data: bytes) -> list[Event]:
        events: list[Event] = []
        at = 0
        for found in string.finditer(data):
            events += [Visible(data[at : found.start()]), Frame(found[1] or found[2])]
            at = found.end()
        return [*events, Visible(data[at:])]

    return feed


def _stream_reader(reads: list[bytes], consume: Callable[[asyncio.StreamReader], object]) -> float:
    async def read_all() -> None:
        reader = asyncio.StreamReader()
        for read in reads:
            reader.feed_data(read)
        reader.feed_eof()
        await consume(reader)  # type: ignore[misc]

    def work() -> float:
        asyncio.run(read_all())
        return sum(map(len, reads)) / 1e6

    return rate(work, runs=3)


async def _lines(reader: asyncio.StreamReader) -> None:
    while await reader.readline():
        pass


async def _framed(reader: asyncio.StreamReader) -> None:
    while header := await reader.readline():
        length = int(header.split(b":")[1])
        await reader.readline()
        await reader.readexactly(length)
