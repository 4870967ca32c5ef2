"""An exported file as lines that are right by themselves, and whether it is whole.

Its last line alone tells whether all before it were right, so it is read twice: once to know that,
once for what it holds. Effects: reads the file. `importing` uses it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from telex.agent.store.exported import EndLine, Head, Line
from telex.agent.store.problems import BadExport
from telex.wire.limits import STORE_IMPORT_BYTES, STORE_IMPORT_LINES, STORE_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

_LINE: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)

Numbered = tuple[int, Line]


def check(path: Path) -> None:
    """Raises `BadExport`."""
    deque(pieces(path), maxlen=0)


def pieces(path: Path) -> Generator[list[Numbered]]:
    """What lies between the first line and the last, with numbers, a little at a time."""
    with _opened(path) as file:
        lines = _lines(file, path)
        while piece := list(islice(_until_enough(lines), STORE_IMPORT_LINES)):
            yield piece


def _until_enough(lines: Iterator[tuple[int, Line, int]]) -> Iterator[Numbered]:
    size = 0
    for number, line, length in lines:
        yield number, line
        if (size := size + length) >= STORE_IMPORT_BYTES:
            return


def _opened(path: Path) -> BinaryIO:
    if path.exists() and not path.is_file():  # a named pipe cannot be read twice
        raise BadExport(f"{path} cannot be read: it is not a regular file")
    try:
        return path.open("rb")
    except OSError as error:
        raise BadExport(f"{path} cannot be read: {error.strerror}") from error


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, Line, int]]:
    count, digest, line = 0, hashlib.sha256(), None
    while text := file.readline(STORE_LINE_BYTES):
        if isinstance(line, EndLine):
            raise BadExport(f"{path} goes on after its end")
        line = _decoded(text, count + 1, path)
        match line:
            case EndLine():
                if (line.lines, line.sha256) != (count, digest.hexdigest()):
                    raise BadExport(f"{path} is not as it was written: its hash differs")
            case Head() if count or line.version != 1:
                raise BadExport(f"{path}:{count + 1}: an export of version {line.version}")
            case Head():
                pass
            case _:
                yield count + 1, line, len(text)
        count += 1
        digest.update(text)
        if count == 1 and not isinstance(line, Head):
            raise BadExport(f"{path} is not an export of telex agent")
    if not isinstance(line, EndLine):
        raise BadExport(f"{path} ends too early: its last line is missing")


def _decoded(text: bytes, number: int, path: Path) -> Line:
    try:
        str(text, "utf-8")
        return _LINE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadExport(f"{path}:{number}: {error}") from error
    except RecursionError as error:
        raise BadExport(f"{path}:{number}: it is nested too deeply") from error
