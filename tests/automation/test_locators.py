"""Locators: things on the screen by text, style and place."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

import telex
from serving import serving
from telex.automation import screen_search
from telex.automation.locators import AsyncLocator, Locator
from telex.automation.screen_search import Query
from telex.automation.session_reader import SessionReader
from telex.redaction import Redactor
from telex.terminal.cells import Region, Size
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

    from telex.automation.protocol import ScreenSnapshot


def shown(output: str, rows: int = 8, cols: int = 30) -> ScreenSnapshot:
    """The snapshot after a program has printed this."""
    screen = Screen(Size(rows, cols))
    screen.feed(output.replace("\n", "\r\n").encode())
    reader = SessionReader(None, Redactor())  # type: ignore[arg-type]  # it converts, and reads none
    return reader.to_wire(screen.snapshot(1), "runs")


MENU = shown(
    "\x1b[7m File   Edit             Help \x1b[m\n"
    "  Name: \x1b[4mSave as\x1b[m\n"
    "  \x1b[1mSave\x1b[m    \x1b[31mDelete\x1b[m\n"
    "  \x1b[7mSave\x1b[m    \x1b[38;2;1;2;3;48;5;4mQuit\x1b[m\n"
    "  日本 Save 語\n"
)

FOUND: list[tuple[Query, list[tuple[int, int, int, int]]]] = [
    (Query("Edit"), [(0, 8, 1, 4)]),
    (Query("Save"), [(1, 8, 1, 4), (2, 2, 1, 4), (3, 2, 1, 4), (4, 7, 1, 4)]),
    (Query("Save", {"bold": True}), [(2, 2, 1, 4)]),
    (Query("Save", {"bold": False}), [(1, 8, 1, 4), (3, 2, 1, 4), (4, 7, 1, 4)]),
    (Query("Save", {"inverse": True}), [(3, 2, 1, 4)]),
    (Query(re.compile("S.ve as"), {"underline": True}), [(1, 8, 1, 7)]),
    (Query(None, {"foreground": screen_search.colour("red")}), [(2, 10, 1, 6)]),
    (Query(None, {"foreground": screen_search.colour("#010203")}), [(3, 10, 1, 4)]),
    (Query(None, {"background": screen_search.colour("blue")}), [(3, 10, 1, 4)]),
    (Query("Save", row=3), [(3, 2, 1, 4)]),
    (Query("Save", row=-4), [(4, 7, 1, 4)]),
    (Query("Save", sides={"below": Query("Delete")}), [(3, 2, 1, 4), (4, 7, 1, 4)]),
    (Query("Save", sides={"above": Query("Delete")}), [(1, 8, 1, 4)]),
    (Query("Save", sides={"left_of": Query("Quit")}), [(3, 2, 1, 4)]),
    (Query("Quit", sides={"right_of": Region(3, 2, 1, 4)}), [(3, 10, 1, 4)]),
    (Query("日本"), [(4, 2, 1, 4)]),
    (Query("本"), [(4, 4, 1, 2)]),
    (Query("語"), [(4, 12, 1, 2)]),
    (Query(re.compile("x*")), []),
    (Query("nothing"), []),
]


@pytest.mark.parametrize(("query", "places"), FOUND, ids=str)
def test_things_are_found_by_text_style_and_place(query: Query, places: list[Any]) -> None:
    assert [one.region for one in screen_search.find_all(MENU, query)] == places


def test_a_wrapped_text_has_a_part_in_each_row_and_is_clicked_in_the_first() -> None:
    found = screen_search.find_one(shown("x" * 25 + "needle in a line"), Query("needle in a line"))
    assert found.text == "needle in a line"
    assert found.parts == (Region(0, 25, 1, 5), Region(1, 0, 1, 11))
    assert found.region == Region(0, 0, 2, 30)
    assert found.middle == (0, 27)
    wide = screen_search.find_one(shown("x" * 29 + "日本"), Query("日本"))
    assert wide.parts == (Region(1, 0, 1, 4),)


def test_an_ambiguous_query_lists_the_candidates_with_their_places_and_no_secrets() -> None:
    with pytest.raises(telex.Ambiguous) as caught:
        screen_search.find_one(MENU, Query("Save"))
    said = str(caught.value)
    assert said.startswith("find('Save') finds 4: say which with row=")
    assert "  row 3, columns 2-5: 'Save'" in said
    assert "  |   Name: Save as" in said
    twice = shown("password=hunter2secret\n" * 2)
    with pytest.raises(telex.Ambiguous) as caught:
        screen_search.find_one(twice, Query(re.compile("password.*")))
    assert "hunter2secret" not in str(caught.value)
    assert "hunter2secret" not in repr(screen_search.find_all(twice, Query("password")))


def test_what_is_not_there_is_reported_with_the_screen() -> None:
    with pytest.raises(
        telex.NotFound, match=r"find\('x', bold=True, row=2\) finds nothing(.|\n)*File"
    ):
        screen_search.find_one(MENU, Query("x", {"bold": True}, 2))
    with pytest.raises(telex.NotFound, match=r"find\('gone'\) finds nothing"):
        screen_search.find_all(MENU, Query("Save", sides={"below": Query("gone")}))


HIDE = "\x1b[?25l"
HIGHLIGHTED = [
    (f"{HIDE}one\n\x1b[7mtwo\x1b[m\nthree", "two"),
    (f"{HIDE}\x1b[7m bar \x1b[m\none\n \x1b[7m two words \x1b[m\n", "two words"),
    ("one\ntwo", None),
    ("a\n\x1b[7mone\x1b[m\n\x1b[7mtwo\x1b[m", None),
]


@pytest.mark.parametrize(("output", "item"), HIGHLIGHTED)
def test_the_highlighted_item_is_the_one_in_inverse(output: str, item: str | None) -> None:
    found = screen_search.highlighted(shown(output))
    assert (found and found.text) == item


FOCUSED = [
    (f"{HIDE}one\n\x1b[7mtwo\x1b[m\nthree", "two"),
    ("Name: you\nAge:  5", "5"),
    ("left  middle  right\x1b[8D", "middle"),
    ("│ one │ two │\x1b[4D", "two"),
    ("日本  語語\x1b[2D", "語語"),
    ("$ ", "$"),
    ("one\n\n", None),
    ("one\x1b[20C", None),
]


@pytest.mark.parametrize(("output", "item"), FOCUSED)
def test_the_focused_item_has_the_cursor(output: str, item: str | None) -> None:
    found = screen_search.focused(shown(output))
    assert (found and found.text) == item


@pytest.mark.parametrize("given", ["rde", "#12345", ""])
def test_an_unknown_colour_is_refused_with_those_that_exist(given: str) -> None:
    with pytest.raises(ValueError, match="is not a colour: use black, red"):
        screen_search.colour(given)


# On a terminal, here and on a server.


CHANGES = r"printf 'one \033[1mtwo\033[m two\n'; read x; printf '\033[2J\033[H\033[7mSave\033[m Quit'; read x; printf '\033[2Jend'; read x"


@pytest.mark.parametrize("there", [False, True])
def test_a_locator_looks_when_it_is_used_and_waits_without_polling(
    there: bool, tmp_path: Path
) -> None:
    def use(term: telex.Terminal) -> None:
        save = term.find("Save", inverse=True)
        term.find("two", bold=True).wait()
        assert save.all() == []
        assert term.find("two", right_of=term.find("two", bold=True)).region() == (0, 8, 1, 3)
        with pytest.raises(telex.Ambiguous):
            term.find("two").wait()
        with pytest.raises(telex.TimedOut, match=r"^find\('Save', inverse=True\) did not come"):
            save.wait(0.01)
        term.press("enter")
        assert save.wait().style.inverse
        assert save.text() == "Save"
        highlighted = term.highlighted()
        assert highlighted
        assert (highlighted.text, highlighted.region) == ("Save", save.region())
        assert repr(save) == "<Locator find('Save', inverse=True)>"
        with pytest.raises(telex.Refused, match=r"did not ask for the mouse.*press keys instead"):
            save.click()
        term.press("enter")
        save.wait_gone()
        focused = term.focused()
        assert focused
        assert focused.text == "end"
        with pytest.raises(telex.NotFound):
            save.get()

    if there:
        with (
            serving(tmp_path) as served,
            telex.connect(served.unix) as far,
            far.spawn(["sh", "-c", CHANGES]) as term,
        ):
            use(term)
    else:
        with telex.spawn(["sh", "-c", CHANGES]) as term:
            use(term)


async def test_a_style_that_changes_alone_is_waited_for() -> None:
    script = r"printf 'one\rtwo'; read x; printf '\033[H\033[7mtwo\033[m'; read x"
    async with telex.spawn(["sh", "-c", script]) as term:
        await term.find("two", inverse=False).wait()
        await term.type("\n")
        await term.find("two", inverse=True).wait()


def test_a_locator_is_clicked_in_its_middle_if_the_program_asked_for_the_mouse() -> None:
    script = "stty raw -echo; printf '\\033[?1000h\\033[?1006h\\033[3;5HSave'; head -c 9 | od -c"
    with telex.spawn(["sh", "-c", script]) as term:
        term.find("Save").wait()
        term.find("Save").click()
        term.wait(re.compile(r"<\s+0\s+;\s+6\s+;\s+3\s+M"))


def test_a_query_that_says_nothing_is_refused() -> None:
    with telex.spawn("cat") as term:
        asked: list[Any] = [{}, {"what": ""}, {"what": None, "row": 1}]
        for options in asked:
            with pytest.raises(ValueError, match="find needs a text, a pattern or a style"):
                term.find(**options)
        with pytest.raises(TypeError, match="int is not a text, a locator"):
            term.find("x", below=3)  # type: ignore[arg-type]  # the mistake


def test_the_blocking_locator_has_the_same_methods() -> None:
    ours = {name: method for name, method in vars(AsyncLocator).items() if name[0] != "_"}
    theirs = {name: method for name, method in vars(Locator).items() if name[0] != "_"}
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert inspect.signature(ours[name]) == inspect.signature(theirs[name])
        assert ours[name].__doc__ == theirs[name].__doc__
