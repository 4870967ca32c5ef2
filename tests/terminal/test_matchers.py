"""Matchers: what is refused, what each answers, when time matters, what is told of a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.processes.child import Exit
from telex.terminal.cells import Cursor, Row
from telex.terminal.limits import MATCHER_DEPTH, MATCHERS
from telex.terminal.waits import compiler, conditions
from telex.terminal.waits.compiler import Moment, PredicateOutcome, WaitCondition
from telex.terminal.waits.evidence import PrintedLines, printed_lines
from telex.terminal.waits.matchers import Matcher
from telex.terminal.waits.since import Mark
from telex.testing import terminal_trace


@dataclass(frozen=True)
class Printed:
    text: str = ""

    @property
    def tail(self) -> str:
        return self.text[-16384:]

    @property
    def cursor(self) -> int:
        return len(self.text)

    def since(self, cursor: int) -> str:
        return self.text[cursor:]


@dataclass(frozen=True)
class Scene:
    """A moment made by hand."""

    shown: tuple[str, ...] = ()
    transcript: Printed = Printed()
    cursor: Cursor = field(default_factory=Cursor)
    title: str | None = None
    now: float = 100.0
    began: float = 100.0
    last_activity: float = 100.0
    last_change: float = 100.0
    exit: Exit | None = None
    sequence: int = 1
    touched: list[str] = field(default_factory=list, compare=False)

    @property
    def rows(self) -> tuple[Row, ...]:
        self.touched.append("rows")
        return tuple(Row.of(line, 80) for line in self.shown)

    @property
    def text(self) -> str:
        return "\n".join(self.shown).rstrip("\n")

    @property
    def lines(self) -> tuple[PrintedLines, ...]:
        return printed_lines(self.rows, self.cursor)


def compiled(shape: object, marks: dict[object, Mark] | None = None, **more: Any) -> WaitCondition:
    """A matcher from the JSON a caller would write."""
    return compiler.compile(msgspec.convert(shape, Matcher), (marks or {}).get, **more)


def look(shape: object, scene: Scene) -> dict[str, object] | None:
    evidence = compiled(shape).look(scene)
    return None if evidence is None else evidence.render()


def one(kind: str, value: object = None) -> dict[str, object]:
    return {"type": kind} if value is None else {"type": kind, "value": value}


SCREEN = Scene(
    ("hello", "ready 42"), Printed("\x1b[1mhello\x1b[m\r\nready 42"), Cursor(1, 8), "vim"
)

MATCHING = [
    (one("contains_text", "ready"), {"kind": "contains_text", "text": "ready"}),
    (one("contains_text", "hello\nready"), {"kind": "contains_text", "text": "hello\nready"}),
    (one("contains_text", ""), {"kind": "contains_text", "text": ""}),
    (
        one("screen_regex", r"ready (\d+)"),
        {"kind": "screen_regex", "pattern": r"ready (\d+)", "capture": "42"},
    ),
    (
        one("screen_regex", r"(?P<word>r\w+) (4)(x)?"),
        {
            "kind": "screen_regex",
            "pattern": r"(?P<word>r\w+) (4)(x)?",
            "capture": "ready",
            "groups": {"1": "ready", "2": "4", "3": None, "word": "ready"},
        },
    ),
    (
        one("screen_regex", r"rea.y"),
        {"kind": "screen_regex", "pattern": "rea.y", "capture": "ready"},
    ),
    (
        one("screen_regex", r"(nothing)?ready"),
        {"kind": "screen_regex", "pattern": "(nothing)?ready", "capture": "ready"},
    ),
    (
        one("screen_regex", r"(?m)^ready.*$"),
        {"kind": "screen_regex", "pattern": "(?m)^ready.*$", "capture": "ready 42"},
    ),
    (
        one("transcript_contains", "\x1b[1mhello"),
        {"kind": "transcript_contains", "text": "\x1b[1mhello"},
    ),
    (
        one("transcript_regex", r"ready (\d)"),
        {"kind": "transcript_regex", "pattern": r"ready (\d)", "capture": "4"},
    ),
    (one("cursor_at", {"row": 1, "col": 8}), {"kind": "cursor_at", "row": 1, "col": 8}),
    (one("screen_stable", {"min_ms": 0}), {"kind": "screen_stable", "min_ms": 0}),
    (one("text_absent", "gone"), {"kind": "text_absent", "text": "gone"}),
    (one("title", "vi"), {"kind": "title", "text": "vi"}),
    (one("not", one("process_exited")), {"kind": "not"}),
    (
        one("any", [one("contains_text", "no"), one("contains_text", "lo")]),
        {"kind": "any", "matched": {"kind": "contains_text", "text": "lo"}},
    ),
    (
        one("all", [one("contains_text", "rea"), one("title", "vim")]),
        {
            "kind": "all",
            "matched": [{"kind": "contains_text", "text": "rea"}, {"kind": "title", "text": "vim"}],
        },
    ),
]


@pytest.mark.parametrize(("shape", "evidence"), MATCHING)
def test_evidence_has_the_shape_of_the_original(shape: object, evidence: dict[str, object]) -> None:
    assert look(shape, SCREEN) == evidence


@pytest.mark.parametrize(
    "shape",
    [
        one("contains_text", "Ready"),
        one("screen_regex", "^ready"),
        one("screen_regex", "hello$"),
        one("screen_regex", "hello.ready"),
        one("transcript_contains", "hello\r\n"),
        one("transcript_regex", "^ready"),
        one("cursor_at", {"row": 8, "col": 1}),
        one("screen_stable", {"min_ms": 1}),
        one("text_absent", "hello"),
        one("title", "emacs"),
        one("process_exited"),
        one("exit_code", 0),
        one("not", one("title", "vim")),
        one("any", [one("contains_text", "no"), one("process_exited")]),
        one("all", [one("contains_text", "hello"), one("process_exited")]),
    ],
)
def test_a_false_condition_does_not_match(shape: object) -> None:
    assert look(shape, SCREEN) is None


def test_a_program_without_a_title_has_none_to_match() -> None:
    assert look(one("title", ""), Scene()) is None


@pytest.mark.parametrize(
    ("ended", "code_matches"),
    [(Exit(code=3), True), (Exit(code=0), False), (Exit(signal=3), False)],
)
def test_an_exit_code_is_that_code_and_no_signal(ended: Exit, code_matches: bool) -> None:
    gone = Scene(exit=ended)
    seen = look(one("process_exited"), gone)
    assert seen == {"kind": "process_exited", "exit_code": ended.code, "signal": ended.signal}
    assert (look(one("exit_code", 3), gone) is not None) is code_matches


def test_transcript_matchers_see_the_tail_only() -> None:
    scene = Scene(transcript=Printed("begin" + "x" * 16384))
    assert look(one("transcript_contains", "begin"), scene) is None


def test_what_is_in_the_text_of_the_screen_is_found_without_its_rows() -> None:
    screen = replace(SCREEN, touched=[])
    for shape in (one("contains_text", "ready"), one("screen_regex", "ready"), one("title", "vi")):
        assert look(shape, screen)
    assert screen.touched == []


def test_a_new_prompt_at_a_rows_end_is_found_below_an_old_one_with_its_blank() -> None:
    then = Mark(1, ("$ cat",), Cursor(1, 0), transcript=7)
    scene = Scene(("$ cat", "^C", "$"), Printed("$ cat\r\n^C\r\n$ "), Cursor(2, 2))
    wait = {**one("contains_text", "$ "), "since": "m1"}
    assert compiled(wait, {"m1": then}).look(scene)
    not_yet = Scene(("$ cat", "^C", ""), Printed("$ cat\r\n^C\r\n"), Cursor(2, 0))
    assert compiled(wait, {"m1": then}).look(not_yet) is None


# Refused at once.


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing"),
        ("[a", "missing ]"),
        (r"(a)\1", "escape"),
        ("(?=a)", "perl"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_bad_pattern_is_refused_with_its_reason_and_its_place(pattern: str, reason: str) -> None:
    tree = one("any", [one("process_exited"), one("not", one("screen_regex", pattern))])
    with pytest.raises(compiler.InvalidPattern, match=re.escape(reason)) as refused:
        compiled(tree)
    assert refused.value.path == "$.matcher.value[1].value.value"
    assert refused.value.path in str(refused.value)


def test_an_unknown_mark_is_refused() -> None:
    with pytest.raises(compiler.UnknownMark, match="m7") as refused:
        compiled({"type": "contains_text", "value": "x", "since": "m7"})
    assert refused.value.path == "$.matcher.since"


def test_matchers_may_be_nested_to_a_depth() -> None:
    tree = one("process_exited")
    for _ in range(MATCHER_DEPTH - 1):
        tree = one("not", tree)
    compiled(tree)
    with pytest.raises(compiler.TooDeep, match=str(MATCHER_DEPTH)):
        compiled(one("not", tree))


def test_one_wait_has_a_bounded_number_of_matchers() -> None:
    leaves = [one("any", [one("process_exited")] * 63)] * 4
    compiled(one("all", leaves[:3]))
    assert MATCHERS < 1 + 4 * 64
    with pytest.raises(compiler.TooMany):
        compiled(one("all", leaves))


# Predicates.

ASKED = one("lua", {"plugin": "shell", "predicate": "idle", "params": {"a": 1}})


def test_a_predicate_without_plugins_is_refused() -> None:
    with pytest.raises(compiler.NoPredicates):
        compiled(ASKED)


class Says:
    """A predicate that says what it is told to, one after the other."""

    def __init__(self, *said: PredicateOutcome | None, decided: bool = True) -> None:
        self.said = list(said)
        self.decided = decided
        self.says = "says this and that"

    def look(self, moment: Moment) -> PredicateOutcome | None:
        return self.said.pop(0) if len(self.said) > 1 else self.said[0]

    def may_come(self, moment: Moment) -> bool:
        return True

    def wake_at(self, moment: Moment) -> float | None:
        return None


def test_a_predicate_gets_the_moment_and_its_result_is_evidence() -> None:
    says = Says(None, PredicateOutcome(), PredicateOutcome("e", "c"))
    waiting = compiled(ASKED, predicates=lambda asked: says)
    assert waiting.look(SCREEN) is None
    told = {"kind": "lua", "plugin": "shell", "predicate": "idle"}
    answers = [evidence.render() for _ in range(2) if (evidence := waiting.look(SCREEN))]
    assert answers == [told, told | {"evidence": "e", "capture": "c"}]
    assert waiting.allows_exit


def test_an_undecided_predicate_is_not_false() -> None:
    says = Says(None, decided=False)
    trees = [ASKED, one("any", [ASKED]), one("all", [one("contains_text", ""), ASKED])]
    waiting = [compiled(one("not", tree), predicates=lambda asked: says) for tree in trees]
    assert [one.look(SCREEN) for one in waiting] == [None, None, None]
    says.decided = True
    assert all(one.look(SCREEN) for one in waiting)


def test_a_predicate_is_not_asked_where_another_branch_decides() -> None:
    tree = one("not", one("all", [one("contains_text", "nowhere"), ASKED]))
    assert compiled(tree, predicates=lambda asked: Says(None, decided=False)).look(SCREEN)


# Time.


def test_plain_stability_counts_from_the_wait_and_from_any_output() -> None:
    stable = compiled(one("screen_stable", {"min_ms": 250}))
    quiet = Scene(now=100.0, began=100.0, last_activity=5.0, last_change=5.0)
    assert stable.look(quiet) is None
    assert stable.wake_at(quiet) == 100.25
    assert stable.look(replace(quiet, now=100.25))
    assert stable.wake_at(replace(quiet, now=100.25)) is None
    spoken = replace(quiet, now=100.3, last_activity=100.2)
    assert stable.look(spoken) is None
    assert stable.wake_at(spoken) == pytest.approx(100.45)


def test_stability_since_a_change_may_be_true_at_once_and_ignores_invisible_output() -> None:
    stable = compiled(one("screen_stable", {"min_ms": 250, "since": "change"}))
    scene = Scene(now=100.0, began=100.0, last_activity=99.99, last_change=99.7)
    assert stable.look(scene)
    assert stable.look(replace(scene, last_change=99.8)) is None


@given(
    began=st.floats(0, 1e9),
    min_ms=st.integers(0, 86_400_000),
    later=st.floats(0, 1e5),
)
def test_at_the_time_to_wake_stability_is_reached_and_before_it_is_not(
    began: float, min_ms: int, later: float
) -> None:
    stable = compiled(one("any", [one("screen_stable", {"min_ms": min_ms})]))
    scene = Scene(now=began + later, began=began, last_activity=began)
    wake = stable.wake_at(scene)
    assert (wake is None) == (stable.look(scene) is not None)
    if wake is not None:
        assert wake > scene.now
        assert stable.look(replace(scene, now=wake))


def test_a_wait_wakes_at_the_earliest_of_several_times() -> None:
    times = [one("screen_stable", {"min_ms": ms}) for ms in (500, 200, 0)]
    for kind in ("any", "all"):
        assert compiled(one("not", one(kind, times))).wake_at(Scene()) == 100.2
    assert compiled(one("process_exited")).wake_at(Scene()) is None


# The end of the program.


@pytest.mark.parametrize(
    ("shape", "allowed"),
    [
        (one("contains_text", "x"), False),
        (one("transcript_regex", "x"), False),
        (one("process_exited"), False),
        (one("exit_code", 0), False),
        (one("text_absent", "x"), False),
        (one("not", one("title", "x")), False),
        (one("screen_stable", {"min_ms": 5}), True),
        (one("any", [one("contains_text", "x"), one("screen_stable", {"min_ms": 5})]), True),
        (one("not", one("all", [one("screen_stable", {"min_ms": 5})])), True),
    ],
)
def test_after_the_exit_only_time_can_make_a_match(shape: object, allowed: bool) -> None:
    assert compiled(shape).allows_exit is allowed


# Explanations.


def explained(shape: object, scene: Scene) -> dict[str, Any]:
    return compiled(shape).explain(scene)


def test_each_branch_explains_its_failure() -> None:
    leaves = [
        one("contains_text", "nowhere"),
        one("cursor_at", {"row": 0, "col": 0}),
        one("screen_stable", {"min_ms": 250}),
        one("process_exited"),
        one("title", "emacs"),
        one("text_absent", "ready"),
        one("screen_regex", "zzz"),
        one("transcript_contains", "zzz"),
    ]
    scene = replace(SCREEN, now=100.2, last_activity=100.08)
    told = explained(one("all", leaves), scene)
    assert (told["kind"], told["matched"], told["why"]) == ("all", False, "0 of 8 are true")
    assert [branch["why"] for branch in told["branches"]] == [
        "the text is not on the screen",
        "the cursor is at row 1, column 8",
        "there was output or input 120 ms ago, 250 ms are required",
        "the program is still running",
        "the title is 'vim'",
        "the text is still on the screen, in row 1",
        "no match of the pattern is on the screen",
        "the text was not printed",
    ]
    assert not any(branch["matched"] for branch in told["branches"])


def test_an_explanation_names_the_branches_that_were_true() -> None:
    tree = one("all", [one("contains_text", "ready"), one("not", one("contains_text", "hello"))])
    first, second = explained(tree, SCREEN)["branches"]
    assert first["matched"]
    assert not second["matched"]
    assert second["branches"][0]["matched"]


def test_an_explanation_agrees_with_a_check() -> None:
    for shape, _ in MATCHING:
        assert explained(shape, SCREEN)["matched"] is True


def test_every_matcher_has_words_for_a_failed_wait_and_for_a_trace() -> None:
    tags = {str(one.__struct_config__.tag) for one in get_args(Matcher)}
    joined = {"any", "all", "not"}
    assert set(conditions._ASKED) == tags - joined
    assert set(terminal_trace._MATCHER_WORDS) == tags - joined
