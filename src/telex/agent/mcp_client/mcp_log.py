"""The log of one MCP server: its standard error, redacted, in a private file of bounded size.

A full file is renamed to `NAME.log.1`, in place of the one before it. `telex agent mcp logs NAME`
prints both. Writing never fails a call: a log that cannot be written is given up.
"""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from telex.agent.limits import MCP_LOG_BYTES
from telex.config.errors import ConfigError
from telex.config.places import make_private

if TYPE_CHECKING:
    from pathlib import Path

_OPENED: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class McpLog:
    """Appends lines to the log of one server. Opened at the first line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._size = 0
        self._given_up = False

    def note(self, text: str) -> None:
        """Write a line of telex, with the time."""
        self.write(f"--- {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: {text}")

    def write(self, line: str) -> None:
        """Write a line, which must be redacted and escaped."""
        if self._given_up:
            return
        content = f"{line}\n".encode("utf-8", "replace")
        try:
            if self._fd is not None and self._size + len(content) > MCP_LOG_BYTES:
                self.close()
            fd = self._open(len(content)) if self._fd is None else self._fd
            self._size += os.write(fd, content)
        except (OSError, ConfigError):
            self._given_up = True
            self.close()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self, wanted: int) -> int:
        make_private(self.path.parent)
        with contextlib.suppress(FileNotFoundError):
            if self.path.lstat().st_size + wanted > MCP_LOG_BYTES:
                os.replace(self.path, older(self.path))
        self._fd = os.open(self.path, _OPENED, 0o600)
        self._size = os.fstat(self._fd).st_size
        return self._fd


def log_file(directory: Path, name: str) -> Path:
    """Return the path of the log of a server."""
    return directory / f"{name}.log"


def older(path: Path) -> Path:
    """Return the path of the part of a log that was full."""
    return path.with_name(f"{path.name}.1")
