"""A project's own plugins, `.telex/plugins`: where they are, and whether they are what was trusted.

Changing into a directory must not make its programs run, so they run only once their reader said
so: `telex plugin trust`. What is trusted is the whole directory as it is, names, contents and which
of it is executable, and not one plugin of it: a Python script imports from the directory it lies
in, so a file beside it that nobody looked at is as good as a change to it. The answers are kept
where `config.project` keeps those about config files.

A link is trusted as what it says, and only where it leads to something beneath, whose content is
looked at there. Between this look and the start of a plugin its owner can still change it; nobody
else can, see `discovery`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.config import load
from telex.config.load import ProjectFile, Trust
from telex.plugins.limits import PLUGIN_DIRECTORY_ENTRIES, PLUGIN_TRUSTED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.config.places import Places

NAME: Final = ".telex/plugins"


class NotTrustable(Exception):
    """A project's plugins that cannot be trusted as they are, and why."""


def of_project(start: Path) -> Path | None:
    """The plugins of the project a directory is in: its own, or a parent's in the repository."""
    candidates = (directory / NAME for directory in load.speaking_for(start))
    return next((path for path in candidates if os.path.lexists(path)), None)


def read(directory: Path, places: Places) -> ProjectFile:
    """The directory as it is now, and what was said of it. Raises NotTrustable."""
    directory = Path(os.path.realpath(directory))
    listing = "\n".join(_listing(directory)).encode("utf-8", "surrogateescape")
    return ProjectFile(directory, listing, load.judge(directory, listing, places.trusted))


def trust(seen: ProjectFile, places: Places) -> None:
    """From now on what was seen may run."""
    load.trust(seen, places.trusted)


def untrust(directory: Path, places: Places) -> bool:
    """Forget what was said of this directory; False if nothing was."""
    return load.untrust(directory, places.trusted)


def refusal(seen: ProjectFile) -> str | None:
    """Why these plugins are not run, and what to do; None where they may be."""
    if seen.trust is Trust.TRUSTED:
        return None
    changed = seen.trust is Trust.CHANGED
    why = "changed since you trusted them" if changed else "are the project's and not trusted"
    return f"the plugins in {seen.path} {why}; look at them, then: telex plugin trust"


def _listing(directory: Path) -> Iterator[str]:
    """A line for each entry beneath, in one order, that changes whenever the entry does."""
    room = PLUGIN_TRUSTED_BYTES
    for path in _entries(directory):
        status = path.lstat()
        name = ascii(str(path.relative_to(directory)))
        if stat.S_ISDIR(status.st_mode):
            yield f"directory {name}"
        elif stat.S_ISLNK(status.st_mode):
            yield f"link {name} {_beneath(path, directory)!a}"
        elif stat.S_ISREG(status.st_mode):
            digest, size = _digest(path, room)
            room -= size
            yield f"{digest} {'x' if status.st_mode & 0o111 else '-'} {name}"
        else:
            raise NotTrustable(f"{path} is neither a file nor a directory; remove it")


def _entries(directory: Path) -> list[Path]:
    found: list[Path] = []
    waiting = [directory]
    while waiting:
        try:
            inside = list(waiting.pop().iterdir())
        except OSError as error:
            raise NotTrustable(f"{error.filename} cannot be read: {error.strerror}") from error
        found += inside
        if len(found) > PLUGIN_DIRECTORY_ENTRIES:
            raise NotTrustable(
                f"{directory} holds more than {PLUGIN_DIRECTORY_ENTRIES} files; put what the "
                "plugins need elsewhere"
            )
        waiting += (path for path in inside if path.is_dir() and not path.is_symlink())
    return sorted(found)


def _beneath(link: Path, directory: Path) -> str:
    target = os.path.realpath(link)
    if not target.startswith(f"{directory}{os.sep}"):
        raise NotTrustable(f"{link} leads out of {directory}; put a copy in its place")
    return os.readlink(link)


def _digest(path: Path, room: int) -> tuple[str, int]:
    """Of what a file holds, and how much that is."""
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb", opener=_no_link) as file:
            while block := file.read(1 << 20):
                size += len(block)
                if size > room:
                    raise NotTrustable(f"{path}: there is more to trust than telex reads")
                digest.update(block)
    except OSError as error:
        raise NotTrustable(f"{path} cannot be read: {error.strerror}") from error
    return digest.hexdigest(), size


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
