"""All plugin instances of one server, and the zygote that forks their workers.

The zygote is started for the first worker. A zygote that was killed is replaced for the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import socket
import sys
from typing import TYPE_CHECKING, Final, Self

import msgspec

from telex.adapters.lua.instance import Instance, WorkerSocket
from telex.adapters.lua.zygote_protocol import ENDED, FORK, KILL, RECORD
from telex.processes.child import Exit
from telex.processes.spawn import PipeEnd, Pipes, StartRefused, start
from telex.processes.termination import AT_ONCE
from telex.transports import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.processes.child import Child

# The server's side of the zygote: start and kill workers, and receive how they ended.
#
# `WorkerPool` has one `Zygote` at a time. EOF of its socket means that the zygote exited, and its
# workers with it. The other side is `zygote_process`.


_PROGRAM: Final = (
    "import sys; sys.path += sys.argv[1:]; "
    "from telex.adapters.lua.zygote_process import main; main()"
)
_SOURCE: Final = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))


class Worker:
    """A worker process, from the moment when it was requested."""

    def __init__(self, number: int, zygote: Zygote, sock: socket.socket) -> None:
        self.socket = sock
        """The server's end of the socket pair. The caller closes it."""
        self.exited: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        """How the worker ended; an empty `Exit` if the zygote ended first or could not fork."""
        self._number = number
        self._zygote = zygote

    def kill(self) -> None:
        """Kill the worker, if it has not ended yet."""
        self._zygote.kill(self._number)


class Zygote:
    """A running zygote process, and the workers it forked."""

    def __init__(self, on_end: Callable[[Zygote], None]) -> None:
        """Start the process. `on_end` is called when its socket closes. Raises `StartFailed`."""
        self._on_end = on_end
        self._numbers = itertools.count(1)
        self._workers: dict[int, Worker] = {}
        self._partial = b""
        ours, its = _sockets()
        with its:
            try:
                self.child = start(
                    [sys.executable, "-I", "-S", "-c", _PROGRAM, *_paths()],
                    stdio=Pipes(its.fileno(), PipeEnd.NULL, PipeEnd.NULL),
                    env=_environment(),
                )
            except BaseException:
                ours.close()
                raise
        self._socket = WorkerSocket(ours, self._received, self._ended)

    def start_worker(self) -> Worker:
        """Have the zygote fork a worker. Raises `StartFailed`."""
        ours, its = _sockets()
        number = next(self._numbers)
        try:
            self._socket.send(RECORD.pack(FORK, number, 0), its)
        except OSError as error:  # the kernel limits how many sockets are in transit
            ours.close()
            its.close()
            raise StartRefused(f"cannot pass on its socket: {error.strerror}") from error
        worker = self._workers[number] = Worker(number, self, ours)
        return worker

    def kill(self, number: int) -> None:
        if number in self._workers:
            self._socket.send(RECORD.pack(KILL, number, 0))

    def close(self) -> None:
        """Close the socket. The zygote then kills its workers and exits."""
        self._socket.close()
        self._ended()

    def _received(self, data: bytes) -> None:
        data = self._partial + data
        whole = len(data) - len(data) % RECORD.size
        self._partial = data[whole:]
        for kind, number, value in RECORD.iter_unpack(data[:whole]):
            self._workers.pop(number).exited.set_result(_exit(value) if kind == ENDED else Exit())

    def _ended(self) -> None:
        while self._workers:
            _, worker = self._workers.popitem()
            worker.exited.set_result(Exit())
        self._on_end(self)


def _sockets() -> tuple[socket.socket, socket.socket]:
    try:
        return socket.socketpair()
    except OSError as error:
        raise StartRefused(f"cannot create its socket: {error.strerror}") from error


def _exit(status: int) -> Exit:
    code = os.waitstatus_to_exitcode(status)
    return Exit(code=code) if code >= 0 else Exit(signal=-code)


def _paths() -> list[str]:
    """Return the import path of the zygote. The server itself never loads Lua."""
    found = importlib.util.find_spec("lupa")
    if found is None or found.origin is None:
        raise StartRefused("the package lupa (Lua) is not installed; install telex-terminal again")
    packages = (os.path.dirname(found.origin), os.path.dirname(msgspec.__file__))
    return list(dict.fromkeys((_SOURCE, *map(os.path.dirname, packages))))


def _environment() -> dict[str, str]:
    """Return the zygote's environment: only the variables by which Python finds its libraries."""
    wanted = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH")
    return {name: os.environ[name] for name in wanted if name in os.environ}


class WorkerPool:
    """Creates instances, and ends all their processes on `close`."""

    def __init__(self) -> None:
        self._zygote: Zygote | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._instances: set[Instance] = set()
        self._closed = False

    def instance(self, plugin: LuaPlugin) -> Instance:
        """Return a new instance of the plugin. Its worker is started by the first call."""
        instance = Instance(plugin, self._start_worker, self._instances.discard)
        if self._closed:
            instance.close_nowait()
        else:
            self._instances.add(instance)
        return instance

    async def close(self) -> None:
        """End all workers and the zygote, and wait. Pending calls fail with kind `closed`."""
        self._closed = True
        for instance in list(self._instances):
            instance.close_nowait()
        if self._zygote is not None:
            self._zygote.close()
        if self._endings:
            await asyncio.wait(self._endings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _start_worker(self) -> Worker:
        if self._zygote is None:
            self._zygote = Zygote(self._on_zygote_end)
        return self._zygote.start_worker()

    def _on_zygote_end(self, zygote: Zygote) -> None:
        self._zygote = None
        ending = asyncio.create_task(_end_zygote(zygote.child))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)


async def _end_zygote(child: Child) -> None:
    """Wait for a zygote whose socket closed, then end the rest of its process tree."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.CLOSE_SECONDS):
            await child.wait()  # the zygote reaps its workers before it exits
    await child.end(AT_ONCE)
