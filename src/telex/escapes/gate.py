"""The gate: decides about every command before it is executed.

The policy decides first. If its verdict is "ask", the gate asks the person, one question after the
other, and remembers the answer for as long as the person said. Without a person the answer is no.
The answer is also no, without a question, for a program whose questions were refused too often. A
decision is written to the audit before it takes effect, so that nothing happens without an entry.

`Person` shows a question and turns keys into an answer (`passthrough.question_row`). The text of
the question is made here, because the requesting program must not choose it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import stat
import unicodedata
from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from telex.config.errors import NotPrivate
from telex.config.places import make_private
from telex.escapes import limits
from telex.escapes.policy import Policy, PolicyDecision, PolicyVerdict, RequestOrigin
from telex.escapes.protocol import Guard
from telex.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from telex.config.places import Places
    from telex.escapes.protocol import EscapeCommand

_MINUTE: Final = 60.0


class PersonAnswer(Enum):
    """The person's answer to a question. The value is written to the audit."""

    ONCE = "once"
    WHILE_IT_RUNS = "until it ends"
    """Yes to this command, for this run of the program."""
    NEVER = "no"
    """No to this command, for this run of the program, so that the person is not asked again."""
    NOT_NOW = "no answer"
    """No, this time: Escape, a timeout, or a question that cannot be shown whole."""
    NOTHING_OF_IT = "no to all"
    """Ctrl-C: no to all requests of this program, until the person lets it ask again."""


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """A question to the person, with all that its text says."""

    command: str
    origin: RequestOrigin
    summary: str
    """The exact action. A yes allows all of it, so all of it must be shown."""
    guard: Guard = Guard.PERSON
    each_time: bool = False
    deed: str = ""
    """The action in our words, after "wants to"."""
    wants: str = ""
    """The whole question in our words, if it is not about a command."""
    last: bool = False
    """Whether the program may not ask again unless the answer is yes."""

    @property
    def lasting(self) -> bool:
        """Whether an answer can last: only for a run that can be distinguished from others."""
        return self.origin.run is not None and not self.each_time

    @property
    def text(self) -> str:
        """One line for the person. Words of the program are escaped and quoted."""
        away = " (not on this machine)" if self.origin.kind == "remote" else ""
        who = f'"{inert(self.origin.program)}"' if self.origin.program else "an unknown program"
        what = f' "{inert(self.summary)}"' if self.summary else ""
        if self.wants:
            return f"telex: {who}{away} {self.wants} (y/n)"
        keys = "y once, a until it exits, n no" if self.lasting else "y once, n no"
        last = " (it may not ask again)" if self.last else ", ^C no to all its requests"
        deed = f"wants to {self.deed}:" if self.deed else "asks for"
        return f"telex: {who}{away} {deed} {inert(self.command)}{what}. Allow? {keys}{last}"


class Person(Protocol):
    """Asks the person at a terminal."""

    async def ask(self, question: GateQuestion) -> PersonAnswer:
        """Ask. When cancelled, remove the question: its answer is not needed any more."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """One line of the audit."""

    command: str
    origin: RequestOrigin
    summary: str
    allowed: bool
    by: str
    """The source of the decision: a rule, a default, or the person's answer."""


