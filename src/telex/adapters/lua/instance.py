"""One plugin in one worker: its functions are called in order, and it is replaced when it fails.

A call is sent when the one before was answered. A worker that spent its budget, its memory or its
time is killed, and the next call starts another; one that fails again and again is left in peace
for a while. None of this takes a task: replies, ends and deadlines are events that move it on.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from signal import Signals
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.adapters import limits
from telex.adapters.errors import Kind, PluginProblem
from telex.adapters.lua.worker_socket import WorkerSocket
from telex.processes.spawn import StartFailed
from telex.version import __version__
from telex.wire import ndjson
from telex.wire.events import Frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.adapters.lua.zygote import Worker
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.processes.child import Exit
    from telex.wire.events import Event

_PATIENCE: Final = 3
"""So many failures in a row, and the next call is not tried at once."""
_FIRST_REST: Final = 0.1
_GRACE: Final = 0.05
"""When we ourselves are so late, an answer may lie unread, and gets as long again to be seen."""

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _WorkerProblem:
    """A `PluginProblem` to be, of whichever call it meets."""

    kind: Kind
    sentence: str
    code: str | None = None


class _Reply(msgspec.Struct):
    """What a worker answers."""

    value: Any = None
    exports: tuple[str, ...] = ()
    pid: int = 0
    """These two come with the first."""
    kind: Kind | None = None
    problem: str = ""
    code: str | None = None

    def told(self) -> _WorkerProblem:
        return _WorkerProblem(self.kind or "died", self.problem, self.code)


_decode: Final = msgspec.json.Decoder(_Reply).decode
_UNREADABLE: Final = _Reply(kind="died", problem="its process answered what cannot be read")


@dataclass(slots=True, eq=False)
class _Call:
    function: str
    line: bytes | None
    """None asks for nothing but that the plugin is loaded."""
    answer: asyncio.Future[Any]


class _RunningWorker:
    """A worker in use: what leads there, and what is known of it."""

    def __init__(self, worker: Worker, owner: Instance) -> None:
        self.worker = worker
        self.decoder = ndjson.NdjsonDecoder()
        self.pid: int | None = None
        """Known when the plugin is loaded."""
        self.cut_off = False
        self.socket = WorkerSocket(worker.socket, self._received, self._ended)
        self._owner = owner
        worker.gone.add_done_callback(lambda _: owner.on_worker_end(self))

    def drop(self) -> None:
        self.socket.close()
        self.worker.kill()

    def _received(self, data: bytes) -> None:
        for event in self.decoder.feed(data):
            self._owner.on_reply(self, _read(event))

    def _ended(self) -> None:
        self.cut_off = True
        self._owner.on_worker_end(self)


class Instance:
    """A plugin to be called. Made by `Nursery.instance`."""

    def __init__(
        self,
        plugin: LuaPlugin,
        fork: Callable[[], Worker],
        closed: Callable[[Instance], None],
    ) -> None:
        self.plugin = plugin
        self._fork = fork
        self._forget = closed
        self._queue: deque[_Call] = deque()
        self._current: _Call | None = None
        self._running: _RunningWorker | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._exports: tuple[str, ...] | None = None
        self._failures = 0
        self._rests_until = -math.inf
        self._standing: _WorkerProblem | None = None
        """Why no call will ever be answered: it does not load, or is closed."""
        self._last = ""
        self._worker: Worker | None = None
        """The last it had, which may be about to end."""

    @property
    def pid(self) -> int | None:
        """Of the process it is loaded in, while it is."""
        return self._running.pid if self._running else None

    async def call(self, function: str, *arguments: Any) -> Any:
        """What the function answers, as JSON has it. Raises PluginProblem, of any kind.

        Whoever stops waiting takes nothing from those who come after.
        """
        line = _encode({"function": function, "arguments": arguments}) + b"\n"
        return await self._enqueue(function, line)

    async def exports(self) -> tuple[str, ...]:
        """The names of its functions. Raises PluginProblem."""
        if self._exports is None or self._standing is not None:
            await self._enqueue("", None)
        return self._exports or ()

    async def close(self) -> None:
        """End it. Calls that wait get a problem of kind `closed`."""
        self.close_nowait()
        if self._worker is not None:
            await asyncio.shield(self._worker.gone)

    def close_nowait(self) -> None:
        """The same, without waiting until its process is gone."""
        self._standing = _WorkerProblem("closed", "the plugin was closed")
        self._forget(self)
        self._drop()
        self._answer_problem(self._standing)
        self._move_on()

    def _enqueue(self, function: str, line: bytes | None) -> asyncio.Future[Any]:
        call = _Call(function, line, asyncio.get_running_loop().create_future())
        self._queue.append(call)
        self._move_on()
        return call.answer

    def _move_on(self) -> None:
        """Begin the next call, unless one is under way."""
        while self._queue and self._current is None:
            call = self._queue.popleft()
            if call.answer.done():
                continue  # whoever asked has gone
            self._current = call
            if (problem := self._standing or self._resting()) is not None:
                self._answer_problem(problem)
            elif self._running is None:
                self._start()
            elif self._running.pid is not None:
                self._ask(call)

    def _resting(self) -> _WorkerProblem | None:
        left = self._rests_until - asyncio.get_running_loop().time()
        if left <= 0:
            return None
        return _WorkerProblem(
            "resting",
            f"it failed {self._failures} times in a row and rests for another {left:.1f} s; "
            f"the last time, {self._last}",
        )

    def _start(self) -> None:
        try:
            worker = self._fork()
        except StartFailed as failure:
            self._fail(_WorkerProblem("died", f"its process was not started: {failure}"))
            return
        self._worker, self._running = worker, _RunningWorker(worker, self)
        self._running.socket.send(self._introduction())
        self._within(limits.LUA_START_MS)

    def _introduction(self) -> bytes:
        plugin = self.plugin
        told = {
            "plugin": plugin.name,
            "version": __version__,
            "permissions": plugin.manifest.permissions,
            "files": plugin.files,
            "entrypoint": plugin.manifest.entrypoint or "",
        }
        return _encode(told) + b"\n"

    def _ask(self, call: _Call) -> None:
        if call.line is None or call.answer.done() or self._running is None:
            self._answer(None)
        else:
            self._running.socket.send(call.line)
            self._within(limits.LUA_DEADLINE_MS)

    def on_reply(self, running: _RunningWorker, reply: _Reply) -> None:
        """A worker answered."""
        call = self._current
        if running is not self._running or call is None:
            return
        self._disarm()
        match reply.kind:
            case None if running.pid is not None:
                self._failures = 0
                self._answer(reply.value)
            case None:
                running.pid = reply.pid
                self._exports = tuple(sorted(reply.exports))
                self._ask(call)
            case "load":
                # Its sources are what they were read as, so that no other try ends otherwise.
                self._standing = reply.told()
                self._drop()
                self._answer_problem(self._standing)
            case "no_function":
                self._failures = 0
                there = ", ".join(self._exports or ()) or "none"
                sentence = f"the plugin has no such function; it has {there}"
                self._answer_problem(_WorkerProblem("no_function", sentence))
            case "threw" | "refused" | "shape":
                self._failures = 0
                self._answer_problem(reply.told())
            case _:
                self._fail(reply.told())
        self._move_on()

    def on_worker_end(self, running: _RunningWorker) -> None:
        """A worker's socket ended, or it was reaped: when both are known, so is the reason."""
        if running is not self._running:
            return
        if self._current is None:
            self._drop()  # nobody asked it anything; the next call starts another
        elif running.cut_off and running.worker.gone.done():
            self._fail(_ending(running.worker.gone.result()))
            self._move_on()

    def _within(self, milliseconds: int) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + milliseconds / 1000
        self._timer = loop.call_at(due, self._overdue, due, milliseconds)

    def _overdue(self, due: float, milliseconds: int) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() > due + _GRACE:
            self._timer = loop.call_later(_GRACE, self._overdue, math.inf, milliseconds)
            return
        self._fail(_WorkerProblem("deadline", f"it did not answer within {milliseconds} ms"))
        self._move_on()

    def _fail(self, problem: _WorkerProblem) -> None:
        """The current call ended its worker."""
        self._drop()
        self._failures += 1
        self._last = problem.sentence
        if self._failures >= _PATIENCE:
            rest = _FIRST_REST * 2.0 ** min(self._failures - _PATIENCE, 16)
            now = asyncio.get_running_loop().time()
            self._rests_until = now + min(rest, limits.LUA_RESTING_MS / 1000)
        self._answer_problem(problem)

    def _drop(self) -> None:
        self._disarm()
        if self._running is not None:
            self._running.drop()
            self._running = None

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answer(self, value: Any) -> None:
        call, self._current = self._current, None
        if call is not None and not call.answer.done():
            call.answer.set_result(value)

    def _answer_problem(self, problem: _WorkerProblem) -> None:
        call, self._current = self._current, None
        if call is not None and not call.answer.done():
            call.answer.set_exception(
                PluginProblem(
                    self.plugin.name, call.function, problem.kind, problem.sentence, problem.code
                )
            )


def _read(event: Event) -> _Reply:
    """A worker is ours, but a plugin lives in it: what it says is read with care."""
    try:
        return _decode(event.body) if isinstance(event, Frame) else _UNREADABLE
    except msgspec.DecodeError:
        return _UNREADABLE


def _ending(how: Exit) -> _WorkerProblem:
    """What an end means that the worker could not tell itself."""
    match how.signal:
        case Signals.SIGPROF:
            return _WorkerProblem(
                "deadline", f"it took more than {limits.LUA_CPU_MS} ms of processor time"
            )
        case Signals.SIGABRT:  # Lua's way, where it cannot even say so
            return _WorkerProblem("memory", "it ran out of memory")
        case None if how.code is None:
            return _WorkerProblem("died", "its process ended with the one that makes them")
        case _:
            return _WorkerProblem("died", f"its process {how}")
