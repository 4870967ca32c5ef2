"""Where a path leads, link by link, as the kernel goes. Pure: others look up what a link says.

`os.path.realpath` answers for this process and guesses where it cannot look. A link to
`/proc/self/cwd` is one place to telex and another to the command it starts, and a place beyond
PATH_MAX is "no link" to it. So the way is taken here, one name at a time, and where it cannot be
known it says so: through the system's own links, into `/proc` or `/dev` by a link, past the longest
path, around in a loop, and after any error but "there is nothing". Whoever gets such a `Way` asks.

Used by `paths` to judge, by `sandbox` for the file tools, and by `bound_files` for questions.
"""

from __future__ import annotations

import errno
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.judging.showing import in_quotes

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
class Way:
    """The way to a path's end."""

    end: str
    """Absolute, without links and dots, also of what is not there. Where the way is `unknown`, the
    place at which it was lost, with the rest of the path."""
    passed: tuple[str, ...] = ()
    """For each link on the way: its own place, and what it says in its place; both with what was
    left of the path, so that each name on the way stands beside those it is seen with."""
    unknown: str = ""
    """Why nobody can say where it ends."""


class Follower:
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

    def way(self, path: str) -> Way:
        return follow(path, self)

    def real(self, path: str) -> str:
        """The end of the way. It is no answer without a look at `Way.unknown`."""
        return self.way(path).end


def follow(path: str, disk: Follower) -> Way:
    """An absolute path. `..` after a link is above where the link leads."""
    walked = len(path)
    if walked > _WALKED:
        return Way(posixpath.normpath(path), (), "the path is longer than the system takes")
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
            return Way(_joined(place, rest), tuple(passed), unknown)
        if link is None:
            done = place
            continue
        passed.append(_joined(place, rest))
        done = "" if link.says.startswith("/") else done
        rest += names
        passed.append(_joined(done, rest))
    return Way(done or "/", tuple(passed))


def spellings(path: str, way: Way) -> frozenset[str]:
    """A path by all its names: as it is written, with each link on the way, and its end; each also
    with `..` taken as a shell takes it."""
    found = [_joined("", _names(path)), *way.passed, way.end]
    return frozenset((*found, *map(posixpath.normpath, found)))


def is_below(path: str, place: str) -> bool:
    """Itself, or in it."""
    return path == place or path.startswith(place.rstrip("/") + "/")


def is_below_any(path: str, places: Iterable[str]) -> bool:
    return any(is_below(path, place) for place in places)


def is_too_long(word: str) -> bool:
    """Whether no system call takes this as a path, wherever it begins."""
    return _size(word) >= PATH_MAX or any(_size(name) > NAME_MAX for name in word.split("/"))


def _looked_up(place: str, name: str, disk: Follower) -> tuple[Link | None, str]:
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
