"""Pictures: the same screen as text, ANSI, SVG and HTML, whatever a program put on it.

The files in `golden/` are what `draw` gave when a person last looked at them. After a change that is
meant, look again and write them anew: TELEX_GOLDEN=1 pytest tests/terminal/test_pictures.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telex.terminal.cells import (
    BLANK,
    PLAIN,
    UNDERLINES,
    Cell,
    Cursor,
    Region,
    Row,
    Size,
    Snapshot,
    Style,
)
from telex.terminal.pictures import (
    DARK,
    LIGHT,
    Kind,
    NoSuchRegion,
    UnknownColour,
    UnknownPictureKind,
    crop,
    draw,
    kind_of,
)
from telex.terminal.pictures.layout import inert
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from telex.terminal.cells import UnderlineStyle

SVG = "{http://www.w3.org/2000/svg}"
GOLDEN = Path(__file__).parent / "golden"


def row(*parts: tuple[str, Style] | str, cols: int = 20) -> Row:
    cells: list[Cell] = []
    for part in parts:
        text, style = (part, PLAIN) if isinstance(part, str) else part
        for char in text:
            width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
            cells += [Cell(char, style, width), *[Cell("", style, 0)] * (width - 1)]
    return Row((*cells, *[BLANK] * (cols - len(cells))))


def screen_of(*rows: Row, cursor: Cursor | None = None, title: str | None = None) -> Snapshot:
    size = Size(len(rows), len(rows[0].cells))
    return Snapshot(size, cursor or Cursor(visible=False), 1, rows, title=title)


def read(snapshot: Snapshot) -> str:
    return "\n".join(inert(line) for line in snapshot.plain_text.split("\n"))


def svg_of(snapshot: Snapshot, **options: bool) -> ElementTree.Element:
    return ElementTree.fromstring(draw(snapshot, "svg", **options))


def svg_text(snapshot: Snapshot) -> str:
    """The text of an SVG, each row on the line that its height says."""
    lines = [""] * snapshot.size.rows
    for element in svg_of(snapshot).iter(f"{SVG}text"):
        lines[(int(element.attrib["y"]) - 14) // 18] = "".join(element.itertext())
    return "\n".join(lines).rstrip("\n")


class _Page(HTMLParser):
    """Its text in <pre>, and every tag and attribute it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags, self.inside = "", set[str](), False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags |= {tag, *(name for name, _ in attrs)}
        self.inside |= tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag != "pre"

    def handle_data(self, data: str) -> None:
        self.text += data if self.inside else ""


def html_text(snapshot: Snapshot) -> str:
    lines = _Page(draw(snapshot, "html").decode()).text.split("\n")
    return "\n".join(line.rstrip(" ") for line in lines)


DEMO = screen_of(
    row("plain ", ("bold", Style(bold=True)), " ", ("red", Style("idx:1")), "!"),
    row("┌────┬────┐ ", ("╔═╗", Style("idx:4"))),
    row("│日本│ é‖ │ ", ("╚═╝", Style("idx:4"))),
    row("└────┴────┘ ", ("▀▄█░", Style("rgb:250:120:0", "idx:236"))),
    row(("a<b&c>", Style(underline=True, italic=True)), "  ", ("gone", Style(invisible=True))),
    row(("dim", Style("idx:2", dim=True)), ("inverse", Style(inverse=True, strikethrough=True))),
    cursor=Cursor(0, 14),
    title="a <title>",
)

words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Mn", "Me", "Mc"))
    | st.sampled_from("│─┌╬█░⣿ <>&\"' ab日本é😀"),
    max_size=8,
)
colours = st.sampled_from(["default", "idx:1", "idx:9", "idx:16", "idx:255", "rgb:1:2:3"])
flags = st.fixed_dictionaries(
    {},
    optional={
        name: st.just(True)
        for name in (
            "bold", "dim", "italic", "inverse", "strikethrough", "blink", "invisible",
        )
    },
)  # fmt: skip
lines = st.fixed_dictionaries(
    {"underline": st.just(True), "underline_style": st.sampled_from(UNDERLINES)},
    optional={"underline_color": colours},
)
styles = st.builds(
    lambda f, b, on, line: Style(f, b, **on, **line), colours, colours, flags, st.just({}) | lines
)
rows = st.lists(st.tuples(words, styles), max_size=4).map(lambda parts: row(*parts, cols=64))
screens = st.lists(rows, min_size=1, max_size=4).map(lambda many: screen_of(*many))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "text"),
        ("a.ans", "ansi"),
        ("a.ansi", "ansi"),
        ("a.svg", "svg"),
        ("a.HTML", "html"),
        ("a/b.png", "png"),
    ],
)
def test_the_suffix_of_a_file_selects_the_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind == kind_of(Path(name))


@pytest.mark.parametrize("name", ["a.gif", "png", ""])
def test_an_unknown_suffix_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownPictureKind, match=r"use \.png, \.svg, \.html, \.ansi, \.ans, \.txt"):
        kind_of(name)


