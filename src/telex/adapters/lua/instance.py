"""One plugin in one worker: call its functions in order, and replace the worker when it fails.

A call is sent after the reply to the call before. A worker that exceeds its budget, its memory or
its deadline is killed, and the next call starts another worker. After several failures in a row
calls fail at once for a while, with kind `resting`. There is no task: replies, exits and deadlines
are callbacks, and each of them starts the next call (`_start_next_call`).
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections import deque
from dataclasses import dataclass
from signal import Signals
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.adapters import limits
from telex.adapters.errors import Kind, PluginProblem
from telex.processes.spawn import StartFailed
from telex.version import __version__
from telex.wire import ndjson
from telex.wire.events import Frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.adapters.lua.worker_pool import Worker
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.processes.child import Exit
    from telex.wire.events import Event


# A socket in the event loop, for the server's ends of the sockets to the zygote and the workers.
#
# Not an asyncio transport: to start a transport takes a task, and a plugin call is so short that
# the layers of a transport would be most of its time. `send` writes at once; bytes that the kernel
# does not accept are queued.


_READ_BYTES: Final = 64 * 1024
"""Less than 128 KiB: the C library maps and unmaps a larger buffer for each read."""


class WorkerSocket:
    """Sends bytes in order, and calls `received` with bytes and `ended` at EOF."""

    def __init__(
        self, sock: socket.socket, received: Callable[[bytes], None], ended: Callable[[], None]
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._received, self._ended = received, ended
        self._unsent: deque[tuple[bytes, socket.socket | None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock.fileno(), self._read)

    def send(self, data: bytes, along: socket.socket | None = None) -> None:
        """Send bytes, and pass on the socket `along`, whose descriptor here is closed. After
        `close` the bytes are dropped."""
        if self._sock.fileno() < 0:
            self._discard((data, along))
            return
        self._unsent.append((data, along))
        if len(self._unsent) == 1 and not self._write():
            self._loop.add_writer(self._sock.fileno(), self._on_writable)

    def close(self) -> None:
        """Stop to read and write, and drop unsent bytes. `ended` is not called."""
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
        while self._unsent:
            self._discard(self._unsent.popleft())

    def _read(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:  # the process exited before it read all that was sent
            data = b""
        if data:
            self._received(data)
        else:
            self.close()
            self._ended()

    def _on_writable(self) -> None:
        if self._write():
            self._loop.remove_writer(self._sock.fileno())

    def _write(self) -> bool:
        """Write queued bytes. Return whether all were sent."""
        while self._unsent:
            data, along = self._unsent.popleft()
            sent = self._offer(data, along)
            if sent < len(data):
                self._unsent.appendleft((data[sent:], None if sent else along))
                return False
        return True

    def _offer(self, data: bytes, along: socket.socket | None) -> int:
        """Return how many bytes the kernel accepted. Bytes to a closed socket count as accepted,
        because `_read` reports its EOF."""
        try:
            if along is None:
                return self._sock.send(data)
            return _send_along(self._sock, data, along)
        except BlockingIOError:
            return 0
        except (BrokenPipeError, ConnectionResetError):
            self._discard((data, along))
            return len(data)

    @staticmethod
    def _discard(unsent: tuple[bytes, socket.socket | None]) -> None:
        if unsent[1] is not None:
            unsent[1].close()


def _send_along(sock: socket.socket, data: bytes, along: socket.socket) -> int:
    sent = socket.send_fds(sock, [data], [along.fileno()])
    along.close()
    return sent


_FAILURES_BEFORE_REST: Final = 3
"""Failures in a row after which calls fail at once for a while."""
_FIRST_REST: Final = 0.1
_GRACE: Final = 0.05
"""If a deadline's timer runs this late, the event loop was blocked and a reply may wait unread in
the socket. The deadline is then extended by the same time."""

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _WorkerProblem:
    """A failure of a worker, which becomes a `PluginProblem` of the current call."""

    kind: Kind
    sentence: str
    code: str | None = None


class _Reply(msgspec.Struct):
    """A reply of a worker, as `LuaState` returns it."""

    value: Any = None
    exports: tuple[str, ...] = ()
    pid: int = 0
    """`exports` and `pid` are in the first reply only."""
    kind: Kind | None = None
    problem: str = ""
    code: str | None = None

    def worker_problem(self) -> _WorkerProblem:
        return _WorkerProblem(self.kind or "died", self.problem, self.code)


_decode: Final = msgspec.json.Decoder(_Reply).decode
_UNREADABLE: Final = _Reply(kind="died", problem="its process sent a reply that cannot be read")


@dataclass(slots=True, eq=False)
class _Call:
    function: str
    line: bytes | None
    """The request; None only loads the plugin."""
    result: asyncio.Future[Any]


class _RunningWorker:
    """The worker of an instance, with its socket. Reports replies and its end to the instance."""

    def __init__(self, worker: Worker, owner: Instance) -> None:
        self.worker = worker
        self.decoder = ndjson.NdjsonDecoder()
        self.pid: int | None = None
        """Set when the plugin is loaded."""
        self.socket_closed = False
        self.socket = WorkerSocket(worker.socket, self._received, self._ended)
        self._owner = owner
        worker.exited.add_done_callback(lambda _: owner.on_worker_end(self))

    def kill(self) -> None:
        self.socket.close()
        self.worker.kill()

    def _received(self, data: bytes) -> None:
        for event in self.decoder.feed(data):
            self._owner.on_reply(self, _read(event))

    def _ended(self) -> None:
        self.socket_closed = True
        self._owner.on_worker_end(self)


class Instance:
    """A plugin whose functions can be called. Created by `WorkerPool.instance`."""

    def __init__(
        self,
        plugin: LuaPlugin,
        new_worker: Callable[[], Worker],
        on_close: Callable[[Instance], None],
    ) -> None:
        self.plugin = plugin
        self._new_worker = new_worker
        self._on_close = on_close
        self._queue: deque[_Call] = deque()
        self._current: _Call | None = None
        self._running: _RunningWorker | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._exports: tuple[str, ...] | None = None
        self._failures = 0
        self._rests_until = -math.inf
        self._permanent: _WorkerProblem | None = None
        """Why every call fails: the plugin does not load, or the instance is closed."""
        self._last = ""
        self._worker: Worker | None = None
        """The last worker, which may have been killed and not have exited yet."""

    @property
    def pid(self) -> int | None:
        """The pid of the worker in which the plugin is loaded, or None."""
        return self._running.pid if self._running else None

    async def call(self, function: str, *arguments: Any) -> Any:
        """Return the function's result, as JSON values. Raises PluginProblem, of any kind.

        To cancel a call does not disturb the calls after it.
        """
        line = _encode({"function": function, "arguments": arguments}) + b"\n"
        return await self._enqueue(function, line)

    async def exports(self) -> tuple[str, ...]:
        """Return the names of the plugin's functions. Raises PluginProblem."""
        if self._exports is None or self._permanent is not None:
            await self._enqueue("", None)
        return self._exports or ()

    async def close(self) -> None:
        """End the worker and wait. Pending calls fail with a problem of kind `closed`."""
        self.close_nowait()
        if self._worker is not None:
            await asyncio.shield(self._worker.exited)

    def close_nowait(self) -> None:
        """End the worker without waiting for its exit."""
        self._permanent = _WorkerProblem("closed", "the plugin was closed")
        self._on_close(self)
        self._kill_worker()
        self._fail_call(self._permanent)
        self._start_next_call()

    def _enqueue(self, function: str, line: bytes | None) -> asyncio.Future[Any]:
        call = _Call(function, line, asyncio.get_running_loop().create_future())
        self._queue.append(call)
        self._start_next_call()
        return call.result

    def _start_next_call(self) -> None:
        """Start the next queued call, unless a call is running."""
        while self._queue and self._current is None:
            call = self._queue.popleft()
            if call.result.done():
                continue  # the caller was cancelled
            self._current = call
            if (problem := self._permanent or self._resting()) is not None:
                self._fail_call(problem)
            elif self._running is None:
                self._start_worker()
            elif self._running.pid is not None:
                self._send_call(call)

    def _resting(self) -> _WorkerProblem | None:
        left = self._rests_until - asyncio.get_running_loop().time()
        if left <= 0:
            return None
        return _WorkerProblem(
            "resting",
            f"it failed {self._failures} times in a row and rests for another {left:.1f} s; "
            f"the last time, {self._last}",
        )

    def _start_worker(self) -> None:
        """Start a worker and send the plugin. `on_reply` then sends the current call."""
        try:
            worker = self._new_worker()
        except StartFailed as failure:
            self._fail_worker(_WorkerProblem("died", f"its process was not started: {failure}"))
            return
        self._worker, self._running = worker, _RunningWorker(worker, self)
        self._running.socket.send(self._load_request())
        self._set_deadline(limits.LUA_START_MS)

    def _load_request(self) -> bytes:
        plugin = self.plugin
        request = {
            "plugin": plugin.name,
            "version": __version__,
            "permissions": plugin.manifest.permissions,
            "files": plugin.files,
            "entrypoint": plugin.manifest.entrypoint or "",
        }
        return _encode(request) + b"\n"

    def _send_call(self, call: _Call) -> None:
        if call.line is None or call.result.done() or self._running is None:
            self._finish_call(None)
        else:
            self._running.socket.send(call.line)
            self._set_deadline(limits.LUA_DEADLINE_MS)

    def on_reply(self, running: _RunningWorker, reply: _Reply) -> None:
        """From a worker: a reply. Finish the current call, or send it if the plugin was loaded."""
        call = self._current
        if running is not self._running or call is None:
            return
        self._clear_deadline()
        match reply.kind:
            case None if running.pid is not None:
                self._failures = 0
                self._finish_call(reply.value)
            case None:
                running.pid = reply.pid
                self._exports = tuple(sorted(reply.exports))
                self._send_call(call)
            case "load":
                # The sources were read once and do not change, so another try would fail too.
                self._permanent = reply.worker_problem()
                self._kill_worker()
                self._fail_call(self._permanent)
            case "no_function":
                self._failures = 0
                there = ", ".join(self._exports or ()) or "none"
                sentence = f"the plugin has no such function; it has {there}"
                self._fail_call(_WorkerProblem("no_function", sentence))
            case "threw" | "refused" | "shape":
                self._failures = 0
                self._fail_call(reply.worker_problem())
            case _:
                self._fail_worker(reply.worker_problem())
        self._start_next_call()

    def on_worker_end(self, running: _RunningWorker) -> None:
        """From a worker: its socket closed, or it was reaped. After both, the reason is known."""
        if running is not self._running:
            return
        if self._current is None:
            self._kill_worker()  # no call was running; the next call starts another worker
        elif running.socket_closed and running.worker.exited.done():
            self._fail_worker(_exit_problem(running.worker.exited.result()))
            self._start_next_call()

    def _set_deadline(self, milliseconds: int) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + milliseconds / 1000
        self._timer = loop.call_at(due, self._on_deadline, due, milliseconds)

    def _on_deadline(self, due: float, milliseconds: int) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() > due + _GRACE:
            self._timer = loop.call_later(_GRACE, self._on_deadline, math.inf, milliseconds)
            return
        problem = _WorkerProblem("deadline", f"it did not answer within {milliseconds} ms")
        self._fail_worker(problem)
        self._start_next_call()

    def _fail_worker(self, problem: _WorkerProblem) -> None:
        """Kill the worker, count the failure, and fail the current call."""
        self._kill_worker()
        self._failures += 1
        self._last = problem.sentence
        if self._failures >= _FAILURES_BEFORE_REST:
            rest = _FIRST_REST * 2.0 ** min(self._failures - _FAILURES_BEFORE_REST, 16)
            now = asyncio.get_running_loop().time()
            self._rests_until = now + min(rest, limits.LUA_RESTING_MS / 1000)
        self._fail_call(problem)

    def _kill_worker(self) -> None:
        self._clear_deadline()
        if self._running is not None:
            self._running.kill()
            self._running = None

    def _clear_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _finish_call(self, value: Any) -> None:
        call, self._current = self._current, None
        if call is not None and not call.result.done():
            call.result.set_result(value)

    def _fail_call(self, problem: _WorkerProblem) -> None:
        call, self._current = self._current, None
        if call is not None and not call.result.done():
            call.result.set_exception(
                PluginProblem(
                    self.plugin.name, call.function, problem.kind, problem.sentence, problem.code
                )
            )


def _read(event: Event) -> _Reply:
    """Decode a reply. A plugin runs in the worker, so its bytes are not trusted."""
    try:
        return _decode(event.body) if isinstance(event, Frame) else _UNREADABLE
    except msgspec.DecodeError:
        return _UNREADABLE


def _exit_problem(how: Exit) -> _WorkerProblem:
    """Return the problem that an exit means, where the worker could send no reply."""
    match how.signal:
        case Signals.SIGPROF:
            return _WorkerProblem(
                "deadline", f"it took more than {limits.LUA_CPU_MS} ms of processor time"
            )
        case Signals.SIGABRT:  # Lua aborts where it has no memory to raise an error
            return _WorkerProblem("memory", "it ran out of memory")
        case None if how.code is None:
            return _WorkerProblem("died", "its process ended with the zygote")
        case _:
            return _WorkerProblem("died", f"its process {how}")
