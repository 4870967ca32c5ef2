"""Find guarded files: files that programs and agents act on, below the root and in the home
directory, so that writing them asks. Pure, except for `FileLookup`.

A path is guarded in three ways. First, by a name in it (`names.toml`), before or after links are
resolved. Second, by a guarded link that leads to it: with `AGENTS.md -> docs/guide.md`, a write to
the guide gives instructions to agents. Third, by git's configuration, which names hooks, filters
and further configuration files. One `GuardedFiles` is created for each judgement, and caches its
lookups. Used by `path_policy`.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.git_config import GitSetting, expand_git_path, run_prefixes
from telex.agent.permissions.git_repository import (
    GitRepository,
    UnknownRepository,
    find_repository,
    read_git_config,
)
from telex.agent.permissions.path_walk import is_below, is_below_any, path_spellings
from telex.agent.permissions.sensitive_names import is_guarded_name, is_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.permissions.path_walk import FileLookup

_GUARDED_IN_HOME: Final = ("bin", "Library")
"""Guarded besides the hidden names there: login files, `.config`, `.local`, `.ssh`,
`.gitconfig`."""
_LINKS_IN_HOME: Final = (
    ("", 1),
    ("bin", 1),
    (".config", 2),
    (".local/bin", 1),
    (".local/share", 1),
)
"""Directories of the home, and to which depth, in which users keep links to files elsewhere."""
_GIT_CONFIGS: Final = (".gitconfig", ".config/git/config", "/etc/gitconfig")
"""Relative to the home directory."""
_NOTHING: Final = "/dev/null"
"""The target of a link that switches a file off."""
_MOST_LINKS: Final = 2000
"""With more guarded links every write asks: real settings have fewer."""
_MOST_INCLUDED: Final = 16
"""Configuration files of git that others include."""


class GuardedFiles:
    """The guarded files of one root and one home directory.

    Args:
        own: the directories in which telex keeps its configuration and its state.
    """

    def __init__(self, root: str, home: str, files: FileLookup, own: Sequence[str]) -> None:
        self.root = root
        self._home = home
        self._files = files
        self._own = own

    def is_guarded(self, path: str) -> bool:
        """Return whether writing the path asks because programs or agents act on it."""
        resolved = self._files.resolve(path)
        directories = self.ancestors(posixpath.dirname(resolved.end))
        return (
            resolved.unknown != ""
            or any(map(self._has_guarded_name, path_spellings(path, resolved)))
            or is_below_any(resolved.end, self._telex_places)
            or is_below_any(resolved.end, self._guarded_in_home(resolved.end))
            or any(self.has_entry(directory, "HEAD") for directory in directories)
            or self._is_linked_or_named_by_git(resolved.end)
        )

    def has_guarded(self, directory: str) -> bool:
        """Return whether the directory contains the home directory, telex's own files or a guarded
        file, so that permission for the whole directory would be too wide."""
        targets = self._linked_and_named_by_git
        if targets is None:
            return True
        held = (self._files.real(self._home), *self._telex_places, *targets, *self._run_prefixes)
        listed = (self._files.glob(posixpath.join(directory, each)) for each in ("*", ".*"))
        return any(is_below(place, directory) for place in held) or any(
            names is None or any(is_guarded_name("/" + posixpath.basename(name)) for name in names)
            for names in listed
        )

    def ancestors(self, real: str) -> Iterator[str]:
        """Yield a directory and its parents up to the root; nothing if it is outside the root."""
        while is_below(real, self._real_root):
            yield real
            if real == self._real_root:
                return
            real = posixpath.dirname(real)

    def has_entry(self, directory: str, name: str) -> bool:
        """Return whether the directory has a file or directory of this name."""
        return self._files.glob(posixpath.join(directory, name)) != ()

    @cached_property
    def secret_places(self) -> tuple[str, ...]:
        """The directories and files that are secrets without having the name of one: telex's own
        directories, and the targets of links in the home that have such a name. A directory that
        contains the root is left out, because the user chose to work there."""
        linked = (self._files.real(link) for link in self._links_in_home if is_secret(link))
        places = (*self._telex_places, *linked)
        return tuple(place for place in places if not is_below(self._real_root, place))

    @cached_property
    def _real_root(self) -> str:
        return self._files.real(self.root)

    @cached_property
    def _telex_places(self) -> tuple[str, ...]:
        return tuple(map(self._files.real, self._own))

    def _has_guarded_name(self, place: str) -> bool:
        """Check the names below the root only, because a checkout may itself be in a directory with
        a guarded name."""
        for root in (self._real_root, self.root):
            if is_below(root, place):
                return False
            if is_below(place, root):
                return is_guarded_name(place.removeprefix(root.rstrip("/")))
        return is_guarded_name(place)

    def _is_linked_or_named_by_git(self, real: str) -> bool:
        targets = self._linked_and_named_by_git
        if targets is None or is_below_any(real.casefold(), map(str.casefold, targets)):
            return True
        return f"{real}/".casefold().startswith(tuple(map(str.casefold, self._run_prefixes)))

    @cached_property
    def _run_prefixes(self) -> tuple[str, ...]:
        """The prefixes of the paths that a command in git's configuration may run."""
        return () if self._by_git is None else tuple(dict.fromkeys(self._by_git[1]))

    @cached_property
    def _linked_and_named_by_git(self) -> tuple[str, ...] | None:
        """The targets of guarded links, the directories of repositories, and the files that git's
        configuration names. None if there are too many files to check, or if it cannot be
        determined where one of the links leads."""
        below = self._files.scan(self._real_root)
        if below is None or self._by_git is None:
            return None
        named = self._by_git[0]
        links = tuple(sorted(below.links))
        waiting = [link for link in links if self._has_guarded_name(link)]
        waiting += self._links_above()
        found = dict.fromkeys(named)
        for place in named:
            waiting += _links_below(links, place)
        for link in waiting:
            resolved = self._files.resolve(link)
            if len(waiting) > _MOST_LINKS or (resolved.unknown and resolved.end != _NOTHING):
                return None
            if resolved.end not in found:  # it may be a directory that contains links
                found[resolved.end] = None
                waiting += _links_below(links, resolved.end)
        return tuple(found)

    def _links_above(self) -> Iterator[str]:
        """Yield the guarded links in the directories above the root, and those in `.git` and its
        hooks of a repository that contains the root."""
        place = self._real_root
        while place != "/":
            place = posixpath.dirname(place)
            for link in self._files.links(place, 1) or ():
                if is_guarded_name("/" + posixpath.basename(link)):
                    yield link
            for inner in (".git", ".git/hooks"):
                yield from self._files.links(posixpath.join(place, inner), 1) or ()

    @cached_property
    def _by_git(self) -> tuple[list[str], list[str]] | None:
        below = self._files.scan(self._real_root)
        return None if below is None else self._named_by_git(below.trees)

    def _named_by_git(self, trees: Sequence[str]) -> tuple[list[str], list[str]] | None:
        """Return the files inside the root that git obeys or runs: the directories of repositories,
        wherever their `.git` says that they are, and the files that their configuration names; and
        the prefixes of further files. None if the configuration cannot be read, or if it cannot be
        determined where a path leads."""
        found: list[str] = []
        prefixes: list[str] = []
        try:
            repositories = [*self._repositories_above(), *self._repositories_below(trees)]
            for place in (d for each in repositories for d in (each.own, each.common)):
                resolved = self._files.resolve(place)
                if resolved.unknown:
                    return None
                if is_below(resolved.end, self._real_root):
                    found.append(resolved.end)
            waiting = list(self._git_configs(repositories))
            most = len(waiting) + _MOST_INCLUDED
            user_aliases = {(posixpath.join(self._home, name), "alias") for name in _GIT_CONFIGS}
            for config, top in waiting:
                if len(waiting) > most or len(found) > _MOST_LINKS:
                    return None
                for setting in read_git_config(config, self._files):
                    base = posixpath.dirname(config) if setting.is_include else top
                    if (config, setting.section) not in user_aliases:
                        prefixes += self._prefixes_of(setting, top)
                    words = (p for word in setting.words() for p in self._expanded(word, setting))
                    for word in words:
                        resolved = self._files.resolve(posixpath.join(base, word))
                        end = resolved.end
                        if setting.names_place and resolved.unknown and end != _NOTHING:
                            return None
                        if setting.is_include and (end, top) not in waiting:
                            waiting.append((end, top))
                        if self._may_be_file(word, end, setting.names_place):
                            found.append(end)
        except UnknownRepository:
            return None
        return found, prefixes

    def _expanded(self, word: str, setting: GitSetting) -> tuple[str, ...]:
        if setting.names_place or word.startswith("~"):
            return expand_git_path(word, self._home)
        return (word,)

    def _prefixes_of(self, setting: GitSetting, top: str) -> Iterator[str]:
        """Yield the prefixes that a setting may run inside the root. A bare word counts only if
        such a file exists; a path or a module counts in any case."""
        for prefix in run_prefixes(setting):
            resolved = self._files.resolve(posixpath.join(top, prefix.path))
            place = resolved.end
            if resolved.unknown or not is_below(place, self._real_root) or place == self._real_root:
                continue
            if not prefix.only_if_exists or self._exists_with_suffix(place):
                yield from (place,) if prefix.is_pattern else (f"{place}/", f"{place}.")

    def _exists_with_suffix(self, place: str) -> bool:
        return self._files.is_directory(place) or self._files.glob(f"{place}.*") != ()

    def _may_be_file(self, word: str, place: str, is_place: bool) -> bool:
        """Return whether a word of a setting may be a file to guard. A bare word of a command
        counts only if a file of that name exists: `cat` is a program. A setting whose value is a
        path may also name the root or a directory that contains it; then the whole root is
        guarded."""
        if is_below(self._real_root, place):
            return is_place
        if not is_below(place, self._real_root):
            return False
        if is_place or "/" in word:
            return True
        return bool(self._files.glob(place)) and not self._files.is_directory(place)

    def _git_configs(self, repositories: Sequence[GitRepository]) -> Iterator[tuple[str, str]]:
        """Yield the user's configuration files and those of repositories, each with the directory
        to which its paths are relative."""
        yield from ((posixpath.join(self._home, name), self._real_root) for name in _GIT_CONFIGS)
        for repository in repositories:
            yield from ((config, repository.tree) for config in repository.configs)

    def _repositories_above(self) -> Iterator[GitRepository]:
        """Yield the repositories whose working tree is the root or contains it, also a worktree."""
        top = self._real_root
        while True:
            if (repository := find_repository(top, self._files)) is not None:
                yield repository
            if top == "/":
                return
            top = posixpath.dirname(top)

    def _repositories_below(self, trees: Sequence[str]) -> Iterator[GitRepository]:
        """Yield the repositories inside the root: submodules, and cloned or unpacked ones."""
        for tree in trees:
            if tree == self._real_root:
                continue
            try:
                repository = find_repository(tree, self._files)
            except UnknownRepository:
                continue  # git finds no repository there either, or fails
            if repository is not None:
                yield repository

    @cached_property
    def _links_in_home(self) -> tuple[str, ...]:
        home = self._files.real(self._home)
        return tuple(
            link
            for place, depth in _LINKS_IN_HOME
            for link in self._files.links(posixpath.join(home, place), depth) or ()
        )

    def _guarded_in_home(self, real: str) -> Iterator[str]:
        """Yield the directories and files of the home that a login, a shell or a program acts on,
        also the targets of links. A directory that contains the root is left out, because the user
        chose to work there."""
        home = self._files.real(self._home)
        places = [
            self._files.real(link)
            for link in self._links_in_home
            if _is_guarded_in_home(_first_name(link, home))
        ]
        if is_below(real, home) and _is_guarded_in_home(first := _first_name(real, home)):
            places.append(posixpath.join(home, first))
        return (place for place in places if not is_below(self._real_root, place))


def _links_below(links: Sequence[str], place: str) -> Sequence[str]:
    """Return the links in a directory; `links` are sorted."""
    inside = place.rstrip("/") + "/"
    return links[bisect_left(links, inside) : bisect_left(links, inside[:-1] + chr(ord("/") + 1))]


def _first_name(place: str, home: str) -> str:
    return place[len(home.rstrip("/")) + 1 :].split("/")[0]


def _is_guarded_in_home(first: str) -> bool:
    return first.startswith(".") or first in _GUARDED_IN_HOME
