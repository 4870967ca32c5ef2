"""Our side of the zygote: it forks and kills workers for us, and reports how they ended.

`worker_pool` has one of these at a time. The end of its socket shows that the zygote is gone; its
workers are gone with it then.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import socket
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from telex.adapters.lua.worker_socket import WorkerSocket
from telex.adapters.lua.zygote_protocol import ENDED, FORK, KILL, RECORD
from telex.processes.child import Exit
from telex.processes.spawn import PipeEnd, Pipes, StartRefused, start

if TYPE_CHECKING:
    from collections.abc import Callable

_PROGRAM: Final = (
    "import sys; sys.path += sys.argv[1:]; "
    "from telex.adapters.lua.zygote_process import main; main()"
)
_SOURCE: Final = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))


class Worker:
    """A process with a Lua in it, from the moment it was asked for."""

    def __init__(self, number: int, zygote: Zygote, sock: socket.socket) -> None:
        self.socket = sock
        """Our end of what leads there."""
        self.gone: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        """How it ended; an empty `Exit` where nobody could see."""
        self._number = number
        self._zygote = zygote

    def kill(self) -> None:
        """End it, if it has not ended yet."""
        self._zygote.kill(self._number)


class Zygote:
    """A running helper process, and the workers it made."""

    def __init__(self, lost: Callable[[Zygote], None]) -> None:
        """Start it. Raises `StartFailed`."""
        self._lost = lost
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

    def fork(self) -> Worker:
        """A new worker. Raises `StartFailed`."""
        ours, its = _sockets()
        number = next(self._numbers)
        try:
            self._socket.send(RECORD.pack(FORK, number, 0), its)
        except OSError as error:  # the kernel has a limit of sockets that are on their way
            ours.close()
            its.close()
            raise StartRefused(f"its socket cannot be passed on: {error.strerror}") from error
        worker = self._workers[number] = Worker(number, self, ours)
        return worker

    def kill(self, number: int) -> None:
        if number in self._workers:
            self._socket.send(RECORD.pack(KILL, number, 0))

    def close(self) -> None:
        """The helper ends itself and its workers when it sees this."""
        self._socket.close()
        self._ended()

    def _received(self, data: bytes) -> None:
        data = self._partial + data
        whole = len(data) - len(data) % RECORD.size
        self._partial = data[whole:]
        for kind, number, value in RECORD.iter_unpack(data[:whole]):
            self._workers.pop(number).gone.set_result(_exit(value) if kind == ENDED else Exit())

    def _ended(self) -> None:
        while self._workers:
            _, worker = self._workers.popitem()
            worker.gone.set_result(Exit())
        self._lost(self)


def _sockets() -> tuple[socket.socket, socket.socket]:
    try:
        return socket.socketpair()
    except OSError as error:
        raise StartRefused(f"there is no socket for it: {error.strerror}") from error


def _exit(status: int) -> Exit:
    code = os.waitstatus_to_exitcode(status)
    return Exit(code=code) if code >= 0 else Exit(signal=-code)


def _paths() -> list[str]:
    """Where the helper finds what it imports. Lua itself is never loaded in this process."""
    found = importlib.util.find_spec("lupa")
    if found is None or found.origin is None:
        raise StartRefused("lupa, which has Lua, is not installed; install telex again")
    packages = (os.path.dirname(found.origin), os.path.dirname(msgspec.__file__))
    return list(dict.fromkeys((_SOURCE, *map(os.path.dirname, packages))))


def _environment() -> dict[str, str]:
    """Nothing of ours, except where our Python finds its own libraries."""
    wanted = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH")
    return {name: os.environ[name] for name in wanted if name in os.environ}
