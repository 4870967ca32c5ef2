"""Where git reads for a working tree, and what a repository tells it to run. Pure, but for
`FileLookup`.

A repository is a directory of files that name each other, and git follows what they say: `.git`
may be a file that names another directory, `commondir` and `objects/info/alternates` name more, and
any file there may be a link. An archive or an agent may have written them, so that `git show`
prints another repository of the person's. So before git goes without a question, all of it has to
lie in the root; or it is a worktree, which the repository that it belongs to names as its own.

A repository's own configuration names programs: filters, text converters, external differences,
monitors, hooks, pagers; and it names other files of configuration. An agent may write the scripts
they lead to, and `git diff` then runs them. So the files that git reads for its configuration are
read, those of worktrees and submodules too, and one setting that is not known to be harmless asks.
Which are harmless is a list: next year's settings ask.

The person's own configuration counts only where a program or a file that it names lies in the root.
Used by `shell_commands` to judge, by `guarded_files`, by `bound_files` to bind an answer to what
was read, and by `confinement`.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.limits import AGENT_GIT_CONFIG_BYTES, AGENT_GIT_INDEX_BYTES, AGENT_GIT_REPOSITORIES
from telex.agent.permissions.display_text import in_quotes
from telex.agent.permissions.git_files import (
    NOT_AN_INDEX,
    GitSetting,
    TrackedFiles,
    UnreadableGitConfig,
    may_have_submodules,
    parse_git_config,
    tracked_files,
)
from telex.agent.permissions.git_hook_programs import is_plain
from telex.agent.permissions.path_walk import is_below, is_below_any
from telex.agent.permissions.read_only_programs import word_set
from telex.agent.permissions.sensitive_names import is_guarded_name
from telex.agent.permissions.tool_rules import SHELL_TOOL, PathAccess, Permission

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.permissions.path_policy import PathPolicy
    from telex.agent.permissions.path_walk import FileLookup


_STORES: Final = 8
"""Of objects, that borrow from each other; git itself goes five deep."""


@dataclass(frozen=True, slots=True)
class GitRepository:
    """Where git keeps what it knows of one working tree."""

    tree: str
    own: str
    """Of this working tree alone, a worktree's or a submodule's."""
    common: str

    @property
    def configs(self) -> tuple[str, ...]:
        return (
            posixpath.join(self.common, "config"),
            posixpath.join(self.own, "config.worktree"),
        )


class UnknownRepository(Exception):
    """What git obeys or reads is not known, or is not the root's, and why."""


def find_repository(tree: str, files: FileLookup) -> GitRepository | None:
    """Of a working tree, if it is one. Raises `UnknownRepository`."""
    own = posixpath.join(tree, ".git")
    if not files.is_directory(own):
        written = read_git_file(own, files)
        if not written:
            return None
        if not written.startswith(b"gitdir: "):
            raise UnknownRepository(f"{in_quotes(own)} does not say where its repository is")
        own = posixpath.join(tree, _path(written.removeprefix(b"gitdir: ")))
    common = read_git_file(posixpath.join(own, "commondir"), files)
    return GitRepository(tree, own, posixpath.join(own, _path(common)) if common else own)


def read_git_file(file: str, files: FileLookup) -> bytes:
    """A file of git's. Raises `UnknownRepository`."""
    found = files.contents(file, AGENT_GIT_CONFIG_BYTES)
    if found is None:
        raise UnknownRepository(f"{in_quotes(file)} cannot be read")
    return found


