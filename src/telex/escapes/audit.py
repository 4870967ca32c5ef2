"""The audit log: a JSON line for each decision of the gate, in a file that only this user can read.

The summary of the request is redacted. A full file is renamed to `….1`, in place of the previous
one. If a line cannot be written, an exception is raised and the command is not executed.
"""

from __future__ import annotations

import errno
import os
import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from telex.config.errors import NotPrivate
from telex.config.places import make_private
from telex.escapes import limits
from telex.redaction import Redactor

if TYPE_CHECKING:
    from pathlib import Path

    from telex.config.places import Places
    from telex.escapes.gate import GateDecision

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_encode = msgspec.json.Encoder().encode


def audit_file(places: Places) -> Path:
    return places.logs / "escapes.jsonl"


class AuditLog:
    """Writes decisions: pass it to a `Gate`. Several processes may write the same file."""

    def __init__(self, path: Path, *, redactor: Redactor | None = None) -> None:
        self._path = path
        self._redactor = redactor or Redactor()

    def __call__(self, decided: GateDecision) -> None:
        """Append a line. The file is opened each time: lines are rare, and another process may have
        renamed the file.
        """
        line = _encode(self._entry(decided)) + b"\n"
        make_private(self._path.parent)
        descriptor = os.open(self._path, _FLAGS | os.O_NONBLOCK, 0o600)
        try:
            size = self._checked(descriptor)
            # One write for the line, so that lines of two processes do not mix.
            if (written := os.write(descriptor, line)) < len(line):
                _cut_off(descriptor, size, written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        finally:
            os.close(descriptor)
        if size + len(line) >= limits.AUDIT_BYTES:
            os.replace(self._path, self._path.with_name(f"{self._path.name}.1"))

    def _checked(self, descriptor: int) -> int:
        status = os.fstat(descriptor)
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not ours or status.st_mode & 0o077:
            raise NotPrivate(
                f"{self._path} must be a regular file that only you can access; remove it"
            )
        return status.st_size

    def _entry(self, decided: GateDecision) -> dict[str, object]:
        redact = self._redactor.redact
        return {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "command": decided.command,
            "origin": decided.origin.kind,
            "program": decided.origin.program,
            "decision": "allow" if decided.allowed else "deny",
            "by": decided.by,
            "summary": redact(decided.summary)[: limits.AUDIT_SUMMARY_CHARS],
        }


def _cut_off(descriptor: int, size: int, written: int) -> None:
    """Remove an incomplete line, unless another process has already written after it."""
    if os.fstat(descriptor).st_size == size + written:
        os.ftruncate(descriptor, size)
