"""Where a path leads, link by link, as the kernel goes; and what has to be looked up for that.
Pure: a `FileLookup` looks, `disk.DiskLookup` on the disk.

`os.path.realpath` answers for this process and guesses where it cannot look. A link to
`/proc/self/cwd` is one place to telex and another to the command it starts, and a place beyond
PATH_MAX is "no link" to it. So the way is taken here, one name at a time, and where it cannot be
known it says so: through the system's own links, into `/proc` or `/dev` by a link, past the longest
path, around in a loop, and after any error but "there is nothing". Whoever gets such a
`ResolvedPath` asks.

Used by `path_policy` to judge, by `sandbox` for the file tools, by `bound_files` for questions.
"""

from __future__ import annotations

import errno
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from telex.agent.limits import AGENT_LINK_NAMES
from telex.agent.permissions.display_text import in_quotes

if TYPE_CHECKING:
    from collections.abc import Iterable


PATH_MAX: Final = 4096
"""Linux takes no longer path in one call, with its NUL; a longer one is reached in steps alone."""
NAME_MAX: Final = 255
"""Of one name, in bytes. A few file systems have longer ones; these ask."""
LINKS_FOLLOWED: Final = 40
"""As many as Linux follows."""
SYSTEM_PLACES: Final = ("/proc", "/dev")
"""What is here depends on who looks: `/proc/self`, `/dev/fd`, `/dev/stdin`, `/dev/tty`."""
_WALKED: Final = 4 * PATH_MAX
"""Characters that are walked at all, with those of links: links that are all long and lead through
each other could make a way of a hundred thousand names."""
_FREE_NAMES: Final = 32
"""That the links of one way may bring without being counted: those that people make bring fewer."""
_NOTHING_THERE: Final = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class Link:
    """What stands at a place that is a link."""

    says: str
    is_magic: bool = False
    """The kernel does not go by what it says, but to something it holds itself."""


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """The way to a path's end."""

    end: str
    """Absolute, without links and dots, also of what is not there. Where the way is `unknown`, the
    place at which it was lost, with the rest of the path."""
    passed: tuple[str, ...] = ()
    """For each link on the way: its own place, and what it says in its place; both with what was
    left of the path, so that each name on the way stands beside those it is seen with."""
    unknown: str = ""
    """Why nobody can say where it ends."""


class LinkFollower:
    """Whoever can look up a link can follow a path."""

    def link(self, path: str) -> Link | None:
        """What stands at an absolute path without links before its last name; None for no link.
        `OSError` as from `readlink`, but for EINVAL."""
        raise NotImplementedError

    def system_places(self) -> tuple[str, ...]:
        """Directories whose content depends on who looks."""
        return SYSTEM_PLACES

    def may_walk(self, names: int) -> bool:
        """Whether so many more names may be looked at that long links bring; asked before each."""
        return True

    def resolve(self, path: str) -> ResolvedPath:
        return follow_links(path, self)

    def real(self, path: str) -> str:
        """The end of the way. It is no answer without a look at `ResolvedPath.unknown`."""
        return self.resolve(path).end


def follow_links(path: str, disk: LinkFollower) -> ResolvedPath:
    """An absolute path. `..` after a link is above where the link leads."""
    walked = len(path)
    if walked > _WALKED:
        return ResolvedPath(
            posixpath.normpath(path), (), "the path is longer than the system takes"
        )
    system = tuple(place.rstrip("/") + "/" for place in disk.system_places())
    done, rest = "", _names(path)
    passed: list[str] = []
    links, free = 0, _FREE_NAMES
    while rest:
        name = rest.pop()
        if name == "..":
            done = done.rpartition("/")[0]
            continue
        place = f"{done}/{name}"
        link, unknown = _looked_up(place, name, disk)
        if not unknown and (link or links) and f"{place}/".startswith(system):
            unknown = f"{in_quotes(place)} is another place to each program"
        elif link is not None and link.is_magic:
            unknown = f"{in_quotes(place)} is a link that the system makes up"
        names: list[str] = []
        if link is not None and not unknown:
            links, walked = links + 1, walked + len(link.says)
            names = _names(link.says)
            counted, free = max(len(names) - free, 0), max(free - len(names), 0)
            if links > LINKS_FOLLOWED or walked > _WALKED or not disk.may_walk(counted):
                unknown = "there are too many links on the way"
        if unknown:
            return ResolvedPath(_joined(place, rest), tuple(passed), unknown)
        if link is None:
            done = place
            continue
        passed.append(_joined(place, rest))
        done = "" if link.says.startswith("/") else done
        rest += names
        passed.append(_joined(done, rest))
    return ResolvedPath(done or "/", tuple(passed))


def path_spellings(path: str, way: ResolvedPath) -> frozenset[str]:
    """A path by all its names: as it is written, with each link on the way, and its end; each also
    with `..` taken as a shell takes it."""
    found = [_joined("", _names(path)), *way.passed, way.end]
    return frozenset((*found, *map(posixpath.normpath, found)))


def is_below(path: str, place: str) -> bool:
    """Itself, or in it."""
    return path == place or path.startswith(place.rstrip("/") + "/")


def is_below_any(path: str, places: Iterable[str]) -> bool:
    return any(is_below(path, place) for place in places)


