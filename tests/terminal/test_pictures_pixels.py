"""Pictures in pixels: lines meet, columns hold, colours are where they belong."""

from __future__ import annotations

import itertools
import subprocess
import sys
import unicodedata
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from telex.terminal import limits
from telex.terminal.cells import PLAIN, UNDERLINES, Cell, Cursor, Row, Size, Snapshot, Style
from telex.terminal.pictures import DARK, LIGHT, PictureTooLarge, draw, png
from telex.terminal.pictures.box_drawing import CellBox, Weight, _arms, is_drawn, shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.terminal.cells import UnderlineStyle

W, H, PAD = 9, 18, 9
BOX = [chr(point) for point in range(0x2500, 0x2580)]


def picture(*lines: list[Cell], scale: int = 1, cursor: Cursor | None = None) -> Image.Image:
    rows = tuple(Row(tuple(line)) for line in lines)
    snapshot = Snapshot(Size(len(rows), len(lines[0])), cursor or Cursor(visible=False), 1, rows)
    return Image.open(BytesIO(draw(snapshot, "png", scale=scale))).convert("RGB")


def cells(text: str, style: Style = PLAIN) -> list[Cell]:
    return [Cell(char, style) for char in text]


def wide(char: str, style: Style = PLAIN) -> list[Cell]:
    return [Cell(char, style, 2), Cell("", style, 0)]


def cell(image: Image.Image, col: int, row: int = 0, cols: int = 1, scale: int = 1) -> Image.Image:
    left, top = (PAD + col * W) * scale, (PAD + row * H) * scale
    return image.crop((left, top, left + cols * W * scale, top + H * scale))


def ink(image: Image.Image) -> int:
    """How much of an image is not the dark theme's background."""
    return sum(
        count
        for count, colour in image.getcolors(image.width * image.height)
        if colour != DARK.background
    )


