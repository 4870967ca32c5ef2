"""Files of the sandbox as the tools see them: read whole, replaced whole or not at all.

What is refused is refused with a sentence: what is no file, what is too large to be held, what is
no text. Everything is bytes here, so that a file which is not quite UTF-8 survives an edit. The
callers run these in a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from typing import TYPE_CHECKING

from telex.wire.limits import AGENT_FILE_BYTES, MIB

if TYPE_CHECKING:
    from telex.agent.sandbox import Sandbox

_LOOKED_AT = 8192
"""Whether a file is text shows in its first bytes: text has no NUL."""


class FileRefused(Exception):
    """A file that the tools do not touch, and why."""


class FileChanged(FileRefused):
    """It is not what the caller last saw."""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_whole(sandbox: Sandbox, place: str) -> bytes:
    """`FileRefused`, or `OSError` as from `open`."""
    with sandbox.opened(place) as descriptor:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise FileRefused(f"{place} is a directory; list it")
        if not stat.S_ISREG(status.st_mode):
            raise FileRefused(f"{place} is neither a file nor a directory")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(AGENT_FILE_BYTES + 1)
    if len(content) > AGENT_FILE_BYTES:
        raise FileRefused(
            f"{place} is larger than {AGENT_FILE_BYTES // MIB} MiB; look into it with a command, "
            "such as head, tail or grep"
        )
    return content


def read_text(sandbox: Sandbox, place: str) -> bytes:
    """The same for a file that is text."""
    content = read_whole(sandbox, place)
    if is_binary(content):
        raise FileRefused(f"{place} is a binary file of {len(content)} bytes")
    return content


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:_LOOKED_AT]


def replace(sandbox: Sandbox, place: str, content: bytes) -> None:
    """Put the content there, whole, with the mode that was there before. Directories on the way
    are made. A file that may not be written is not replaced either, though the system allows it."""
    name = os.path.basename(place)
    with sandbox.parent(place, make=True) as parent:
        mode = _mode(parent, name)
        temporary = f".telex-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666, dir_fd=parent)
        try:
            with open(descriptor, "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=parent)
            raise


def _mode(parent: int, name: str) -> int | None:
    """What the file there has; None where there is none yet."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused(f"{name} is not a file, so it is not replaced by one")
    if not os.access(name, os.W_OK, dir_fd=parent):
        raise FileRefused(f"{name} may not be written; change its mode first")
    return stat.S_IMODE(status.st_mode) & 0o777  # as writing does, without setuid
