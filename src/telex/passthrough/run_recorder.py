"""`telex record`: writes the output of a program, and the person's input, into a file.

A `RunRecorder` is a witness for `program_run.run`. Input that the terminal does not echo is not
written, unless redaction is off: passwords are typed without echo. (Line editors, such as a
shell's, switch the echo off too, and draw the input themselves, so it is in the output.) A full
disk ends the recording after its last whole line, and not the program. If not even the header can
be written, the program is not started.
"""

from __future__ import annotations

import codecs
import os
import stat
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from telex.passthrough.person_terminal import is_shown
from telex.terminal import recording
from telex.terminal.raw_transcript import RawTranscript
from telex.terminal.recording import AsciicastWriter, Header

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from telex.redaction import Redactor
    from telex.terminal.cells import Size
    from telex.terminal.pty import Pty


class RecordingExists(Exception):
    """The file exists, and neither `--force` nor `--append` was given."""


class CannotRecord(Exception):
    """The header could not be written."""


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """The file of a recording, and its content."""

    path: Path
    version: Literal[2, 3] = 2
    typed: bool = False
    """Whether the person's input is recorded too."""
    redactor: Redactor | None = None
    """Without a redactor everything is written unchanged."""
    replaced: bool = False
    """Whether to replace an existing file."""
    continued: bool = False
    """Whether to append to an existing recording."""


class RunRecorder:
    """An open recording, and a `RunWitness`: `run` calls it, and `finish` closes it."""

    def __init__(self, wanted: RecordOptions, header: Header) -> None:
        self._typed = wanted.typed
        self.raw = wanted.redactor is None
        self._bare = not is_shown()
        """The program's terminal adds no carriage returns, so the recording must."""
        decoder = codecs.getincrementaldecoder("utf-8")
        self._texts = {kind: decoder("replace") for kind in ("output", "input")}
        before = _before(wanted.path) if wanted.continued else None
        self._file = _opened(wanted)
        now = time.monotonic()
        if before is None:
            self._recorder = AsciicastWriter(header, now, wanted.redactor)
            self._write(self._recorder.header())
        else:
            # In version 3 times are relative to the previous line, in 2 to the beginning.
            version = before.header.version
            began = now - (before.duration if version == 2 else 0)
            self._recorder = AsciicastWriter(
                replace(header, version=version), began, wanted.redactor
            )
            self._write(self._recorder.resize(header.size, now))
        if self.failed is not None:
            self._file.discard()
            raise CannotRecord(f"{wanted.path} cannot be written: {self.failed.strerror}")

    @property
    def failed(self) -> OSError | None:
        """The error that ended the recording early."""
        return self._file.failure

    def output(self, data: bytes) -> None:
        text = self._texts["output"].decode(data.replace(b"\n", b"\r\n") if self._bare else data)
        self._write(self._recorder.output(text, time.monotonic()))

    def input(self, data: bytes, pty: Pty) -> None:
        if self._typed and (self.raw or pty.line_settings().echo):
            text = self._texts["input"].decode(data)
            self._write(self._recorder.input(text, time.monotonic()))

    def resized(self, size: Size) -> None:
        self._write(self._recorder.resize(size, time.monotonic()))

    def finish(self, code: int | None) -> None:
        """Write the exit code, None if the program never ran, and close the file."""
        now = time.monotonic()
        last = self._recorder.finish(now) if code is None else self._recorder.exit(code, now)
        self._write(last)
        self._file.close()

    def _write(self, lines: bytes) -> None:
        self._file.write(lines)


def _before(path: Path) -> recording.Recording | None:
    """Read the recording to append to. An incomplete last line of a killed recorder is removed."""
    if not path.exists() or not path.stat().st_size:
        return None
    with path.open("r+b") as file:
        before = recording.read_recording(file)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
    return before


def _opened(wanted: RecordOptions) -> RawTranscript:
    """Open the file, with access for this user alone. It is unbuffered, so that a kill loses
    nothing.
    """
    how = os.O_APPEND if wanted.continued else os.O_TRUNC if wanted.replaced else os.O_EXCL
    there = wanted.path.exists()
    try:
        descriptor = os.open(wanted.path, os.O_WRONLY | os.O_CREAT | how | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise RecordingExists(
            f"{wanted.path} already exists; --force replaces it, --append continues it"
        ) from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):  # a device keeps its mode
        os.fchmod(descriptor, 0o600)
    return RawTranscript(str(wanted.path), descriptor, new=not there, lines=True)
