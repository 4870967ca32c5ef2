"""Locators: things on the screen by text, style and place."""

from __future__ import annotations

import asyncio
import inspect
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import telex
from serving import serving
from telex.automation import client as telex_client
from telex.automation import locators, screen_search
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
    (Query(telex.match.regex("S.ve as"), {"underline": True}), [(1, 8, 1, 7)]),
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
    (Query(telex.match.regex("x*")), []),
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
        screen_search.find_one(twice, Query(telex.match.regex("password.*")))
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
FRAMED = f"{HIDE}\x1b[7m▊\x1b[m▔▔▔▔\x1b[7m▎\x1b[m\n\x1b[7m▊\x1b[m one\x1b[7m▎\x1b[m\n\x1b[7m▊"
"""Borders in inverse, as Textual draws them."""
HTOP = """\
 \x1b[42mMain\x1b[m \x1b[44mI/O\x1b[m
\x1b[42mPID  \x1b[46mCPU\x1b[42mMEM\x1b[m
\x1b[46m1    0.0    \x1b[m"""
"""Tabs, a header of two colours, and a selected row in one of them."""
HIGHLIGHTED = [
    (f"{HIDE}one\n\x1b[7mtwo\x1b[m\nthree", "two"),
    (f"{HIDE}\x1b[7m bar \x1b[m\none\n \x1b[7m two words \x1b[m\n", "two words"),
    ("one\ntwo", None),
    ("a\n\x1b[7mone\x1b[m\n\x1b[7mtwo\x1b[m", None),
    (f"{HIDE}one\n\x1b[44m> two \x1b[1mwords\x1b[m\nthree", "> two words"),  # a background alone
    (f"{HIDE}\x1b[44mone\n\x1b[46mtwo\x1b[44m\nthree\x1b[m", "two"),  # in a panel
    (f"{HIDE}\x1b[42mbar\x1b[m\none\n\x1b[44mtwo\x1b[m\n", "two"),
    (f"{HIDE}\x1b[44mone\ntwo\nthree\x1b[m", None),  # a panel without a selection
    (f"{HIDE}one\n\x1b[44mtwo\x1b[m\n\x1b[45mthree\x1b[m", None),  # which of them?
    (f"{HIDE}one\n\x1b[44mtwo\x1b[m and \x1b[44mmore\x1b[m", None),
    (f"{HIDE}\x1b[44monly\x1b[m", None),
    (f"{HIDE}one\n\x1b[7mtwo\x1b[m\n\x1b[45mthree\x1b[m", "two"),
    (f"{FRAMED}\x1b[0;44m two\x1b[0;7m▎\x1b[m\n\x1b[7m▁▁▁▁\x1b[m", "two"),
    (f"{HIDE}a\n\x1b[7m│\x1b[m one\n\x1b[7m│\x1b[m \x1b[7mtwo\x1b[m\n\x1b[7m└──\x1b[m\n", "two"),
    (f"{HIDE}a\n\x1b[44m────\x1b[m\none\n\x1b[46mtwo\x1b[m\n", "two"),  # a line alone
    (f"{HIDE}one\n\x1b[46mtwo\x1b[m\n\x1b[45m▔▔▔\n OK\n▁▁▁\x1b[m\n", "two"),  # beside a button
    (f"{HIDE}one\n\x1b[45m▔▔▔\n OK\n▁▁▁\x1b[m\n    \x1b[45mtwo \x1b[m\n", "two"),  # as a button
    (f"{HIDE}a\n\n\x1b[46mhead\x1b[m\n\x1b[44mtwo\x1b[m\n\n\n\x1b[44mOK\x1b[m\n", None),
    (f"{HIDE}a\n{HTOP}\n2\n", None),
]


@pytest.mark.parametrize(("output", "item"), HIGHLIGHTED)
def test_the_highlighted_item_is_the_one_in_inverse_or_on_a_background_of_its_own(
    output: str, item: str | None
) -> None:
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
        with pytest.raises(
            telex.Ambiguous, match=r"find\('two'\) finds 2(.|\n)*row 0, columns 8-10"
        ):
            term.find("two").wait(0.01)
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


STEPS = r"""
step() { read x; printf "$1"; }
step 'Name:\n'; step 'Name:\n'; step '\033[2J\033[HName: OK'; step '\033[2JName: OK'; read x; cat
"""


async def test_a_wait_waits_for_its_anchor_and_until_one_thing_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(locators, "SETTLED_SECONDS", 30.0)  # each change comes before, if it does
    async with telex.spawn(["sh", "-c", f"stty -echo; echo ready; {STEPS}"]) as term:
        await term.find("ready").wait()
        waits = [
            asyncio.create_task(term.find("OK", right_of="Name:").wait()),
            asyncio.create_task(term.find("OK", right_of=term.find("Name:")).text()),
            asyncio.create_task(term.find(re.compile("O."), right_of="Name:").region()),
            asyncio.create_task(term.find("OK", below="never").wait_gone()),
        ]
        await waits.pop()  # nothing fits, as its anchor is missing
        for _ in range(3):  # the anchor is missing, is there, is there twice
            assert not any(one.done() for one in waits)
            mark = await term.type("\n")
            await term.wait_change(since=mark)
        found, text, region = await asyncio.gather(*waits)
        assert (found.text, text, region[1]) == ("OK", "OK", 6)


