"""Opening a file beneath a directory, and nowhere else, whatever the path and the links in it say.

Looking first and opening afterwards is not enough: between the two, a file can become a link. So
the way is taken and judged in one go. On Linux the kernel does it (`openat2`); elsewhere, and where
that is forbidden or too old, we take one step at a time and read each link ourselves. Both ways
agree: a link may lead to another place beneath, never through an absolute path, never above the
root. Used for adapters' entrypoints, directories that are served, and the files of agents' tools.

A caller that looked before may have every link refused: what it looked at had none.

Opening never waits: a named pipe is opened without its writer. What was opened is for the caller
to look at, by the descriptor.
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
"""Today's kernels imply it in the other, and do not promise to."""
_NO_SYMLINKS: Final = 0x04
_LINKS_FOLLOWED: Final = 40
"""As many as Linux follows."""

_NOT_BY_THE_KERNEL: Final = (errno.ENOSYS, errno.EPERM, errno.EAGAIN, errno.EINTR)
"""A kernel before 5.6; a container that forbids what it does not know; a `..` on the way while
anything anywhere was renamed; a signal. The steps serve as well."""


def open_beneath(root: int, path: str, *, links: bool = True) -> int:
    """A descriptor to read from. `OSError` as from `open`; EXDEV where the path leads out. Without
    `links`, ELOOP where anything on the way is one."""
    if "\0" in path:  # the kernel would see the part before it
        raise OSError(errno.EINVAL, "the path holds a NUL", path)
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
    import ctypes  # here: a server is ready before it needs this

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
    """One name at a time, from descriptors we hold. `..` lets go of one: the kernel is not asked
    what lies above, and cannot be misled about it."""
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
    """The next one last. A slash at the end asks for a directory, as `.` does."""
    return [name or "." for name in reversed(path.split("/"))]


def _up(held: list[int], path: str) -> None:
    if not held:
        raise _leads_out(path)
    os.close(held.pop())


def _step(at: int, name: str, *, last: bool) -> int | str:
    """What stands there: a descriptor, or what a link says."""
    flags = _FLAGS | os.O_NOFOLLOW | (0 if last else os.O_DIRECTORY)
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            raise
        try:
            return os.readlink(name, dir_fd=at)
        except OSError:
            raise error from None  # it was no link


def _further(target: str, path: str, links_left: int) -> list[str]:
    if links_left < 0:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if target.startswith("/"):
        raise _leads_out(path)
    return _names(target)


def _leads_out(path: str) -> OSError:
    return OSError(errno.EXDEV, "the path leads out of its directory", path)
