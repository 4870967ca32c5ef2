"""The conversation with one plugin: calls with their time and progress, what the plugin says
unasked, and what it does wrong, counted. Every failure is a `PluginFailed` that names it.

`plugin` owns the process behind it and decides when it is over.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from telex.plugins import logs, problems
from telex.plugins.hearing import Hearing
from telex.plugins.introducing import without_nulls
from telex.plugins.stderr import shown
from telex.plugins.window import Window
from telex.protocols import plugin_v0 as spec
from telex.rpc.errors import Condition, PeerGone, Problem, RpcError, UnexpectedReply
from telex.rpc.messages import ABSENT
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from telex.plugins.settings import Settings
    from telex.rpc.channel import Channel
    from telex.rpc.messages import Id

T = TypeVar("T")

_QUOTED: Final = 200
"""Characters of a plugin's own words in a sentence of ours."""
_TO_NOBODY: Final = 20
"""Responses without an id, within PLUGIN_WINDOW_SECONDS; more are protocol errors."""


@dataclass(slots=True)
class _Asking:
    """A call that waits for its answer."""

    clock: asyncio.Timeout
    id: Id | None = None
    lost: str | None = None
    """Why its answer could not be read."""

    def lose(self, why: str) -> None:
        if not self.clock.expired():
            self.lost = why
            self.clock.reschedule(asyncio.get_running_loop().time())


