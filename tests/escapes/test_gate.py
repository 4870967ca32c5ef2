"""Every command passes the gate, and no program gets a yes that the person did not mean."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from telex.escapes import limits
from telex.escapes.gate import (
    Gate,
    GateDecision,
    GateQuestion,
    PersonAnswer,
    Refusals,
    inert,
    width,
)
from telex.escapes.policy import Policy, RequestOrigin
from telex.escapes.protocol import EscapeCommand, Guard


class Nothing(Struct):
    pass


READ = EscapeCommand("clip:read", "Read.", Nothing, None, guard=Guard.PERSON)
WRITE = EscapeCommand("clip:write", "Write.", Nothing, None, guard=Guard.REMOTE)
BELL = EscapeCommand("term:bell", "Ring.", Nothing, 1)
VIM = RequestOrigin("local", "vim", (100, 7))
AGAIN = RequestOrigin("local", "vim", (100, 9))
"""A later process with the same number."""


class AnsweringPerson:
    """A person with prepared answers; `questions` records the questions."""

    def __init__(self, *answers: PersonAnswer) -> None:
        self.questions: list[GateQuestion] = []
        self._answers = list(answers)
        self.gone = 0
        self.at_once = self.most_at_once = 0
        self.thinking = asyncio.Event()
        self.thinking.set()

    async def ask(self, question: GateQuestion) -> PersonAnswer:
        self.questions.append(question)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.thinking.wait()
            return self._answers.pop(0)
        except asyncio.CancelledError:
            self.gone += 1
            raise
        finally:
            self.at_once -= 1


def gate(person: AnsweringPerson | None, policy: str = "") -> tuple[Gate, list[GateDecision]]:
    audit: list[GateDecision] = []
    return Gate(Policy.parse(policy), person, audit.append), audit


async def test_a_free_command_needs_no_question_and_no_audit_entry() -> None:
    person = AnsweringPerson()
    the_gate, audit = gate(person)
    assert await the_gate.allow(BELL, VIM, "")
    assert (person.questions, audit) == ([], [])


async def test_a_yes_is_valid_once() -> None:
    person = AnsweringPerson(PersonAnswer.ONCE, PersonAnswer.NOT_NOW)
    the_gate, audit = gate(person)
    assert await the_gate.allow(READ, VIM, "primary")
    assert not await the_gate.allow(READ, VIM, "primary")
    assert [(one.allowed, one.by) for one in audit] == [
        (True, "the person: once"),
        (False, "the person: no answer"),
    ]


@pytest.mark.parametrize(
    ("answer", "allowed"), [(PersonAnswer.WHILE_IT_RUNS, True), (PersonAnswer.NEVER, False)]
)
async def test_a_lasting_answer_is_for_one_command_of_one_run(
    answer: PersonAnswer, allowed: bool
) -> None:
    person = AnsweringPerson(answer, PersonAnswer.ONCE, PersonAnswer.NOT_NOW, PersonAnswer.ONCE)
    the_gate, audit = gate(person, '[[rule]]\ncommand="*"\ndecision="ask"')
    for _ in range(3):
        assert await the_gate.allow(READ, VIM, "") is allowed
    assert [one.by for one in audit[1:]] == ["the person, earlier"] * 2
    assert await the_gate.allow(WRITE, VIM, "")
    assert not await the_gate.allow(READ, AGAIN, "")
    assert len(person.questions) == 3


async def test_no_answer_lasts_for_a_program_that_cannot_be_distinguished() -> None:
    person = AnsweringPerson(PersonAnswer.WHILE_IT_RUNS, PersonAnswer.NOT_NOW)
    the_gate, _ = gate(person)
    unknown = RequestOrigin("local", "vim")
    assert not GateQuestion("clip:read", unknown, "").lasting
    assert await the_gate.allow(READ, unknown, "")
    assert not await the_gate.allow(READ, unknown, "")


async def test_a_lasting_answer_is_for_one_guard_of_a_command() -> None:
    """`term:subscribe` is one command, with different guards for mouse and keyboard."""
    person = AnsweringPerson(PersonAnswer.WHILE_IT_RUNS, PersonAnswer.NOT_NOW)
    the_gate, _ = gate(person, '[[rule]]\ncommand="clip:*"\ndecision="ask"')
    assert await the_gate.allow(WRITE, VIM, "")
    assert the_gate.settled(WRITE, VIM, "") is True
    assert not await the_gate.allow(replace(WRITE, guard=Guard.PERSON), VIM, "")


async def test_a_command_that_is_asked_each_time_has_no_lasting_answer() -> None:
    person = AnsweringPerson(PersonAnswer.WHILE_IT_RUNS, PersonAnswer.NEVER, PersonAnswer.ONCE)
    the_gate, _ = gate(person)
    file = replace(READ, each_time=True)
    assert await the_gate.allow(file, VIM, "a.txt")
    assert not await the_gate.allow(file, VIM, "b.txt")
    assert await the_gate.allow(file, VIM, "c.txt")
    assert not any("until it exits" in question.text for question in person.questions)


async def test_without_a_person_the_gate_denies() -> None:
    the_gate, audit = gate(None)
    assert not await the_gate.allow(READ, VIM, "")
    assert [(one.allowed, one.by) for one in audit] == [(False, "nobody to ask")]


async def test_a_rule_is_named_in_the_audit_also_for_a_free_command_that_is_denied() -> None:
    the_gate, audit = gate(None, '[[rule]]\ncommand="*"\norigin="local"\ndecision="deny"')
    assert not await the_gate.allow(BELL, VIM, "ring")
    assert audit == [GateDecision("term:bell", VIM, "ring", False, "rule 1")]


async def test_a_decision_without_a_question_is_settled_at_once() -> None:
    person = AnsweringPerson(PersonAnswer.NEVER)
    the_gate, audit = gate(person, '[[rule]]\ncommand="x:*"\ndecision="deny"')
    assert the_gate.settled(BELL, VIM, "") is True
    assert the_gate.settled(WRITE, VIM, "") is True
    assert the_gate.settled(EscapeCommand("x:y", "X.", Nothing, None), VIM, "") is False
    assert the_gate.settled(READ, VIM, "") is None
    assert [(one.command, one.allowed) for one in audit] == [("clip:write", True), ("x:y", False)]
    assert not await the_gate.allow(READ, VIM, "")
    assert the_gate.settled(READ, VIM, "") is False
    assert gate(None)[0].settled(READ, VIM, "") is False


async def test_questions_come_one_after_the_other_and_each_shows_its_own_request() -> None:
    person = AnsweringPerson(PersonAnswer.ONCE, PersonAnswer.NOT_NOW, PersonAnswer.ONCE)
    the_gate, _ = gate(person)
    person.thinking.clear()
    asked = [asyncio.create_task(the_gate.allow(READ, VIM, text)) for text in ("a", "b", "c")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [one.summary for one in person.questions] == ["a"]
    person.thinking.set()
    assert await asyncio.gather(*asked) == [True, False, True]
    assert [one.summary for one in person.questions] == ["a", "b", "c"]
    assert person.most_at_once == 1


async def test_a_lasting_no_answers_the_questions_behind_it_too() -> None:
    person = AnsweringPerson(PersonAnswer.NEVER)
    the_gate, _ = gate(person)
    person.thinking.clear()
    asked = [asyncio.create_task(the_gate.allow(READ, VIM, str(n))) for n in range(5)]
    await asyncio.sleep(0)
    person.thinking.set()
    assert await asyncio.gather(*asked) == [False] * 5
    assert len(person.questions) == 1


async def test_a_flood_of_questions_is_refused_and_not_shown() -> None:
    person = AnsweringPerson(*[PersonAnswer.ONCE] * 100)
    the_gate, audit = gate(person)
    person.thinking.clear()
    asked = [asyncio.create_task(the_gate.allow(READ, VIM, str(n))) for n in range(50)]
    while sum(one.done() for one in asked) < 50 - limits.QUESTIONS_WAITING - 1:
        await asyncio.sleep(0)
    person.thinking.set()
    answers = await asyncio.gather(*asked)
    assert answers.count(True) == limits.QUESTIONS_WAITING + 1
    assert [one.by for one in audit].count("too many questions at once") == 1


async def test_a_question_is_withdrawn_when_its_request_is_cancelled() -> None:
    person = AnsweringPerson(PersonAnswer.ONCE)
    the_gate, audit = gate(person)
    person.thinking.clear()
    asked = asyncio.create_task(the_gate.allow(READ, VIM, "x"))
    while not person.questions:
        await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert person.gone == 1
    assert [(one.allowed, one.by) for one in audit] == [(False, "withdrawn before an answer")]
    person.thinking.set()
    assert await the_gate.allow(READ, VIM, "x")


async def test_a_command_without_an_audit_entry_is_not_executed() -> None:
    def full(_: GateDecision) -> None:
        raise OSError("no space left")

    the_gate = Gate(Policy(), AnsweringPerson(PersonAnswer.ONCE), full)
    with pytest.raises(OSError, match="no space"):
        await the_gate.allow(READ, VIM, "")


async def test_only_so_many_answers_are_remembered() -> None:
    count = limits.ANSWERS_REMEMBERED + 1
    person = AnsweringPerson(*[PersonAnswer.WHILE_IT_RUNS] * count, PersonAnswer.NOT_NOW)
    the_gate, _ = gate(person)
    for number in range(count):
        assert await the_gate.allow(READ, RequestOrigin("local", "x", (number, 0)), "")
    assert await the_gate.allow(READ, RequestOrigin("local", "x", (1, 0)), "")
    assert not await the_gate.allow(READ, RequestOrigin("local", "x", (0, 0)), "")


# Too many refusals.


async def test_after_three_refusals_requests_are_denied_without_a_question(
    counted: Callable[[int, int], int],
) -> None:
    person = AnsweringPerson(PersonAnswer.NOT_NOW, PersonAnswer.NEVER, PersonAnswer.NOT_NOW)
    the_gate, audit = gate(person)
    commands = (READ, replace(READ, name="file:upload"), replace(READ, name="term:resize"))
    for number in range(counted(3_000, 300_000)):
        assert not await the_gate.allow(commands[number % 3], VIM, "")
    assert [question.last for question in person.questions] == [False, False, True]
    by = [decided.by for decided in audit if decided.by != "the person, earlier"]
    assert by == [*(f"the person: {word}" for word in ("no answer", "no", "no answer")), ENOUGH]


ENOUGH = "the person has refused too often"


async def test_ctrl_c_denies_all_requests_of_one_program_only() -> None:
    person = AnsweringPerson(PersonAnswer.NOTHING_OF_IT, PersonAnswer.ONCE)
    the_gate, _ = gate(person)
    for command in (READ, replace(READ, name="file:upload"), READ):
        assert not await the_gate.allow(command, VIM, "")
    assert the_gate.settled(READ, VIM, "") is False
    assert await the_gate.allow(READ, replace(VIM, program="less", run=(200, 1)), "")
    assert len(person.questions) == 2


async def test_a_yes_or_ask_again_resets_the_count() -> None:
    no, yes = PersonAnswer.NOT_NOW, PersonAnswer.ONCE
    person = AnsweringPerson(no, no, yes, no, no, no, no)
    the_gate, _ = gate(person)
    allowed = [await the_gate.allow(READ, VIM, "") for _ in range(8)]
    assert allowed == [False, False, True, *[False] * 5]
    assert len(person.questions) == 6
    the_gate.ask_again()
    assert not await the_gate.allow(READ, VIM, "")
    assert len(person.questions) == 7


async def test_permissions_of_the_person_or_a_rule_stay_valid_after_refusals() -> None:
    person = AnsweringPerson(PersonAnswer.WHILE_IT_RUNS, PersonAnswer.NOTHING_OF_IT)
    the_gate, _ = gate(person, '[[rule]]\ncommand = "term:resize"\ndecision = "allow"\n')
    assert await the_gate.allow(READ, VIM, "")
    assert not await the_gate.allow(replace(READ, name="file:upload"), VIM, "")
    assert await the_gate.allow(READ, VIM, "")
    assert await the_gate.allow(replace(READ, name="term:resize"), VIM, "")


async def test_an_exec_for_each_question_does_not_reset_the_count() -> None:
    person = AnsweringPerson(*[PersonAnswer.NOT_NOW] * 3)
    the_gate, _ = gate(person)
    for number in range(50):
        assert not await the_gate.allow(READ, RequestOrigin("local", "x", (7, number), (7, 1)), "")
    assert len(person.questions) == 3


async def test_a_new_program_for_each_question_is_stopped_for_a_minute() -> None:
    person = AnsweringPerson(*[PersonAnswer.NOT_NOW] * limits.QUESTIONS_REFUSED_A_MINUTE)
    the_gate, _ = gate(person)
    for number in range(50):
        assert not await the_gate.allow(
            READ, RequestOrigin("local", "x", (number, 1), (number, 1)), ""
        )
    assert len(person.questions) == limits.QUESTIONS_REFUSED_A_MINUTE
    refusals = Refusals()
    for second in range(limits.QUESTIONS_REFUSED_A_MINUTE):
        refusals.add(RequestOrigin("local", "x", job=(second, 1)), second)
    assert refusals.are_enough(VIM, 59.0)
    assert not refusals.are_enough(VIM, 61.0)


async def test_withdrawn_questions_count_as_refusals() -> None:
    person = AnsweringPerson()
    person.thinking.clear()
    the_gate, _ = gate(person)
    for _ in range(10):
        asking = asyncio.create_task(the_gate.allow(READ, VIM, ""))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait({asking})
    assert len(person.questions) == 3


async def test_the_number_of_remembered_programs_is_bounded() -> None:
    refusals = Refusals()
    for number in range(10_000):
        refusals.add(RequestOrigin("local", "x", job=(number, 1)), float(number), for_good=True)
        refusals.are_enough(RequestOrigin("local", "x", job=(number, 1)), float(number))
    assert len(refusals._counts) <= limits.ANSWERS_REMEMBERED
    assert len(refusals._audited) <= limits.ANSWERS_REMEMBERED


# The text of the question.


def test_the_question_names_the_program_its_origin_and_the_request() -> None:
    question = GateQuestion("clip:write", RequestOrigin("remote", "ssh", (1, 1)), 'rm "-rf"')
    assert question.text == (
        'telex: "ssh" (not on this machine) asks for clip:write "rm \\"-rf\\"". '
        "Allow? y once, a until it exits, n no, ^C no to all its requests"
    )
    assert replace(question, deed="put a text on your clipboard", last=True).text == (
        'telex: "ssh" (not on this machine) wants to put a text on your clipboard: '
        'clip:write "rm \\"-rf\\"". Allow? y once, a until it exits, n no (it may not ask again)'
    )
    assert "a until" not in GateQuestion("clip:read", RequestOrigin("remote"), "").text
    assert "an unknown program" in GateQuestion("clip:read", RequestOrigin("remote"), "").text


SPOOFS = [
    "\r\n" * 500 + "y",
    "\x1b[2J\x1b[H",
    "a\x9b31m",
    "\u202egnp.exe",
    "\u2066abc\u2069",
    "a\u200bb\u200d\ufeff\u00ad",
    "a" + "\u0301" * 100,
    "a\u0903\u20dd",
    "\u05d0\u05d1 123 \u0627",
    "\u3164\uffa0\u115f\u2800",
    "\u00a0\u2003\u3000\u2028\u2029",
    "\U000e0041\ufe0f\u20e3",
    "\ud800",
    "\U0001f1e9\U0001f1ea",
    "\U0010ffff\ue000\u0378",
    "x\x00\x7f\x85",
]


@pytest.mark.parametrize("spoof", SPOOFS, ids=ascii)
def test_characters_that_act_on_the_reader_are_escaped(spoof: str) -> None:
    shown = inert(spoof)
    assert shown.isprintable()
    for char in shown:
        assert unicodedata.category(char)[0] in "LNPSZ"
        assert unicodedata.bidirectional(char) in {"L", "EN", "ES", "ET", "CS", "ON", "WS"}
        assert not unicodedata.combining(char)
        assert char not in spoof or char.isascii()


def test_plain_words_in_left_to_right_scripts_are_shown_unchanged() -> None:
    assert inert("naïve 中文 файл ✓ 🙂 ~/x") == "naïve 中文 файл ✓ 🙂 ~/x"


@given(st.text(st.sampled_from('\\"u0a\n'), max_size=9), st.text(st.sampled_from('\\"u0a\n')))
@example("\\u000a", "\n")
@example('\\"', '"')
def test_two_different_texts_are_escaped_differently(one: str, other: str) -> None:
    assert (inert(one) == inert(other)) == (one == other)
    assert '"' not in inert(one).replace("\\\\", "").replace('\\"', "")


@given(st.text())
def test_no_text_is_wider_than_its_computed_width(text: str) -> None:
    shown = inert(text)
    assert len(shown) <= width(shown) <= 2 * len(shown)
