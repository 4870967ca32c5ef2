"""What programs and agents obey, below the root and at home, so that writing there asks. Pure, but
for `FileLookup`.

Three ways lead to it. A name on the way to a place (`names.toml`), before or after links. Something
that is obeyed and leads there: with `AGENTS.md -> docs/guide.md`, who writes the guide commands
agents. And git's configuration, which names hooks, filters and other configuration. One for each
judgement: what it looks up it keeps. Used by `path_policy`.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, Final

from telex.agent.permissions import git_files, git_hook_programs
from telex.agent.permissions.git_repository import (
    GitRepository,
    UnknownRepository,
    find_repository,
    read_git_file,
)
from telex.agent.permissions.path_walk import is_below, is_below_any, path_spellings
from telex.agent.permissions.sensitive_names import is_guarded_name, is_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.permissions.path_walk import FileLookup

_OBEYED_AT_HOME: Final = ("bin", "Library")
"""Besides what is hidden there: login files, `.config`, `.local`, `.ssh`, `.gitconfig`."""
_LINKED_AT_HOME: Final = (
    ("", 1),
    ("bin", 1),
    (".config", 2),
    (".local/bin", 1),
    (".local/share", 1),
)
"""Where the home has links to files that are kept elsewhere, and how deep."""
_GIT_CONFIGS: Final = (".gitconfig", ".config/git/config", "/etc/gitconfig")
"""From the home."""
_NOTHING: Final = "/dev/null"
"""Where a link leads that is to switch something off."""
_LINKS_OBEYED: Final = 2000
"""More of them ask: they are no longer somebody's settings."""
_INCLUDED: Final = 16
"""Configurations of git that others include."""


