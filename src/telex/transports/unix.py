"""Channels over unix sockets, private to this user from the moment they exist.

The socket is bound under a umask, so it never exists with wider permissions than 0600. The kernel
reports the process and the user of each connection, at either end; the user must be ours. A missing
directory is created with mode 0700. A stale socket is removed only after a connect to it failed,
under a lock; any other kind of file is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from telex.config import limits
from telex.config.places import make_private
from telex.processes import proc
from telex.rpc.identity import Identity
from telex.transports.channels import NDJSON, FramedChannel, Framing, printable
from telex.transports.errors import AccessDenied, NoServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.rpc.channel import Channel

log = logging.getLogger("telex.transports")

_LOCAL_PEERCRED: Final = 1
_LOCAL_PEERPID: Final = 2


class SocketError(Exception):
    """A unix socket cannot be used; the message says which and why."""


class NotASocket(SocketError):
    """The path is another kind of file."""


class AlreadyServed(SocketError):
    """Another server listens at that path."""


class PathTooLong(SocketError):
    """The socket path is longer than the kernel allows."""


class NoNamedPipes(SocketError):
    """A path that has a meaning only on Windows."""

    exit_code = 3


class Listener:
    """A bound socket that turns connections into channels, until it is closed."""

    def __init__(
        self, path: Path, on_channel: Callable[[Channel], object], framing: Framing
    ) -> None:
        self.path = path
        self._on_channel = on_channel
        self._framing = framing
        self._channels: set[FramedChannel] = set()
        self._lock: int | None = None
        self._inode: tuple[int, int] | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        _check_path(self.path)
        if not self.path.parent.exists():
            make_private(self.path.parent)
        self._lock = _locked(self.path)
        try:
            sock = _bound(self.path)
            self._inode = _identity(self.path)
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(self._accept, sock=sock, backlog=128)
        except BaseException:
            self._release()
            raise
        return self

    def stop_listening(self) -> None:
        """Refuse new connections. The open channels and the path's lock stay."""
        if self._server is not None:
            self._server.close()

    async def __aexit__(self, *_: object) -> None:
        """Stop listening, close the open channels, and remove the socket."""
        self.stop_listening()
        await asyncio.gather(*(channel.close() for channel in set(self._channels)))
        if self._server is not None:
            await self._server.wait_closed()
        self._release()

    def _accept(self) -> FramedChannel:
        return _AcceptedSocket(self._framing, self._admit, self._channels.discard)

    def _admit(self, channel: FramedChannel) -> bool:
        if (user := channel.identity.uid) != os.getuid():
            log.warning("refused a connection to %s from user %s", self.path, user)
            return False
        self._channels.add(channel)
        self._on_channel(channel)
        return True

    def _release(self) -> None:
        if self._inode is not None and _identity(self.path) == self._inode:
            self.path.unlink()
        if self._lock is not None:
            _lock_path(self.path).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None


class _AcceptedSocket(FramedChannel):
    """A channel of a listener: it checks the user of the connection before anything else."""

    def __init__(
        self,
        framing: Framing,
        admit: Callable[[FramedChannel], bool],
        forget: Callable[[FramedChannel], None],
    ) -> None:
        super().__init__(framing)
        self._admit = admit
        self._forget = forget

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.identity = peer_identity(transport.get_extra_info("socket"))
        if not self._admit(self):
            transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._forget(self)
        super().connection_lost(error)


def listen(
    path: Path, on_channel: Callable[[Channel], object], framing: Framing = NDJSON
) -> Listener:
    """Listen at a path: `async with listen(path, serve):` calls `serve` with each new channel."""
    return Listener(path, on_channel, framing)


async def connect(path: Path, framing: Framing = NDJSON) -> Channel:
    """Open a channel to the server that listens at the path. Raises CannotConnect."""
    _check_path(path)
    loop = asyncio.get_running_loop()
    try:
        transport, channel = await loop.create_unix_connection(
            lambda: FramedChannel(framing), str(path)
        )
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NoServer(f"no server listens at {path}") from error
    except PermissionError as error:
        raise AccessDenied(f"the socket {path} belongs to another user") from error
    channel.identity = peer_identity(transport.get_extra_info("socket"))
    if channel.identity.uid != os.getuid():
        await channel.close()
        raise AccessDenied(
            f"the server at {path} is run by user {channel.identity.uid}, not by you"
        )
    return channel


def peer_identity(sock: Any) -> Identity:
    """Return the process at the other end, as the kernel reports it, with the name that its program
    has now. The pid is missing where the process is in another pid namespace."""
    if sys.platform == "linux":
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, user, _ = struct.unpack("3i", credentials)
    else:  # struct xucred begins with a version and the user id
        credentials = sock.getsockopt(0, _LOCAL_PEERCRED, 76)
        _, user = struct.unpack("2I", credentials[:8])
        pid = sock.getsockopt(0, _LOCAL_PEERPID)
    return Identity("process", _program_name(pid), pid or None, user)


def _program_name(pid: int) -> str:
    try:
        return printable(proc.read(pid, "comm").decode("utf-8", "replace").strip())
    except OSError:  # it has ended already, or there is no /proc
        return ""


def _check_path(path: Path) -> None:
    if str(path).startswith("\\\\.\\pipe\\"):
        raise NoNamedPipes(f"{path} is a Windows pipe, which is not supported on this system yet")
    longest = limits.SOCKET_PATH_BYTES
    if len(os.fsencode(path)) > longest:
        raise PathTooLong(f"the socket path {path} is over {longest} bytes; choose a shorter one")


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _locked(path: Path) -> int:
    """Take the path's lock, as long as we listen. Raises AlreadyServed if a server has it."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(_lock_path(path), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise AlreadyServed(_listened_at(path)) from None
        opened = os.fstat(lock)
        if _identity(_lock_path(path)) == (opened.st_dev, opened.st_ino):
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)  # for `telex server stop`
            return lock
        os.close(lock)  # its last holder removed the file meanwhile: lock the new file


def _listened_at(path: Path) -> str:
    return f"another server listens at {path}; use that one, or choose another path"


def _bound(path: Path) -> socket.socket:
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        sock.bind(str(path))
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(before)
    return sock


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise NotASocket(f"{path} is not a socket; move it away or choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        if (error := probe.connect_ex(str(path))) != errno.ECONNREFUSED:
            taken = error in (0, errno.EAGAIN)
            raise AlreadyServed(_listened_at(path) if taken else f"cannot use {path}")
    path.unlink()


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        return found.st_dev, found.st_ino
    return None
