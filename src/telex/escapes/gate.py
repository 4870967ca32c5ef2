"""The gate: every command passes it before it does anything.

The policy decides; where that says "ask", the gate asks the person, one question after the other,
and remembers the answer for as long as they said. With nobody to ask the answer is no, and so it
is, unasked, for a program whose questions were refused too often. A decision is written to the
audit before it holds, so that nothing happens that is not in the audit.

`Person` shows a question and turns keys into an answer (`passthrough.question_row`). The words of
the question are made here, because they must not be the asking program's.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections import deque
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from telex.escapes import limits
from telex.escapes.policy import Policy, PolicyDecision, PolicyVerdict, RequestOrigin
from telex.escapes.protocol import Guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.escapes.protocol import EscapeCommand


_MINUTE: Final = 60.0


class PersonAnswer(Enum):
    ONCE = "once"
    WHILE_IT_RUNS = "until it ends"
    """For this command, as long as this run of this program lasts."""
    NEVER = "no"
    """As long as it lasts, so that nobody is worn out by being asked again."""
    NOT_NOW = "no answer"
    """Escape, time run out, a question that cannot be shown whole: no, this time."""
    NOTHING_OF_IT = "no to all"
    """Ctrl-C: no to whatever this program asks for, until the person allows it to ask again."""


@dataclass(frozen=True, slots=True)
class GateQuestion:
    command: str
    origin: RequestOrigin
    summary: str
    """What exactly is to be done. A yes is to this, whole: whoever shows it must show all of it."""
    guard: Guard = Guard.PERSON
    each_time: bool = False
    deed: str = ""
    """What is to be done, in words of ours, after "wants to"."""
    wants: str = ""
    """The whole question, in words of ours, if it is none about a command."""
    last: bool = False
    """Whether the program is not asked about again if this is not answered with yes."""

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
        last = " (it may not ask again)" if self.last else ", ^C no to all it asks"
        deed = f"wants to {self.deed}:" if self.deed else "asks for"
        return f"telex: {who}{away} {deed} {inert(self.command)}{what}. Allow? {keys}{last}"


class Person(Protocol):
    async def ask(self, question: GateQuestion) -> PersonAnswer:
        """Cancelled when nobody wants the answer any more: then the question is taken away."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """One line of the audit."""

    command: str
    origin: RequestOrigin
    summary: str
    allowed: bool
    by: str
    """A rule, a default, or the person and what they answered."""


class Gate:
    """One for each terminal, as one person sits there."""

    def __init__(
        self, policy: Policy, person: Person | None, audit: Callable[[GateDecision], None]
    ) -> None:
        self._policy = policy
        self._person = person
        self._audit = audit
        self._decisions: dict[tuple[str, Guard, str], PolicyDecision] = {}
        self._remembered: dict[tuple[tuple[int, int], str, Guard], bool] = {}
        """By the guard too: a yes to the mouse must not be one to the keyboard, and to subscribe to
        either is the same command."""
        self._refusals = Refusals()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._crowded = False
        """Whether it was written down that more wait than may."""

    def ask_again(self) -> None:
        """The person wants to be asked about programs of which they have had enough."""
        self._refusals = Refusals()

    def settled(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool | None:
        """Whether this may be done, without asking; None if the person has to be asked."""
        decision = self._decision(command, origin)
        if decision.verdict is PolicyVerdict.ALLOW and command.guard is Guard.FREE:
            return True  # what any program may do anyway is not worth a line
        question = _question(command, origin, summary)
        if decision.verdict is not PolicyVerdict.ASK:
            return self._decided(question, decision.verdict is PolicyVerdict.ALLOW, decision.by)
        if self._person is None:
            return self._decided(question, False, "nobody to ask")
        known = self._answered_before(question)
        return self._refused_before(question) if known is None else known

    def _decision(self, command: EscapeCommand, origin: RequestOrigin) -> PolicyDecision:
        """The policy's, looked up once: programs that draw ask for the same thing many times."""
        key = (command.name, command.guard, origin.kind)
        if (known := self._decisions.get(key)) is None:
            known = self._decisions[key] = self._policy.decide(command, origin)
        return known

    async def allow(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool:
        """Whether this may be done: exactly what the summary says, now."""
        settled = self.settled(command, origin, summary)
        if settled is not None or self._person is None:
            return settled is True
        return await self._asked(_question(command, origin, summary), self._person)

    async def show_notice(self, notice: GateQuestion) -> None:
        """To be read by the person, in its turn. Nothing is decided by it."""
        if self._person is not None:
            async with self._turn:
                await self._person.ask(notice)

    async def _asked(self, question: GateQuestion, person: Person) -> bool:
        if self._waiting > limits.QUESTIONS_WAITING:
            if not self._crowded:
                self._decided(question, False, "too many questions at once")
            self._crowded = True  # and all the others of this crowd, unwritten
            return False
        self._waiting += 1
        try:
            async with self._turn:
                known = self._answered_before(question)  # by the question before this one
                known = self._refused_before(question) if known is None else known
                return await self._answered(question, person) if known is None else known
        except asyncio.CancelledError:
            self._refusals.add(question.origin, _now())
            self._decided(question, False, "withdrawn before an answer")
            raise
        finally:
            self._waiting -= 1
            self._crowded = self._crowded and self._waiting > 0

    async def _answered(self, question: GateQuestion, person: Person) -> bool:
        question = replace(question, last=self._refusals.is_last(question.origin))
        answer = await person.ask(question)
        allowed = answer in (PersonAnswer.ONCE, PersonAnswer.WHILE_IT_RUNS)
        if allowed:
            self._refusals.forget(question.origin)
        else:
            self._refusals.add(
                question.origin, _now(), for_good=answer is PersonAnswer.NOTHING_OF_IT
            )
        self._decided(question, allowed, f"the person: {answer.value}")
        if answer in (PersonAnswer.WHILE_IT_RUNS, PersonAnswer.NEVER):
            self._remember(question, allowed)
        return allowed

    def _answered_before(self, question: GateQuestion) -> bool | None:
        key = _key(question)
        known = self._remembered.get(key) if key else None
        return None if known is None else self._decided(question, known, "the person, earlier")

    def _refused_before(self, question: GateQuestion) -> bool | None:
        """False if the person has had enough. Written down once for each program: it may go on
        asking for ever, and nothing is done."""
        if not (enough := self._refusals.are_enough(question.origin, _now())):
            return None
        if not enough.audited:
            self._decided(question, False, enough.why)
        return False

    def _remember(self, question: GateQuestion, allowed: bool) -> None:
        if key := _key(question):
            self._remembered[key] = allowed
        if len(self._remembered) > limits.ANSWERS_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    def _decided(self, question: GateQuestion, allowed: bool, by: str) -> bool:
        """Raises what the audit raises: what cannot be written down is not done."""
        self._audit(GateDecision(question.command, question.origin, question.summary, allowed, by))
        return allowed


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class RefusalLimit:
    """Why nobody is asked; false where somebody may be."""

    why: str = ""
    audited: bool = False
    """Whether it was written down."""

    def __bool__(self) -> bool:
        return bool(self.why)


class Refusals:
    """Questions that were not answered with yes, by the program that asked. Pure."""

    def __init__(self) -> None:
        self._counts: dict[object, int] = {}
        self._lately: deque[float] = deque(maxlen=limits.QUESTIONS_REFUSED_A_MINUTE)
        self._audited: set[object] = set()

    def add(self, origin: RequestOrigin, now: float, *, for_good: bool = False) -> None:
        """One more in a row; `for_good`, as many as it takes."""
        who = _program(origin)
        count = limits.QUESTIONS_REFUSED if for_good else self._counts.pop(who, 0) + 1
        self._counts[who] = count
        self._lately.append(now)
        while len(self._counts) > limits.ANSWERS_REMEMBERED:
            oldest = next(iter(self._counts))
            del self._counts[oldest]
            self._audited.discard(oldest)

    def forget(self, origin: RequestOrigin) -> None:
        """It was allowed something."""
        self._counts.pop(_program(origin), None)

    def is_last(self, origin: RequestOrigin) -> bool:
        """Whether one more is enough."""
        return self._counts.get(_program(origin), 0) + 1 >= limits.QUESTIONS_REFUSED

    def are_enough(self, origin: RequestOrigin, now: float) -> RefusalLimit:
        """Whether nobody is to be asked."""
        who = _program(origin)
        if self._counts.get(who, 0) >= limits.QUESTIONS_REFUSED:
            audited = who in self._audited
            self._audited.add(who)
            return RefusalLimit("the person has had enough of it", audited)
        first = self._lately[0] if len(self._lately) == self._lately.maxlen else None
        if first is not None and now - first < _MINUTE:
            return RefusalLimit("too many questions in a minute")
        return RefusalLimit()


def _program(origin: RequestOrigin) -> object:
    """What is refused is refused to a job; where none is known, to all of that kind."""
    return origin.job or origin.run or (origin.kind, origin.program)


def _question(command: EscapeCommand, origin: RequestOrigin, summary: str) -> GateQuestion:
    return GateQuestion(
        command.name,
        origin,
        summary,
        command.guard,
        command.each_time,
        command.deed,
        command.wants,
    )


def _key(question: GateQuestion) -> tuple[tuple[int, int], str, Guard] | None:
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
