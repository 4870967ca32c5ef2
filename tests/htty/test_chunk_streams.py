"""Megabytes of chunks, cut anywhere, with text anywhere between them: no byte is lost or shown."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import pytest

from telex.htty.chunk_stream import ChunkReceiver
from telex.terminal.cells import Size
from telex.terminal.screen import Screen
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault, Visible
from telex.wire.htty_chunk import CHUNK, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from telex.wire.events import Event

MB = 1_000_000
SIZE = Size(24, 80)
TEXTS = (
    b"a line of a log\r\n",
    b"\x1b[31mred\x1b[0m ",
    "Grüße, 世界, 🙂\r\n".encode(),
    b"\x1b[5;7Hhere",
    b"\x1b]0;a title\x07",
    b"\x1bP$qm\x1b\\",
    b"HTTY;1;QQ== is only text\r\n",
    b"\x1b[2J\x1b[H",
    b"",
)


class Terminal:
    """A terminal that splits its program's output into a page's bytes and a screen."""

    def __init__(self) -> None:
        self.carried = hashlib.sha256()
        self.shown = hashlib.sha256()
        self.screen = Screen(SIZE)
        self._demux, self._receiver = Demux([CHUNK]), ChunkReceiver()

    def feed(self, data: bytes) -> None:
        for event in self._demux.feed(data):
            self._take(event)

    def end(self) -> None:
        for event in self._demux.eof():
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case Visible(data):
                self.shown.update(data)
                self.screen.feed(data)
            case Claimed() | Fault():
                data = self._receiver.take(event)
                assert isinstance(data, bytes), event
                self.carried.update(data)


class Program:
    """A program's output, and the bytes and text that should arrive."""

    def __init__(self, seed: int, size: int) -> None:
        self.carried = hashlib.sha256()
        self.shown = hashlib.sha256()
        self.screen = Screen(SIZE)
        self._random, self._left = random.Random(seed), size

    def pieces(self) -> Iterator[bytes]:
        rng = self._random
        while self._left > 0:
            payload = rng.randbytes(min(self._left, rng.choice([1, 2, 50, 3072, 12288, 60_000])))
            self._left -= len(payload)
            self.carried.update(payload)
            text = b"".join(rng.choices(TEXTS, k=rng.randrange(3)))
            self.shown.update(text)
            self.screen.feed(text)
            yield encode(payload, rng.choice([17, 3072, 12288, 49152])) + text

    def reads(self) -> Iterator[bytes]:
        """Yield the same output, split as the kernel might."""
        held = bytearray()
        for piece in self.pieces():
            held += piece
            while len(held) > 65536:
                cut = self._random.choice([1, 2, 3, 100, 4095, 4096, 16384, 65536])
                yield bytes(held[:cut])
                del held[:cut]
        yield from (bytes(held[at : at + 777]) for at in range(0, len(held), 777))


def rows(screen: Screen) -> list[str]:
    return [row.text for row in screen.rows()]


@pytest.mark.counted
@pytest.mark.parametrize("seed", [1, 2])
def test_every_byte_is_carried_and_the_screen_is_clean(
    seed: int, counted: Callable[[int, int], int]
) -> None:
    program, terminal = Program(seed, counted(5, 50) * MB // 2), Terminal()
    for read in program.reads():
        terminal.feed(read)
    terminal.end()
    assert terminal.carried.digest() == program.carried.digest()
    assert terminal.shown.digest() == program.shown.digest()
    assert rows(terminal.screen) == rows(program.screen)
    assert terminal.screen.title == program.screen.title
    assert terminal.screen.scrollback_length == program.screen.scrollback_length
