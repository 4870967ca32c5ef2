"""The gate: every command passes it before it does anything.

It goes by the policy; where that says "ask" it asks the person, one question after the other, and
remembers for how long they answered. With nobody to ask, the answer is no. What was decided is
written down before it holds, so that nothing happens that is not in the audit.

How a question is shown and how keys become an answer is not known here: `Person` does that, in
`host.question`. Its words are made here, because they must not be the asking program's.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from telex.escapes.command import Guard
from telex.escapes.policy import Decision, Origin, Policy, Verdict
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.escapes.command import Command


class Answer(Enum):
    ONCE = "once"
    WHILE_IT_RUNS = "until it ends"
    """For this command, as long as this run of this program lasts."""
    NEVER = "no"
    """As long as it lasts, so that nobody is worn out by being asked again."""
    NOT_NOW = "no answer"
    """Escape, time run out, a question that cannot be shown whole: no, this time."""


@dataclass(frozen=True, slots=True)
class Question:
    command: str
    origin: Origin
    summary: str
    """What exactly is to be done. A yes is to this, whole: whoever shows it must show all of it."""
    guard: Guard = Guard.PERSON
    each_time: bool = False
    wants: str = ""
    """What is asked, in words of ours, if not for the command by its name."""

    @property
    def lasting(self) -> bool:
        """Whether a lasting answer is possible: for a run that can be told from others."""
        return self.origin.run is not None and not self.each_time

    @property
    def text(self) -> str:
        """One line for the person. Each word in it is ours, or escaped and between quotes."""
        away = " (not on this machine)" if self.origin.kind == "remote" else ""
        who = f'"{inert(self.origin.program)}"' if self.origin.program else "an unknown program"
        what = f' "{inert(self.summary)}"' if self.summary else ""
        if self.wants:
            return f"telex: {who}{away} {self.wants} (y/n)"
        keys = "y once, a until it ends, n no" if self.lasting else "y once, n no"
        return f"telex: {who}{away} asks for {inert(self.command)}{what}. Allow? {keys}"


class Person(Protocol):
    async def ask(self, question: Question) -> Answer:
        """Cancelled when nobody wants the answer any more: then the question is taken away."""


@dataclass(frozen=True, slots=True)
class Decided:
    """One line of the audit."""

    command: str
    origin: Origin
    summary: str
    allowed: bool
    by: str
    """A rule, a default, or the person and what they answered."""


class Gate:
    """One for each terminal, as one person sits there."""

    def __init__(
        self, policy: Policy, person: Person | None, audit: Callable[[Decided], None]
    ) -> None:
        self._policy = policy
        self._person = person
        self._audit = audit
        self._decisions: dict[tuple[str, Guard, str], Decision] = {}
        self._remembered: dict[tuple[tuple[int, int], str, Guard], bool] = {}
        """By the guard too: a yes to the mouse must not be one to the keyboard, and to subscribe to
        either is the same command."""
        self._turn = asyncio.Lock()
        self._waiting = 0

    def settled(self, command: Command, origin: Origin, summary: str) -> bool | None:
        """Whether this may be done, without asking; None if the person has to be asked."""
        decision = self._decision(command, origin)
        if decision.verdict is Verdict.ALLOW and command.guard is Guard.FREE:
            return True  # what any program may do anyway is not worth a line
        question = _question(command, origin, summary)
        if decision.verdict is not Verdict.ASK:
            return self._decided(question, decision.verdict is Verdict.ALLOW, decision.by)
        if self._person is None:
            return self._decided(question, False, "nobody to ask")
        return self._answered_before(question)

    def _decision(self, command: Command, origin: Origin) -> Decision:
        """The policy's, looked up once: programs that draw ask for the same thing many times."""
        key = (command.name, command.guard, origin.kind)
        if (known := self._decisions.get(key)) is None:
            known = self._decisions[key] = self._policy.decide(command, origin)
        return known

    async def allow(self, command: Command, origin: Origin, summary: str) -> bool:
        """Whether this may be done: exactly what the summary says, now."""
        settled = self.settled(command, origin, summary)
        if settled is not None or self._person is None:
            return settled is True
        return await self._asked(_question(command, origin, summary), self._person)

    async def show(self, notice: Question) -> None:
        """To be read by the person, in its turn. Nothing is decided by it."""
        if self._person is not None:
            async with self._turn:
                await self._person.ask(notice)

    async def _asked(self, question: Question, person: Person) -> bool:
        if self._waiting > limits.QUESTIONS_WAITING:
            return self._decided(question, False, "too many questions at once")
        self._waiting += 1
        try:
            async with self._turn:
                known = self._answered_before(question)  # by the question before this one
                return await self._answered(question, person) if known is None else known
        except asyncio.CancelledError:
            self._decided(question, False, "withdrawn before an answer")
            raise
        finally:
            self._waiting -= 1

    async def _answered(self, question: Question, person: Person) -> bool:
        answer = await person.ask(question)
        allowed = answer in (Answer.ONCE, Answer.WHILE_IT_RUNS)
        self._decided(question, allowed, f"the person: {answer.value}")
        if answer in (Answer.WHILE_IT_RUNS, Answer.NEVER):
            self._remember(question, allowed)
        return allowed

    def _answered_before(self, question: Question) -> bool | None:
        key = _key(question)
        known = self._remembered.get(key) if key else None
        return None if known is None else self._decided(question, known, "the person, earlier")

    def _remember(self, question: Question, allowed: bool) -> None:
        if key := _key(question):
            self._remembered[key] = allowed
        if len(self._remembered) > limits.ANSWERS_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    def _decided(self, question: Question, allowed: bool, by: str) -> bool:
        """Raises what the audit raises: what cannot be written down is not done."""
        self._audit(Decided(question.command, question.origin, question.summary, allowed, by))
        return allowed


def _question(command: Command, origin: Origin, summary: str) -> Question:
    return Question(command.name, origin, summary, command.guard, command.each_time, command.wants)


def _key(question: Question) -> tuple[tuple[int, int], str, Guard] | None:
    """What an answer is remembered by. None if it is not to be."""
    run = question.origin.run
    return (run, question.command, question.guard) if run and question.lasting else None


# Words that are not ours.

_INVISIBLE: Final = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and signs, by Unicode's word, that show nothing."""
_FLAGS: Final = re.compile("[\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")
"""Halves of flags and colours of skin: how wide they are depends on what stands before them."""
_STRAIGHT: Final = frozenset({"L", "EN", "ES", "ET", "CS", "ON"})


def inert(text: str) -> str:
    """The text with everything spelt out that acts on its reader: controls, line ends, what turns
    the direction of writing or joins its neighbours, what cannot be seen. Two different texts never
    look alike for that: a backslash is doubled, and so is what a quote needs."""
    if text.isascii() and text.isprintable() and not ('"' in text or "\\" in text):
        return text
    return "".join([_inert(char) for char in text])


def _inert(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if " " <= char <= "~":
        return char
    shows = (
        unicodedata.category(char)[0] in "LNPS"
        and unicodedata.bidirectional(char) in _STRAIGHT
        and char not in _INVISIBLE
        and not _FLAGS.match(char)
    )
    if shows:
        return char
    return f"\\u{ord(char):04x}" if char <= "\uffff" else f"\\U{ord(char):08x}"


def width(text: str) -> int:
    """The most columns that inert text takes. What some terminals show wide counts as wide."""
    if text.isascii():
        return len(text)
    return sum([2 if unicodedata.east_asian_width(char) in "WFA" else 1 for char in text])
