"""Waits on one session: who waits for what, looked at when something happened, never in between.

A session calls `look` after each thing that happened. A matcher that time alone could make true
says when, and one timer per wait is set for that or for its deadline. Nothing polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from telex.terminal.waits import matchers
from telex.terminal.waits.evidence import KeptMoment, LiveMoment

if TYPE_CHECKING:
    from telex.terminal.session import PtySession
    from telex.terminal.waits.compiler import Evidence, Explanation, WaitCondition
    from telex.terminal.waits.matchers import Matcher, Since


class WaitFailed(Exception):
    """A wait that brought no match, with the last moment and what was missing in it."""

    def __init__(
        self, sentence: str, moment: KeptMoment, explanation: Explanation, timeout: float
    ) -> None:
        super().__init__(sentence)
        self.moment = moment
        self.explanation = explanation
        """From `conditions`: which branch failed, and the nearest miss."""
        self.timeout = timeout
        """How long it might have waited, in seconds."""


class WaitTimedOut(WaitFailed):
    """It did not match in time."""


class ProgramGone(WaitFailed):
    """The program ended, and what was waited for can no longer come."""


class WaitCancelled(Exception):
    """Somebody cancelled it."""


@dataclass(frozen=True, slots=True)
class WaitMatch:
    """What a wait found, and the very moment it found it in."""

    evidence: Evidence
    moment: KeptMoment


KeepMoment = Callable[[LiveMoment], KeptMoment]
"""How a moment is kept for the one who waits: as it is, or without secrets."""


class _Wait:
    """One waiter."""

    def __init__(
        self, condition: WaitCondition, began: float, timeout: float, keep: KeepMoment
    ) -> None:
        self.condition = condition
        self.began = began
        self.deadline = began + timeout
        self.keep = keep
        self.answer: asyncio.Future[WaitMatch] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None


class Waits:
    """All who wait on one session."""

    def __init__(self, session: PtySession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._waits: set[_Wait] = set()
        self._gone = False

    def __bool__(self) -> bool:
        return bool(self._waits)

    async def wait(
        self, condition: WaitCondition, timeout: float, keep: KeepMoment = LiveMoment.keep
    ) -> WaitMatch:
        """Until it matches. Raises WaitFailed in one of its kinds, or WaitCancelled."""
        wait = _Wait(condition, self._loop.time(), timeout, keep)
        self._waits.add(wait)
        try:
            self._look(wait)
            return await wait.answer
        finally:
            self._waits.discard(wait)
            if wait.timer is not None:
                wait.timer.cancel()

    def look(self) -> None:
        """Something happened: whose wait is over?"""
        for wait in [*self._waits]:
            self._look(wait)

    def program_gone(self) -> None:
        """Nothing more will happen. Only time can still bring a match, where it matters."""
        self._gone = True
        self.look()

    def cancel_all(self, why: str) -> None:
        for wait in [*self._waits]:
            if not wait.answer.done():
                wait.answer.set_exception(WaitCancelled(why))

    def _look(self, wait: _Wait) -> None:
        if wait.answer.done():
            return
        try:
            self._decide(wait)
        except Exception as error:  # noqa: BLE001  a mistake of ours, for the one it would hang
            wait.answer.set_exception(error)

    def _decide(self, wait: _Wait) -> None:
        now = self._loop.time()
        moment = LiveMoment(self._session, now, wait.began)
        if (evidence := wait.condition.look(moment)) is not None:
            wait.answer.set_result(WaitMatch(evidence, wait.keep(moment)))
        elif self._gone and not wait.condition.may_come(moment):
            sentence = "the program ended before what was waited for came"
            self._fail(wait, moment, ProgramGone, sentence)
        elif now >= wait.deadline:
            sentence = f"nothing matched within {round((now - wait.began) * 1000)} ms"
            self._fail(wait, moment, WaitTimedOut, sentence)
        else:
            self._arm(wait, wait.condition.wake_at(moment))

    def _fail(self, wait: _Wait, moment: LiveMoment, kind: type[WaitFailed], sentence: str) -> None:
        kept = wait.keep(moment)
        timeout = wait.deadline - wait.began
        failed = kind(sentence, kept, wait.condition.explain(kept), timeout)
        wait.answer.set_exception(failed)

    def _arm(self, wait: _Wait, wake_at: float | None) -> None:
        when = wait.deadline if wake_at is None else min(wake_at, wait.deadline)
        if wait.timer is not None:
            if wait.timer.when() == when:
                return
            wait.timer.cancel()
        wait.timer = self._loop.call_at(when, self._ring, wait)

    def _ring(self, wait: _Wait) -> None:
        wait.timer = None
        self._look(wait)


def with_since(matcher: Matcher, since: Since | None) -> Matcher:
    """The same matcher, its leaves counting from `since` where they do not say their own."""
    if since is None:
        return matcher
    match matcher:
        case matchers.AnyOf(value) | matchers.AllOf(value):
            return msgspec.structs.replace(
                matcher, value=tuple(with_since(one, since) for one in value)
            )
        case matchers.Not(value):
            return matchers.Not(with_since(value, since))
        case (
            matchers.ContainsText(since=None)
            | matchers.ScreenRegex(since=None)
            | matchers.TranscriptContains(since=None)
            | matchers.TranscriptRegex(since=None)
        ):
            return msgspec.structs.replace(matcher, since=since)
        case _:
            return matcher
