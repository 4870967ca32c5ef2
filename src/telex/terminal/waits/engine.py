"""The waits of one session. They are checked when the session changes, never in between.

A session calls `look` after each change. A condition that time alone could make true returns that
time, and each wait has one timer, set for that time or for its deadline. Nothing polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from telex.terminal.waits import matchers
from telex.terminal.waits.conditions import asked_for
from telex.terminal.waits.evidence import KeptMoment, LiveMoment

if TYPE_CHECKING:
    from telex.terminal.session import PtySession
    from telex.terminal.waits.compiler import Evidence, Explanation, WaitCondition
    from telex.terminal.waits.matchers import Matcher, Since


class WaitFailed(Exception):
    """A wait without a match, with its last moment and an explanation."""

    def __init__(
        self, sentence: str, moment: KeptMoment, explanation: Explanation, timeout: float
    ) -> None:
        super().__init__(sentence)
        self.moment = moment
        self.explanation = explanation
        """The explanation from `conditions`: which branch failed, and the nearest miss."""
        self.timeout = timeout
        """The timeout of the wait, in seconds."""


class WaitTimedOut(WaitFailed):
    """The wait did not match before its deadline."""


class ProgramGone(WaitFailed):
    """The program has exited, and the condition can no longer become true."""


class WaitCancelled(Exception):
    """The wait was cancelled."""


@dataclass(frozen=True, slots=True)
class WaitMatch:
    """The evidence of a wait, and the moment in which it matched."""

    evidence: Evidence
    moment: KeptMoment


KeepMoment = Callable[[LiveMoment], KeptMoment]
"""How to copy a moment for the caller of a wait: unchanged, or without secrets."""


class _Wait:
    """A pending wait: its condition, deadline, future and timer."""

    def __init__(
        self,
        condition: WaitCondition,
        began: float,
        timeout: float,
        keep: KeepMoment,
        keep_failed: KeepMoment,
    ) -> None:
        self.condition = condition
        self.began = began
        self.deadline = began + timeout
        self.keep = keep
        self.keep_failed = keep_failed
        self.answer: asyncio.Future[WaitMatch] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None


class Waits:
    """All pending waits of one session."""

    def __init__(self, session: PtySession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._waits: set[_Wait] = set()
        self._gone = False

    def __bool__(self) -> bool:
        return bool(self._waits)

    async def wait(
        self,
        condition: WaitCondition,
        timeout: float,
        keep: KeepMoment = LiveMoment.keep,
        keep_failed: KeepMoment | None = None,
    ) -> WaitMatch:
        """Wait until the condition is true. Raises a subclass of WaitFailed, or WaitCancelled.

        `keep_failed` copies the last moment of a wait that fails; by default `keep` does.
        """
        wait = _Wait(condition, self._loop.time(), timeout, keep, keep_failed or keep)
        self._waits.add(wait)
        try:
            self._look(wait)
            return await wait.answer
        finally:
            self._waits.discard(wait)
            if wait.timer is not None:
                wait.timer.cancel()

    def look(self) -> None:
        """Check all waits after a change of the session."""
        for wait in [*self._waits]:
            self._look(wait)

    def program_gone(self) -> None:
        """Check all waits after the exit of the program. Only time can make a later match."""
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
        except Exception as error:  # noqa: BLE001  a bug of ours: raise it in the wait, else it hangs
            wait.answer.set_exception(error)

    def _decide(self, wait: _Wait) -> None:
        now = self._loop.time()
        moment = LiveMoment(self._session, now, wait.began)
        if (evidence := wait.condition.look(moment)) is not None:
            wait.answer.set_result(WaitMatch(evidence, wait.keep(moment)))
        elif self._gone and not wait.condition.may_come(moment):
            sentence = f"{{}} did not come: the program {self._session.exit}"
            self._fail(wait, moment, ProgramGone, sentence)
        elif now >= wait.deadline:
            sentence = f"{{}} did not come within {round((now - wait.began) * 1000)} ms"
            self._fail(wait, moment, WaitTimedOut, sentence)
        else:
            self._arm(wait, wait.condition.wake_at(moment))

    def _fail(self, wait: _Wait, moment: LiveMoment, kind: type[WaitFailed], sentence: str) -> None:
        kept = wait.keep_failed(moment)
        timeout = wait.deadline - wait.began
        explained = wait.condition.explain(kept)
        failed = kind(sentence.format(asked_for(explained)), kept, explained, timeout)
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
    """Return the matcher with `since` set on all its leaves that do not have their own."""
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
            | matchers.ScreenChanged(since=None)
        ):
            return msgspec.structs.replace(matcher, since=since)
        case _:
            return matcher