class Gate:
    """Decides about the commands of one terminal. It asks one question at a time, because one
    person sits there.

    Args:
        policy: The rules and defaults.
        person: Asks the person; None if there is nobody to ask.
        audit: Writes a decision down, before it takes effect.
    """

    def __init__(
        self, policy: Policy, person: Person | None, audit: Callable[[GateDecision], None]
    ) -> None:
        self._policy = policy
        self._person = person
        self._audit = audit
        self._decisions: dict[tuple[str, Guard, str], PolicyDecision] = {}
        self._remembered: dict[tuple[tuple[int, int], str, Guard], bool] = {}
        """The key has the guard too: `term:subscribe` is one command for mouse and keyboard, and a
        yes to the mouse must not allow the keyboard.
        """
        self._refusals = Refusals()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._crowded = False
        """Whether the audit already has an entry that too many questions wait."""

    def ask_again(self) -> None:
        """Forget refusals, so that programs that were refused too often may ask again."""
        self._refusals = Refusals()

    def settled(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool | None:
        """Whether a command is allowed without a question; None if the person has to be asked."""
        decision = self._decision(command, origin)
        if decision.verdict is PolicyVerdict.ALLOW and command.guard is Guard.FREE:
            return True  # free commands are not worth a line in the audit
        question = _question(command, origin, summary)
        if decision.verdict is not PolicyVerdict.ASK:
            return self._decided(question, decision.verdict is PolicyVerdict.ALLOW, decision.by)
        if self._person is None:
            return self._decided(question, False, "nobody to ask")
        known = self._answered_before(question)
        return self._refused_before(question) if known is None else known

    def _decision(self, command: EscapeCommand, origin: RequestOrigin) -> PolicyDecision:
        """Return the policy's decision, cached: programs that draw repeat the same commands."""
        key = (command.name, command.guard, origin.kind)
        if (known := self._decisions.get(key)) is None:
            known = self._decisions[key] = self._policy.decide(command, origin)
        return known

    async def allow(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool:
        """Whether a command is allowed now, exactly as in the summary. Ask the person if needed."""
        settled = self.settled(command, origin, summary)
        if settled is not None or self._person is None:
            return settled is True
        return await self._asked(_question(command, origin, summary), self._person)

    async def show_notice(self, notice: GateQuestion) -> None:
        """Show a notice to the person, after earlier questions. It decides nothing."""
        if self._person is not None:
            async with self._turn:
                await self._person.ask(notice)

    async def _asked(self, question: GateQuestion, person: Person) -> bool:
        if self._waiting > limits.QUESTIONS_WAITING:
            if not self._crowded:
                self._decided(question, False, "too many questions at once")
            self._crowded = True  # further ones are refused without an entry
            return False
        self._waiting += 1
        try:
            async with self._turn:
                known = self._answered_before(question)  # an earlier question may have decided it
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
        """Return False if the program was refused too often. The audit gets one entry for each
        program, since a program may repeat its request for ever.
        """
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
        """Write a decision to the audit. If that raises, the command is not executed."""
        self._audit(GateDecision(question.command, question.origin, question.summary, allowed, by))
        return allowed


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class RefusalLimit:
    """The reason why a program may not ask; false if it may ask."""

    why: str = ""
    audited: bool = False
    """Whether the audit already has an entry for it."""

    def __bool__(self) -> bool:
        return bool(self.why)


class Refusals:
    """Counts the questions of each program that were not answered with yes. Pure."""

    def __init__(self) -> None:
        self._counts: dict[object, int] = {}
        self._lately: deque[float] = deque(maxlen=limits.QUESTIONS_REFUSED_A_MINUTE)
        self._audited: set[object] = set()

    def add(self, origin: RequestOrigin, now: float, *, for_good: bool = False) -> None:
        """Count one more refusal in a row; `for_good` reaches the limit at once."""
        program = _program(origin)
        count = limits.QUESTIONS_REFUSED if for_good else self._counts.pop(program, 0) + 1
        self._counts[program] = count
        self._lately.append(now)
        while len(self._counts) > limits.ANSWERS_REMEMBERED:
            oldest = next(iter(self._counts))
            del self._counts[oldest]
            self._audited.discard(oldest)

    def forget(self, origin: RequestOrigin) -> None:
        """Reset the count of a program that was allowed something."""
        self._counts.pop(_program(origin), None)

    def is_last(self, origin: RequestOrigin) -> bool:
        """Whether one more refusal reaches the limit."""
        return self._counts.get(_program(origin), 0) + 1 >= limits.QUESTIONS_REFUSED

    def are_enough(self, origin: RequestOrigin, now: float) -> RefusalLimit:
        """Return the limit that forbids a question, if one does."""
        program = _program(origin)
        if self._counts.get(program, 0) >= limits.QUESTIONS_REFUSED:
            audited = program in self._audited
            self._audited.add(program)
            return RefusalLimit("the person has refused too often", audited)
        first = self._lately[0] if len(self._lately) == self._lately.maxlen else None
        if first is not None and now - first < _MINUTE:
            return RefusalLimit("too many questions in a minute")
        return RefusalLimit()


def _program(origin: RequestOrigin) -> object:
    """Return the key for refusals: the job; if unknown, all programs of that kind and name."""
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
    """Return the key by which an answer is remembered; None if it is not remembered."""
    run = question.origin.run
    return (run, question.command, question.guard) if run and question.lasting else None


# Text of the program, made safe to show.

_INVISIBLE: Final = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols by their category in Unicode that are invisible."""
_FLAGS: Final = re.compile("[\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")
"""Halves of flags, and skin tones: their width depends on the preceding character."""
_STRAIGHT: Final = frozenset({"L", "EN", "ES", "ET", "CS", "ON"})


def inert(text: str) -> str:
    """Escape all characters that act on a terminal or reader: controls, line ends, bidirectional
    and joining characters, invisible characters. Two different texts stay different, because quotes
    and backslashes get a backslash.
    """
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
    """Return the most columns that inert text takes. Ambiguous characters count as wide."""
    if text.isascii():
        return len(text)
    return sum([2 if unicodedata.east_asian_width(char) in "WFA" else 1 for char in text])


# The audit log: a JSON line for each decision of the gate, in a file that only this user can read.
#
# The summary of the request is redacted. A full file is renamed to `….1`, in place of the previous
# one. If a line cannot be written, an exception is raised and the command is not executed.


_LOG_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_encode = msgspec.json.Encoder().encode


def audit_file(places: Places) -> Path:
    return places.logs / "escapes.jsonl"


class AuditLog:
    """Writes decisions: pass it to a `Gate`. Several processes may write the same file."""

    def __init__(self, path: Path, *, redactor: Redactor | None = None) -> None:
        self._path = path
        self._redactor = redactor or Redactor()

    def __call__(self, decided: GateDecision) -> None:
        """Append a line. The file is opened each time: lines are rare, and another process may have
        renamed the file.
        """
        line = _encode(self._entry(decided)) + b"\n"
        make_private(self._path.parent)
        descriptor = os.open(self._path, _LOG_FLAGS | os.O_NONBLOCK, 0o600)
        try:
            size = self._checked(descriptor)
            # One write for the line, so that lines of two processes do not mix.
            if (written := os.write(descriptor, line)) < len(line):
                _cut_off(descriptor, size, written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        finally:
            os.close(descriptor)
        if size + len(line) >= limits.AUDIT_BYTES:
            os.replace(self._path, self._path.with_name(f"{self._path.name}.1"))

    def _checked(self, descriptor: int) -> int:
        status = os.fstat(descriptor)
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not ours or status.st_mode & 0o077:
            raise NotPrivate(
                f"{self._path} must be a regular file that only you can access; remove it"
            )
        return status.st_size

    def _entry(self, decided: GateDecision) -> dict[str, object]:
        redact = self._redactor.redact
        return {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "command": decided.command,
            "origin": decided.origin.kind,
            "program": decided.origin.program,
            "decision": "allow" if decided.allowed else "deny",
            "by": decided.by,
            "summary": redact(decided.summary)[: limits.AUDIT_SUMMARY_CHARS],
        }


def _cut_off(descriptor: int, size: int, written: int) -> None:
    """Remove an incomplete line, unless another process has already written after it."""
    if os.fstat(descriptor).st_size == size + written:
        os.ftruncate(descriptor, size)
