"""Files between a program and the person under `telex run`: `file:download` and `file:upload`.

A file from the program goes to the person's download directory, or where telex was started if there
is none. It has a temporary name until all of it is there, and then one that no other file has. A
file to the program is one in the directory where telex was started: programs name no paths. A name
comes from a program that may mean harm, so it is one part of a path, not hidden, no option, and no
character in it acts on its reader (`is_acceptable_name`).

The person is asked about one file. So it is found before the question (`FileTransfers.guarded`),
held open while that stands, and it is what is used after a yes, whatever has its name by then.
Errors are fixed sentences, as everywhere in JSON escapes.

Reads and writes are done at once, not in a thread: a program that sends faster than the disk takes
it is then not read meanwhile, and there is nothing else to hold it back with.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
import unicodedata
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

import msgspec

from telex.escapes import limits
from telex.escapes.commands.terminal_extensions import FileDownload, FileSaved, FileSent, FileUpload
from telex.escapes.protocol import ECARGS, ECCLOSED, ECINTERNAL, ECLIMIT, ECUNSUP
from telex.processes.proc import answerable_group
from telex.rpc.errors import RpcError
from telex.rpc.messages import ABSENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from telex.escapes.policy import RequestOrigin
    from telex.escapes.protocol import EscapeCommand
    from telex.escapes.server import CommandGate, SurfaceHandler
    from telex.rpc.handler_tasks import CallContext
    from telex.terminal.pty import Pty


DOWNLOAD: Final = "file:download"
UPLOAD: Final = "file:upload"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SaveLocation:
    """Where a file from the program is to be kept."""

    directory: Path
    name: str
    summary: str

    def close(self) -> None:
        """Nothing is open before the first byte is there."""


@dataclass(frozen=True, slots=True)
class FileToSend:
    """A file for the program; without a descriptor there is none of that name."""

    name: str
    summary: str
    size: int = 0
    fd: int | None = None

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


_ALLOWED: ContextVar[SaveLocation | FileToSend] = ContextVar("telex_file_allowed")
"""What the person said yes to, from the gate to the handler: both run in the request's own task."""


class FileTransfers:
    """For one program in one person's terminal."""

    def __init__(self, piece: Callable[[CallContext], Awaitable[int | None]]) -> None:
        """`piece` waits until a part can be sent, and says how many bytes fit into it; None if
        nobody will read it."""
        self._piece = piece
        self.giving = 0
        """How many files are on their way to a program."""
        self._arriving: set[CallContext] = set()
        self.handlers: Mapping[str, SurfaceHandler] = {DOWNLOAD: self._keep, UPLOAD: self._give}

    def guarded(self, gate: CommandGate) -> CommandGate:
        """The gate, where what is asked about a file is about that file."""
        return _FileGate(gate)

    def look(self, alive: Callable[[CallContext], bool]) -> None:
        """Give up the files of programs that have ended: no more of them will come."""
        for call in self._arriving:
            if not alive(call):
                call.parts.end(RpcError(ECCLOSED, "The program that sent the file is gone."))

    async def _keep(self, asked: FileDownload, call: CallContext) -> FileSaved:
        place = _ALLOWED.get()
        assert isinstance(place, SaveLocation)
        self._arriving.add(call)
        try:
            with contextlib.closing(_IncomingFile(place, asked.size)) as file:
                async for part in call.parts:
                    file.add(part.data)
                return FileSaved(file.keep())
        except OSError:
            raise RpcError(ECINTERNAL, "The file could not be kept.") from None
        finally:
            self._arriving.discard(call)

    async def _give(self, asked: FileUpload, call: CallContext) -> AsyncIterator[object]:
        found = _ALLOWED.get()
        assert isinstance(found, FileToSend)
        with contextlib.closing(found):
            if found.fd is None:
                raise RpcError(ECARGS, "There is no such file.")
            self.giving += 1
            try:
                yield FileSent(found.name, found.size)
                at = 0
                while at < found.size:
                    data = _read(found.fd, at, min(found.size - at, await self._room(call)))
                    at += len(data)
                    yield data
                await self._room(call)  # for the end, which is a part too
            finally:
                self.giving -= 1

    async def _room(self, call: CallContext) -> int:
        if (piece := await self._piece(call)) is None:
            raise RpcError(ECCLOSED, "The program that asked for the file is gone.")
        return piece


def _read(fd: int, at: int, count: int) -> bytes:
    try:
        data = os.pread(fd, count, at)
    except OSError:
        data = b""
    if not data:
        raise RpcError(ECINTERNAL, "The file could not be read to its end.")
    return data