class Talk:
    """Opened on a channel, and closed."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        end: Callable[[str], None],
        over: Callable[[], Awaitable[problems.PluginOver]],
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
        self.to_nobody = 0
        """Responses without an id."""
        self._end, self._over = end, over
        self._redact = settings.redactor.redact
        self._given = settings.methods or Methods()
        self._strikes = Window(limits.PLUGIN_PROTOCOL_ERRORS, limits.PLUGIN_WINDOW_SECONDS)
        self._nobodies = Window(_TO_NOBODY, limits.PLUGIN_WINDOW_SECONDS)
        self._asking: dict[asyncio.Task[Any] | None, _Asking] = {}
        """By the task that asks, of which each asks one thing at a time."""
        self._progress: dict[int | str, Callable[[spec.Progress], None]] = {}
        self._tokens = itertools.count(1)
        self._dialect = Hearing(self)
        self._peer: Peer | None = None

    def open(self, channel: Channel) -> None:
        self._peer = Peer(channel, self._dialect, self._methods(), redact=self._redact)

    async def close(self) -> None:
        """What is pending fails. Idempotent."""
        if self._peer is not None:
            await self._peer.close()

    def may_cancel(self) -> None:
        """It announced that it heeds cancels. Its own are always heeded."""
        self._dialect.cancels = True

    @property
    def late(self) -> int:
        """Answers that came when nobody waited for them any more."""
        return self._opened.counts.late

    @property
    def unasked(self) -> int:
        """Answers to what nobody asked: second ones, mostly."""
        return self._opened.counts.unknown - self.to_nobody

    async def ask(
        self, method: str, params: object, timeout: float | None, returns: type[T] | Any
    ) -> T:
        # Around all of it, not within: a plugin that does not read would hold up the asking.
        clock = asyncio.timeout(timeout)
        asking = self._asking[asyncio.current_task()] = _Asking(clock)
        try:
            async with clock:
                answer: T = await self._opened.call(method, params, returns=returns, timeout=None)
                return answer
        except TimeoutError:
            raise self._silence(method, timeout, asking.lost) from None
        except RpcError as error:
            raise self._refused(method, error) from None
        except UnexpectedReply as error:
            raise problems.Unexpected(self.name, f"gave an unexpected answer: {error}") from None
        except PeerGone:
            raise await self._over() from None
        finally:
            del self._asking[asyncio.current_task()]

    async def ask_with_progress(
        self,
        method: str,
        params: object,
        timeout: float | None,
        returns: type[T] | Any,
        on_progress: Callable[[spec.Progress], None],
    ) -> T:
        token = next(self._tokens)
        self._progress[token] = on_progress
        try:
            answer: T = await self.ask(method, _with_token(params, token), timeout, returns)
            return answer
        finally:
            del self._progress[token]

    async def tell(self, method: str, params: object = ABSENT) -> None:
        try:
            await self._opened.notify(method, params)
        except PeerGone:
            raise await self._over() from None

    def began_with(self, data: bytes) -> str:
        """What may be behind a silence before its first message, if it wrote this."""
        if not data:
            return problems.BUFFERED
        text = shown(self._redact(data.decode("utf-8", "backslashreplace")).strip())
        return f"what it wrote is no message: {text}"

    def suspicion(self) -> str:
        """What may be behind a silence, if anything is known."""
        if count := self.strays + self.mistakes:
            return f"some of what it wrote is no message ({count} so far)"
        return ""

    @property
    def _opened(self) -> Peer:
        if self._peer is None:
            raise RuntimeError(f"the plugin {self.name} is asked before it was begun")
        return self._peer

    def _silence(
        self, method: str, timeout: float | None, lost: str | None
    ) -> problems.PluginFailed:
        if lost is not None or timeout is None:
            return self._improper(method, lost or "")
        what = f"did not answer {method} within {problems.seconds(timeout)}"
        return problems.TimedOut(self.name, what, self.suspicion())

    def _improper(self, method: str, why: str) -> problems.Unexpected:
        return problems.Unexpected(self.name, f"gave no proper answer to {method}: {why}")

    def _refused(self, method: str, error: RpcError) -> problems.PluginFailed:
        code, message, data = error.problem.code, error.problem.message, error.problem.data
        if not isinstance(code, int):  # our own judgement: it was no answer
            return self._improper(method, message)
        # The Go plugins say what went wrong in `data`, and in `message` only that something did.
        why = f" ({data[:_QUOTED]})" if isinstance(data, str) and data not in ("", message) else ""
        said = shown(self._redact(f"{message}{why}"))
        told = None if data is ABSENT else data
        return problems.Refused(self.name, method, code, said, told, self.protocol)

    # What it says unasked.

    def _methods(self) -> Methods:
        methods = Methods()
        methods.add("log", self._on_log)
        methods.add("$/progress", self._on_progress)
        for method in self._given:
            methods.add(method.name, method.handler)
        return methods

    def _on_log(self, said: dict[str, Any]) -> None:
        logs.record(self.log, _converted(said, spec.Log), self._redact)

    def _on_progress(self, said: dict[str, Any]) -> None:
        progress = _converted(said, spec.Progress)
        if (heard := self._progress.get(progress.token)) is not None:
            heard(progress)

    # What it does wrong, from `hearing`.

    def on_stray(self, what: str) -> None:
        self.strays += 1
        self.log.warning("%s wrote something that is no message (%s)", self.name, what)

    def on_response_to_nobody(self, what: str) -> None:
        self.to_nobody += 1
        if self._nobodies.add(asyncio.get_running_loop().time()):
            self.on_mistake(f"{self.to_nobody} answers without an id")
        elif self.to_nobody <= limits.PLUGIN_PROTOCOL_ERRORS:
            said = shown(self._redact(what))[:_QUOTED]
            self.log.warning("%s answered, but not what: %s", self.name, said)

    def on_mistake(self, what: str) -> None:
        self.mistakes += 1
        self.log.warning("%s made a protocol error: %s", self.name, what)
        if self._strikes.add(asyncio.get_running_loop().time()):
            self._end(f"made {limits.PLUGIN_PROTOCOL_ERRORS} protocol errors (the last: {what})")

    def on_asking(self, id: Id) -> None:
        if (asking := self._asking.get(asyncio.current_task())) is not None:
            asking.id = id

    def on_lost_answer(self, id: Id | None, what: str) -> None:
        """An answer came that cannot be read. Where it is not known to what, every call that waits
        has lost it: a command has all the time there is, and would wait for ever."""
        for asking in self._asking.values():
            if id is None or (asking.id == id and type(asking.id) is type(id)):
                asking.lose(what)


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