@dataclass(frozen=True, slots=True)
class GitLayout:
    """The places of repositories, with the policy for paths that says which of them may be read."""

    paths: PathPolicy

    def places(self, repository: GitRepository, known: Sequence[str] = ()) -> list[str]:
        """The directories git reads, without links. `known` are those of the repository that this
        one is a submodule of. Raises `UnknownRepository` for what asks."""
        pointer = posixpath.join(repository.tree, ".git")
        if self._leads_elsewhere(pointer):
            raise UnknownRepository(f"{in_quotes(pointer)} is a link")
        own, common = self._real(repository.own), self._real(repository.common)
        if not self._is_worktree(pointer, own, common):
            for file, place in ((pointer, own), (f"{repository.own}/commondir", common)):
                if not is_below_any(place, known) and not self._may_be_read(place):
                    raise UnknownRepository(
                        f"{in_quotes(file)} leads to {in_quotes(place)}, outside the root"
                    )
        places = [common] if is_below(own, common) else [own, common]
        for place in places:
            self._refuse_links(place)
        return [*places, *self._borrowed(posixpath.join(common, "objects"))]

    def _is_worktree(self, pointer: str, own: str, common: str) -> bool:
        """Whether a repository names this working tree as one that was made of it."""
        if posixpath.dirname(own) != posixpath.join(common, "worktrees"):
            return False
        back = read_git_file(posixpath.join(own, "gitdir"), self.paths.files)
        named = posixpath.join(own, _path(back))
        return bool(back) and self._real(named) == self._real(pointer)

    def _borrowed(self, objects: str) -> list[str]:
        """Stores that this one names, and those that they name."""
        found, waiting = [objects], [objects]
        for store in waiting:
            remote = posixpath.join(store, "info", "http-alternates")
            if read_git_file(remote, self.paths.files):
                raise UnknownRepository(
                    f"{in_quotes(remote)} has git borrow objects from elsewhere"
                )
            for line in self._alternates(store):
                named = self._real(posixpath.join(store, line))
                if line.startswith('"') or not self._may_be_read(named):
                    why = f"{in_quotes(store)} has git read {in_quotes(named)}, outside the root"
                    raise UnknownRepository(why)
                if named not in found:
                    self._refuse_links(named)
                    found.append(named)
                    waiting.append(named)
            if len(found) > _STORES:
                raise UnknownRepository("git borrows objects from too many places")
        return found[1:]

    def _alternates(self, store: str) -> Iterator[str]:
        written = read_git_file(posixpath.join(store, "info", "alternates"), self.paths.files)
        for line in written.decode("utf-8", "surrogateescape").split("\n"):
            if line and not line.startswith("#"):
                yield line

    def _refuse_links(self, place: str) -> None:
        """Those of hooks do no harm: an unattended git has none (`reader_environment`)."""
        found = self.paths.files.scan(place, whole=True)
        if found is None:
            raise UnknownRepository(f"{in_quotes(place)} has too many files to look for links")
        hooks = posixpath.join(place, "hooks")
        for link in found.links:
            if not is_below(link, hooks):
                raise UnknownRepository(
                    f"{in_quotes(link)} is a link, and git reads what it leads to"
                )

    def _may_be_read(self, place: str) -> bool:
        """Inside the root, or where a rule lets be read."""
        if self.paths.is_inside(place):
            return True
        touched = self.paths.touched(PathAccess.READ, place, self.paths.root, SHELL_TOOL)
        return touched.verdict.rule is not None and touched.verdict.decision is Permission.ALLOW

    def _leads_elsewhere(self, path: str) -> bool:
        real = self._real(path)
        return real != posixpath.join(self._real(posixpath.dirname(path)), posixpath.basename(path))

    def _real(self, path: str) -> str:
        way = self.paths.files.resolve(path)
        if way.unknown:
            raise UnknownRepository(f"nobody can say where {in_quotes(path)} leads: {way.unknown}")
        return way.end


def _path(written: bytes) -> str:
    return written.rstrip(b"\r\n").decode("utf-8", "surrogateescape")


_BOOLEANS: Final = word_set("true false yes no on off 1 0")
_READ_IN_TREE: Final = (".gitmodules", ".gitattributes", ".gitignore", ".mailmap")
"""Files at the top of a working tree that git reads by itself. Before 2.32 it followed links there,
and it still does for the first."""
_INCLUDED: Final = 16
"""Files that the person's settings include."""


@dataclass(frozen=True, slots=True)
class GitRead:
    """What a git command is about to read."""

    prints: bool = False
    """What is in tracked files."""
    enters_links: bool = False
    """Also where a directory on the way is a link by now."""
    within: tuple[str, ...] = ("/",)
    """Only below these, without links but in what is below the working tree: git looks at none."""


