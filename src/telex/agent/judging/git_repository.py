"""What a repository tells git to run. Pure, but for `Files`.

A repository's own configuration names programs: filters, text converters, external differences,
monitors, hooks, pagers; and it names other files of configuration. An agent may write the scripts
they lead to, and `git diff` then runs them. So before git goes without a question, the files that
it reads for its configuration are read, those of worktrees and submodules too, and one setting that
is not known to be harmless asks. Which are harmless is a list: next year's settings ask.

The person's own configuration counts only where a program or a file that it names lies in the root.
Used by `commands` to judge and by `bound_files`, to bind an answer to what was read.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.judging.git_config import Setting, Unreadable, settings
from telex.agent.judging.git_index import NOT_AN_INDEX, Tracked, may_have_submodules, tracked
from telex.agent.judging.git_layout import (
    Layout,
    Repository,
    UnknownRepository,
    read,
    repository_of,
)
from telex.agent.judging.git_runs import is_plain
from telex.agent.judging.links import is_below_any
from telex.agent.judging.modes import SHELL_TOOL, Access
from telex.agent.judging.names import is_obeyed
from telex.agent.judging.options import names
from telex.agent.judging.rules import Decision
from telex.agent.judging.showing import in_quotes
from telex.wire.limits import AGENT_GIT_INDEX_BYTES, AGENT_GIT_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent.judging.paths import Paths


_BOOLEANS: Final = names("true false yes no on off 1 0")
_READ_IN_TREE: Final = (".gitmodules", ".gitattributes", ".gitignore", ".mailmap")
"""Files at the top of a working tree that git reads by itself. Before 2.32 it followed links there,
and it still does for the first."""
_INCLUDED: Final = 16
"""Files that the person's settings include."""


@dataclass(frozen=True, slots=True)
class GitReading:
    """What a git command is about to read."""

    prints: bool = False
    """What is in tracked files."""
    enters_links: bool = False
    """Also where a directory on the way is a link by now."""
    within: tuple[str, ...] = ("/",)
    """Only below these, without links but in what is below the working tree: git looks at none."""


