"""Files between a program and the person under `telex run`: `file:download` and `file:upload`.

A file from the program is saved in the person's download directory, or, if there is none, in the
directory where telex was started. The file has a temporary name until it is complete, and then a
name that no other file has. A file for the program is read from the directory where telex was
started: programs cannot name paths. A name comes from a program that may be hostile, so it must be
one path component, not hidden, not like an option, and without characters that act on the reader's
terminal (`is_acceptable_name`).

The person is asked about one particular file. So the file is found before the question
(`FileTransfers.guarded`) and held open during it; after a yes this open file is used, whichever
file has its name by then. Errors are fixed sentences, as everywhere in JSON escapes.

Reads and writes block, instead of running in a thread: telex then does not read the program's
output meanwhile, which is the only backpressure for a program that sends faster than the disk
writes.
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
    """The place where a file from the program will be saved."""

    directory: Path
    name: str
    summary: str

    def close(self) -> None:
        """Do nothing: no file is open before the first byte arrives."""


@dataclass(frozen=True, slots=True)
class FileToSend:
    """A file for the program. Without a descriptor, no such file exists."""

    name: str
    summary: str
    size: int = 0
    fd: int | None = None

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


_ALLOWED: ContextVar[SaveLocation | FileToSend] = ContextVar("telex_file_allowed")
"""The allowed file, from the gate to the handler: both run in the task of the request."""


class FileTransfers:
    """Transfers files between one program and the person.

    Args:
        piece: Waits until a part can be sent, and returns how many bytes fit into it; None if the
            program will not read it.
    """

    def __init__(self, piece: Callable[[CallContext], Awaitable[int | None]]) -> None:
        self._piece = piece
        self.sending = 0
        """How many files are being sent to programs."""
        self._arriving: set[CallContext] = set()
        self.handlers: Mapping[str, SurfaceHandler] = {DOWNLOAD: self._save, UPLOAD: self._send}

    def guarded(self, gate: CommandGate) -> CommandGate:
        """Wrap the gate, so that its question about a file shows the file that was found."""
        return _FileGate(gate)

    def abandon_dead(self, alive: Callable[[CallContext], bool]) -> None:
        """Fail the downloads of programs that have exited: no further parts will come."""
        for call in self._arriving:
            if not alive(call):
                call.parts.end(RpcError(ECCLOSED, "The program that sent the file has exited."))

    async def _save(self, asked: FileDownload, call: CallContext) -> FileSaved:
        place = _ALLOWED.get()
        assert isinstance(place, SaveLocation)
        self._arriving.add(call)
        try:
            with contextlib.closing(_IncomingFile(place, asked.size)) as file:
                async for part in call.parts:
                    file.add(part.data)
                return FileSaved(file.finish())
        except OSError:
            raise RpcError(ECINTERNAL, "The file could not be saved.") from None
        finally:
            self._arriving.discard(call)

    async def _send(self, asked: FileUpload, call: CallContext) -> AsyncIterator[object]:
        found = _ALLOWED.get()
        assert isinstance(found, FileToSend)
        with contextlib.closing(found):
            if found.fd is None:
                raise RpcError(ECARGS, "There is no such file.")
            self.sending += 1
            try:
                yield FileSent(found.name, found.size)
                at = 0
                while at < found.size:
                    data = _read(found.fd, at, min(found.size - at, await self._room(call)))
                    at += len(data)
                    yield data
                await self._room(call)  # for the last part, which marks the end of the stream
            finally:
                self.sending -= 1

    async def _room(self, call: CallContext) -> int:
        if (piece := await self._piece(call)) is None:
            raise RpcError(ECCLOSED, "The program that asked for the file has exited.")
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
    """Replaces the summary of a file command by one of the file itself, for another gate."""

    def __init__(self, gate: CommandGate) -> None:
        self._gate = gate

    def settled(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool | None:
        return self._gate.settled(command, origin, summary)

    async def allow(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool:
        """Find the file, and ask about it: the service's summary is only the payload as JSON."""
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
    raise RpcError(ECUNSUP, "This terminal cannot let the person choose a file: name one.")


def _check(name: str) -> None:
    if not is_acceptable_name(name):
        raise RpcError(ECARGS, "This file name is not allowed.")


def _downloads() -> Path:
    from platformdirs import PlatformDirs

    usual = PlatformDirs("telex", appauthor=False).user_downloads_path
    return usual if usual.is_dir() and os.access(usual, os.W_OK | os.X_OK) else Path.cwd()


def _place(directory: Path, name: str, size: int | None) -> SaveLocation:
    """Choose the name that is free now. If it is taken later, the next free one is used."""
    free = next((one for one in numbered_names(name) if not os.path.lexists(directory / one)), name)
    return SaveLocation(directory, name, keep_summary(str(directory / free), size))


