"""Pictures from Python: of a terminal, and of any snapshot, wherever it was read."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import msgspec
import pytest
from PIL import Image

import telex
from serving import serving
from telex.automation import limits
from telex.automation.protocol import ScreenSnapshot
from telex.automation.screenshot import NoCells, screen_of
from telex.automation.session_reader import SessionReader
from telex.redaction import Redactor
from telex.terminal.cells import Size
from telex.terminal.pictures import NoSuchRegion, UnknownPictureKind
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

SHOWN = (
    "\x1b[1mbold\x1b[0m 日本 \x1b[4:3;58:5:1mcurly\x1b[0m \x1b[9mgone\x1b[0m\r\n"
    "\x1b[44m  \x1b[0m\x1b[8mhidden\x1b[0m x\u0302"
)
PROGRAM = ("printf", "%b", SHOWN.replace("\x1b", "\\033"))
KINDS = {
    ".png": b"\x89PNG",
    ".svg": b"<svg",
    ".html": b"<!DOCTYPE",
    ".ansi": b"\x1b[1m",
    ".txt": b"bold ",
}


def read(text: str, cells: str, size: Size) -> tuple[Screen, ScreenSnapshot]:
    screen = Screen(size)
    screen.feed(text.encode())
    reader = SessionReader(None, Redactor())  # type: ignore[arg-type]  # converts only
    return screen, reader.to_wire(screen.snapshot(1), cells)  # type: ignore[arg-type]


def test_the_suffix_selects_the_kind_of_a_screenshot(tmp_path: Path) -> None:
    with telex.spawn(PROGRAM, rows=3, cols=40) as term:
        term.wait_exit()
        for suffix, start in KINDS.items():
            path = tmp_path / f"screen{suffix}"
            assert term.screenshot(str(path)) == path
            assert path.read_bytes().startswith(start)
        with pytest.raises(UnknownPictureKind, match=r"screen\.gif: .* use \.png, \.svg"):
            term.screenshot(tmp_path / "screen.gif")


async def test_a_screenshot_in_an_event_loop_has_a_region_and_a_theme(tmp_path: Path) -> None:
    async with telex.spawn(PROGRAM, rows=3, cols=40) as term:
        await term.wait_exit()
        path = await term.screenshot(tmp_path / "a.png", region=(0, 5, 1, 4), theme="light")
        assert path == tmp_path / "a.png"
        image = Image.open(BytesIO(path.read_bytes()))
        assert image.size == (2 * (4 * 9 + 18), 2 * (18 + 18))
        assert image.getpixel((0, 0)) == (255, 255, 255)
        text = await term.screenshot(tmp_path / "a.txt", region=(0, 5, 1, 4))
        assert text.read_text() == "日本\n"
        with pytest.raises(NoSuchRegion, match="40 columns and 3 rows"):
            await term.screenshot(tmp_path / "a.txt", region=(2, 0, 2, 1))
        with pytest.raises(ValueError, match="'dark' or 'light'"):
            await term.screenshot(tmp_path / "a.png", theme="blue")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="from 1 to 8"):
            (await term.snapshot()).save(tmp_path / "a.png", scale=0)


def test_a_snapshot_from_a_server_is_drawn_like_one_of_this_process(tmp_path: Path) -> None:
    pictures = []
    with serving(tmp_path) as served, telex.connect(served.unix) as server:
        for start in (server.spawn, telex.spawn):
            with start(PROGRAM, rows=3, cols=40) as term:
                term.wait_exit()
                pictures.append(term.snapshot().save(tmp_path / "a.png").read_bytes())
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("cells", ["full", "runs"])
@pytest.mark.parametrize("mode", ["", "\x1b[?2027h"])
def test_a_snapshot_keeps_all_that_is_drawn(cells: str, mode: str) -> None:
    text = f"{mode}{SHOWN}日 👨\u200d👩\u200d👧 🇩🇪 ❤\ufe0f 가"
    screen, told = read(text, cells, Size(4, 50))
    sent = msgspec.json.decode(msgspec.json.encode(told), type=ScreenSnapshot)
    shown = screen_of(sent)
    assert [row.text for row in shown.rows] == [row.text for row in screen.rows()]
    for drawn, there in zip(shown.rows, screen.rows(), strict=True):
        assert [(c.text or " ", c.style, c.width) for c in drawn.cells if c.width] == [
            (c.text or " ", c.style, c.width) for c in there.cells if c.width
        ]
    screen.close()


def test_a_screen_too_large_for_cells_is_drawn_from_its_runs(tmp_path: Path) -> None:
    screen, told = read(SHOWN, "full", Size(limits.CELLS_TOLD // 1000 + 1, 1000))
    assert not told.cells
    path = told.save(tmp_path / "a.txt")
    assert path.read_text().startswith("bold 日本 curly gone\n")
    screen.close()


def test_a_snapshot_without_cells_cannot_be_drawn(tmp_path: Path) -> None:
    screen, told = read(SHOWN, "none", Size(4, 50))
    with pytest.raises(NoCells, match=r"draw one from snapshot\(\)"):
        told.save(tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
    screen.close()


def test_cells_and_runs_outside_the_screen_are_left_out() -> None:
    screen, told = read(SHOWN, "full", Size(4, 50))
    strange = [
        msgspec.structs.replace(told.cells[0], row=row, col=col) for row, col in ((99, 0), (0, -1))
    ]
    drawn = screen_of(msgspec.structs.replace(told, cells=(*told.cells, *strange)))
    assert [row.text for row in drawn.rows] == [row.text for row in screen.rows()]
    screen.close()
    screen, told = read("日x", "runs", Size(1, 5))
    assert told.runs
    endless = msgspec.structs.replace(told.runs[0], width=10**12)
    assert screen_of(msgspec.structs.replace(told, runs=(endless,))).plain_text == "日x"
    screen.close()


def test_additions_to_a_style_are_sent_only_where_they_say_something() -> None:
    screen, told = read("a\x1b[4mb\x1b[4:5;58:5:3mc", "full", Size(1, 3))
    styles = [msgspec.to_builtins(cell.style) for cell in told.cells]
    assert [len(style) for style in styles] == [7, 7, 9]
    assert (styles[2]["underline_style"], styles[2]["underline_color"]) == ("dashed", "idx:3")
    screen.close()
