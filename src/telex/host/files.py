"""Files between a program and the person under `telex run`: `file:download` and `file:upload`.

A file from the program goes to the person's download directory, or where telex was started if there
is none. It has a temporary name until all of it is there, and then one that no other file has. A
file to the program is one in the directory where telex was started: programs name no paths.

What the person is asked is about one file. So it is found before the question (`guarded`), held
open while that stands, and it is what is used after a yes, whatever has its name by then. Errors
are fixed sentences, as everywhere in JSON escapes.

Reads and writes are done on the spot, not in a thread: a program that sends faster than the disk
takes it is then not read meanwhile, and there is nothing else to hold it back with.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from telex.host import file_names
from telex.protocols import json_escapes as spec
from telex.rpc.errors import RpcError
from telex.rpc.messages import ABSENT
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from telex.escapes.command import Command
    from telex.escapes.policy import Origin
    from telex.escapes.service import Gate
    from telex.escapes.surface import Other
    from telex.rpc.handler_tasks import Call

DOWNLOAD: Final = "file:download"
UPLOAD: Final = "file:upload"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file from the program is to be kept."""

    directory: Path
    name: str
    summary: str

    def close(self) -> None:
        """Nothing is open before the first byte is there."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file for the program; without a descriptor there is none of that name."""

    name: str
    summary: str
    size: int = 0
    fd: int | None = None

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


_ALLOWED: ContextVar[Place | Found] = ContextVar("telex_file_allowed")
"""What the person said yes to, from the gate to the handler: both run in the request's own task."""


class Files:
    """For one program in one person's terminal."""

    def __init__(self, piece: Callable[[Call], Awaitable[int | None]]) -> None:
        """`piece` waits until a part can be sent, and says how many bytes fit into it; None if
        nobody will read it."""
        self._piece = piece
        self.giving = 0
        """How many files are on their way to a program."""
        self._arriving: set[Call] = set()
        self.others: Mapping[str, Other] = {DOWNLOAD: self._keep, UPLOAD: self._give}

    def guarded(self, gate: Gate) -> Gate:
        """The gate, where what is asked about a file is about that file."""
        return _Guarded(gate)

    def look(self, alive: Callable[[Call], bool]) -> None:
        """Give up the files of programs that have ended: no more of them will come."""
        for call in self._arriving:
            if not alive(call):
                call.parts.end(RpcError(spec.ECCLOSED, "The program that sent the file is gone."))

    async def _keep(self, asked: spec.FileDownload, call: Call) -> spec.FileSaved:
        place = _ALLOWED.get()
        assert isinstance(place, Place)
        self._arriving.add(call)
        try:
            with contextlib.closing(_Arriving(place, asked.size)) as file:
                async for part in call.parts:
                    file.add(part.data)
                return spec.FileSaved(file.keep())
        except OSError:
            raise RpcError(spec.ECINTERNAL, "The file could not be kept.") from None
        finally:
            self._arriving.discard(call)

    async def _give(self, asked: spec.FileUpload, call: Call) -> AsyncIterator[object]:
        found = _ALLOWED.get()
        assert isinstance(found, Found)
        with contextlib.closing(found):
            if found.fd is None:
                raise RpcError(spec.ECARGS, "There is no such file.")
            self.giving += 1
            try:
                yield spec.FileSent(found.name, found.size)
                at = 0
                while at < found.size:
                    data = _read(found.fd, at, min(found.size - at, await self._room(call)))
                    at += len(data)
                    yield data
                await self._room(call)  # for the end, which is a part too
            finally:
                self.giving -= 1

    async def _room(self, call: Call) -> int:
        if (piece := await self._piece(call)) is None:
            raise RpcError(spec.ECCLOSED, "The program that asked for the file is gone.")
        return piece


def _read(fd: int, at: int, count: int) -> bytes:
    try:
        data = os.pread(fd, count, at)
    except OSError:
        data = b""
    if not data:
        raise RpcError(spec.ECINTERNAL, "The file could not be read to its end.")
    return data


