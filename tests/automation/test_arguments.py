"""Wrong arguments of the public API: each is named, with what was given and what is accepted."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import telex
from telex import match
from telex.automation import arguments

CLASSES = (
    *(telex.AsyncTerminal, telex.Terminal, telex.AsyncServer, telex.Server),
    *(telex.AsyncLocator, telex.Locator, telex.AsyncAttachment, telex.Attachment),
    *(telex.AsyncAdapted, telex.Adapted),
)
FUNCTIONS = [
    *(method for kind in CLASSES for name, method in vars(kind).items() if name[0] != "_"),
    *(telex.spawn, telex.connect, telex.adapt),
    *(getattr(match, name) for name in match.__all__ if name not in ("What", "matcher")),
]
FREE = {"what", "below", "above", "right_of", "left_of"}
"""Checked where they are used; the tests below have each."""


def parameters() -> list[Any]:
    return [
        pytest.param(function, one, id=f"{function.__qualname__}-{one.name}")
        for function in FUNCTIONS
        if inspect.isfunction(function)
        for one in inspect.signature(function).parameters.values()
        if one.name != "self"
        and one.kind != one.VAR_KEYWORD
        and not (one.name in FREE and function.__name__ != "find")
        and one.name not in FREE - {"what"}
    ]


def call(function: Any, given: inspect.Parameter, value: object) -> None:
    """Call with one argument. The first one is checked before the function runs."""
    names = [*inspect.signature(function).parameters]
    first = ["x"] if "self" in names else []
    if given.kind in (given.POSITIONAL_ONLY, given.VAR_POSITIONAL):
        function(*["x"] * names.index(given.name), value)
    else:
        function(*first, **{given.name: value})


@pytest.mark.parametrize(("function", "given"), parameters())
def test_a_wrong_type_is_named_with_what_is_accepted(
    function: Any, given: inspect.Parameter
) -> None:
    with pytest.raises(TypeError, match=rf"^{given.name} must be .*; given is the Wrong"):
        call(function, given, Wrong())


class Wrong:
    pass


@pytest.mark.parametrize("function", [one for one in FUNCTIONS if inspect.isfunction(one)])
def test_an_unknown_keyword_is_answered_with_the_known_ones(function: Any) -> None:
    taken = inspect.signature(function).parameters.values()
    if any(one.kind == one.VAR_KEYWORD for one in taken):
        return  # parameters of an intent have any name
    first = [None] if "self" in inspect.signature(function).parameters else []
    known = [one.name for one in taken if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
    for name in (one for one in known if one != "self" and len(one) > 3):
        misspelt = f"{name}x"
        with pytest.raises(TypeError, match=rf"{misspelt!r}; did you mean '{name}'"):
            function(*first, **{misspelt: 1})
    with pytest.raises(TypeError, match=r"'zzzz'; (there are |it has no arguments by name)"):
        function(*first, zzzz=1)


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda term: term.wait(["a"]), TypeError, r"what must be a str, .*; given is the list"),
    (lambda term: term.wait(b"x"), TypeError, "given is the bytes"),
    (lambda term: term.wait_gone(5), TypeError, "given is the int"),
    (lambda term: term.wait(term.find("x")), TypeError, r"a locator has its own wait\(\)"),
    (lambda term: term.wait(match.any_of(["a"])), TypeError, "given is the list"),
    (lambda term: term.wait("x", -1), ValueError, "timeout must be .* 0 or more.*given is -1"),
    (lambda term: term.wait("x", float("nan")), ValueError, "timeout .* given is nan"),
    (lambda term: term.wait("x", True), TypeError, "timeout .* given is the bool"),
    (lambda term: term.wait("x", since=-1), ValueError, "since must be a mark"),
    (lambda term: term.wait_idle(-1), ValueError, "seconds must be"),
    (lambda term: term.find("x").wait(-1), ValueError, "timeout must be"),
    (lambda term: term.find("x").click(button="middel"), ValueError, "'left', 'middle' or"),
    (lambda term: term.find("x", fg=300), ValueError, "fg must be .* 0 to 255.*given is 300"),
    (lambda term: term.find("x", bg="rde"), ValueError, "'rde' is not a colour"),
    (lambda term: term.find(5), TypeError, "what must be a str, a compiled pattern"),
    (lambda term: term.find(re.compile(b"x")), TypeError, "what must be .* of str"),
    (lambda term: term.find("x", below=3), TypeError, "below must be a text.*given is the int"),
    (lambda term: term.find("x", above=(1, 2)), TypeError, "above must be .*the tuple"),
    (lambda term: term.find("x", left_of=""), ValueError, "left_of is an empty text"),
    (lambda term: term.press(["x"]), TypeError, "keys must be names of keys.*given is the list"),
    (lambda term: term.type(b"x"), TypeError, "text must be a str; given is the bytes$"),
    (
        lambda term: term.resize(rows=0, cols=80),
        ValueError,
        "rows must be .* 1 to 1000; given is 0",
    ),
    (lambda term: term.resize(rows="24", cols=80), TypeError, "rows .* given is the str '24'"),
    (lambda term: term.signal("nothing"), ValueError, "name must be 'term', .*'nothing'"),
    (lambda term: term.click(-1, 0), ValueError, "row must be"),
    (lambda term: term.click(0, 0, count=0), ValueError, "count must be"),
    (lambda term: term.act("x"), TypeError, "action"),
    (lambda term: term.record("x", format=4), ValueError, "format must be 2 or 3"),
    (lambda term: term.screenshot("x.png", theme="blue"), ValueError, "theme must be 'dark'"),
    (lambda term: term.attach(credit=0), ValueError, "credit must be"),
    (lambda term: telex.spawn(["ls", 5]), TypeError, r"^command\[1\] must be a str .*the int$"),
    (lambda term: telex.spawn(["ls", b"x"]), TypeError, r"^command\[1\] must .*the bytes$"),
    (lambda term: telex.spawn(5), TypeError, "^command must be a str, or a list of str"),
    (lambda term: telex.spawn("echo 'x"), ValueError, "^command cannot .*: no closing quotation;"),
    (
        lambda term: telex.spawn("ls", env={"A": 5}),
        TypeError,
        r"^env\['A'\] must be a str, or None",
    ),
    (
        lambda term: telex.spawn("ls", env={5: "A"}),
        TypeError,
        "^env, each name in it, must be a str",
    ),
    (lambda term: telex.spawn("cat", ["-n"]), TypeError, r"as one list: \['cat', '-n'\]"),
    (lambda term: term.resize(24, 80), TypeError, r"takes no arguments by .*: rows=, cols=$"),
    (
        lambda term: match.regex("save", re.IGNORECASE),
        TypeError,
        r"1 argument by position; for flags use",
    ),
    (
        lambda term: match.regex("save", since=re.IGNORECASE),
        TypeError,
        r"since must .*; for flags use",
    ),
    (lambda term: match.text("save", since=True), TypeError, "since must be .* the bool True"),
    (lambda term: match.changed(re.IGNORECASE), TypeError, "since must be a mark"),
    (lambda term: term.wait("save", re.IGNORECASE), TypeError, "timeout must be .*; for flags use"),
    (
        lambda term: term.wait("save", since=re.IGNORECASE),
        TypeError,
        "since must be .*; for flags use",
    ),
    (lambda term: term.wait(["a", "b"]), TypeError, r"use telex.match.any_of\("),
    (lambda term: match.any_of({"a"}), TypeError, "each on its own"),
    (lambda term: match.any_of(), ValueError, "^any_of needs at least one text"),
    (lambda term: match.all_of(), ValueError, "^all_of needs at least one text"),
    (lambda term: match.none_of(), ValueError, "^none_of needs at least one text"),
    (lambda term: match.any_of("a", ""), ValueError, "what is an empty text"),
    (lambda term: term.wait(""), ValueError, "what is an empty text"),
    (lambda term: term.wait_gone(""), ValueError, "not empty; given is ''"),
    (lambda term: match.regex(""), ValueError, "not empty"),
    (lambda term: telex.spawn("ls", size=(24, 80)), TypeError, "did you mean 'rows' and 'cols'"),
    (lambda term: telex.spawn("ls", dimensions=5), TypeError, "did you mean 'rows' and 'cols'"),
    (lambda term: telex.spawn("ls", rows="24"), TypeError, "rows must be"),
    (lambda term: telex.spawn("ls", timeout=-1), ValueError, "timeout must be"),
    (lambda term: telex.spawn("ls", width=3), TypeError, "did you mean 'cols'"),
    (lambda term: telex.spawn("ls", height=3), TypeError, "did you mean 'rows'"),
    (lambda term: term.find("x", color="red"), TypeError, "did you mean 'fg'"),
    (lambda term: term.press("x", delay=1), TypeError, "'delay'; it has no arguments by name"),
]


@pytest.fixture(scope="module")
def term() -> Any:
    with telex.spawn("cat") as term:
        yield term


@pytest.mark.parametrize(("ask", "kind", "says"), WRONG, ids=[one[2] for one in WRONG])
def test_a_wrong_argument_is_named(term: Any, ask: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says) as caught:
        ask(term)
    assert "params." not in str(caught.value)
    assert "`$" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sendline", r"Terminal' object has no attribute 'sendline'; use type\('text\\n'\)$"),
        ("send", r"use type\('text'\)$"),
        ("expect", r"use wait\('text'\)$"),
        ("nothing", "has no attribute 'nothing'$"),
    ],
)
def test_a_method_of_another_library_is_answered_with_the_one_here(
    term: Any, name: str, says: str
) -> None:
    for one in (term, term._terminal):
        with pytest.raises(AttributeError, match=says):
            getattr(one, name)
        assert not hasattr(one, name)
    with pytest.raises(AttributeError, match=says):
        getattr(object.__new__(telex.Terminal), name)  # before it is made


def test_no_method_of_another_library_is_one_of_ours() -> None:
    assert not {*arguments._ELSEWHERE} & {*dir(telex.Terminal), *dir(telex.AsyncTerminal)}


def test_a_word_of_a_command_may_be_a_path(tmp_path: Path) -> None:
    program = tmp_path / "a program.py"
    program.write_text("print('it runs')")
    with telex.spawn([Path(sys.executable), program]) as term:
        term.wait("it runs")


def test_a_secret_is_not_quoted() -> None:
    with pytest.raises(TypeError) as listed:
        telex.spawn(["ls", b"hunter2secret"])  # type: ignore[list-item]  # the mistake
    assert "hunter2secret" not in str(listed.value)
    with pytest.raises(TypeError) as caught:
        telex.spawn("ls", env={"TOKEN": b"hunter2secret"})  # type: ignore[dict-item]  # the mistake
    assert "hunter2secret" not in str(caught.value)


def test_every_name_of_the_table_is_an_argument() -> None:
    names = {
        one.name
        for function in FUNCTIONS
        if inspect.isfunction(function)
        for one in inspect.signature(function).parameters.values()
    }
    assert {name.rpartition(".")[2] for name in arguments._ACCEPTED} <= names


@pytest.mark.parametrize(
    ("pattern", "lacks"), [(r"a(?=b)", "lookaround"), (r"(?<!x)a", "lookaround"),
                           (r"(a)\1", "backreferences"), (r"(?P<n>a)(?P=n)", "backreferences")]
)  # fmt: skip
def test_a_pattern_that_re2_does_not_know_says_so_and_what_to_do(
    term: Any, pattern: str, lacks: str
) -> None:
    for use in (
        lambda: term.wait(re.compile(pattern), 1),
        lambda: term.wait(match.regex(pattern), 1),
        lambda: term.find(re.compile(pattern)),
        lambda: term.find("x", below=re.compile(pattern)),
    ):
        with pytest.raises(ValueError, match=f"RE2, which has no {lacks}: match more") as caught:
            use()
        assert repr(pattern) in str(caught.value)
        assert "`$" not in str(caught.value)


def test_one_place_sets_the_length_of_waits() -> None:
    with telex.spawn("cat", timeout=0.05) as term:
        for wait in (
            lambda: term.wait("never"),
            lambda: term.wait_exit(),
            lambda: term.wait_change(),
            lambda: term.find("never").wait(),
            lambda: term.find("never").text(),
            lambda: term.find("never").click(),
        ):
            with pytest.raises(telex.TimedOut, match=r"within \d+ ms"):
                wait()
