"""Whether another user could have written what a plugin is, or what runs it. Reads files only.

The executable, its manifest, and every directory from them up to the plugin directory belong to us
or to root, and only their owner may write to them; links are followed, and the whole way is judged.
Above the plugin directory nobody may rename it: a directory that everybody writes to must be
sticky, and none is another user's. So is the way to an interpreter.

A program takes more from where it lies: a script imports what is beside it. So all of a manifest's
directory is judged, but for `.git`; of a bare script's directory what is directly in it, but for
other programs, whose names have no suffix and which it therefore cannot import. Not judged is what
a link to a directory leads to, nor what a program finds elsewhere: that is the system's.

`interpreters` is what runs a script: the program of its `#!` line, as the kernel and `env` find it.
`discovery` uses both; `restrictions` lets a plugin read its interpreters.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from telex.plugins.limits import PLUGIN_DIRECTORY_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_NOBODY: Final = 65534
"""Who owns what belongs to users that a container or a file server does not know."""
_LINKS_FOLLOWED: Final = 40
"""As many as Linux follows."""
_NOT_CODE: Final = ".git"


def writable_by_others(path: Path, top: Path) -> str | None:
    """Why another user could have written this file, and what to do; None where none could.

    `top` is the plugin directory, without links. Raises OSError where the way is broken.
    """
    way = list(_way(str(path)))
    file = way[-1][0]
    ours = {file, os.path.dirname(file), str(top)}
    for one, status in way:
        strictly = one in ours or one.startswith(f"{top}{os.sep}")
        if problem := _open_to_others(one, status, strictly=strictly):
            return f"{path} is not run, for others could have changed it: {problem}"
    return None


def _way(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Each directory and each link on the way to a file, and the file."""
    at = os.sep
    yield at, os.lstat(at)
    rest = path.split(os.sep)[::-1]
    links = 0
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        step = os.path.dirname(at) if name == ".." else os.path.join(at, name)
        status = os.lstat(step)
        yield step, status
        if not stat.S_ISLNK(status.st_mode):
            at = step
            continue
        links += 1
        if links > _LINKS_FOLLOWED:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(step)
        at = os.sep if os.path.isabs(target) else at
        rest += target.split(os.sep)[::-1]


def _open_to_others(path: str, status: os.stat_result, *, strictly: bool) -> str | None:
    """Whether another user may change what a name on the way stands for.

    Not strictly, above the plugin directory: it may be nobody's, as the root of a container often
    is; a group may write, as it often may to a home's parents; a sticky one keeps what is in it.
    """
    link = stat.S_ISLNK(status.st_mode)
    if status.st_uid not in (os.geteuid(), 0) and (strictly or status.st_uid != _NOBODY):
        return f"{path} belongs to user {status.st_uid}; put your own in its place"
    if link or (not strictly and status.st_mode & stat.S_ISVTX):
        return None
    if status.st_mode & (0o022 if strictly else 0o002):
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        return f"{path} is open to them ({mode}); close it: chmod go-w {quote(path)}"
    return None


def first_writable(paths: Iterable[str]) -> str | None:
    """The first of these files, of the system's mostly, that others could have written. Their
    directories are judged as those above a plugin directory. Raises OSError."""
    for path in paths:
        way = list(_way(path))
        for one, status in way:
            if problem := _open_to_others(one, status, strictly=one == way[-1][0]):
                return problem
    return None


def writable_beneath(directory: Path) -> str | None:
    """What of a directory, all the way down, others could have written."""
    found = 0
    for at, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if name != _NOT_CODE]
        found += len(directories) + len(files)
        if problem := _too_many(found, directory):
            return problem
        for name in (*directories, *files):
            if problem := _entry(os.path.join(at, name)):
                return problem
    return None


def writable_beside(directory: Path) -> str | None:
    """What of a directory, directly in it, others could have written."""
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        return f"{directory} cannot be read: {error.strerror}"
    paths = (os.path.join(directory, name) for name in names)
    problems = (_entry(path) for path in paths if not _is_a_program(path))
    return _too_many(len(names), directory) or next(filter(None, problems), None)


def _is_a_program(path: str) -> bool:
    """Another plugin, judged by itself, and by its name no module: it spoils none beside it."""
    return "." not in os.path.basename(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def _too_many(count: int, directory: Path) -> str | None:
    if count <= PLUGIN_DIRECTORY_ENTRIES:
        return None
    return f"{directory} holds more than {PLUGIN_DIRECTORY_ENTRIES} files, too many to look at"


def _entry(path: str) -> str | None:
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return first_writable([path])
    except OSError:  # it is gone, or leads nowhere: nothing is taken from it
        return None
    return _open_to_others(path, status, strictly=True)


_LINE_BYTES: Final = 256
"""As much as Linux looks at."""
_DEEP: Final = 4
"""As often as Linux takes a script for the interpreter of a script."""


def interpreters(executable: Path, path: Sequence[str]) -> list[str]:
    """All that run it, the innermost last; none for what is no script. `path` is PATH's."""
    found: list[str] = []
    program: str | None = str(executable)
    while program is not None and len(found) < 2 * _DEEP:
        programs = list(_named(program, path))
        found += programs
        program = programs[-1] if programs else None
    return found


def _named(script: str, path: Sequence[str]) -> Iterator[str]:
    words = _first_line(script)
    if not words or not os.access(words[0], os.X_OK):
        return
    yield words[0]
    if os.path.basename(words[0]) == "env":
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        programs = (os.path.join(place, name) for name in rest[:1] for place in path)
        yield from [next((one for one in programs if os.access(one, os.X_OK)), words[0])]


def _first_line(script: str) -> list[str]:
    try:
        with open(script, "rb") as file:
            first = file.read(_LINE_BYTES).partition(b"\n")[0]
    except OSError:
        return []
    return os.fsdecode(first.removeprefix(b"#!")).split() if first.startswith(b"#!") else []