@dataclass(frozen=True, slots=True)
class GitSettings:
    """The configuration that git obeys in the root of these paths."""

    paths: Paths

    def objection(self, reads: GitReading) -> str | None:
        """Why git should not run unasked; None if its configuration is harmless, and it prints no
        secret that is tracked."""
        try:
            for repository, _ in self._placed():
                for name in _READ_IN_TREE:
                    if self._is_led_elsewhere(posixpath.join(repository.tree, name)):
                        top = in_quotes(repository.tree)
                        return f"{name} in {top} is a link to what git should not read"
                if secret := self._tracked_secret(repository, reads):
                    return secret
                for file in repository.configs:
                    for one in self.read(file):
                        if not self._is_harmless(one, repository):
                            told = f"{in_quotes(one.key)} in {in_quotes(file)}"
                            return f"{told} may have git run a program or read a file"
            return self._personal()
        except UnknownRepository as unknown:
            return str(unknown)

    def unguarded(self) -> str | None:
        """A setting that has git run what nobody keeps an agent from writing, and where it is. None
        also where the configuration cannot be read: then every write asks."""
        try:
            files = [file for one in self._repositories() for file in one.configs]
            most = len(files) + _INCLUDED
            for file in files:
                for one in self.read(file):
                    included = self._at(one.value, posixpath.dirname(file))
                    if one.is_include and included not in files:
                        files.append(included)
                    if not is_plain(one) or len(files) > most:
                        return f"{in_quotes(one.key)} in {in_quotes(file)}"
        except UnknownRepository:
            pass
        return None

    def files(self) -> Iterator[str]:
        """The files that say what git runs: its configuration, hooks, and what the former names.
        Patterns have `*`. Nothing is said about what cannot be read."""
        try:
            for repository in self._repositories():
                yield from repository.configs
                yield posixpath.join(repository.common, "hooks", "*")
                yield posixpath.join(repository.tree, ".gitattributes")
                for one in (one for file in repository.configs for one in self.read(file)):
                    yield from self._named(one, repository.tree)
        except UnknownRepository:
            return

    def _named(self, one: Setting, tree: str) -> Iterator[str]:
        for word in one.words():
            if not word.startswith("-"):
                yield posixpath.join(tree, word)
        if one.kind == "core.hookspath":
            yield posixpath.join(tree, one.value, "*")

    def _is_harmless(self, one: Setting, repository: Repository) -> bool:
        if one.is_harmless:
            return True
        real = self.paths.files.real
        match one.kind:
            case "core.fsmonitor":
                return one.value.lower() in _BOOLEANS
            case "core.hookspath":
                place = posixpath.join(repository.tree, one.value)
                return not self._may_be_rewritten(place)
            case "core.worktree":
                return real(posixpath.join(repository.own, one.value)) == real(repository.tree)
        return False

    def _personal(self) -> str | None:
        """The person's own settings, with the files that they include, under whatever condition."""
        home = self.paths.home
        files = ["/etc/gitconfig", f"{home}/.gitconfig", f"{home}/.config/git/config"]
        most = len(files) + _INCLUDED
        for file in files:
            if len(files) > most:
                return f"{in_quotes(file)} and others include too many files"
            try:
                found = list(settings(self._contents(file)))
            except (Unreadable, UnknownRepository):
                continue  # the person's own affair, as long as no agent wrote it
            for one in found:
                if self._leads_inside(one, file):
                    return f"{in_quotes(one.key)} in {in_quotes(file)} names something in the root"
                included = self._at(one.value, posixpath.dirname(file))
                if one.is_include and included not in files:
                    files.append(included)
        return None

    def _leads_inside(self, one: Setting, file: str) -> bool:
        if one.names_data:
            return self._is_led_elsewhere(one.value)
        if one.is_include:
            return self._may_be_rewritten(self._at(one.value, posixpath.dirname(file)))
        return any(self._is_file(word, one) for word in one.words())

    def _is_led_elsewhere(self, data: str) -> bool:
        """A file in the root that is read may be a link to a secret; git prints what it does not
        understand in it."""
        path = self._at(data, self.paths.root)
        written = posixpath.normpath(path)
        roots = (self.paths.root, self.paths.files.real(self.paths.root))
        if not is_below_any(written, roots):
            return False
        touched = self.paths.touched(Access.READ, path, self.paths.root, SHELL_TOOL)
        return touched.verdict.decision is not Decision.ALLOW

    def _is_file(self, word: str, one: Setting) -> bool:
        """Whether it is one in the root that an agent may write. A bare word is, where there is a
        file of that name; but an alias runs only by its own name."""
        absolute = self._at(word, self.paths.root)
        is_path = word.startswith(("./", "../", "/", "~/")) or one.kind == "core.attributesfile"
        if not is_path:
            found = self.paths.files.names(absolute) != ()
            is_path = found and ("/" in word or self._may_be_bare(absolute, one))
        return is_path and self._may_be_rewritten(absolute)

    def _may_be_bare(self, place: str, one: Setting) -> bool:
        return one.section != "alias" and not self.paths.files.is_directory(place)

    def _at(self, written: str, directory: str) -> str:
        path = self.paths.home + written[1:] if written.startswith("~/") else written
        return posixpath.join(directory, path)

    def _may_be_rewritten(self, place: str) -> bool:
        """Inside the root, and not in a place that everybody knows to be obeyed, such as .husky."""
        real, root = self.paths.files.real(place), self.paths.files.real(self.paths.root)
        return self.paths.is_inside(place) and not is_obeyed(real.removeprefix(root))

    def places(self) -> list[str]:
        """The directories that git reads, if they are all such that it may."""
        try:
            return [place for _, places in self._placed() for place in places]
        except UnknownRepository:
            return []

    def _placed(self) -> Iterator[tuple[Repository, list[str]]]:
        """Each repository, with the places that are judged to be its own."""
        layout = Layout(self.paths)
        known: list[str] = []
        for repository in self._repositories():
            places = layout.places(repository, known)
            known += places
            yield repository, places

    def _repositories(self) -> Iterator[Repository]:
        """The root's, and those that git looks into from there."""
        waiting, seen = [self.paths.root], 0
        while waiting:
            tree = waiting.pop()
            if (repository := repository_of(tree, self.paths.files)) is None:
                continue
            seen += 1
            if seen > AGENT_GIT_REPOSITORIES:
                raise UnknownRepository("git looks into too many repositories here")
            yield repository
            waiting += self._submodules(repository)

    def _submodules(self, repository: Repository) -> list[str]:
        """The working trees of submodules. A link on the way to one leads to a repository that is
        none of this one's."""
        if not may_have_submodules(self._index(repository)):
            return []
        names = self._tracked(repository).submodules
        top, real = repository.tree, self.paths.files.real
        for name in names:
            if real(posixpath.join(top, name)) != posixpath.join(real(top), name):
                raise UnknownRepository(
                    f"a link leads to the submodule {in_quotes(name)} of {in_quotes(top)}"
                )
        return [posixpath.join(top, name) for name in names]

    def _tracked_secret(self, repository: Repository, reads: GitReading) -> str | None:
        if not reads.prints:
            return None
        found, top = self._tracked(repository), self.paths.files.real(repository.tree)
        if reads.enters_links:
            for name in found.directories:
                if self.paths.files.real(place := posixpath.join(top, name)) != place:
                    return f"{in_quotes(name)} is tracked as a directory, and is a link"
        for name in found.secrets:
            path = posixpath.join(top, name)
            if not is_below_any(path, reads.within):
                continue
            verdict = self.paths.touched(Access.READ, path, top, SHELL_TOOL).verdict
            if verdict.decision is not Decision.ALLOW:
                return f"git may print what is tracked: {verdict.why}"
        return None

    def _tracked(self, repository: Repository) -> Tracked:
        index = self._index(repository)
        if not index:
            return Tracked((), (), ())
        sha256 = any(
            one.kind == "extensions.objectformat" and one.value.lower() != "sha1"
            for config in repository.configs
            for one in self.read(config)
        )
        try:
            return tracked(index, 32 if sha256 else 20)
        except NOT_AN_INDEX as error:
            raise UnknownRepository(
                f"{in_quotes(repository.own)} names what is tracked, and is not understood"
            ) from error

    def _index(self, repository: Repository) -> bytes:
        file = posixpath.join(repository.own, "index")
        index = self.paths.files.contents(file, AGENT_GIT_INDEX_BYTES)
        if index is None:
            raise UnknownRepository(f"{in_quotes(file)} cannot be read")
        return index

    def read(self, file: str) -> list[Setting]:
        """A file of configuration. Raises `UnknownRepository`."""
        try:
            return list(settings(self._contents(file)))
        except Unreadable as error:
            raise UnknownRepository(
                f"{in_quotes(file)} is written in a way that is not understood"
            ) from error

    def _contents(self, file: str) -> bytes:
        return read(file, self.paths.files)
