"""Contents by their hash, as private files: the old versions of files, and images."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.sandbox_files import sha256_hex
from telex.config.places import write_private

if TYPE_CHECKING:
    from pathlib import Path

_SHA256: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ContentStore:
    """Contents in one directory, each in a file named by its SHA-256.

    The oldest are deleted when all are larger than `most_bytes` together. Several runtimes may
    share the directory. Blocks.
    """

    directory: Path
    most_bytes: int

    def save(self, content: bytes) -> str:
        """Store a content, and return its hash."""
        sha256 = sha256_hex(content)
        path = self.directory / sha256
        try:
            os.utime(path)  # it is stored; it counts as new again
        except FileNotFoundError:
            write_private(path, content)
            self._evict()
        return sha256

    def load(self, sha256: str) -> bytes | None:
        """Return the content with that hash; None if it was deleted."""
        if not _SHA256.fullmatch(sha256):
            return None
        try:
            content = (self.directory / sha256).read_bytes()
        except FileNotFoundError:
            return None
        return content if sha256_hex(content) == sha256 else None

    def _evict(self) -> None:
        found: list[tuple[int, int, Path]] = []
        for path in self.directory.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another runtime deleted it
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        size = sum(one[1] for one in found)
        for _, length, path in sorted(found)[:-1]:
            if size <= self.most_bytes:
                return
            path.unlink(missing_ok=True)
            size -= length