@pytest.fixture
def no_other_fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with no fonts but ours."""
    caches = (png.glyph, png._face, png._font_file)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr(png, "installed_fonts", dict)
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize("line", "│┃║╽╿")
@pytest.mark.parametrize("scale", [1, 2, 3])
def test_a_vertical_line_has_no_gap_through_all_rows(line: str, scale: int) -> None:
    image = picture(*[cells(f"x{line}y")] * 4, scale=scale)
    middle = image.crop(
        ((PAD + W) * scale, PAD * scale, (PAD + 2 * W) * scale, (PAD + 4 * H) * scale)
    )
    columns = [middle.crop((x, 0, x + 1, middle.height)) for x in range(middle.width)]
    assert any(ink(column) == middle.height for column in columns)


@pytest.mark.parametrize("line", "─━═╼╾")
def test_a_horizontal_line_has_no_gap_through_all_columns(line: str) -> None:
    image = picture(cells(line * 6), scale=2).crop(
        (2 * PAD, 2 * PAD, 2 * (PAD + 6 * W), 2 * (PAD + H))
    )
    lines = [image.crop((0, y, image.width, y + 1)) for y in range(image.height)]
    assert any(ink(line) == image.width for line in lines)


STRAIGHT = {
    ("UP", Weight.LIGHT): "│", ("UP", Weight.HEAVY): "┃", ("UP", Weight.DOUBLE): "║",
    ("LEFT", Weight.LIGHT): "─", ("LEFT", Weight.HEAVY): "━", ("LEFT", Weight.DOUBLE): "═",
}  # fmt: skip


def edge(char: str, side: str, scale: int) -> bytes:
    mask = png.glyph(char, 1, False, False, scale).mask
    width, height = mask.size
    box = {
        "UP": (0, 0, width, 1),
        "DOWN": (0, height - 1, width, height),
        "LEFT": (0, 0, 1, height),
        "RIGHT": (width - 1, 0, width, height),
    }[side]
    return mask.crop(box).tobytes()


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_every_arm_of_every_box_character_meets_its_neighbour_and_no_other_edge_has_ink(
    scale: int,
) -> None:
    for char in BOX:
        words = unicodedata.name(char).split()
        if {"DASH", "DIAGONAL"} & set(words):
            continue
        arms = _arms(words)
        for side in ("UP", "DOWN", "LEFT", "RIGHT"):
            straight = STRAIGHT.get(("UP" if side in ("UP", "DOWN") else "LEFT", arms.get(side)))
            expected = (
                edge(straight, side, scale) if straight else bytes(len(edge(char, side, scale)))
            )
            assert edge(char, side, scale) == expected, f"{char} {side}"


def test_names_are_read_right_where_weights_are_mixed() -> None:
    heavy, light = Weight.HEAVY, Weight.LIGHT
    named = {char: _arms(unicodedata.name(char).split()) for char in "┡╼╪┼"}
    assert named["┡"] == {"DOWN": light, "RIGHT": heavy, "UP": heavy}
    assert named["╼"] == {"LEFT": light, "RIGHT": heavy}
    assert named["╪"] == dict.fromkeys(("UP", "DOWN"), light) | dict.fromkeys(
        ("LEFT", "RIGHT"), Weight.DOUBLE
    )
    assert named["┼"] == dict.fromkeys(("UP", "DOWN", "LEFT", "RIGHT"), light)


def test_the_inside_of_a_double_line_stays_open_and_a_single_line_goes_through() -> None:
    def centre(char: str) -> object:
        return png.glyph(char, 1, False, False, 2).mask.getpixel((W, H))

    assert [centre(char) for char in "╔╗╚╝╠╣╦╩╬║═"] == [0] * 11
    assert [centre(char) for char in "╫╪╥╤"] == [255, 255, 255, 0]


def test_a_block_fills_its_cell_and_a_shade_a_part_of_it() -> None:
    image = picture(cells("█▒▀▐"))
    assert cell(image, 0).getcolors() == [(W * H, DARK.foreground)]
    [(count, colour)] = cell(image, 1).getcolors()
    assert count == W * H
    assert all(
        abs(got - (fore + back) / 2) <= 1
        for got, fore, back in zip(colour, DARK.foreground, DARK.background, strict=True)
    )
    assert ink(cell(image, 2)) == W * H // 2
    assert cell(image, 3).getpixel((W - 1, 0)) == DARK.foreground


def test_every_drawn_character_but_the_empty_braille_has_ink() -> None:
    drawn = [chr(point) for point in range(0x110000) if is_drawn(chr(point)) and point != 0x2800]
    assert len(drawn) == 160 + 255 + 60 + 4 + len("⎺⎻⎼⎽⎿⏴⏵⏶⏷⭘")
    assert all(shapes(char, CellBox(W, H, 1)) for char in drawn)
    assert len({shapes(char, CellBox(2 * W, 2 * H, 2)) for char in drawn}) == len(drawn), (
        "no two alike"
    )


@pytest.mark.parametrize(
    ("style", "front", "back"),
    [
        (Style("idx:1", "idx:2"), DARK.ansi[1], DARK.ansi[2]),
        (Style("idx:1", bold=True), DARK.ansi[9], DARK.background),
        (Style("idx:196", "idx:244"), (255, 0, 0), (128, 128, 128)),
        (Style("rgb:1:2:3", "rgb:250:240:230"), (1, 2, 3), (250, 240, 230)),
        (Style("idx:1", "idx:2", inverse=True), DARK.ansi[2], DARK.ansi[1]),
        (Style(inverse=True), DARK.background, DARK.foreground),
    ],
)
def test_colours_are_those_of_the_style(
    style: Style, front: tuple[int, int, int], back: tuple[int, int, int]
) -> None:
    image = cell(picture(cells("▄", style)), 0)
    assert image.getpixel((4, 2)) == back
    assert image.getpixel((4, 15)) == front


def test_dim_is_nearer_to_the_background_and_invisible_shows_nothing() -> None:
    bright, dim, hidden = (
        cell(picture(cells("█", style)), 0).getpixel((4, 4))
        for style in (PLAIN, Style(dim=True), Style(invisible=True, underline=True))
    )
    assert DARK.background[0] < dim[0] < bright[0]
    assert hidden == DARK.background


def test_bold_has_more_ink_and_italics_lean() -> None:
    plain, bold = (
        cell(picture(cells("l", style), scale=4), 0, scale=4) for style in (PLAIN, Style(bold=True))
    )
    assert ink(bold) > ink(plain) * 1.1
    leaning = png.glyph("|", 1, False, True, 4).mask
    top, bottom = (leaning.crop((0, y, leaning.width, y + 8)).getbbox() for y in (20, 52))
    assert top is not None
    assert bottom is not None
    assert top[0] > bottom[0] + 4


def test_underline_and_strikethrough_go_on_under_blanks() -> None:
    image = picture(cells("a b", Style(underline=True)), cells("a b", Style(strikethrough=True)))
    for row, y in ((0, 16), (1, 9)):
        line = image.crop((PAD, PAD + row * H + y, PAD + 3 * W, PAD + row * H + y + 1))
        assert line.getcolors() == [(3 * W, DARK.foreground)]


def line_under(style: UnderlineStyle, scale: int = 2) -> Image.Image:
    look = Style(underline=True, underline_style=style, underline_color="idx:1")
    image = picture(cells("   ", look), scale=scale)
    return image.crop((PAD * scale, PAD * scale, (PAD + 3 * W) * scale, (PAD + H) * scale))


def test_underlines_look_like_their_style_and_have_their_own_colour() -> None:
    drawn = {style: line_under(style) for style in UNDERLINES}
    assert len({image.tobytes() for image in drawn.values()}) == 5
    for image in drawn.values():
        assert DARK.ansi[1] in {colour for _, colour in image.getcolors(4096)}
    heights = {
        style: [y for y in range(2 * H) if ink(image.crop((0, y, image.width, y + 1)))]
        for style, image in drawn.items()
    }
    assert heights["single"] == heights["dotted"] == heights["dashed"] == [32, 33]
    assert heights["double"] == [30, 31, 34, 35]
    assert heights["curly"][0] < 30
    assert heights["curly"][-1] == 35
    gaps = {
        style: drawn[style].crop((0, 32, 6 * W, 33)).tobytes() for style in ("dotted", "dashed")
    }
    background = bytes(DARK.background)
    assert gaps["dotted"].count(background) == 9 * 3
    assert gaps["dashed"].count(background) == 3 * 6
    curls = {
        drawn["curly"].crop((2 * W * col, 0, 2 * W * (col + 1), 2 * H)).tobytes()
        for col in range(3)
    }
    assert len(curls) == 1, "a curl ends where the next begins"


def test_the_underline_of_a_style_without_a_colour_has_that_of_the_text() -> None:
    image = picture(cells(" ", Style("idx:2", underline=True)))
    assert cell(image, 0).getpixel((4, 16)) == DARK.ansi[2]


@pytest.mark.usefixtures("no_other_fonts")
@pytest.mark.parametrize("char", "日한😀")
def test_a_wide_character_takes_two_cells_and_its_neighbours_stay_in_place(char: str) -> None:
    image = picture([*cells("|"), *wide(char), *cells("|")], scale=2)
    assert ink(cell(image, 1, scale=2)) > 0
    assert ink(cell(image, 2, scale=2)) > 0
    assert cell(image, 0, scale=2).tobytes() == cell(image, 3, scale=2).tobytes()


def drawn(text: str, cells: int = 2) -> bytes:
    """The image of a cell's text, in one colour or its own."""
    found = png.glyph(text, cells, False, False, 2)
    return (found.picture or found.mask).tobytes()