def _found(directory: Path, name: str) -> FileToSend:
    """Find a file. The person is asked even if it does not exist: a quick refusal would let the
    program find out which files exist.
    """
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
    """Open a regular file: no link, no pipe, no device that acts when it is opened."""
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
    """An incomplete file under a temporary name. `close` removes it unless `finish` was called."""

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

    def finish(self) -> int:
        """Give the file a name that no other file has. Return its size."""
        if self._expected is not None and self._size != self._expected:
            raise _other_size()
        self._close()  # some file systems report a full disk only here
        self._rename()
        return self._size

    def _rename(self) -> None:
        """Rename over an empty file that we created: a plain rename could replace another file."""
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
    return RpcError(ECARGS, "The file does not have the announced size.")


NAME_BYTES: Final = 240
"""File systems allow 255 bytes; a number may have to fit into the name too."""
NUMBERS: Final = 999
"""The most files of one name. No useful program sends more."""
_ACTING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of controls, invisible or bidirectional formatting, and unassigned code points."""


def is_acceptable_name(name: str) -> bool:
    """Whether a file name from an untrusted program is safe to use and to show."""
    return (
        name != ""
        and name[0] not in ".-"
        and name == name.strip()
        and not set(name) & {"/", "\\"}
        and not any(unicodedata.category(char) in _ACTING for char in name)
        and len(name.encode("utf-8")) <= NAME_BYTES
    )


def numbered_names(name: str) -> Iterator[str]:
    """Yield the name, and then numbered names for when that name is taken."""
    yield name
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    for number in range(1, NUMBERS + 1):
        yield f"{stem}-{number}{suffix}"


def keep_summary(path: str, size: int | None) -> str:
    """Summarize a download for the question. Our words stand first, so that nothing in the name can
    change their meaning.
    """
    return f"save {_bytes(size)} as {_shown(path)}"


def send_summary(path: str, size: int) -> str:
    return f"send the {_bytes(size)} of {_shown(path)}"


def missing_summary(path: str) -> str:
    return f"send nothing (not a file that can be sent): {_shown(path)}"


def _bytes(size: int | None) -> str:
    return "a file of unknown size" if size is None else f"{size} bytes"


def _shown(path: str) -> str:
    """Escape bytes that are not UTF-8: a directory may have them, the audit and a terminal not."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


FLOW_POLL_SECONDS: Final = 0.1
_READ_SECONDS: Final = 0.3
"""How long a key waits for a program that does not read. Then the sent bytes are discarded."""
_READ_POLL_SECONDS: Final = 0.005
_LEAVING_SECONDS: Final = 0.5
"""A program that is still in the foreground so long after a key does not leave because of it."""


class InputFlow:
    """Decides when parts of files may be written into a terminal, around keys that stop programs.

    A part is written as terminal input, and the process that reads the terminal then receives it.
    Ctrl-Z and Ctrl-C change that process: the kernel discards unread input, and the next part would
    reach the shell, as if the person had typed it. So such a key waits a moment until the program
    has read the parts that were sent, and no part follows until the program is in the foreground
    again and the terminal does not echo. The kernel reports neither, so both are polled, but only
    while a stream waits.
    """

    def __init__(self, pty: Pty) -> None:
        self._pty = pty
        self._loop = asyncio.get_running_loop()
        self._not_before = float("-inf")

    def ends_with(self, data: bytes) -> bool:
        """Whether this input has a key that sends a signal, by which the program may leave."""
        now = self._pty.line_settings()
        signals = (now.interrupt, now.quit, now.suspend) if now.signals else ()
        return any(one and one in data for one in signals)

    async def clear(self) -> None:
        """Stop sending. Return when the program has read all bytes, or they were discarded."""
        self._not_before = float("inf")
        try:
            async with asyncio.timeout(_READ_SECONDS):
                await self._pty.drained()
                await self._all_read()
        except TimeoutError:
            self._pty.discard()
        finally:
            self._not_before = self._loop.time() + _LEAVING_SECONDS

    async def _all_read(self) -> None:
        """Wait until two polls found nothing unread: bytes may still move inside the kernel."""
        polls = 0
        while polls < 2:
            await asyncio.sleep(_READ_POLL_SECONDS)
            polls = 0 if self._pty.unread() else polls + 1

    async def open(self, group: int) -> bool:
        """Wait until a part can be sent to this process group. False if it has exited."""
        while not self._is_open(group):
            if not group_exists(group):
                return False
            await asyncio.sleep(FLOW_POLL_SECONDS)
        return True

    def _is_open(self, group: int) -> bool:
        return (
            self._loop.time() >= self._not_before
            and self.reads(group)
            and not self._pty.line_settings().echo
        )

    def reads(self, group: int) -> bool:
        """Whether this process group is in the foreground, and so reads the terminal."""
        return answerable_group(self._pty.foreground()) == group


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user, as under sudo
        return True
    return True
