"""Terminal output to measure with: made here, the same every time."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from telex.wire import htty_chunk, json_escape

MEGABYTE = 1_000_000
WORDS = (
    b"the quick brown fox jumps over lazy dogs while error: warning: src/main.py:42 [ok] (100%) "
    b"-rw-r--r-- 1 root wheel 4096 Nov 15 22:01 README.md Makefile total 128 =====> done in 3.2s"
).split()


def plain(size: int = 8 * MEGABYTE) -> bytes:
    """A build log."""
    rng = random.Random(1)
    out = bytearray()
    while len(out) < size:
        out += b" ".join(rng.choices(WORDS, k=12)) + b"\r\n"
    return bytes(out)


def ansi(size: int = 8 * MEGABYTE) -> bytes:
    """A full-screen program: cursor moves, colours, short runs of text, now and then a title."""
    rng = random.Random(2)
    out = bytearray()
    while len(out) < size:
        out += b"\x1b[%d;%dH\x1b[38;5;%dm" % (
            rng.randint(1, 50),
            rng.randint(1, 200),
            rng.randint(0, 255),
        )
        out += b" ".join(rng.choices(WORDS, k=2)) + b"\x1b[0m"
        if rng.random() < 0.002:
            out += b"\x1b]0;vim README.md\x07"
    return bytes(out)


def colour(size: int = 8 * MEGABYTE) -> bytes:
    """A log in which each word has its own of 256 colours, and some are bold or underlined."""
    rng = random.Random(7)
    out = bytearray()
    while len(out) < size:
        for word in rng.choices(WORDS, k=10):
            face = rng.choice((b"", b"1;", b"4;"))
            out += b"\x1b[%s38;5;%dm%s\x1b[0m " % (face, rng.randint(0, 255), word)
        out += b"\r\n"
    return bytes(out)


def programs(size: int = 8 * MEGABYTE) -> bytes:
    """What vim, less, top and vim again printed while somebody used them, over and over."""
    recorded = Path(__file__).with_name("data") / "vim-less-top.gz"
    stream = gzip.decompress(recorded.read_bytes())
    return stream * (size // len(stream) + 1)


def chunks(size: int = 8 * MEGABYTE) -> bytes:
    """A page download: HTTY chunks back to back."""
    return htty_chunk.encode(random.Random(3).randbytes(size))


def escapes(size: int = 2 * MEGABYTE) -> bytes:
    """A chatty program: a JSON escape and a little text, over and over."""
    frame = json_escape.encode(b'{"command":"term:cursormove","data":{"y":-2}}') + b"text "
    return frame * (size // len(frame))