def boxed(char: str, cells: int = 2) -> bytes:
    mask = Image.new("L", (cells * W * 2, H * 2))
    png._numbered(mask, char, 2)
    return mask.tobytes()


@pytest.mark.usefixtures("no_other_fonts")
def test_chinese_japanese_and_korean_are_drawn_without_fonts_of_the_machine() -> None:
    common = [
        *[
            bytes(pair).decode("gb2312")
            for pair in itertools.product(range(0xB0, 0xD7), range(0xA1, 0xFA))
        ],
        *"繁體中文電腦與門戶，。！？「」、・",
        *map(chr, range(0x3041, 0x3095)),
        *map(chr, range(0x30A1, 0x30F7)),
        *map(chr, range(0xAC00, 0xD7A4, 7)),
    ]
    face = png._face(png.CJK, 8)
    assert [char for char in common if not face.has(char)] == []
    for char in "漢かカ한，":
        assert drawn(char) != boxed(char)
    assert drawn("ｱ", 1) != boxed("ｱ", 1), "narrow kana"
    assert len({drawn(char) for char in "나너노"}) == 3


@pytest.mark.usefixtures("no_other_fonts")
@pytest.mark.parametrize(
    "text", ["😀", "❤️", "👨‍👩‍👧", "🏳️‍🌈", "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👍🏽", "1️⃣", "🇩"]
)  # fmt: skip
def test_an_emoji_or_a_sequence_of_them_is_one_image_in_colour(text: str) -> None:
    found = png.glyph(text, 2, False, False, 2)
    assert found.picture is not None
    assert found.picture.size == (4 * W, 2 * H)
    colours = found.picture.convert("RGB").getcolors(4 * W * H * 4)
    assert any(max(colour) - min(colour) > 60 for _, colour in colours)


def test_emoji_that_differ_in_tone_or_flag_differ_and_an_unknown_sequence_is_its_beginning() -> (
    None
):
    assert len({drawn(text) for text in ("👍", "👍🏻", "👍🏿", "🇩🇪", "🇯🇵")}) == 5
    assert drawn("👩🏽‍💻") == drawn("👩‍💻"), "without its tone"
    assert drawn("😀‍🚀") == drawn("😀‍") == drawn("😀")
    assert drawn("🚀́‍") == drawn("🚀")


def test_a_character_that_is_an_emoji_only_on_request_stays_a_letter() -> None:
    for text in ("❤", "❤️", "⚠"):
        assert png.glyph(text, 1, False, False, 2).picture is None
    assert png.glyph("😀︎", 2, False, False, 2).picture is not None, "no font has it as a letter"
    assert png.glyph("〰", 2, False, False, 2).mask.getbbox() is not None
    assert png.glyph("🌡", 1, False, False, 2).picture is not None, "smaller, as no font has it"


