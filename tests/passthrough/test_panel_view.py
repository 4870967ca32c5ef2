"""A program with a panel below it: drawing, input, and the terminal afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passthrough.person import BASH, TELEX, Person, at_terminal
from telex.passthrough.panel_view import (
    ENTER_VIEW,
    LEAVE_VIEW,
    InputModes,
    Painter,
    input_modes,
    mouse_for_program,
)
from telex.terminal.cells import Cursor, Size
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZE = Size(24, 80)
PANEL = 2


def viewing(directory: Path, *argv: str) -> tuple[str, ...]:
    """`telex adapter record` without a plugin: the view, and no Lua."""
    return (*TELEX, "adapter", "record", str(directory / "mine"), "--", *argv)


def shown(person: Person, size: Size = SIZE) -> list[str]:
    """Return the screen of a terminal after all output that the person saw."""
    with contextlib.closing(Screen(size)) as screen:
        screen.feed(bytes(person.seen))
        return [row.text for row in screen.rows()]


async def until(person: Person, *texts: str, size: Size = SIZE) -> str:
    """Wait until all these texts are on the person's terminal."""
    while True:
        now = "\n".join(shown(person, size))
        if all(text in now for text in texts):
            return now
        try:
            await person.grows(len(person.seen))
        except TimeoutError:
            raise AssertionError(f"no {texts} in:\n{now}") from None


# The view.


async def test_the_program_is_drawn_above_the_panel_and_gets_the_keys(tmp_path: Path) -> None:
    async with at_terminal(*viewing(tmp_path, *BASH)) as person:
        await until(person, "$", "saves this screen")
        person.type("echo $((6*7)); stty size\r")
        await until(person, "\n42", "\n22 80")
        rows = shown(person)
        assert rows[22].startswith(" mine · 0 saved ")
        assert rows[23].startswith(" fixtures go to ")
        person.type("exit 5\r")
        assert await person.leaves() == 5
        assert person.restored()


