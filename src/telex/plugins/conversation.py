"""The conversation with one plugin: calls with deadline and progress, its notifications, and its
mistakes, counted. Every failure is a `PluginError` that names it.

`client` owns the process behind it and decides when it is over.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from telex.plugins import errors, limits, plugin_logs
from telex.plugins import protocol as spec
from telex.plugins.dialect import PluginDialect
from telex.plugins.handshake import without_nulls
from telex.plugins.plugin_process import escape_controls
from telex.rpc.errors import Condition, PeerGone, Problem, RpcError, UnexpectedReply
from telex.rpc.messages import ABSENT
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from telex.plugins.plugin_settings import PluginSettings
    from telex.rpc.channel import Channel
    from telex.rpc.messages import Id


T = TypeVar("T")

_QUOTED: Final = 200
"""Characters of a plugin's own words in a sentence of ours."""
_RESPONSES_WITHOUT_ID: Final = 20
"""Responses without an id, within PLUGIN_WINDOW_SECONDS; more are protocol errors."""


@dataclass(slots=True)
class _PendingCall:
    """A call that waits for its answer."""

    clock: asyncio.Timeout
    id: Id | None = None
    lost: str | None = None
    """Why its answer could not be read."""

    def lose(self, why: str) -> None:
        if not self.clock.expired():
            self.lost = why
            self.clock.reschedule(asyncio.get_running_loop().time())


