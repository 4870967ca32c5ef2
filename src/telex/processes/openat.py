"""Opens a file beneath a directory, and nowhere else, whatever its path and links contain.

Checking first and opening afterwards is not enough: between the two, a file can become a link. So
the path is resolved and checked in one operation. On Linux the kernel does it (`openat2`);
elsewhere, and where that call is forbidden or too old, this module resolves one name at a time and
reads each link itself. Both follow the same rules: a link may lead to another place beneath the
root, never through an absolute path, never above the root. Used for adapters' entrypoints,
directories that are served, and the files of the agent's tools.

A caller that checked the path before can have every link refused, because it saw none.

Opening never blocks: a named pipe is opened without its writer. The caller checks the type of the
opened file by its descriptor.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable

    _Call = Callable[[int, int, bytes, ctypes.Array[ctypes.c_uint64], int], int]

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_OPENAT2: Final = 437
_NUMBERED_SO: Final = ("x86_64", "aarch64")
_BENEATH: Final = 0x08
_NO_MAGICLINKS: Final = 0x02
"""Current kernels include it in RESOLVE_BENEATH, but do not promise to."""
_NO_SYMLINKS: Final = 0x04
_LINKS_FOLLOWED: Final = 40
"""The same number as Linux follows."""

_NOT_BY_THE_KERNEL: Final = (errno.ENOSYS, errno.EPERM, errno.EAGAIN, errno.EINTR)
"""The kernel is older than 5.6; a container forbids unknown calls; the path has a `..` while any
file on the system was renamed; a signal arrived. Resolving by steps works in all these cases."""


def open_beneath(root: int, path: str, *, links: bool = True) -> int:
    """Open the file for reading and return its descriptor.

    Args:
        links: False refuses every symbolic link on the path, with ELOOP.

    Raises:
        OSError: As from `open`; EXDEV where the path leads out of the root.
    """
    if "\0" in path:  # the kernel would use only the part before it
        raise OSError(errno.EINVAL, "the path contains a NUL", path)
    if not path:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if path.startswith("/"):
        raise _leads_out(path)
    try:
        return _by_the_kernel(root, path, links=links)
    except OSError as error:
        if error.errno not in _NOT_BY_THE_KERNEL:
            raise
    return _by_steps(root, path, _LINKS_FOLLOWED if links else 0)


def _by_the_kernel(root: int, path: str, *, links: bool = True) -> int:
    import ctypes  # here, because a server should be ready before it needs this

    call = _system_call()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), path)
    # struct open_how: flags, mode, resolve.
    resolve = _BENEATH | _NO_MAGICLINKS | (0 if links else _NO_SYMLINKS)
    how = (ctypes.c_uint64 * 3)(_FLAGS, 0, resolve)
    descriptor = call(_OPENAT2, root, os.fsencode(path), how, ctypes.sizeof(how))
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return descriptor


@cache
def _system_call() -> _Call | None:
    if sys.platform != "linux" or os.uname().machine not in _NUMBERED_SO:
        return None
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (
        *(ctypes.c_long, ctypes.c_int, ctypes.c_char_p),
        *(ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t),
    )
    call.restype = ctypes.c_long
    return call


def _by_steps(root: int, path: str, most_links: int = _LINKS_FOLLOWED) -> int:
    """Resolve one name at a time, from descriptors that we hold open.

    `..` closes the last descriptor: the kernel is not asked for the parent directory, so a rename
    cannot mislead us.
    """
    held: list[int] = []
    rest = _names(path)
    links = 0
    try:
        while rest:
            name = rest.pop()
            if name in (".", ".."):
                if name == "..":
                    _up(held, path)
                continue
            found = _step(held[-1] if held else root, name, last=not rest)
            if isinstance(found, int):
                held.append(found)
                continue
            links += 1
            rest += _further(found, path, most_links - links)
        return held.pop() if held else os.open(".", _FLAGS, dir_fd=root)
    finally:
        for descriptor in held:
            os.close(descriptor)


def _names(path: str) -> list[str]:
    """Return the names in reverse order. A slash at the end requires a directory, as `.` does."""
    return [name or "." for name in reversed(path.split("/"))]


def _up(held: list[int], path: str) -> None:
    if not held:
        raise _leads_out(path)
    os.close(held.pop())


def _step(at: int, name: str, *, last: bool) -> int | str:
    """Open one name: return a descriptor, or the target if the name is a link."""
    flags = _FLAGS | os.O_NOFOLLOW | (0 if last else os.O_DIRECTORY)
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            raise
        try:
            return os.readlink(name, dir_fd=at)
        except OSError:
            raise error from None  # it was not a link


def _further(target: str, path: str, links_left: int) -> list[str]:
    if links_left < 0:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if target.startswith("/"):
        raise _leads_out(path)
    return _names(target)


def _leads_out(path: str) -> OSError:
    return OSError(errno.EXDEV, "the path leads out of its directory", path)
