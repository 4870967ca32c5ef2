"""`telex server`: look at the server of the verbs, and stop it."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from telex.cli.console import explain, say
from telex.config.runtime_directory import SOCKET_NAME, find_runtime_directory
from telex.server.start import log_file, recorded_server
from telex.server.verb_client import NoAnswer, NotAccepted, connected, encode_json, exchange
from telex.transports.errors import NoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUS_SECONDS: Final = 5.0
STOP_SECONDS: Final = 10.0
"""How long the programs of a server may take to end before the server is killed."""

HELP = """Look at the server that the verbs use, and stop it.

The first verb starts it. It ends by itself when it has held no session and nobody was connected
for 10 minutes.

\b
  telex server status
  telex server logs
  telex server stop
"""


@click.group(help=HELP)
def command() -> None:
    pass


@command.command(help="Show the server's process, and what it holds. Exit code 5: none runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> int:
    with _server() as server:
        found = server.ask("server.status", STATUS_SECONDS)
        if as_json:
            say(encode_json(found | {"socket": server.path}))
            return 0
        say(f"telex {found['version']}, pid {found['pid']}, for {_duration(found['uptime_s'])}")
        say(f"socket {server.path}")
        others = found["connections"] - 1  # this one
        counts = (
            ("session", found["sessions"]),
            ("run", found["runs"]),
            ("other connection", others),
        )
        say(", ".join(_count(number, noun) for noun, number in counts))
    return 0


@command.command(help="End the server and every program in it.")
def stop() -> int:
    pid: int | None
    try:
        with _server() as server:
            pid, ended = server.pid, _asked_to_stop(server)
    except (NoServer, NoAnswer):  # it may be stopped while it starts, or its queue may be full
        pid, ended = recorded_server(Path(find_runtime_directory(os.environ))), None
        if pid is None:
            raise
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        explain(f"telex: the server (pid {pid}) has ended")
        return 0
    how = "" if ended is None else f"stopped; {_count(ended, 'session')} ended"
    if ended is None or not select.select([process], [], [], STOP_SECONDS)[0]:
        how = "killed, because it did not answer; its guardian ends its programs"
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [], STOP_SECONDS)
    os.close(process)
    explain(f"telex: the server (pid {pid}) was {how}")
    return 0


def _asked_to_stop(server: _Server) -> int | None:
    """Return how many sessions end; None if the server does not answer."""
    try:
        sessions: int = server.ask("server.stop", STATUS_SECONDS)["sessions"]
    except (NoAnswer, NotAccepted):
        return None
    return sessions


@command.command(help="Print the log of the server.")
@click.option("--lines", "-n", type=click.IntRange(1), default=50, show_default=True)
@click.option("--path", is_flag=True, help="Print the path of the log alone.")
def logs(lines: int, path: bool) -> int:
    log = log_file()
    if path:
        say(str(log))
    elif not log.exists():
        explain(f"telex: no server was started on demand yet; its log will be {log}")
        return 1
    else:
        for line in log.read_text(errors="replace").splitlines()[-lines:]:
            say(line)
    return 0


class LinuxOnly(Exception):
    """This system does not tell which process listens at a socket."""

    exit_code = 3


class _Server:
    """A connection to the server at the default socket."""

    def __init__(self, path: str, connection: Any) -> None:
        self.path = path
        self._connection = connection
        size = struct.calcsize("3i")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        self.pid: int = struct.unpack("3i", credentials)[0]

    def ask(self, method: str, seconds: float) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
        request = encode_json(message).encode() + b"\n"
        answer = exchange(self._connection, request, time.monotonic() + seconds)
        if "stderr" in answer:
            raise click.ClickException(answer["stderr"])
        return answer


@contextmanager
def _server() -> Iterator[_Server]:
    if sys.platform != "linux":
        raise LinuxOnly("`telex server` knows the server's process on Linux only")
    path = os.path.join(find_runtime_directory(os.environ), SOCKET_NAME)
    connection = connected(path, time.monotonic() + STATUS_SECONDS)
    if connection is None:
        raise NoServer(f"no server listens at {path}; any verb starts one, such as: telex list")
    try:
        yield _Server(path, connection)
    finally:
        connection.close()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _duration(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