class _FileGate:
    """A gate before another."""

    def __init__(self, gate: CommandGate) -> None:
        self._gate = gate

    def settled(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool | None:
        return self._gate.settled(command, origin, summary)

    async def allow(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool:
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


def _find(asked: msgspec.Struct) -> SaveLocation | FileToSend:
    match asked:
        case FileDownload(name, size):
            _check(name)
            return _place(_downloads(), name, size)
        case FileUpload(str(name)):
            _check(name)
            return _found(Path.cwd(), name)
    raise RpcError(ECUNSUP, "This terminal cannot have a file chosen: name one.")


def _check(name: str) -> None:
    if not is_acceptable_name(name):
        raise RpcError(ECARGS, "A file cannot have that name here.")


def _downloads() -> Path:
    from platformdirs import PlatformDirs

    usual = PlatformDirs("telex", appauthor=False).user_downloads_path
    return usual if usual.is_dir() and os.access(usual, os.W_OK | os.X_OK) else Path.cwd()


def _place(directory: Path, name: str, size: int | None) -> SaveLocation:
    """With the name that is free now. Should it be taken later, the next one is used."""
    free = next((one for one in numbered_names(name) if not _taken(directory / one)), name)
    return SaveLocation(directory, name, keep_summary(str(directory / free), size))


def _taken(path: Path) -> bool:
    return os.path.lexists(path)


def _found(directory: Path, name: str) -> FileToSend:
    """Asked for also if it is not there: else a quick no would tell which files are."""
    path = directory / name
    fd = _opened(path)
    if fd is None:
        return FileToSend(name, missing_summary(str(path)))
    size = os.fstat(fd).st_size
    if size > limits.FILE_BYTES:
        os.close(fd)
        return FileToSend(name, missing_summary(str(path)))
    return FileToSend(name, send_summary(str(path), size), size, fd)


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


class _IncomingFile:
    """A file that is not whole yet. Closed before it is kept, nothing is left of it."""

    def __init__(self, place: SaveLocation, size: int | None) -> None:
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
            raise RpcError(ECARGS, "The parts of a file are bytes.")
        self._size += len(data)
        if self._size > limits.FILE_BYTES:
            raise RpcError(ECLIMIT, "The file is too large.")
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
        for name in numbered_names(self._place.name):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(name, _NEW, 0o600, dir_fd=self._directory))
                return name
        raise RpcError(ECLIMIT, "There are too many files of that name.")

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
    return RpcError(ECARGS, "The file is not as long as it was said to be.")


NAME_BYTES: Final = 240
"""File systems take 255; a number may have to fit beside it."""
NUMBERS: Final = 999
"""So many files of one name; whoever sends more does not do it for the person."""
_ACTING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, what turns the direction of writing or is not seen, and what is no character."""


def is_acceptable_name(name: str) -> bool:
    """Whether a file may be called this, wherever the name is from."""
    return (
        name != ""
        and name[0] not in ".-"
        and name == name.strip()
        and not set(name) & {"/", "\\"}
        and not any(unicodedata.category(char) in _ACTING for char in name)
        and len(name.encode("utf-8")) <= NAME_BYTES
    )


def numbered_names(name: str) -> Iterator[str]:
    """The name, and what to call the file where there is one of that name."""
    yield name
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    for number in range(1, NUMBERS + 1):
        yield f"{stem}-{number}{suffix}"


def keep_summary(path: str, size: int | None) -> str:
    """For the question. Our words stand first: nothing in a name can change what they say."""
    return f"keep {_bytes(size)} as {_shown(path)}"


def send_summary(path: str, size: int) -> str:
    return f"send the {_bytes(size)} of {_shown(path)}"


def missing_summary(path: str) -> str:
    return f"send what is not there as a file: {_shown(path)}"


def _bytes(size: int | None) -> str:
    return "a file of unknown size" if size is None else f"{size} bytes"


def _shown(path: str) -> str:
    """Directories need not be text; the audit, and a terminal, take nothing else."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


FLOW_LOOK_SECONDS: Final = 0.1
_READ_SECONDS: Final = 0.3
"""So long a key waits for a program that does not read. Then what was sent is thrown away."""
_READ_LOOK_SECONDS: Final = 0.005
_LEAVING_SECONDS: Final = 0.5
"""After such a key, a program that has not left the foreground will not leave it for that key."""


class InputFlow:
    """Parts of files on their way into the programs of one terminal, and the keys that stop these.

    A part is typed, and goes to whatever process reads the terminal then. Ctrl-Z and Ctrl-C change
    that process: the kernel throws away what the program has not read, and what follows comes to
    the shell, as if the person had typed it. So such a key waits a moment until the program has
    read what was sent, and nothing follows it until the program is back: in the foreground, and
    without echo. The kernel reports neither, so both are polled, only while a stream waits.
    """

    def __init__(self, pty: Pty) -> None:
        self._pty = pty
        self._loop = asyncio.get_running_loop()
        self._not_before = float("-inf")

    def ends_with(self, data: bytes) -> bool:
        """Whether a key in this is a signal, with which the program may leave."""
        now = self._pty.line_settings()
        signals = (now.interrupt, now.quit, now.suspend) if now.signals else ()
        return any(one and one in data for one in signals)

    async def clear(self) -> None:
        """Send no more. Returns when all that was sent is read, or thrown away."""
        self._not_before = float("inf")
        try:
            async with asyncio.timeout(_READ_SECONDS):
                await self._pty.drained()
                await self._read()
        except TimeoutError:
            self._pty.discard()
        finally:
            self._not_before = self._loop.time() + _LEAVING_SECONDS

    async def _read(self) -> None:
        """Until nothing was unread for two looks: bytes may be on their way within the kernel."""
        looks = 0
        while looks < 2:
            await asyncio.sleep(_READ_LOOK_SECONDS)
            looks = 0 if self._pty.unread() else looks + 1

    async def open(self, group: int) -> bool:
        """Until something can be sent to it. False if it is gone."""
        while not self._is_open(group):
            if not group_exists(group):
                return False
            await asyncio.sleep(FLOW_LOOK_SECONDS)
        return True

    def _is_open(self, group: int) -> bool:
        return (
            self._loop.time() >= self._not_before
            and self.reads(group)
            and not self._pty.line_settings().echo
        )

    def reads(self, group: int) -> bool:
        """Whether it is in the foreground."""
        return answerable_group(self._pty.foreground()) == group


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is somebody else's, as under sudo
        return True
    return True