def is_too_long_path(word: str) -> bool:
    """Whether no system call takes this as a path, wherever it begins."""
    return _size(word) >= PATH_MAX or any(_size(name) > NAME_MAX for name in word.split("/"))


def _looked_up(place: str, name: str, disk: LinkFollower) -> tuple[Link | None, str]:
    """The link there, or why nobody can say."""
    if _size(name) > NAME_MAX or _size(place) >= PATH_MAX:
        return None, f"{in_quotes(place[:80])}… is longer than the system takes in one path"
    try:
        return disk.link(place), ""
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None, ""
        return None, f"{in_quotes(place)}: {error.strerror or error.errno}"


def _names(path: str) -> list[str]:
    """The next one last, without what means nothing anywhere. `..` stays: after a link it is
    somewhere else."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _joined(place: str, rest: list[str]) -> str:
    return "/".join([place, *reversed(rest)]) or "/"


def _size(text: str) -> int:
    """In bytes, as a file system counts."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # half a surrogate pair that stands for no byte
        return PATH_MAX


@dataclass(frozen=True, slots=True)
class DirectoryScan:
    """What lies below a directory."""

    links: tuple[str, ...]
    trees: tuple[str, ...] = ()
    """Directories that have a `.git`, whatever that is."""


class FileLookup(Protocol):
    """What has to be looked up. `disk.DiskLookup` looks; tests say."""

    def link(self, path: str) -> Link | None:
        """What stands at an absolute path without links before its last name; None for no link.
        `OSError` where that cannot be seen."""

    def system_places(self) -> tuple[str, ...]:
        """Directories whose content depends on who looks."""

    def resolve(self, path: str) -> ResolvedPath:
        """Where an absolute path leads, also of what is not there yet."""

    def real(self, path: str) -> str:
        """The end of that way."""

    def glob(self, pattern: str) -> tuple[str, ...] | None:
        """What an absolute pattern with `*` and `?` stands for; None when that is too much, or
        another thing to the command."""

    def is_directory(self, path: str) -> bool:
        """After all links."""

    def links(self, directory: str, depth: int | None = None) -> tuple[str, ...] | None:
        """The links below a directory, so many levels deep; None when that is too much."""

    def scan(
        self, directory: str, depth: int | None = None, *, whole: bool = False
    ) -> DirectoryScan | None:
        """The same, and where repositories are. `whole`: also in what git stores, and in what was
        installed."""

    def contents(self, path: str, most_bytes: int) -> bytes | None:
        """What is in a file, after all links; nothing where nothing is there; None where it is no
        file, cannot be read or is longer."""

    def is_hard_linked(self, path: str) -> bool:
        """Whether a file is there, after all links, that is another one too: a hard link."""

    def is_own(self, path: str) -> bool:
        """Whether what is there, and no link, belongs to who would run the command."""


class CachedLookup(LinkFollower):
    """The same, looked up once: for one judgement, since links change. It follows so many names of
    long links altogether: each word of a command may lead through all of them."""

    def __init__(self, files: FileLookup) -> None:
        self._files = files
        self._links: dict[str, Link | OSError | None] = {}
        self._ways: dict[str, ResolvedPath] = {}
        self._names: dict[str, tuple[str, ...] | None] = {}
        self._below: dict[tuple[str, int | None, bool], DirectoryScan | None] = {}
        self._contents: dict[tuple[str, int], bytes | None] = {}
        self._system: tuple[str, ...] | None = None
        self._names_left = AGENT_LINK_NAMES

    def link(self, path: str) -> Link | None:
        if path not in self._links:
            try:
                self._links[path] = self._files.link(path)
            except OSError as error:
                self._links[path] = error
        found = self._links[path]
        if isinstance(found, OSError):
            raise found
        return found

    def system_places(self) -> tuple[str, ...]:
        if self._system is None:
            self._system = self._files.system_places()
        return self._system

    def may_walk(self, names: int) -> bool:
        self._names_left -= names
        return self._names_left >= 0 or names == 0

    def resolve(self, path: str) -> ResolvedPath:
        if path not in self._ways:
            self._ways[path] = super().resolve(path)
        return self._ways[path]

    def glob(self, pattern: str) -> tuple[str, ...] | None:
        if pattern not in self._names:
            self._names[pattern] = self._files.glob(pattern)
        return self._names[pattern]

    def is_directory(self, path: str) -> bool:
        return self._files.is_directory(path)

    def links(self, directory: str, depth: int | None = None) -> tuple[str, ...] | None:
        found = self.scan(directory, depth)
        return None if found is None else found.links

    def scan(
        self, directory: str, depth: int | None = None, *, whole: bool = False
    ) -> DirectoryScan | None:
        key = (directory, depth, whole)
        if key not in self._below:
            self._below[key] = self._files.scan(directory, depth, whole=whole)
        return self._below[key]

    def contents(self, path: str, most_bytes: int) -> bytes | None:
        if (path, most_bytes) not in self._contents:
            self._contents[path, most_bytes] = self._files.contents(path, most_bytes)
        return self._contents[path, most_bytes]

    def is_hard_linked(self, path: str) -> bool:
        return self._files.is_hard_linked(path)

    def is_own(self, path: str) -> bool:
        return self._files.is_own(path)
