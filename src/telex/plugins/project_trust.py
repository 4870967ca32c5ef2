"""The plugins of a project, `.telex/plugins`: finds them, and compares them with what was trusted.

To change into a directory must not run its programs. So they run only after the person has read and
trusted them: `telex plugin trust`. The person trusts the whole directory, with names, contents and
executable bits, and not one plugin in it: a Python script imports from its directory, so a new file
beside the script can change what the script does. The decisions are stored with those about config
files (`config.load`).

A link is trusted by its target path, and only if the target is in the directory, where its content
is read. Between this check and the start of a plugin only the owner can change it; see `discovery`.
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
    """A project's plugins cannot be trusted; the message has the reason."""


def of_project(start: Path) -> Path | None:
    """Return the plugin directory of a project: in `start`, or in a parent within the
    repository."""
    candidates = (directory / NAME for directory in load.project_directories(start))
    return next((path for path in candidates if os.path.lexists(path)), None)


def read(directory: Path, places: Places) -> ProjectFile:
    """Read the directory, and whether it is trusted as it is now. Raises NotTrustable."""
    directory = Path(os.path.realpath(directory))
    listing = "\n".join(_listing(directory)).encode("utf-8", "surrogateescape")
    return ProjectFile(directory, listing, load.judge(directory, listing, places.trusted))


def trust(seen: ProjectFile, places: Places) -> None:
    """Trust the directory as it was read."""
    load.trust(seen, places.trusted)


def untrust(directory: Path, places: Places) -> bool:
    """Remove the decision about this directory. Return False if there was none."""
    return load.untrust(directory, places.trusted)


def refusal(seen: ProjectFile) -> str | None:
    """Return why these plugins are not run, and what to do; None if they are trusted."""
    if seen.trust is Trust.TRUSTED:
        return None
    changed = seen.trust is Trust.CHANGED
    why = "changed since you trusted them" if changed else "are the project's and not trusted"
    return f"the plugins in {seen.path} {why}; read them, then run: telex plugin trust"


def _listing(directory: Path) -> Iterator[str]:
    """Yield a line for each entry at any depth, in a fixed order. A line changes with its entry."""
    room = PLUGIN_TRUSTED_BYTES
    for path in _entries(directory):
        status = path.lstat()
        name = ascii(str(path.relative_to(directory)))
        if stat.S_ISDIR(status.st_mode):
            yield f"directory {name}"
        elif stat.S_ISLNK(status.st_mode):
            yield f"link {name} {_link_target(path, directory)!a}"
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
                f"{directory} has more than {PLUGIN_DIRECTORY_ENTRIES} files; move files that the "
                "plugins need elsewhere"
            )
        waiting += (path for path in inside if path.is_dir() and not path.is_symlink())
    return sorted(found)


def _link_target(link: Path, directory: Path) -> str:
    target = os.path.realpath(link)
    if not target.startswith(f"{directory}{os.sep}"):
        raise NotTrustable(f"{link} leads out of {directory}; replace it by a copy")
    return os.readlink(link)


def _digest(path: Path, room: int) -> tuple[str, int]:
    """Return the digest and the size of a file."""
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb", opener=_no_link) as file:
            while block := file.read(1 << 20):
                size += len(block)
                if size > room:
                    raise NotTrustable(f"{path}: the directory is larger than telex reads")
                digest.update(block)
    except OSError as error:
        raise NotTrustable(f"{path} cannot be read: {error.strerror}") from error
    return digest.hexdigest(), size


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