class _Guarded:
    """A gate before another."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def settled(self, command: Command, origin: Origin, summary: str) -> bool | None:
        return self._gate.settled(command, origin, summary)

    async def allow(self, command: Command, origin: Origin, summary: str) -> bool:
        """The service's summary is the payload as JSON; the person's is of the file itself."""
        if command.name not in (DOWNLOAD, UPLOAD):
            return await self._gate.allow(command, origin, summary)
        file = _find(msgspec.json.decode(summary, type=command.payload))
        allowed = False
        try:
            allowed = await self._gate.allow(command, origin, file.summary)
        finally:
            if allowed:
                _ALLOWED.set(file)
            else:
                file.close()
        return allowed


def _find(asked: msgspec.Struct) -> Place | Found:
    match asked:
        case spec.FileDownload(name, size):
            _check(name)
            return _place(_downloads(), name, size)
        case spec.FileUpload(str(name)):
            _check(name)
            return _found(Path.cwd(), name)
    raise RpcError(spec.ECUNSUP, "This terminal cannot have a file chosen: name one.")


def _check(name: str) -> None:
    if not file_names.acceptable(name):
        raise RpcError(spec.ECARGS, "A file cannot have that name here.")


def _downloads() -> Path:
    from platformdirs import PlatformDirs

    usual = PlatformDirs("telex", appauthor=False).user_downloads_path
    return usual if usual.is_dir() and os.access(usual, os.W_OK | os.X_OK) else Path.cwd()


def _place(directory: Path, name: str, size: int | None) -> Place:
    """With the name that is free now. Should it be taken later, the next one is used."""
    free = next((one for one in file_names.numbered(name) if not _taken(directory / one)), name)
    return Place(directory, name, file_names.to_keep(str(directory / free), size))


def _taken(path: Path) -> bool:
    return os.path.lexists(path)


def _found(directory: Path, name: str) -> Found:
    """Asked for also if it is not there: else a quick no would tell which files are."""
    path = directory / name
    fd = _opened(path)
    if fd is None:
        return Found(name, file_names.missing(str(path)))
    size = os.fstat(fd).st_size
    if size > limits.FILE_BYTES:
        os.close(fd)
        return Found(name, file_names.missing(str(path)))
    return Found(name, file_names.to_send(str(path), size), size, fd)


def _opened(path: Path) -> int | None:
    """A regular file itself: no link to one, no pipe, nothing that acts when it is opened."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        fd = os.open(path, _OLD)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # it was replaced meanwhile
        os.close(fd)
        return None
    return fd


class _Arriving:
    """A file that is not whole yet. Closed before it is kept, nothing is left of it."""

    def __init__(self, place: Place, size: int | None) -> None:
        self._place = place
        self._expected = size
        self._size = 0
        self._temporary: str | None = f".telex-{secrets.token_hex(8)}.part"
        self._directory = os.open(place.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._fd: int | None = os.open(self._temporary, _NEW, 0o600, dir_fd=self._directory)
        except OSError:
            os.close(self._directory)
            raise

    def add(self, data: object) -> None:
        if data is ABSENT:
            return
        if not isinstance(data, bytes):
            raise RpcError(spec.ECARGS, "The parts of a file are bytes.")
        self._size += len(data)
        if self._size > limits.FILE_BYTES:
            raise RpcError(spec.ECLIMIT, "The file is too large.")
        if self._expected is not None and self._size > self._expected:
            raise _other_size()
        assert self._fd is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def keep(self) -> int:
        """Its size, once it has a name that no other file had."""
        if self._expected is not None and self._size != self._expected:
            raise _other_size()
        self._close()  # some file systems say only here that there was no room
        self._rename()
        return self._size

    def _rename(self) -> None:
        """Over an empty file of ours, as a rename alone would replace what is there."""
        assert self._temporary is not None
        name = self._reserve()
        here = self._directory
        try:
            os.rename(self._temporary, name, src_dir_fd=here, dst_dir_fd=here)
        except OSError:
            os.unlink(name, dir_fd=here)
            raise
        self._temporary = None

    def _reserve(self) -> str:
        for name in file_names.numbered(self._place.name):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(name, _NEW, 0o600, dir_fd=self._directory))
                return name
        raise RpcError(spec.ECLIMIT, "There are too many files of that name.")

    def close(self) -> None:
        try:
            if self._temporary is not None:
                os.unlink(self._temporary, dir_fd=self._directory)
            self._close()
        finally:
            os.close(self._directory)

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _other_size() -> RpcError:
    return RpcError(spec.ECARGS, "The file is not as long as it was said to be.")
