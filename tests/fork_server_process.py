"""The process behind `fork_server`: it imports what a command needs, and forks for each request.

`python fork_server_process.py telex` imports all of telex. `python -I -S fork_server_process.py lua
PATH…` imports what the zygote of Lua plugins needs; as that process has to be small, this module
imports little. The process reads requests from its standard input, a socket, until EOF.
"""

from __future__ import annotations

import ctypes
import gc
import io
import json
import os
import resource
import signal
import socket
import struct
import sys
import time
from typing import Any, NamedTuple, NoReturn

SYS_CLONE = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
_CLONE_PARENT = 0x8000
LENGTH = struct.Struct("=I")
"""Before each request: how long it is. The descriptors are sent with it."""
REPLY = struct.Struct("=ii")
"""The pid of the new process, and 0 or the error number for which it did not start."""


class ForkRequest(NamedTuple):
    """A process to fork. The sources of its standard streams are sent along as descriptors."""

    args: list[str]
    environ: list[str]
    directory: str
    blocked: list[int]
    limits: list[list[int]]
    """For each kind of resource: the kind, and the soft and hard limit."""
    streams: list[list[Any]]
    """In their order: `["sent", target]`, `["dup", source, target]` or `["open", target, …]`."""


def main(command: str, *paths: str) -> None:
    import_path = list(sys.path)
    sys.path[:0] = paths
    if command == "telex":
        _import_telex()
    else:
        import telex.adapters.lua.zygote_process  # noqa: F401
    sys.path[:] = import_path
    connection = socket.socket(fileno=os.dup(0))
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    gc.collect()
    gc.freeze()  # the collector does not visit these objects, so the forks share their memory
    while connection.recv(LENGTH.size, socket.MSG_PEEK):
        header, fds, *_ = socket.recv_fds(connection, LENGTH.size, 3)
        (length,) = LENGTH.unpack(header)
        request = ForkRequest(**json.loads(connection.recv(length, socket.MSG_WAITALL)))
        try:
            if not _clone():
                _become(request, connection, fds)
                _run_telex(request) if command == "telex" else _run_lua()
        except OSError as error:
            connection.sendall(REPLY.pack(0, error.errno))
        for fd in fds:
            os.close(fd)


def _import_telex() -> None:
    import importlib
    import pkgutil

    import telex

    for module in pkgutil.walk_packages(telex.__path__, "telex."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def _clone() -> int:
    """Fork as `os.fork` does, but with our parent as the parent of the new process."""
    python = ctypes.pythonapi
    libc = ctypes.PyDLL(None, use_errno=True)  # unlike CDLL, it keeps the interpreter's lock
    python.PyOS_BeforeFork()
    pid = int(libc.syscall(SYS_CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        python.PyOS_AfterFork_Child()
        return 0
    python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


# In the forked process.


def _become(request: ForkRequest, connection: socket.socket, fds: list[int]) -> None:
    """Do what exec and the start of an interpreter do, and reply."""
    try:
        os.setsid()
        _place_streams(request.streams, fds)
        os.chdir(request.directory)
    except OSError as error:
        connection.sendall(REPLY.pack(os.getpid(), error.errno))
        os._exit(127)
    os.environ.clear()
    for variable in request.environ:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    if not {"LC_ALL", "LC_CTYPE", "LANG"} & os.environ.keys():
        os.environ["LC_CTYPE"] = "C.UTF-8"  # as Python does instead of the locale C
    time.tzset()
    for kind, soft, hard in request.limits:
        resource.setrlimit(kind, (soft, hard))
    signal.pthread_sigmask(signal.SIG_SETMASK, request.blocked)
    connection.sendall(REPLY.pack(os.getpid(), 0))
    connection.detach()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.stdin, sys.stdout, sys.stderr = (
        _text(0, "<stdin>"),
        _text(1, "<stdout>"),
        _text(2, "<stderr>"),
    )


def _place_streams(streams: list[list[Any]], fds: list[int]) -> None:
    sent = iter(fds)
    for kind, *action in streams:
        if kind == "sent":
            os.dup2(next(sent), *action)
        elif kind == "dup":
            os.dup2(*action)
        else:
            target, *how = action
            opened = os.open(*how)
            os.dup2(opened, target)
            os.close(opened)
    for fd in range(3):
        os.set_inheritable(fd, True)


def _text(fd: int, name: str) -> io.TextIOWrapper:
    raw = io.FileIO(fd, "w" if fd else "r", closefd=False)
    raw.name = name
    return io.TextIOWrapper(
        io.BufferedWriter(raw) if fd else io.BufferedReader(raw),
        encoding="utf-8",
        errors="backslashreplace" if fd == 2 else "surrogateescape",
        newline="\n",
        line_buffering=fd == 2 or raw.isatty(),
    )


def _run_telex(request: ForkRequest) -> NoReturn:
    import tempfile

    from telex.__main__ import main as telex

    tempfile.tempdir = None
    sys.argv = ["telex", *request.args]
    sys.path[0] = request.directory
    _exit(telex())


def _run_lua() -> NoReturn:
    from telex.adapters.lua.zygote_process import main as zygote

    zygote()
    _exit(0)


def _exit(code: int) -> NoReturn:
    """Do what an interpreter does before it exits."""
    import atexit
    import contextlib
    import threading

    threading._shutdown()  # type: ignore[attr-defined]  # not public
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main(*sys.argv[1:])
