"""Every way to read a screen ends, and raises nothing, after any stream of bytes on either screen.

A read that never ends stops the whole server: everything runs on one loop. So each stream is
followed by all of them, under a watchdog that ends the process and names the stream's seed.
"""

from __future__ import annotations

import contextlib
import faulthandler
import random
from typing import TYPE_CHECKING

import pytest

from telex.redaction import Redactor
from telex.terminal import pictures, redact
from telex.terminal.actions import MouseEvent
from telex.terminal.cells import Size
from telex.terminal.keys import parse_key
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KINDS: tuple[pictures.Kind, ...] = ("text", "ansi", "svg", "html")
REDACTOR = Redactor()
SIDES = (1, 2, 3, 10, 24, 80)
MODES = (1, 2, 3, 4, 5, 6, 7, 12, 20, 25, 40, 45, 47, 66, 69, 1000, 1002, 1003, 1006, 1016, 1047, 1048,
         1049, 2004, 2026, 2027, 2031, 2048)  # fmt: skip
NUMBERS = (
    "",
    "0",
    "1",
    "2",
    "3",
    "5",
    "9",
    "22",
    "24",
    "48",
    "80",
    "99",
    "65535",
    "65536",
    "4294967296",
)
WORDS = (
    *("abc", "0123456789" * 9, "\u4e2d\u6587", "\U0001f468\u200d\U0001f469", "e\u0301\u0301\u0301", "\ufe0f"),
    *("\r\n" * 30, "\r", "\n", "\t", "\b", "\x0e", "\x0f", "\x7f", "\x00", "\x05", "\x9b2J", "\xff"),
    *("\x1bc", "\x1bM", "\x1bD", "\x1bE", "\x1b7", "\x1b8", "\x1b#8", "\x1b(0", "\x1b(B", "\x1b=", "\x1b>"),
    *("\x1b]2;title\x07", "\x1b]2;\x00\x1b\\", "\x1b]8;;x\x07", "\x1bP+q544e\x1b\\", "\x1b_Ga=q\x1b\\"),
    *("\x1b[!p", "\x1b[38;2;1;2;3m", "\x1b[48;5;9m", "\x1b[4:3m", "\x1b[1\"q", "\x1b[>1u", "\x1b[?u"),
)  # fmt: skip


def stream(chance: random.Random) -> Iterator[bytes]:
    """Sequences that mean something to a terminal, with any numbers, on both screens."""
    for _ in range(chance.randint(1, 40)):
        match chance.randrange(6):
            case 0:
                yield f"\x1b[?{chance.choice(MODES)}{chance.choice('hhl')}".encode()
            case 1:
                yield b"\x1b[?%d%c" % (chance.choice((47, 1047, 1049)), chance.choice(b"hhhl"))
            case 2 | 3:
                numbers = ";".join(chance.choices(NUMBERS, k=chance.randint(0, 3)))
                marks = chance.choice(("", "", "", "?", ">", "=", "!"))
                yield f"\x1b[{marks}{numbers}{chr(chance.randrange(0x40, 0x7F))}".encode()
            case 4:
                yield chance.choice(WORDS).encode("utf-8")
            case _:
                yield chance.randbytes(chance.randint(1, 12))


def read_all(screen: Screen, chance: random.Random) -> None:
    """Every outlet of a screen, once."""
    size = screen.size
    seen = screen.snapshot(chance.randrange(1 << 30))
    assert [len(row.cells) for row in seen.rows] == [size.cols] * size.rows
    assert 0 <= seen.cursor.row < size.rows
    assert 0 <= seen.cursor.col < size.cols
    total = screen.scrollback_length
    assert total == 0 or not seen.alternate_screen
    assert len(screen.scrollback(0, total)) == total
    start, count = chance.randint(-2, total + 2), chance.randint(0, 30)
    above = screen.scrollback(start, count)
    assert len(above) == max(0, min(count, total - max(start, 0)))
    hidden = redact.mask(seen, REDACTOR, above)
    redact.mask_rows(above, REDACTOR)
    drawn = screen.restore(hidden)
    with contextlib.closing(Screen(size)) as other:
        other.feed(drawn)
        assert other.alternate_screen == screen.alternate_screen
    assert screen.scrollback_length == total, "reading changed the screen"
    pictures.draw(hidden, chance.choice(KINDS))
    screen.encode_key(parse_key("ctrl_up"))
    row, col = chance.randrange(size.rows), chance.randrange(size.cols)
    screen.encode_mouse(MouseEvent(row=row, col=col, event="click", button="left"))