@pytest.mark.parametrize("query", [{"what": "OK"}, {"what": "end", "right_of": "OK"}])
def test_several_things_on_a_screen_that_stands_still_are_an_error_soon(
    monkeypatch: pytest.MonkeyPatch, query: dict[str, Any]
) -> None:
    assert locators.SETTLED_SECONDS == 1.0
    monkeypatch.setattr(locators, "SETTLED_SECONDS", 0.05)
    with telex.spawn(["sh", "-c", "printf 'OK OK end'; read x"]) as term:
        term.wait("end")
        with pytest.raises(telex.Ambiguous, match=r"finds 2"):
            term.find(**query).wait(telex_client.DAY_SECONDS)
        with pytest.raises(telex.TimedOut):  # the absence may still come
            term.find("OK").wait_gone(0.2)


def test_a_pattern_of_match_is_found_and_shown_as_such() -> None:
    with telex.spawn("echo Name: Ada") as term:
        term.wait_exit()
        names = term.find(telex.match.regex(r"(?i)A\pL+$"), right_of=telex.match.regex("N.me:"))
        assert names.text() == "Ada"
        assert repr(names.get()) == "<Found 'Ada' at row 0, columns 6-8>"
        assert repr(names) == (
            "<Locator find(regex('(?i)A\\\\pL+$'), right_of=find(regex('N.me:')))>"
        )
        assert term.find(telex.match.text("Ada")).get().text == "Ada"
        for other in (telex.match.exited(), telex.match.regex("A", since=0)):
            with pytest.raises(TypeError, match="what must be a text or a pattern without since"):
                term.find(other)


def test_an_invalid_pattern_is_the_same_error_everywhere() -> None:
    said = set()
    with telex.spawn("cat") as term:
        for use in (
            lambda: telex.match.regex("a(?=b)"),
            lambda: term.wait(re.compile("a(?=b)")),
            lambda: term.wait(telex.match.any_of(re.compile("a(?=b)"))),
            lambda: term.find(re.compile("a(?=b)")),
            lambda: term.find("x", below=re.compile("a(?=b)")),
        ):
            with pytest.raises(telex.Refused) as caught:
                use()
            said.add(str(caught.value))
    assert len(said) == 1


def test_a_click_waits_for_its_target() -> None:
    script = (
        "stty raw -echo; printf '\\033[?1000h\\033[?1006hready'; head -c 1 >/dev/null; "
        "printf '\\033[3;5HSave'; head -c 9 | od -c"
    )
    with telex.spawn(["sh", "-c", script]) as term, ThreadPoolExecutor(1) as beside:
        term.wait("ready")
        click = beside.submit(term.find("Save").click)
        assert not click.done()
        term.type("x")
        click.result(60)
        term.wait(re.compile(r"<\s+0\s+;\s+6\s+;\s+3\s+M"))


MISSES: list[tuple[dict[str, Any], str]] = [
    (
        {"what": "Sawe"},
        "the text is not on the screen\n    nearest: row 0 has a similar text: 'Save",
    ),
    ({"what": "save"}, "nearest: row 0 has it in different case"),
    ({"what": "Save", "bold": True}, "row 0, columns 0-3 has the text, but with bold=False"),
    ({"what": "Save", "row": 2}, "the text is elsewhere: row 0, columns 0-3"),
    ({"what": "Save", "right_of": "Quot"}, "right_of=find('Quot'): the text is not on the screen"),
    ({"what": "Save", "right_of": "Quot"}, "nearest: row 0 has a similar text"),
    ({"what": "Save", "right_of": "Quit"}, "the text is elsewhere: row 0"),
    ({"what": "Save", "below": "twice"}, "below=find('twice') finds 2"),
    ({"what": None, "bold": True}, "no text on the screen has that style"),
]


def test_a_locator_that_times_out_has_the_nearest_miss_and_one_that_ends_names_it() -> None:
    script = "stty -echo; echo 'Save Quit'; echo twice; echo twice; read x"
    with telex.spawn(["sh", "-c", script]) as term:
        term.wait("twice\ntwice")
        for options, says in MISSES:
            with pytest.raises((telex.TimedOut, telex.Ambiguous)) as caught:
                term.find(**options).wait(0)
            said = str(caught.value)
            assert said.startswith(str(term.find(**options).query)), said
            assert says in said
            assert "  | Save Quit" in said
        with pytest.raises(telex.TimedOut, match=r"^the absence of find\('Save'\) did not come"):
            term.find("Save").wait_gone(0)
        term.type("\n")
        with pytest.raises(telex.SessionClosed, match=r"^find\('x'\) did not come: the program ex"):
            term.find("x").wait()


def test_a_program_that_never_stops_redrawing_does_not_outlast_the_deadline() -> None:
    with telex.spawn(["sh", "-c", "while :; do n=$((n+1)); printf '\\r%d' $n; done"]) as term:
        term.wait("9")
        with pytest.raises(telex.TimedOut, match=r"^find\('never'\) did not come within 50 ms"):
            term.find("never").wait(0.05)


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
        with pytest.raises(
            TypeError, match=r"below must be a text, a pattern, a locator.*given is the int"
        ):
            term.find("x", below=3)  # type: ignore[arg-type]  # the mistake


def test_the_blocking_locator_has_the_same_methods() -> None:
    ours = {name: method for name, method in vars(AsyncLocator).items() if name[0] != "_"}
    theirs = {name: method for name, method in vars(Locator).items() if name[0] != "_"}
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert inspect.signature(ours[name]) == inspect.signature(theirs[name])
        assert ours[name].__doc__ == theirs[name].__doc__