@dataclass(frozen=True, slots=True)
class GitInspector:
    """The configuration that git obeys in the root of these paths."""

    paths: PathPolicy

    def objection(self, reads: GitRead) -> str | None:
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

    def _named(self, one: GitSetting, tree: str) -> Iterator[str]:
        for word in one.words():
            if not word.startswith("-"):
                yield posixpath.join(tree, word)
        if one.kind == "core.hookspath":
            yield posixpath.join(tree, one.value, "*")

    def _is_harmless(self, one: GitSetting, repository: GitRepository) -> bool:
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
                found = list(parse_git_config(self._contents(file)))
            except (UnreadableGitConfig, UnknownRepository):
                continue  # the person's own affair, as long as no agent wrote it
            for one in found:
                if self._leads_inside(one, file):
                    return f"{in_quotes(one.key)} in {in_quotes(file)} names something in the root"
                included = self._at(one.value, posixpath.dirname(file))
                if one.is_include and included not in files:
                    files.append(included)
        return None

    def _leads_inside(self, one: GitSetting, file: str) -> bool:
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
        touched = self.paths.touched(PathAccess.READ, path, self.paths.root, SHELL_TOOL)
        return touched.verdict.decision is not Permission.ALLOW

    def _is_file(self, word: str, one: GitSetting) -> bool:
        """Whether it is one in the root that an agent may write. A bare word is, where there is a
        file of that name; but an alias runs only by its own name."""
        absolute = self._at(word, self.paths.root)
        is_path = word.startswith(("./", "../", "/", "~/")) or one.kind == "core.attributesfile"
        if not is_path:
            found = self.paths.files.glob(absolute) != ()
            is_path = found and ("/" in word or self._may_be_bare(absolute, one))
        return is_path and self._may_be_rewritten(absolute)

    def _may_be_bare(self, place: str, one: GitSetting) -> bool:
        return one.section != "alias" and not self.paths.files.is_directory(place)

    def _at(self, written: str, directory: str) -> str:
        path = self.paths.home + written[1:] if written.startswith("~/") else written
        return posixpath.join(directory, path)

    def _may_be_rewritten(self, place: str) -> bool:
        """Inside the root, and not in a place that everybody knows to be obeyed, such as .husky."""
        real, root = self.paths.files.real(place), self.paths.files.real(self.paths.root)
        return self.paths.is_inside(place) and not is_guarded_name(real.removeprefix(root))

    def places(self) -> list[str]:
        """The directories that git reads, if they are all such that it may."""
        try:
            return [place for _, places in self._placed() for place in places]
        except UnknownRepository:
            return []

    def _placed(self) -> Iterator[tuple[GitRepository, list[str]]]:
        """Each repository, with the places that are judged to be its own."""
        layout = GitLayout(self.paths)
        known: list[str] = []
        for repository in self._repositories():
            places = layout.places(repository, known)
            known += places
            yield repository, places

    def _repositories(self) -> Iterator[GitRepository]:
        """The root's, and those that git looks into from there."""
        waiting, seen = [self.paths.root], 0
        while waiting:
            tree = waiting.pop()
            if (repository := find_repository(tree, self.paths.files)) is None:
                continue
            seen += 1
            if seen > AGENT_GIT_REPOSITORIES:
                raise UnknownRepository("git looks into too many repositories here")
            yield repository
            waiting += self._submodules(repository)

    def _submodules(self, repository: GitRepository) -> list[str]:
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

    def _tracked_secret(self, repository: GitRepository, reads: GitRead) -> str | None:
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
            verdict = self.paths.touched(PathAccess.READ, path, top, SHELL_TOOL).verdict
            if verdict.decision is not Permission.ALLOW:
                return f"git may print what is tracked: {verdict.why}"
        return None

    def _tracked(self, repository: GitRepository) -> TrackedFiles:
        index = self._index(repository)
        if not index:
            return TrackedFiles((), (), ())
        sha256 = any(
            one.kind == "extensions.objectformat" and one.value.lower() != "sha1"
            for config in repository.configs
            for one in self.read(config)
        )
        try:
            return tracked_files(index, 32 if sha256 else 20)
        except NOT_AN_INDEX as error:
            raise UnknownRepository(
                f"{in_quotes(repository.own)} names what is tracked, and is not understood"
            ) from error

    def _index(self, repository: GitRepository) -> bytes:
        file = posixpath.join(repository.own, "index")
        index = self.paths.files.contents(file, AGENT_GIT_INDEX_BYTES)
        if index is None:
            raise UnknownRepository(f"{in_quotes(file)} cannot be read")
        return index

    def read(self, file: str) -> list[GitSetting]:
        """A file of configuration. Raises `UnknownRepository`."""
        try:
            return list(parse_git_config(self._contents(file)))
        except UnreadableGitConfig as error:
            raise UnknownRepository(
                f"{in_quotes(file)} is written in a way that is not understood"
            ) from error

    def _contents(self, file: str) -> bytes:
        return read_git_file(file, self.paths.files)