@pytest.mark.parametrize("kind", ["svg", "html", "ansi"])
def test_pictures_equal_the_reviewed_ones(kind: Kind) -> None:
    path, drawn = GOLDEN / f"demo.{kind}", draw(DEMO, kind)
    if os.environ.get("TELEX_GOLDEN") == "1":
        path.write_bytes(drawn)
    assert drawn == path.read_bytes()


@given(screens)
def test_text_has_the_visible_characters(snapshot: Snapshot) -> None:
    assert draw(snapshot, "text").decode() == read(snapshot) + "\n"


@given(screens)
def test_an_svg_holds_the_same_text(snapshot: Snapshot) -> None:
    assert svg_text(snapshot) == read(snapshot)


@given(screens)
@example(screen_of(row("a\xa0")))
def test_a_page_holds_the_same_text(snapshot: Snapshot) -> None:
    assert html_text(snapshot) == read(snapshot)


def seen(cells: tuple[Cell, ...]) -> list[tuple[str, Style, int]]:
    return [(cell.text or " " * cell.width, cell.style, cell.width) for cell in cells]


simple = st.text("ab <─日", max_size=8)
plain_rows = st.lists(st.tuples(simple, styles), max_size=4).map(lambda p: row(*p, cols=64))


@given(st.lists(plain_rows, min_size=1, max_size=3).map(lambda many: screen_of(*many)))
def test_ansi_shows_the_same_screen_on_another_terminal(snapshot: Snapshot) -> None:
    other = Screen(Size(snapshot.size.rows + 1, snapshot.size.cols))
    other.feed(draw(snapshot, "ansi").replace(b"\n", b"\r\n"))
    for drawn, shown in zip(snapshot.rows, other.rows(), strict=False):
        assert seen(shown.cells) == seen(drawn.cells)
    other.close()


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["plain"], b"plain\n"),
        ([("a", Style(bold=True)), "b"], b"\x1b[1ma\x1b[0mb\n"),
        ([("a", Style("idx:1")), ("b", Style("idx:1", bold=True))], b"\x1b[31ma\x1b[1mb\x1b[0m\n"),
        ([("a", Style("idx:9", "idx:200"))], b"\x1b[91;48;5;200ma\x1b[0m\n"),
        (
            [("a", Style("idx:3", bold=True, dim=True)), ("b", Style("idx:3", dim=True))],
            b"\x1b[1;2;33ma\x1b[22;2mb\x1b[0m\n",
        ),
        (
            [
                ("a", Style(underline=True, underline_style="curly", underline_color="idx:1")),
                ("b", Style(underline=True, underline_style="curly", underline_color="rgb:1:2:3")),
                ("c", Style(underline=True)),
                ("d", Style(bold=True)),
            ],
            b"\x1b[4:3;58:5:1ma\x1b[58:2::1:2:3mb\x1b[0;4mc\x1b[0;1md\x1b[0m\n",
        ),
    ],
)
def test_ansi_writes_only_changes(parts: list[str], expected: bytes) -> None:
    assert draw(screen_of(row(*parts)), "ansi") == expected


def test_rows_of_colour_are_kept_in_ansi_and_blank_rows_at_the_end_are_not() -> None:
    coloured = row((" " * 20, Style(background="idx:2")))
    assert draw(screen_of(row(""), coloured, row("")), "ansi").count(b"\n") == 2


HOSTILE = [
    "<script>alert(1)</script>",
    "]]></text><a href='javascript:x'>",
    "-->\"'&lt;&#0;</pre></style><img onerror=x>",
    "\x1b[31m\x1b]0;x\x07\x9b1m\x00\r\n",
    "\u202eevil\u2066\u2028",
    "\ud800\uffff\ufffe",
    "e" + "\u0301" * 500,
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("at_once", [False, True])
def test_printed_markup_has_no_effect_in_a_picture(text: str, at_once: bool) -> None:
    """Each character in its own cell, and all of them as one cell's text."""
    cells = (Cell(text),) if at_once else tuple(Cell(char) for char in text)
    snapshot = screen_of(Row((*cells, BLANK)), title=text)
    plain = draw(snapshot, "text").decode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\u2066]", plain)
    assert b"\x1b" not in draw(snapshot, "ansi")
    assert {element.tag for element in svg_of(snapshot).iter()} <= {
        SVG + tag for tag in ("svg", "g", "rect", "path", "text", "tspan")
    }
    page = _Page(draw(snapshot, "html").decode())
    assert page.tags.isdisjoint({"script", "img", "a", "onerror", "href"})
    assert draw(snapshot, "png").startswith(b"\x89PNG")


def test_a_page_may_run_and_load_nothing() -> None:
    assert b"default-src 'none'" in draw(DEMO, "html")


def test_a_page_is_also_well_formed_xml_with_its_title() -> None:
    page = ElementTree.fromstring(draw(DEMO, "html").decode().removeprefix("<!DOCTYPE html>"))
    assert page.findtext("head/title") == "a <title>"


def test_a_cells_marks_are_bounded() -> None:
    drawn = draw(screen_of(Row((Cell("e" + "\u0301" * 500),))), "svg").decode()
    assert 0 < drawn.count("\u0301") <= 32


