"""What judging has to look up, and the same looked up once. Pure: `on_disk.Disk` looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from telex.agent.judging.links import Follower, Link
from telex.wire.limits import AGENT_LINK_NAMES

if TYPE_CHECKING:
    from telex.agent.judging.links import Way


@dataclass(frozen=True, slots=True)
class Below:
    """What lies below a directory."""

    links: tuple[str, ...]
    trees: tuple[str, ...] = ()
    """Directories that have a `.git`, whatever that is."""


class Files(Protocol):
    """What has to be looked up. `on_disk.Disk` looks; tests say."""

    def link(self, path: str) -> Link | None:
        """What stands at an absolute path without links before its last name; None for no link.
        `OSError` where that cannot be seen."""

    def system_places(self) -> tuple[str, ...]:
        """Directories whose content depends on who looks."""

    def way(self, path: str) -> Way:
        """Where an absolute path leads, also of what is not there yet."""

    def real(self, path: str) -> str:
        """The end of that way."""

    def names(self, pattern: str) -> tuple[str, ...] | None:
        """What an absolute pattern with `*` and `?` stands for; None when that is too much, or
        another thing to the command."""

    def is_directory(self, path: str) -> bool:
        """After all links."""

    def links(self, directory: str, depth: int | None = None) -> tuple[str, ...] | None:
        """The links below a directory, so many levels deep; None when that is too much."""

    def below(
        self, directory: str, depth: int | None = None, *, whole: bool = False
    ) -> Below | None:
        """The same, and where repositories are. `whole`: also in what git stores, and in what was
        installed."""

    def contents(self, path: str, most_bytes: int) -> bytes | None:
        """What is in a file, after all links; nothing where nothing is there; None where it is no
        file, cannot be read or is longer."""

    def has_other_names(self, path: str) -> bool:
        """Whether a file is there, after all links, that is another one too: a hard link."""

    def is_own(self, path: str) -> bool:
        """Whether what is there, and no link, belongs to who would run the command."""


class Once(Follower):
    """The same, looked up once: for one judgement, since links change. It follows so many names of
    long links altogether: each word of a command may lead through all of them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._links: dict[str, Link | OSError | None] = {}
        self._ways: dict[str, Way] = {}
        self._names: dict[str, tuple[str, ...] | None] = {}
        self._below: dict[tuple[str, int | None, bool], Below | None] = {}
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

    def way(self, path: str) -> Way:
        if path not in self._ways:
            self._ways[path] = super().way(path)
        return self._ways[path]

    def names(self, pattern: str) -> tuple[str, ...] | None:
        if pattern not in self._names:
            self._names[pattern] = self._files.names(pattern)
        return self._names[pattern]

    def is_directory(self, path: str) -> bool:
        return self._files.is_directory(path)

    def links(self, directory: str, depth: int | None = None) -> tuple[str, ...] | None:
        found = self.below(directory, depth)
        return None if found is None else found.links

    def below(
        self, directory: str, depth: int | None = None, *, whole: bool = False
    ) -> Below | None:
        key = (directory, depth, whole)
        if key not in self._below:
            self._below[key] = self._files.below(directory, depth, whole=whole)
        return self._below[key]

    def contents(self, path: str, most_bytes: int) -> bytes | None:
        if (path, most_bytes) not in self._contents:
            self._contents[path, most_bytes] = self._files.contents(path, most_bytes)
        return self._contents[path, most_bytes]

    def has_other_names(self, path: str) -> bool:
        return self._files.has_other_names(path)

    def is_own(self, path: str) -> bool:
        return self._files.is_own(path)
