"""Checks whether another user could have written a plugin or its interpreter. Reads files only.

The executable, its manifest, and every directory from them up to the plugin directory must belong
to this user or to root, and only the owner may write to them. Links are followed, and every step of
the path is checked. Above the plugin directory no other user may be able to rename it: a directory
that all users can write to must be sticky, and none may belong to another user. The same holds for
the path to an interpreter.

A program loads other files from its directory: a script imports the modules beside it. So the whole
directory of a manifest is checked, except `.git`. For a script without a manifest, the entries of
its directory are checked, except other programs: their names have no suffix, so a script cannot
import them. Targets of links to directories are not checked, nor files that a program finds
elsewhere: those belong to the system.

`interpreters` returns the programs of a script's `#!` line, as the kernel and `env` find them.
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
"""The owner shown for files of users that a container or a file server does not know."""
_LINKS_FOLLOWED: Final = 40
"""The same number as in Linux."""
_NOT_CODE: Final = ".git"


def writable_by_others(path: Path, top: Path) -> str | None:
    """Return why another user could have written this file, and what to do; None if none could.

    `top` is the plugin directory, with links resolved. Raises OSError if a step does not exist.
    """
    steps = list(_steps(str(path)))
    file = steps[-1][0]
    strict_paths = {file, os.path.dirname(file), str(top)}
    for step, status in steps:
        strictly = step in strict_paths or step.startswith(f"{top}{os.sep}")
        if problem := _open_to_others(step, status, strictly=strictly):
            return f"{path} is not run, other users could have changed it: {problem}"
    return None


def _steps(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each directory and each link on the path to a file, and the file."""
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
    """Return why another user may replace a step of a path, or None.

    Above the plugin directory the check is not strict: the owner may be `nobody`, as for the root
    of a container; a group may write, as often to the parents of a home directory; a sticky
    directory is accepted, because other users cannot rename its entries.
    """
    link = stat.S_ISLNK(status.st_mode)
    if status.st_uid not in (os.geteuid(), 0) and (strictly or status.st_uid != _NOBODY):
        return f"{path} belongs to user {status.st_uid}; replace it by a copy of your own"
    if link or (not strictly and status.st_mode & stat.S_ISVTX):
        return None
    if status.st_mode & (0o022 if strictly else 0o002):
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        return f"{path} is writable for them ({mode}); run: chmod go-w {quote(path)}"
    return None


def first_writable(paths: Iterable[str]) -> str | None:
    """Return a problem for the first of these files that another user could have written. They are
    mostly files of the system; their directories are not checked strictly. Raises OSError."""
    for path in paths:
        steps = list(_steps(path))
        for step, status in steps:
            if problem := _open_to_others(step, status, strictly=step == steps[-1][0]):
                return problem
    return None


def writable_below(directory: Path) -> str | None:
    """Return a problem for the first entry at any depth that another user could have written."""
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
    """Return a problem for the first direct entry that another user could have written."""
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        return f"{directory} cannot be read: {error.strerror}"
    paths = (os.path.join(directory, name) for name in names)
    problems = (_entry(path) for path in paths if not _is_a_program(path))
    return _too_many(len(names), directory) or next(filter(None, problems), None)


def _is_a_program(path: str) -> bool:
    """Return whether this is another plugin: it is checked itself, and by its name no script can
    import it."""
    return "." not in os.path.basename(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def _too_many(count: int, directory: Path) -> str | None:
    if count <= PLUGIN_DIRECTORY_ENTRIES:
        return None
    return f"{directory} has more than {PLUGIN_DIRECTORY_ENTRIES} files, too many to check"


def _entry(path: str) -> str | None:
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return first_writable([path])
    except OSError:  # removed, or a link without a target: a program cannot load it
        return None
    return _open_to_others(path, status, strictly=True)


_LINE_BYTES: Final = 256
"""As many bytes as Linux reads for a `#!` line."""
_DEPTH: Final = 4
"""How many scripts Linux accepts in a chain in which each is the interpreter of the one before."""


def interpreters(executable: Path, path: Sequence[str]) -> list[str]:
    """Return the interpreters of a script, the innermost last; an empty list for other files.
    `path` is the split PATH."""
    found: list[str] = []
    program: str | None = str(executable)
    while program is not None and len(found) < 2 * _DEPTH:
        programs = list(_first_line_programs(program, path))
        found += programs
        program = programs[-1] if programs else None
    return found


def _first_line_programs(script: str, path: Sequence[str]) -> Iterator[str]:
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