class GuardedFiles:
    def __init__(self, root: str, home: str, files: FileLookup, own: Sequence[str]) -> None:
        self.root = root
        self._home = home
        self._files = files
        self._own = own

    def is_guarded(self, path: str) -> bool:
        way = self._files.resolve(path)
        return (
            way.unknown != ""
            or any(map(self._has_guarded_name, path_spellings(path, way)))
            or is_below_any(way.end, self._owned)
            or is_below_any(way.end, self._at_home(way.end))
            or any(self.holds(place, "HEAD") for place in self.up(posixpath.dirname(way.end)))
            or self._is_obeyed_elsewhere(way.end)
        )

    def has_guarded(self, directory: str) -> bool:
        """Whether it holds the home, what is telex's own or what programs obey, so that all below
        is too much."""
        obeyed = self._obeyed_elsewhere
        if obeyed is None:
            return True
        held = (self._files.real(self._home), *self._owned, *obeyed, *self._begun)
        listed = (self._files.glob(posixpath.join(directory, each)) for each in ("*", ".*"))
        return any(is_below(place, directory) for place in held) or any(
            names is None or any(is_guarded_name("/" + posixpath.basename(name)) for name in names)
            for names in listed
        )

    def up(self, real: str) -> Iterator[str]:
        """A directory and those above it, up to the root."""
        while is_below(real, self._real_root):
            yield real
            if real == self._real_root:
                return
            real = posixpath.dirname(real)

    def holds(self, directory: str, name: str) -> bool:
        return self._files.glob(posixpath.join(directory, name)) != ()

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """Where secrets are that have no such name there: what is telex's own, and what the home
        has only a link to. Not a place that the root is in: somebody chose to work there."""
        linked = (self._files.real(link) for link in self._linked_at_home if is_secret(link))
        places = (*self._owned, *linked)
        return tuple(place for place in places if not is_below(self._real_root, place))

    @cached_property
    def _real_root(self) -> str:
        return self._files.real(self.root)

    @cached_property
    def _owned(self) -> tuple[str, ...]:
        return tuple(map(self._files.real, self._own))

    def _has_guarded_name(self, place: str) -> bool:
        """Below the root only: a checkout may itself lie in a directory of such a name."""
        for root in (self._real_root, self.root):
            if is_below(root, place):
                return False
            if is_below(place, root):
                return is_guarded_name(place.removeprefix(root.rstrip("/")))
        return is_guarded_name(place)

    def _is_obeyed_elsewhere(self, real: str) -> bool:
        obeyed = self._obeyed_elsewhere
        if obeyed is None or is_below_any(real.casefold(), map(str.casefold, obeyed)):
            return True
        return f"{real}/".casefold().startswith(tuple(map(str.casefold, self._begun)))

    @cached_property
    def _begun(self) -> tuple[str, ...]:
        """What paths begin with that a command in git's configuration may run."""
        return () if self._by_git is None else tuple(dict.fromkeys(self._by_git[1]))

    @cached_property
    def _obeyed_elsewhere(self) -> tuple[str, ...] | None:
        """Where links with guarded names lead, where repositories are, and what git's configuration
        names; None when there is too much to look through, or nobody can say where one leads."""
        below = self._files.scan(self._real_root)
        if below is None or self._by_git is None:
            return None
        named = self._by_git[0]
        links = tuple(sorted(below.links))
        waiting = [link for link in links if self._has_guarded_name(link)]
        waiting += self._links_above()
        found = dict.fromkeys(named)
        for place in named:
            waiting += _below(links, place)
        for link in waiting:
            way = self._files.resolve(link)
            if len(waiting) > _LINKS_OBEYED or (way.unknown and way.end != _NOTHING):
                return None
            if way.end not in found:  # it may be a directory with links in it
                found[way.end] = None
                waiting += _below(links, way.end)
        return tuple(found)

    def _links_above(self) -> Iterator[str]:
        """Guarded links in the directories above the root, and to hooks of a repository that the
        root is in."""
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
        """What git obeys or runs inside the root: the directories of repositories, wherever their
        `.git` says that they are, and what their configuration names; and beginnings of such. None
        when that cannot be read, or leads nobody knows where."""
        found: list[str] = []
        begun: list[str] = []
        try:
            repositories = [*self._repositories_above(), *self._repositories_below(trees)]
            for place in (one for each in repositories for one in (each.own, each.common)):
                way = self._files.resolve(place)
                if way.unknown:
                    return None
                if is_below(way.end, self._real_root):
                    found.append(way.end)
            waiting = list(self._git_configs(repositories))
            most = len(waiting) + _INCLUDED
            personal_aliases = {(posixpath.join(self._home, one), "alias") for one in _GIT_CONFIGS}
            for config, top in waiting:
                if len(waiting) > most or len(found) > _LINKS_OBEYED:
                    return None
                for one in git_files.parse_git_config(read_git_file(config, self._files)):
                    beside = posixpath.dirname(config) if one.is_include else top
                    if (config, one.section) not in personal_aliases:
                        begun += self._begun_by(one, top)
                    words = (place for word in one.words() for place in self._meant(word, one))
                    for word in words:
                        way = self._files.resolve(posixpath.join(beside, word))
                        if one.names_place and way.unknown and way.end != _NOTHING:
                            return None
                        if one.is_include and (way.end, top) not in waiting:
                            waiting.append((way.end, top))
                        if self._may_be_file(word, way.end, one.names_place):
                            found.append(way.end)
        except (UnknownRepository, git_files.UnreadableGitConfig):
            return None
        return found, begun

    def _meant(self, word: str, one: git_files.GitSetting) -> tuple[str, ...]:
        if one.names_place or word.startswith("~"):
            return git_hook_programs.places(word, self._home)
        return (word,)

    def _begun_by(self, one: git_files.GitSetting, top: str) -> Iterator[str]:
        """Of a word that is there, and of a path or a module in any case."""
        for begun in git_hook_programs.begun_by(one):
            way = self._files.resolve(posixpath.join(top, begun.path))
            place = way.end
            if way.unknown or not is_below(place, self._real_root) or place == self._real_root:
                continue
            if not begun.if_there or self._is_there(place):
                yield from (place,) if begun.is_cut else (f"{place}/", f"{place}.")

    def _is_there(self, place: str) -> bool:
        return self._files.is_directory(place) or self._files.glob(f"{place}.*") != ()

    def _may_be_file(self, word: str, place: str, is_place: bool) -> bool:
        """A bare word of a command is a file only if there is one: `cat` is not. A place may also
        be the root, or hold it: then all of it is obeyed."""
        if is_below(self._real_root, place):
            return is_place
        if not is_below(place, self._real_root):
            return False
        if is_place or "/" in word:
            return True
        return bool(self._files.glob(place)) and not self._files.is_directory(place)

    def _git_configs(self, repositories: Sequence[GitRepository]) -> Iterator[tuple[str, str]]:
        """The person's, and those of repositories; each with the directory from which git takes
        what it names."""
        yield from ((posixpath.join(self._home, name), self._real_root) for name in _GIT_CONFIGS)
        for repository in repositories:
            yield from ((config, repository.tree) for config in repository.configs)

    def _repositories_above(self) -> Iterator[GitRepository]:
        """Those that the root is or is in, also of a worktree."""
        top = self._real_root
        while True:
            if (repository := find_repository(top, self._files)) is not None:
                yield repository
            if top == "/":
                return
            top = posixpath.dirname(top)

    def _repositories_below(self, trees: Sequence[str]) -> Iterator[GitRepository]:
        """Those inside the root: submodules, and what was cloned or unpacked there."""
        for tree in trees:
            if tree == self._real_root:
                continue
            try:
                repository = find_repository(tree, self._files)
            except UnknownRepository:
                continue  # git finds none there either, or ends with an error
            if repository is not None:
                yield repository

    @cached_property
    def _linked_at_home(self) -> tuple[str, ...]:
        home = self._files.real(self._home)
        return tuple(
            link
            for place, depth in _LINKED_AT_HOME
            for link in self._files.links(posixpath.join(home, place), depth) or ()
        )

    def _at_home(self, real: str) -> Iterator[str]:
        """Places of the home that a login, a shell or a program obeys, whatever link leads there.
        Not one that the root itself is in: somebody chose to work there."""
        home = self._files.real(self._home)
        places = [
            self._files.real(link)
            for link in self._linked_at_home
            if _is_obeyed_there(_first(link, home))
        ]
        if is_below(real, home) and _is_obeyed_there(first := _first(real, home)):
            places.append(posixpath.join(home, first))
        return (place for place in places if not is_below(self._real_root, place))


def _below(links: Sequence[str], place: str) -> Sequence[str]:
    """Those in a directory, of links in order."""
    inside = place.rstrip("/") + "/"
    return links[bisect_left(links, inside) : bisect_left(links, inside[:-1] + chr(ord("/") + 1))]


def _first(place: str, home: str) -> str:
    return place[len(home.rstrip("/")) + 1 :].split("/")[0]


def _is_obeyed_there(first: str) -> bool:
    return first.startswith(".") or first in _OBEYED_AT_HOME