def test_every_listed_emoji_has_its_place_on_a_sheet() -> None:
    listed = png._listed()
    last = png._sheet(max(found.number for found in listed.values()) // 64)
    assert len(listed) == 2560
    assert last.size == (png.COLUMNS * png.SIZE, png.ROWS * png.SIZE)


def test_plain_text_loads_no_other_font_and_no_emoji() -> None:
    code = (
        "from telex.terminal.pictures import draw, png\n"
        "from telex.terminal.cells import *\n"
        "draw(Snapshot(Size(1, 9), Cursor(), 1, (Row.of('aé→┌█⣿x', 9),)), 'png')\n"
        "assert png._font_file.cache_info().currsize == 1\n"
        "assert png.installed_fonts.cache_info().currsize == 0\n"
        "assert png._listed.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.usefixtures("no_other_fonts")
def test_a_character_that_no_font_has_is_a_box_with_its_own_number() -> None:
    image = picture(cells("ก\U000f1234ข"), scale=2)
    boxes = [cell(image, col, scale=2).tobytes() for col in range(3)]
    assert all(ink(cell(image, col, scale=2)) > 20 for col in range(3))
    assert len(set(boxes)) == 3


def test_the_fonts_of_this_machine_are_used_where_ours_has_nothing(
    monkeypatch: pytest.MonkeyPatch, no_other_fonts: None
) -> None:
    ours = cell(picture(wide("日")), 0, cols=2).tobytes()
    path = png.Path(png.__file__).parent / "fonts" / png.CJK
    monkeypatch.setattr(png, "CJK", png.LETTERS)
    png.glyph.cache_clear()
    boxed = cell(picture(wide("日")), 0, cols=2).tobytes()
    monkeypatch.setattr(png, "installed_fonts", lambda: {"unifont.ttf": path})
    png.glyph.cache_clear()
    assert boxed != ours == cell(picture(wide("日")), 0, cols=2).tobytes()


def test_fonts_are_found_by_name_in_any_folder_below(
    monkeypatch: pytest.MonkeyPatch, tmp_path: png.Path
) -> None:
    font = tmp_path / "truetype" / "wqy" / "wqy-microhei.ttc"
    font.parent.mkdir(parents=True)
    font.touch()
    (tmp_path / "unknown.ttf").touch()
    monkeypatch.setattr(png, "DIRECTORIES", (str(tmp_path), "/nowhere"))
    assert png.installed_fonts.__wrapped__() == {"wqy-microhei.ttc": font}


def test_marks_are_laid_over_their_letter_and_never_leave_its_cell() -> None:
    image = picture([Cell(" "), Cell("x" + "\u0302" * 500), Cell(" ")], [Cell(" ")] * 3)
    plain = picture(cells(" x "), cells("   "))
    assert ink(cell(image, 1)) > ink(cell(plain, 1))
    assert ink(image) == ink(cell(image, 1))


def test_letters_keep_their_whole_height() -> None:
    for point in (*range(0x21, 0x7F), *range(0xC0, 0x180), *range(0x410, 0x450)):
        char = chr(point)
        whole = png._face("DejaVuSansMono.ttf", 30).font.getmask(char).getbbox()
        drawn = png.glyph(char, 1, False, False, 2).mask.getbbox()
        assert drawn is not None
        assert drawn[3] - drawn[1] == whole[3] - whole[1], char


def test_the_cursor_covers_its_cell() -> None:
    image = picture(cells("a█"), cursor=Cursor(0, 1))
    assert cell(image, 1).getcolors() == [(W * H, DARK.background)], "a full block, in reverse"
    image = picture(cells("a "), cursor=Cursor(0, 1))
    assert cell(image, 1).getcolors() == [(W * H, DARK.cursor)]


def test_a_picture_is_as_large_as_its_screen_and_scale_say() -> None:
    assert picture(*[cells("x" * 80)] * 24, scale=2).size == (2 * (80 * 9 + 18), 2 * (24 * 18 + 18))


def test_a_light_picture_is_light() -> None:
    snapshot = Snapshot(Size(1, 1), Cursor(visible=False), 1, (Row.of("", 1),))
    image = Image.open(BytesIO(draw(snapshot, "png", theme=LIGHT)))
    assert image.getpixel((0, 0)) == LIGHT.background


def test_a_picture_with_too_many_pixels_is_refused_before_it_is_drawn() -> None:
    huge = Snapshot(Size(1000, 1000), Cursor(), 1, (Row.of("x", 1000),) * 1000)
    with pytest.raises(PictureTooLarge, match=f"{limits.PICTURE_PIXELS}.*svg"):
        draw(huge, "png", scale=1)
    assert len(draw(huge, "svg")) < 1_000_000
