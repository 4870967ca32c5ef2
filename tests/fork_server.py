"""Start `telex` by forking a process that has imported it already.

Imports take most of the CPU of a `telex` that a test starts: 0.1 to 0.4 s, a thousand times in the
suite. `ForkServer` replaces the two calls by which a test process creates processes: `os.posix_spawn`
(used by `telex.processes.launch`) and `_posixsubprocess.fork_exec` (used by `subprocess`). For two
commands the replacement asks a server process to fork: for `python -m telex …`, and for the zygote
of Lua plugins, which every test of a plugin starts. Every other command starts as before. So does a
command whose environment has variables that an interpreter reads at its start.

The forked process is a child of the test process, not of the server, so the test waits for it,
signals it and finds it among its children as usual. It gets the arguments, environment, directory,
descriptors, limits and signal mask that it would have after exec, and a session of its own. Two
things differ, because only exec sets them: `/proc/PID/cmdline` and `/proc/PID/environ` are those of
the server.

`@pytest.mark.fresh_start` starts every process of a test anew. The other side is
`fork_server_process`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import fork_server_process
from fork_server_process import LENGTH, REPLY, SYS_CLONE, ForkRequest
from telex.adapters.lua import worker_pool

_READ_AT_START = re.compile(
    r"PYTHON|LD_|MALLOC_|LANGUAGE=|LC_(?!CTYPE=C\.UTF-8$)|LANG=(?!C\.UTF-8$)"
)
"""Variables that an interpreter reads when it starts, unless they have the usual value."""
_ISOLATED = [sys.executable, "-I", "-S"]


class ForkServer:
    """The server processes, each started by its first command, and the calls that use them."""

    def __init__(self) -> None:
        self._fork_exec = getattr(subprocess, "_fork_exec", None)
        self._posix_spawn = os.posix_spawn
        program = fork_server_process.__file__
        lua = [*_ISOLATED, program, "lua", *worker_pool._paths()]
        self._servers = [
            _Server([sys.executable, "-m", "telex"], [sys.executable, program, "telex"]),
            _Server([*_ISOLATED, "-c", worker_pool._PROGRAM], lua),
        ]
        self.enabled = True

    @contextlib.contextmanager
    def replacing(self) -> Iterator[None]:
        """Replace the two calls until the end of the block, then end the servers."""
        if sys.platform != "linux" or not SYS_CLONE or not self._fork_exec:
            yield
            return
        with (
            patch.object(subprocess, "_fork_exec", self._start_for_subprocess),
            patch.object(os, "posix_spawn", self._start_for_launch),
        ):
            yield
        for server in self._servers:
            server.close()

    def pids(self) -> set[int]:
        return {server.process.pid for server in self._servers if server.process}

    def fds(self) -> set[int]:
        return {server.socket.fileno() for server in self._servers if server.socket}

    def _start_for_subprocess(self, argv: Sequence[Any], *details: Any) -> int:
        """Stand in for `_posixsubprocess.fork_exec`."""
        assert self._fork_exec
        words = list(map(os.fsdecode, argv))
        _, _, kept, directory, environ, stdin, _, _, stdout, _, stderr = details[:11]
        user_of_child, umask, before_exec = details[16:19], details[19], details[20]
        if environ is None:
            environ = [name + b"=" + value for name, value in os.environb.items()]
        variables = list(map(os.fsdecode, environ))
        server = self._server_of(words, variables)
        if (
            server is None
            or len(kept) > 1  # more than the pipe on which a failed exec is reported
            or user_of_child != (None, None, None)
            or umask >= 0
            or before_exec
        ):
            return int(self._fork_exec(argv, *details))
        sources = [given if given >= 0 else at for at, given in enumerate((stdin, stdout, stderr))]
        request = ForkRequest(
            server.args(words),
            variables,
            os.path.abspath(os.fsdecode(directory or os.curdir)),
            sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            _limits(),
            [["sent", target] for target in range(3)],
        )
        return server.fork(request, sources)

    def _start_for_launch(
        self, path: str, argv: Sequence[str], environ: Mapping[str, str], **details: Any
    ) -> int:
        """Stand in for `os.posix_spawn`."""
        words, directory = list(argv), os.getcwd()
        if words[:2] == ["env", "-C"]:
            directory, words = words[2], words[3:]
        variables = [f"{name}={value}" for name, value in environ.items()]
        server = self._server_of(words, variables)
        if server is None or not details.get("setsid"):
            return self._posix_spawn(path, argv, environ, **details)
        streams: list[list[Any]] = []
        sources = []
        for kind, *action in details["file_actions"]:
            if kind == os.POSIX_SPAWN_OPEN:
                streams.append(["open", *action])
            elif kind == os.POSIX_SPAWN_DUP2 and action[0] < 3:
                streams.append(["dup", *action])
            elif kind == os.POSIX_SPAWN_DUP2:
                sources.append(action[0])
                streams.append(["sent", action[1]])
        blocked = sorted(details.get("setsigmask", ()))
        args = server.args(words)
        request = ForkRequest(args, variables, directory, blocked, _limits(), streams)
        return server.fork(request, sources)

    def _server_of(self, words: list[str], environ: list[str]) -> _Server | None:
        if not self.enabled or any(map(_READ_AT_START.match, environ)):
            return None
        return next((server for server in self._servers if server.serves(words)), None)


class _Server:
    """A server process for commands that begin alike."""

    def __init__(self, command: list[str], argv: list[str]) -> None:
        self._command, self._argv = command, argv
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.socket: socket.socket | None = None

    def serves(self, words: list[str]) -> bool:
        return words[: len(self._command)] == self._command

    def args(self, words: list[str]) -> list[str]:
        return words[len(self._command) :]

    def fork(self, request: ForkRequest, sources: list[int]) -> int:
        """Have a process forked, and return its pid once it has its streams."""
        body = json.dumps(request._asdict()).encode()
        with self._lock:
            connection = self.socket or self._start()
            socket.send_fds(connection, [LENGTH.pack(len(body))], sources)
            connection.sendall(body)
            pid, error = REPLY.unpack(connection.recv(REPLY.size, socket.MSG_WAITALL))
        if error:
            if pid:
                os.waitpid(pid, 0)
            raise OSError(error, os.strerror(error))
        return int(pid)

    def close(self) -> None:
        if self.process and self.socket:
            self.socket.close()
            self.process.wait(60)

    def _start(self) -> socket.socket:
        environ = {
            name: value
            for name, value in os.environ.items()
            if not _READ_AT_START.match(f"{name}={value}")
        }
        self.socket, its = socket.socketpair()
        with its:
            self.process = subprocess.Popen(
                self._argv, stdin=its, env=environ, start_new_session=True
            )
        return self.socket


SERVER = ForkServer()
"""The one of this process."""


def _limits() -> list[list[int]]:
    kinds = {getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
    return [[kind, *resource.getrlimit(kind)] for kind in sorted(kinds)]