class PluginConversation:
    """One conversation: opened on a channel, and closed."""

    def __init__(
        self,
        name: str,
        settings: PluginSettings,
        end: Callable[[str], None],
        over: Callable[[], Awaitable[errors.PluginEnded]],
    ) -> None:
        """`end` is told that it broke off the protocol; `over` says why there is no answer."""
        self.name = name
        self.protocol = spec.PROTOCOL_A
        """What it speaks, from its introduction on: the numbers of its errors depend on it."""
        self.log = logging.getLogger(f"telex.plugins.{name}")
        self.strays = 0
        """Pieces of output between its messages that are none."""
        self.mistakes = 0
        """Protocol errors."""
        self.responses_without_id = 0
        """Responses without an id."""
        self._end, self._over = end, over
        self._redact = settings.redactor.redact
        self._given = settings.methods or Methods()
        self._strikes = SlidingWindow(limits.PLUGIN_PROTOCOL_ERRORS, limits.PLUGIN_WINDOW_SECONDS)
        self._without_id = SlidingWindow(_RESPONSES_WITHOUT_ID, limits.PLUGIN_WINDOW_SECONDS)
        self._pending: dict[asyncio.Task[Any] | None, _PendingCall] = {}
        """By the task that asks, of which each asks one thing at a time."""
        self._progress: dict[int | str, Callable[[spec.ProgressNotice], None]] = {}
        self._tokens = itertools.count(1)
        self._dialect = PluginDialect(self)
        self._peer: Peer | None = None

    def open(self, channel: Channel) -> None:
        self._peer = Peer(channel, self._dialect, self._methods(), redact=self._redact)

    async def close(self) -> None:
        """What is pending fails. Idempotent."""
        if self._peer is not None:
            await self._peer.close()

    def enable_cancel(self) -> None:
        """It announced that it heeds cancels. Its own are always heeded."""
        self._dialect.cancels = True

    @property
    def late(self) -> int:
        """Answers that came when nobody waited for them any more."""
        return self._opened.counts.late

    @property
    def unasked(self) -> int:
        """Answers to what nobody asked: second ones, mostly."""
        return self._opened.counts.unknown - self.responses_without_id

    async def call(
        self,
        method: str,
        params: object,
        timeout: float | None,
        returns: type[T] | Any,
        on_progress: Callable[[spec.ProgressNotice], None] | None = None,
    ) -> T:
        """Send a request, with a progress token for `on_progress`, and wait for its answer."""
        token: int | None = None
        if on_progress is not None:
            token = next(self._tokens)
            params = _with_token(params, token)
            self._progress[token] = on_progress
        # Around all of it, not within: a plugin that does not read would hold up the request.
        clock = asyncio.timeout(timeout)
        pending = self._pending[asyncio.current_task()] = _PendingCall(clock)
        try:
            async with clock:
                answer: T = await self._opened.call(method, params, returns=returns, timeout=None)
                return answer
        except TimeoutError:
            raise self._silence(method, timeout, pending.lost) from None
        except RpcError as error:
            raise self._refused(method, error) from None
        except UnexpectedReply as error:
            raise errors.PluginBadResult(self.name, f"gave an unexpected answer: {error}") from None
        except PeerGone:
            raise await self._over() from None
        finally:
            del self._pending[asyncio.current_task()]
            if token is not None:
                del self._progress[token]

    async def notify(self, method: str, params: object = ABSENT) -> None:
        try:
            await self._opened.notify(method, params)
        except PeerGone:
            raise await self._over() from None

    def first_output_hint(self, data: bytes) -> str:
        """What may be behind a silence before its first message, if it wrote this."""
        if not data:
            return errors.BUFFERED
        text = escape_controls(self._redact(data.decode("utf-8", "backslashreplace")).strip())
        return f"what it wrote is no message: {text}"

    def silence_hint(self) -> str:
        """What may be behind a silence, if anything is known."""
        if count := self.strays + self.mistakes:
            return f"some of what it wrote is no message ({count} so far)"
        return ""

    @property
    def _opened(self) -> Peer:
        if self._peer is None:
            raise RuntimeError(f"the plugin {self.name} is asked before it was begun")
        return self._peer

    def _silence(self, method: str, timeout: float | None, lost: str | None) -> errors.PluginError:
        if lost is not None or timeout is None:
            return self._improper(method, lost or "")
        what = f"did not answer {method} within {errors.seconds(timeout)}"
        return errors.PluginTimedOut(self.name, what, self.silence_hint())

    def _improper(self, method: str, why: str) -> errors.PluginBadResult:
        return errors.PluginBadResult(self.name, f"gave no proper answer to {method}: {why}")

    def _refused(self, method: str, error: RpcError) -> errors.PluginError:
        code, message, data = error.problem.code, error.problem.message, error.problem.data
        if not isinstance(code, int):  # our own judgement: it was no answer
            return self._improper(method, message)
        # The Go plugins say what went wrong in `data`, and in `message` only that something did.
        why = f" ({data[:_QUOTED]})" if isinstance(data, str) and data not in ("", message) else ""
        said = escape_controls(self._redact(f"{message}{why}"))
        told = None if data is ABSENT else data
        return errors.PluginErrorReply(self.name, method, code, said, told, self.protocol)

    # Its notifications.

    def _methods(self) -> Methods:
        methods = Methods()
        methods.add("log", self._on_log)
        methods.add("$/progress", self._on_progress)
        for method in self._given:
            methods.add(method.name, method.handler)
        return methods

    def _on_log(self, said: dict[str, Any]) -> None:
        plugin_logs.write_log(self.log, _converted(said, spec.Log), self._redact)

    def _on_progress(self, said: dict[str, Any]) -> None:
        progress = _converted(said, spec.ProgressNotice)
        if (on_progress := self._progress.get(progress.token)) is not None:
            on_progress(progress)

    # What it does wrong, from `dialect`.

    def on_stray(self, what: str) -> None:
        self.strays += 1
        self.log.warning("%s wrote something that is no message (%s)", self.name, what)

    def on_response_without_id(self, what: str) -> None:
        self.responses_without_id += 1
        if self._without_id.add(asyncio.get_running_loop().time()):
            self.on_mistake(f"{self.responses_without_id} answers without an id")
        elif self.responses_without_id <= limits.PLUGIN_PROTOCOL_ERRORS:
            said = escape_controls(self._redact(what))[:_QUOTED]
            self.log.warning("%s answered, but not what: %s", self.name, said)

    def on_mistake(self, what: str) -> None:
        self.mistakes += 1
        self.log.warning("%s made a protocol error: %s", self.name, what)
        if self._strikes.add(asyncio.get_running_loop().time()):
            self._end(f"made {limits.PLUGIN_PROTOCOL_ERRORS} protocol errors (the last: {what})")

    def on_request_id(self, id: Id) -> None:
        if (pending := self._pending.get(asyncio.current_task())) is not None:
            pending.id = id

    def on_lost_answer(self, id: Id | None, what: str) -> None:
        """An answer came that cannot be read. Where it is not known to what, every call that waits
        has lost it: a command has all the time there is, and would wait for ever."""
        for pending in self._pending.values():
            if id is None or (pending.id == id and type(pending.id) is type(id)):
                pending.lose(what)


def _converted(said: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(without_nulls(said), kind)
    except msgspec.ValidationError as error:
        raise RpcError.carrying(Problem.of(Condition.PARAMS, str(error))) from None


def _with_token(params: object, token: int) -> object:
    members = {} if params is ABSENT else msgspec.to_builtins(params)
    if not isinstance(members, dict):
        return params  # positional parameters have no room for it
    return {**members, "progressToken": token}


class SlidingWindow:
    """How often something happened lately: at most `most` times within `seconds`.

    A count that never decays could not tell five failures in three minutes, a crash loop, from five
    in a month. Pure: the time is passed in.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=most)

    def add(self, now: float) -> bool:
        """It happened. True if that was once too often."""
        self._times.append(now)
        return self.full_until(now) is not None

    def count(self, now: float) -> int:
        """How many still count."""
        return sum(now - time < self._seconds for time in self._times)

    def last(self) -> float | None:
        return self._times[-1] if self._times else None

    def full_until(self, now: float) -> float | None:
        """When it will no longer be full, if it is: when the first of them is old enough."""
        full = self.count(now) == self._times.maxlen
        return self._times[0] + self._seconds if full else None