async def test_vim_runs_above_a_panel_and_gets_escape(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    file = tmp_path / "notes"
    vim = (program("vim"), "-u", "NONE", "-n", "--cmd", "set shortmess=aoOtTIF", str(file))
    async with at_terminal(*viewing(tmp_path, *vim)) as person:
        await until(person, "~", "saves this screen")
        person.type("ione\rtwo")
        await until(person, "two")
        person.type("\x1b")
        person.type("kdd:wq\r")
        assert await person.leaves() == 0
        assert file.read_text() == "two\n"
        assert person.restored()
        assert not any(shown(person))


async def test_the_terminal_is_restored_with_its_former_content(tmp_path: Path) -> None:
    asked = r"printf '\033[?1h\033=\033[?1003h\033[?1006h\033[?1004h\033[?2004h\033[?25l'; read x"
    view = " ".join(f"'{word}'" for word in viewing(tmp_path, "sh", "-c", '"$ASKED"'))
    script = f"echo before; {view}; echo after"
    async with at_terminal(
        "sh", "-c", script.replace("'\"$ASKED\"'", '"$ASKED"'), ASKED=asked
    ) as person:
        await person.sees("\x1b[?1003h")
        person.type("\r")
        assert await person.leaves() == 0
        await person.sees("after")
        assert person.restored()
        with contextlib.closing(Screen(SIZE)) as screen:
            screen.feed(bytes(person.seen))
            assert [row.text for row in screen.rows()][:2] == ["before", "after"]
            assert input_modes(screen.restore()) == InputModes()
            assert not screen.alternate_screen
            assert screen.cursor.visible


async def test_the_program_gets_its_input_modes_but_no_mouse_of_the_panel(
    tmp_path: Path,
) -> None:
    asked = r"stty -icanon -echo; printf '\033[?1h\033[?1000h\033[?1006h\033[?2004hready'; cat -v"
    async with at_terminal(*viewing(tmp_path, "sh", "-c", asked)) as person:
        await until(person, "ready")
        for mode in (b"\x1b[?1h", b"\x1b[?1000h", b"\x1b[?1006h", b"\x1b[?2004h"):
            await person.sees(mode)
        person.type("\x1b[<0;5;23M\x1b[<0;5;23m\x1b[<0;5;22Mx\x1bOA")
        now = await until(person, "^[OA")
        assert "ready^[[<0;5;22Mx^[OA" in now
        person.type("\x04\x03")
        assert await person.leaves() == 130


async def test_the_program_gets_the_new_size_without_the_panel(tmp_path: Path) -> None:
    async with at_terminal(*viewing(tmp_path, *BASH)) as person:
        await until(person, "$")
        person.pty.resize(Size(30, 100))
        await person.sees(
            "\x1b[2J", after=len(person.seen)
        )  # the terminal may have moved everything
        person.type("stty size\r")
        await until(person, "\n28 100", size=Size(30, 100))
        assert "0 saved" in shown(person, Size(30, 100))[28]
        person.pty.resize(Size(2, 20))
        person.type("exit 0\r")
        assert await person.leaves() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_a_signal_ends_the_view_and_the_program_and_restores_the_terminal(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with at_terminal(*viewing(tmp_path, *BASH)) as person:
        await until(person, "$")
        os.kill(person.pid, number)
        assert await person.leaves() == 128 + number
        assert person.restored()
        assert not person.others()
        assert bytes(person.seen).count(LEAVE_VIEW) == 1


async def test_the_last_screen_of_a_program_is_left_on_the_terminal(tmp_path: Path) -> None:
    async with at_terminal(*viewing(tmp_path, "sh", "-c", "echo went wrong; exit 4")) as person:
        assert await person.leaves() == 4
        await person.sees(LEAVE_VIEW)
        assert shown(person)[0] == "went wrong"
        assert not any("saved" in row for row in shown(person))


async def test_a_program_that_does_not_exist_leaves_no_trace(tmp_path: Path) -> None:
    async with at_terminal(*viewing(tmp_path, "no-such-program")) as person:
        assert await person.leaves() == 127
        await person.sees("no-such-program")
        assert b"\x1b[?1049h" not in person.seen


async def test_fast_output_is_drawn_at_intervals_and_to_its_end(
    tmp_path: Path,
) -> None:
    loop = asyncio.get_running_loop()
    async with at_terminal(*viewing(tmp_path, "sh", "-c", "seq 1000000; read x")) as person:
        await person.sees(ENTER_VIEW)
        began = loop.time()
        await until(person, "\n999999\n1000000", "saved")
        assert person.seen.count(b"\x1b[?2026h") < 70 * (loop.time() - began) + 5
        person.type("\r")
        assert await person.leaves() == 0


# Drawing.

PIECES = st.lists(
    st.sampled_from(
        [
            b"word ",
            "漢字 é 🙂".encode(),
            b"\r\n",
            b"\x1b[31;1m",
            b"\x1b[48;5;20m",
            b"\x1b[m",
            b"\x1b[H",
            b"\x1b[2;5H",
            b"\x1b[K",
            b"\x1b[J",
            b"x" * 20,
            b"\x1b[?1049h",
            b"\x1b[?1049l",
            b"\x1b[?25l",
            b"\x1b[L",
        ]
    ),
    max_size=12,
)


def looks(screen: Screen) -> list[list[tuple[str, object]]]:
    """Return every cell as it is seen: an empty cell is a blank."""
    return [
        [(cell.text or " ", cell.style) for cell in row.cells if cell.width]
        for row in screen.rows()
    ]


@given(st.lists(PIECES, max_size=6))
def test_the_painted_bytes_draw_the_screen(frames: list[list[bytes]]) -> None:
    size = Size(5, 20)
    with (
        contextlib.closing(Screen(size, scrollback=0)) as screen,
        contextlib.closing(Screen(size, scrollback=0)) as terminal,
    ):
        painter = Painter()
        for frame in frames:
            screen.feed(b"".join(frame))
            terminal.feed(painter.paint(screen.rows(), screen.cursor, InputModes()))
            assert looks(terminal) == looks(screen)
            assert terminal.cursor == screen.cursor


def test_only_changed_rows_are_painted() -> None:
    with contextlib.closing(Screen(SIZE)) as screen:
        painter = Painter()
        screen.feed(b"one\r\ntwo\r\n")
        assert b"one" in painter.paint(screen.rows(), screen.cursor, InputModes())
        assert painter.paint(screen.rows(), screen.cursor, InputModes()) == b""
        screen.feed(b"three")
        painted = painter.paint(screen.rows(), screen.cursor, InputModes())
        assert b"three" in painted
        assert b"one" not in painted
        painter.forget()
        assert b"one" in painter.paint(screen.rows(), screen.cursor, InputModes())


def test_modes_are_switched_once_when_they_change() -> None:
    painter = Painter()
    asked = InputModes(frozenset({1, 66, 1002, 1006}), kitty=5, other_keys=2)
    painted = painter.paint((), Cursor(), asked)
    for told in (
        b"\x1b[?1h",
        b"\x1b=",
        b"\x1b[?1002h",
        b"\x1b[?1006h",
        b"\x1b[=5;1u",
        b"\x1b[>4;2m",
    ):
        assert told in painted
    assert painter.paint((), Cursor(), asked) == b""
    assert b"\x1b[?1002l" in painter.paint((), Cursor(), InputModes())


def test_input_modes_are_read_from_the_programs_screen() -> None:
    with contextlib.closing(Screen(SIZE)) as screen:
        assert input_modes(screen.restore()) == InputModes()
        screen.feed(b"\x1b[?1h\x1b=\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[>5u\x1b[>4;2m")
        modes = frozenset({1, 66, 1002, 1004, 1006, 2004})
        assert input_modes(screen.restore()) == InputModes(modes, kitty=5, other_keys=2)
        screen.feed(b"\x1b[?1015h")  # for terminals without 1006
        assert input_modes(screen.restore()).modes == modes


@pytest.mark.parametrize(
    ("modes", "above", "below"),
    [
        ({1000, 1006}, b"\x1b[<0;9;22M\x1b[<0;9;22m", b"\x1b[<0;9;23M"),
        ({1000, 1015}, b"\x1b[32;9;22M", b"\x1b[32;9;24M"),
        ({1000}, b"\x1b[M !" + bytes([22 + 32]), b"\x1b[M !" + bytes([23 + 32])),
        ({1003, 1006, 1016}, b"", b"\x1b[<0;9;23M"),
    ],
)
def test_mouse_reports_below_the_program_are_dropped(
    modes: set[int], above: bytes, below: bytes
) -> None:
    size = Size(22, 80, 640, 352)
    said = InputModes(frozenset(modes))
    assert mouse_for_program(b"a" + above + below + b"b", said, size) == b"a" + above + b"b"
    assert mouse_for_program(below, InputModes(), size) == below


def test_a_program_that_asked_for_pixels_gets_them_whatever_the_persons_terminal_knows() -> None:
    asked = InputModes(frozenset({1003, 1016}))
    assert asked.in_cells.modes == {1003, 1006}
    click = b"\x1b[<0;5;4M\x1b[<0;5;4m"
    assert mouse_for_program(click, asked, Size(22, 80)) == b"\x1b[<0;36;56M\x1b[<0;36;56m"
    large = Size(22, 80, 80 * 10, 22 * 20)
    assert mouse_for_program(click, asked, large) == b"\x1b[<0;45;70M\x1b[<0;45;70m"