def test_each_piece_of_svg_text_stands_at_its_column_with_its_width() -> None:
    tree = svg_of(screen_of(row("ab", ("cd", Style(bold=True)), "日x    →y")))
    spans = [
        (span.text, span.get("x"), span.get("textLength"), span.get("text-anchor"))
        for span in tree.iter(f"{SVG}tspan")
    ]
    assert spans == [
        ("ab", "0", "18", None),
        ("cd", "18", "18", None),
        ("日", "45", None, "middle"),
        ("x", "54", "9", None),
        ("→", "103.5", None, "middle"),
        ("y", "108", "9", None),
    ]


def test_lines_are_paths_in_an_svg_and_a_frames_side_is_one_stroke_over_its_cells() -> None:
    tree = svg_of(screen_of(row("──────")))
    paths = [path.attrib["d"] for path in tree.iter(f"{SVG}path")]
    assert paths == ["M0 8H54V9H0Z"]
    assert [span.get("fill-opacity") for span in tree.iter(f"{SVG}tspan")] == ["0"]


def test_a_character_of_uncertain_width_is_boxed_in_a_page() -> None:
    page = draw(screen_of(row("日→─")), "html").decode()
    assert '<i style="width:2ch;">日</i><i style="width:1ch;">→</i>' in page
    assert '<i style="width:1ch;color:transparent">─</i>' in page


def test_the_cursor_is_drawn_where_it_is_seen() -> None:
    where = screen_of(row("ab日"), cursor=Cursor(0, 3))
    colour = "#e8c268"
    assert draw(where, "svg").decode().count(colour) == 1
    assert "M18 0H36V18H18Z" in draw(where, "svg").decode(), "on both cells of a wide character"
    assert colour not in draw(where, "svg", cursor=False).decode()
    assert colour not in draw(screen_of(row("ab")), "svg").decode(), "hidden"
    past = screen_of(row("ab", cols=2), cursor=Cursor(0, 2))
    assert "M9 0H18V18H9Z" in draw(past, "svg").decode(), "past the end it waits on the last cell"


def test_themes_differ_and_the_256_colours_do_not() -> None:
    snapshot = screen_of(row(("x", Style("idx:196", "idx:250"))))
    for theme in (DARK, LIGHT):
        drawn = draw(snapshot, "svg", theme=theme).decode()
        assert "#ff0000" in drawn
        assert "#bcbcbc" in drawn
    assert draw(snapshot, "html", theme=DARK) != draw(snapshot, "html", theme=LIGHT)


@pytest.mark.parametrize("kind", ["svg", "ansi"])
@pytest.mark.parametrize("colour", ["idx:256", "idx:-1", "rgb:1:2", "red", "idx:²", "rgb:1:2:999"])
def test_an_invalid_colour_is_named(colour: str, kind: Kind) -> None:
    for style in (Style(colour), Style(underline=True, underline_color=colour)):
        with pytest.raises(UnknownColour, match=re.escape(repr(colour))):
            draw(screen_of(row(("x", style))), kind)


@pytest.mark.parametrize("kind", ["svg", "html"])
def test_each_underline_has_its_own_shape_in_its_own_colour(kind: Kind) -> None:
    def underlined(style: UnderlineStyle) -> str:
        line = Style(underline=True, underline_style=style, underline_color="rgb:1:2:3")
        return draw(screen_of(row(("ab", line))), kind).decode()

    shapes = {
        style: re.findall('fill="#010203" d="(.+?)"', underlined(style)) for style in UNDERLINES
    }
    assert shapes["single"] == ["M0 16H18V17H0Z"]
    assert shapes["double"] == ["M0 15H18V16H0ZM0 17H18V18H0Z"]
    assert [shapes[style][0].count("M") for style in ("curly", "dashed", "dotted")] == [2, 2, 6]


def test_a_region_is_drawn_as_a_screen_of_its_own() -> None:
    part = crop(DEMO, Region(1, 1, 2, 6))
    assert draw(part, "text").decode() == "────┬─\n日本│\n"
    assert (part.size, part.cursor.visible) == (Size(2, 6), False)
    assert crop(DEMO, Region(0, 14, 1, 6)).cursor == Cursor(0, 0)
    assert draw(crop(DEMO, Region(2, 2, 1, 2)), "text") == b"\n", "two halves of wide characters"


@pytest.mark.parametrize("region", [(0, 0, 7, 1), (-1, 0, 1, 1), (0, 0, 0, 1), (0, 20, 1, 1)])
def test_a_region_that_is_not_on_the_screen_is_refused(region: tuple[int, int, int, int]) -> None:
    with pytest.raises(NoSuchRegion, match="not within the screen of 20 columns and 6 rows"):
        crop(DEMO, Region(*region))


def test_only_png_needs_pillow() -> None:
    code = (
        "import sys; from telex.terminal.pictures import draw\n"
        "from telex.terminal.cells import *\n"
        "s = Snapshot(Size(1, 2), Cursor(), 1, (Row.of('a', 2),))\n"
        "[draw(s, kind) for kind in ('text', 'ansi', 'svg', 'html')]\n"
        "assert 'PIL' not in sys.modules; draw(s, 'png'); assert 'PIL' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
