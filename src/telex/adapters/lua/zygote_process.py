"""The zygote: a process that forks a worker for each plugin instance, and reports their ends.

A fork of a process that has Lua ready costs a millisecond and little memory, where a start from
nothing costs a tenth of a second. This process runs no plugin itself. As the parent of all workers
it alone can kill one by its number without ever hitting another.

It is started by `zygote`, with a socket for its standard input, and is over when that closes; see
`zygote_protocol` for what travels there. It runs isolated (`python -I -S`), and without asyncio.
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

_STDIN: Final = 0
_READ_BYTES: Final = 64 * 1024  # as in `worker_socket`, and for the same reason
_libc: Final = ctypes.CDLL(None)
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


def main() -> None:
    """The helper's whole life."""
    os.chdir("/")
    os.environ.clear()
    lua = LuaState()
    gc.collect()
    gc.freeze()  # what is not looked at is not copied
    with socket.socket(fileno=_STDIN) as server:
        _Zygote(server, lua).run()


class _Zygote:
    """Who lives, by number and by pid, and the two things that are waited for."""

    def __init__(self, server: socket.socket, lua: LuaState) -> None:
        self._server = server
        self._lua = lua
        self._pids: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._bell, ring = os.pipe()
        os.set_blocking(ring, False)
        os.set_blocking(self._bell, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # heard of, by the bell below
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)

    def run(self) -> None:
        poll = select.poll()
        poll.register(self._server, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        try:
            while True:
                for fd, _ in poll.poll():
                    if fd == self._bell:
                        os.read(self._bell, 4096)
                        self._reap()
                    elif not self._obey():
                        return
        except (BrokenPipeError, ConnectionResetError):
            return  # the server is gone, which is the end of us too
        finally:
            for pid in self._numbers:
                os.kill(pid, signal.SIGKILL)
            for pid in self._numbers:
                os.waitpid(pid, 0)

    def _obey(self) -> bool:
        """Do what one record says; False when there will be no more."""
        data, fds = _received(self._server)
        if not data:
            return False
        kind, number, _ = RECORD.unpack(data)
        if kind == FORK:
            self._fork(number, fds[0])
        elif number in self._pids:
            os.kill(self._pids[number], signal.SIGKILL)
        return True

    def _fork(self, number: int, fd: int) -> None:
        ours = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell(NOT_FORKED, number, error.errno or 0)
        else:
            if pid == 0:
                _work(fd, ours, self._lua)
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
            self._tell(ENDED, number, status)

    def _tell(self, kind: bytes, number: int, value: int) -> None:
        self._server.sendall(RECORD.pack(kind, number, value))


def _received(server: socket.socket) -> tuple[bytes, list[int]]:
    """One record, and the descriptor that came with it."""
    data, fds, _, _ = socket.recv_fds(server, RECORD.size, 1)
    while data and len(data) < RECORD.size:
        more = server.recv(RECORD.size - len(data))
        data = data + more if more else b""
    return data, fds


def _work(fd: int, parent: int, lua: LuaState) -> NoReturn:
    """A worker's whole life, in the fork."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(fd, _STDIN)
        os.closerange(3, 1 << 16)
        _confine(parent)
        _serve(socket.socket(fileno=_STDIN), lua)
        code = 0
    finally:
        os._exit(code)


def _confine(parent: int) -> None:
    """What no plugin needs is taken away, should one ever get out of its Lua.

    Other systems than Linux have fewer of these; the worker is then ended by the end of its socket.
    """
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _limit(resource.RLIMIT_AS, _address_space() + limits.LUA_PROCESS_BYTES)
    if os.getppid() != parent:
        os._exit(1)  # it ended before we asked to be ended with it
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    _limit(resource.RLIMIT_NOFILE, 0)  # what is open stays so, and nothing else can be opened


def _address_space() -> int:
    """In bytes. Read without `open`, whose layers take a fifth of a millisecond in a new fork."""
    statm = os.open("/proc/self/statm", os.O_RDONLY)
    pages = int(os.read(statm, 64).split()[0])
    os.close(statm)
    return pages * resource.getpagesize()


def _limit(what: int, value: int) -> None:
    resource.setrlimit(what, (value, value))


def _serve(server: socket.socket, lua: LuaState) -> None:
    """The first line begins the plugin, each other is a call; each is answered with a line."""
    line = bytearray()
    while data := server.recv(_READ_BYTES):
        line += data
        if data.endswith(b"\n"):  # one call at a time: nothing follows a whole line
            # The kernel ends us by SIGPROF when we take too long, whatever we do then.
            signal.setitimer(signal.ITIMER_PROF, limits.LUA_CPU_MS / 1000)
            answer = msgspec.json.encode(_answer(lua, line))
            signal.setitimer(signal.ITIMER_PROF, 0)
            server.sendall(answer + b"\n")
            line.clear()


def _answer(lua: LuaState, line: bytearray) -> Reply:
    asked = msgspec.json.decode(line)
    if "function" in asked:
        return lua.call(asked["function"], asked["arguments"])
    return lua.load(**asked)
