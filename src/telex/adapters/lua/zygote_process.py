"""The zygote: a process that forks a worker for each plugin instance, and reports how it ended.

A fork of a process that has Lua loaded costs a millisecond and little memory; a start from nothing
costs a tenth of a second. The zygote itself runs no plugin. As the parent of all workers, only the
zygote can kill a worker by its pid without the risk that another process has got this pid.

`worker_pool` starts this process with a socket as its standard input; `zygote_protocol` has the
records on it. The process exits when the socket closes. It runs isolated (`python -I -S`), without
asyncio.

`main` and `ZygoteLoop` run in the zygote; `_run_worker` and everything below run in a worker.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import select
import signal
import socket
import sys
from typing import Final, NoReturn

import msgspec

from telex.adapters import limits
from telex.adapters.lua.lua_state import LuaState, Reply
from telex.adapters.lua.zygote_protocol import ENDED, FORK, NOT_FORKED, RECORD
from telex.processes.proc import address_space

_STDIN: Final = 0
_READ_BYTES: Final = 64 * 1024  # as in `WorkerSocket`, and for the same reason
_libc: Final = ctypes.CDLL(None)
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


def main() -> None:
    """Load Lua, then fork and reap workers until the socket closes."""
    os.chdir("/")
    os.environ.clear()
    lua = LuaState()
    gc.collect()
    gc.freeze()  # objects that the collector does not visit stay shared between the forks
    with socket.socket(fileno=_STDIN) as server:
        ZygoteLoop(server, lua).run()


class ZygoteLoop:
    """Waits for records of the server and for exits of workers. Knows workers by number and pid."""

    def __init__(self, server: socket.socket, lua: LuaState) -> None:
        self._server = server
        self._lua = lua
        self._pids: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._wakeup, write_end = os.pipe()
        os.set_blocking(write_end, False)
        os.set_blocking(self._wakeup, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler is needed for the wakeup
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)

    def run(self) -> None:
        poll = select.poll()
        poll.register(self._server, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        try:
            while True:
                for fd, _ in poll.poll():
                    if fd == self._wakeup:
                        os.read(self._wakeup, 4096)
                        self._reap()
                    elif not self._read_record():
                        return
        except (BrokenPipeError, ConnectionResetError):
            return  # the server has exited
        finally:
            for pid in self._numbers:
                os.kill(pid, signal.SIGKILL)
            for pid in self._numbers:
                os.waitpid(pid, 0)

    def _read_record(self) -> bool:
        """Read one record and execute it. Return False at EOF."""
        data, fds = _received(self._server)
        if not data:
            return False
        kind, number, _ = RECORD.unpack(data)
        if kind == FORK:
            self._fork_worker(number, fds[0])
        elif number in self._pids:
            os.kill(self._pids[number], signal.SIGKILL)
        return True

    def _fork_worker(self, number: int, fd: int) -> None:
        zygote = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._send(NOT_FORKED, number, error.errno or 0)
        else:
            if pid == 0:
                _run_worker(fd, zygote, self._lua)
            self._pids[number], self._numbers[pid] = pid, number
        finally:
            os.close(fd)

    def _reap(self) -> None:
        while self._numbers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            number = self._numbers.pop(pid)
            del self._pids[number]
            self._send(ENDED, number, status)

    def _send(self, kind: bytes, number: int, value: int) -> None:
        self._server.sendall(RECORD.pack(kind, number, value))


def _received(server: socket.socket) -> tuple[bytes, list[int]]:
    """Receive one record, and the descriptor attached to it."""
    data, fds, _, _ = socket.recv_fds(server, RECORD.size, 1)
    while data and len(data) < RECORD.size:
        more = server.recv(RECORD.size - len(data))
        data = data + more if more else b""
    return data, fds


def _run_worker(fd: int, parent: int, lua: LuaState) -> NoReturn:
    """Run a worker, in the forked process: set its limits, serve calls until EOF, exit."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(fd, _STDIN)
        os.closerange(3, 1 << 16)
        _apply_limits(parent)
        _serve(socket.socket(fileno=_STDIN), lua)
        code = 0
    finally:
        os._exit(code)


def _apply_limits(parent: int) -> None:
    """Take away what no plugin needs, in case a plugin breaks out of its Lua state.

    Other systems than Linux have fewer of these limits. There a worker ends at EOF of its socket.
    """
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _limit(resource.RLIMIT_AS, address_space() + limits.LUA_PROCESS_BYTES)
    if os.getppid() != parent:
        os._exit(1)  # the zygote exited before PR_SET_PDEATHSIG was set
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    _limit(resource.RLIMIT_NOFILE, 0)  # open descriptors stay open, new ones cannot be opened


def _limit(what: int, value: int) -> None:
    resource.setrlimit(what, (value, value))


def _serve(server: socket.socket, lua: LuaState) -> None:
    """Answer each line with a line. The first line loads the plugin, each other line is a call."""
    line = bytearray()
    while data := server.recv(_READ_BYTES):
        line += data
        if data.endswith(b"\n"):  # the server sends one call at a time, so a newline ends the data
            # The kernel ends this process by SIGPROF when the call takes too much CPU time.
            signal.setitimer(signal.ITIMER_PROF, limits.LUA_CPU_MS / 1000)
            answer = msgspec.json.encode(_answer(lua, line))
            signal.setitimer(signal.ITIMER_PROF, 0)
            server.sendall(answer + b"\n")
            line.clear()


def _answer(lua: LuaState, line: bytearray) -> Reply:
    request = msgspec.json.decode(line)
    if "function" in request:
        return lua.call(request["function"], request["arguments"])
    return lua.load(**request)
