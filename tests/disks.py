"""File systems with hardly any room, for tests of what happens when it is used up."""

from __future__ import annotations

import contextlib
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOM = 65536
"""Bytes that a file on a small disk may have, or all of them together."""


def _may_mount() -> bool:
    status = Path("/proc/self/status")
    found = [line for line in status.read_text().splitlines() if line.startswith("CapEff:")]
    return bool(int(found[0].split()[1], 16) >> 21 & 1)  # CAP_SYS_ADMIN


KINDS = ("limit", "tmpfs") if Path("/proc/self/status").exists() and _may_mount() else ("limit",)


@contextlib.contextmanager
def limited(size: int = ROOM) -> Iterator[None]:
    """No file of this process, nor of a child, grows beyond it: a write that would is EFBIG."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def mounted(directory: Path) -> Iterator[None]:
    """The directory is a file system of its own, of that room."""
    options = ["-o", f"size={ROOM}", "-t", "tmpfs", "tmpfs", str(directory)]
    subprocess.run(["mount", *options], check=True, timeout=60)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True, timeout=60)


@pytest.fixture(params=KINDS)
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A directory where hardly anything can be written."""
    directory = tmp_path / "disk"
    directory.mkdir()
    with mounted(directory) if request.param == "tmpfs" else limited():
        yield directory


def fill(directory: Path, leave: int = 0) -> Path:
    """Use up what room there is on a mounted one, but so much. Deleting the file makes room."""
    path = directory / "filled"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    with path.open("r+b") as file:
        file.truncate(max(0, path.stat().st_size - leave))
    return path