@pytest.fixture
def watchdog() -> Iterator[Callable[[], None]]:
    """Call it before each step: a step that takes minutes ends the process with its traceback."""
    yield lambda: faulthandler.dump_traceback_later(120, exit=True)
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.counted
def test_every_read_ends_after_a_hostile_stream_on_either_screen(
    counted: Callable[[int, int], int], watchdog: Callable[[], None]
) -> None:
    streams = counted(80, 20_000)
    reads = 0
    for seed in range(streams):
        chance = random.Random(seed)
        print(f"stream {seed}")
        watchdog()
        size = Size(chance.choice(SIDES), chance.choice(SIDES))
        with contextlib.closing(Screen(size)) as screen:
            for data in stream(chance):
                screen.feed(data)
                if chance.random() < 0.1:
                    screen.resize(Size(chance.choice(SIDES), chance.choice(SIDES)))
                if chance.random() < 0.2:
                    read_all(screen, chance)
                    reads += 1
            read_all(screen, chance)
    print(f"{streams} hostile streams, {reads + streams} times everything was read")


def test_a_png_of_a_hostile_screen_is_drawn(watchdog: Callable[[], None]) -> None:
    watchdog()
    for seed in range(20):
        chance = random.Random(seed)
        with contextlib.closing(Screen(Size(5, 20))) as screen:
            screen.feed(b"".join(stream(chance)))
            assert pictures.draw(screen.snapshot(1), "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "permission",
    [
        *(
            b"\x1b[?40h",
            b"\x1b[?040h",
            b"\x1b[?7;40h",
            b"\x1b[?40;7h",
            b"\x1b[?40;3h",
            b"\x1b[?;40h",
        ),
        *(
            b"\x1b[?4\x000h",
            b"\x1b\x00[?40h",
            b"\x1b[\x07?40\x7fh",
            b"\x1b[?" + b"0" * 5000 + b"40h",
        ),
    ],
)
def test_a_program_cannot_change_the_columns_of_its_screen(permission: bytes) -> None:
    data = permission + b"\x1b[?3h"
    for cut in {0, 1, 2, 3, 4, len(permission) // 2, len(permission) - 1, len(permission)}:
        with contextlib.closing(Screen(Size(4, 10))) as screen:
            screen.feed(data[:cut])
            screen.feed(data[cut:])
            assert {len(row.cells) for row in screen.snapshot(1).rows} == {10}, cut


def test_the_permission_to_change_columns_as_a_text_is_shown() -> None:
    with contextlib.closing(Screen(Size(4, 30))) as screen:
        screen.feed(b"\x1b[?25l[?40h \x1b]2;is it?40h\x07\x1b[?1;2004h?40h")
        seen = screen.snapshot(1)
    assert seen.plain_text.strip() == "[?40h ?40h"
    assert seen.title == "is it?40h"
    assert seen.application_cursor


def test_a_mode_that_stays_set_does_not_restore_the_alternate_screen() -> None:
    with contextlib.closing(Screen(Size(4, 10))) as screen:
        screen.feed(b"primary\x1b[?1049h\x1b[?47l")
        assert not screen.alternate_screen
        with contextlib.closing(Screen(screen.size)) as copy:
            copy.feed(screen.restore())
            assert not copy.alternate_screen
