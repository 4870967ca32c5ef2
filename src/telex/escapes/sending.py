"""A program's own files, on their way to the person and back: read in parts, and written whole.

Used by `client` for `send_file` and `receive_file`; the terminal's side is `host.files`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from telex.protocols.json_escapes import FileDownload, FileSent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


class FileCutShort(OSError):
    """A file did not come whole."""


@contextmanager
def reading(
    path: str | os.PathLike[str], name: str | None
) -> Iterator[tuple[FileDownload, BinaryIO]]:
    """A file, and what is to be said of it first."""
    with open(path, "rb") as file:
        yield FileDownload(name or Path(path).name, os.fstat(file.fileno()).st_size), file


async def pieces(file: BinaryIO, piece: Callable[[], int]) -> AsyncIterator[bytes]:
    """All of it, as parts that fit."""
    while data := file.read(piece()):
        yield data


async def receive(parts: AsyncIterator[object], path: str | os.PathLike[str]) -> FileSent:
    """Into a new file. What is not whole is removed again."""
    with _new(path) as file:
        about = msgspec.convert(await anext(parts), FileSent)
        async for part in parts:
            file.write(part if isinstance(part, bytes) else b"")
        file.flush()  # here, where a full disk still removes the file
        if (came := file.tell()) != about.size:
            raise FileCutShort(f"{came} bytes of {about.size} came; ask for the file again")
    return about


@contextmanager
def _new(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    with open(path, "xb", opener=_private) as file:
        try:
            yield file
        except BaseException:
            os.unlink(path)
            raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
