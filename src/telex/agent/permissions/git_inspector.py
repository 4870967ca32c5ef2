"""Decide whether git may run without a question in a repository. Pure, except for `FileLookup`.

The configuration of a repository names programs (filters, text converters, external diffs,
monitors, hooks, pagers) and further configuration files. An agent may write the scripts that it
names, and `git diff` would then run them. So all configuration files that git reads are parsed,
also those of worktrees and submodules, and one setting that is not known to be harmless is enough
to ask. The harmless settings are a list (`git_config.HARMLESS`), so a setting that is new in git
asks. The user's own configuration asks only if a program or file that it names is in the root.

`NoIndexCheck` finds the uses of `git diff` that compare any two files. With two paths of which one
is outside the working tree, or without a repository, `git diff` means `git diff --no-index`: it
prints all files below two directories, including hidden files and secrets. Git decides by the text
of a path whether it is outside: from the top of the tree, `../tree/a` is. And git finds no
repository in a `.git` that is incomplete, belongs to another user, or has an unknown version or
extension.

Used by `shell_commands` to judge, by `implied_files` to bind an answer to the files that git reads,
and by `confinement`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.limits import AGENT_GIT_INDEX_BYTES, AGENT_GIT_REPOSITORIES
from telex.agent.permissions.display_text import in_quotes
from telex.agent.permissions.git_config import GitSetting, is_fully_named
from telex.agent.permissions.git_index import (
    NOT_AN_INDEX,
    TrackedFiles,
    may_have_submodules,
    tracked_files,
)
from telex.agent.permissions.git_repository import (
    GitLayout,
    GitRepository,
    UnknownRepository,
    find_repository,
    read_git_config,
    read_git_file,
)
from telex.agent.permissions.path_walk import is_below_any
from telex.agent.permissions.read_only_programs import word_set
from telex.agent.permissions.sensitive_names import is_guarded_name
from telex.agent.permissions.tool_rules import SHELL_TOOL, PathAccess, Permission

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.permissions.path_policy import PathPolicy


_BOOLEANS: Final = word_set("true false yes no on off 1 0")
_READ_IN_TREE: Final = (".gitmodules", ".gitattributes", ".gitignore", ".mailmap")
"""Files at the top of a working tree that git reads by itself. Before version 2.32 git followed
links there; it still does for `.gitmodules`."""
_MOST_INCLUDED: Final = 16
"""Files that a configuration may include."""


@dataclass(frozen=True, slots=True)
class GitRead:
    """Describes the files that a git command is about to read."""

    prints: bool = False
    """Whether it prints the content of tracked files."""
    enters_links: bool = False
    """Whether it reads tracked files also where a directory of their path is now a link."""
    within: tuple[str, ...] = ("/",)
    """The paths below which it reads. Links in the path of the working tree are resolved, links
    below it are not, because git follows none there."""


@dataclass(frozen=True, slots=True)
class GitInspector:
    """Inspects the repository in the root of `paths` and the configuration that git reads there."""

    paths: PathPolicy

    def objection(self, reads: GitRead) -> str | None:
        """Return why git must not run without a question; None if its configuration is harmless and
        it prints no tracked secret."""
        try:
            for repository, _ in self._checked_repositories():
                for name in _READ_IN_TREE:
                    if self._leads_to_unreadable(posixpath.join(repository.tree, name)):
                        return (
                            f"{name} in {in_quotes(repository.tree)} is a link to a secret, or to "
                            "a file outside the workspace root"
                        )
                if secret := self._tracked_secret(repository, reads):
                    return secret
                for file in repository.configs:
                    for setting in read_git_config(file, self.paths.files):
                        if not self._is_harmless(setting, repository):
                            return (
                                f"{in_quotes(setting.key)} in {in_quotes(file)} may make git run "
                                "a program or read another file"
                            )
            return self._user_objection()
        except UnknownRepository as unknown:
            return str(unknown)

    def unguarded_setting(self) -> str | None:
        """Return a setting, with its file, that makes git run files that are not guarded, so that
        an agent could write them. None also where the configuration cannot be read, because every
        write asks then."""
        try:
            files = [file for repository in self._repositories() for file in repository.configs]
            most = len(files) + _MOST_INCLUDED
            for file in files:
                for setting in read_git_config(file, self.paths.files):
                    included = self._absolute(setting.value, posixpath.dirname(file))
                    if setting.is_include and included not in files:
                        files.append(included)
                    if not is_fully_named(setting) or len(files) > most:
                        return f"{in_quotes(setting.key)} in {in_quotes(file)}"
        except UnknownRepository:
            pass
        return None

    def files(self) -> Iterator[str]:
        """Yield the files that decide what git runs: its configuration, its hooks, and the files
        that the configuration names. Patterns have `*`. Files that cannot be read are left out."""
        try:
            for repository in self._repositories():
                yield from repository.configs
                yield posixpath.join(repository.common, "hooks", "*")
                yield posixpath.join(repository.tree, ".gitattributes")
                for file in repository.configs:
                    for setting in read_git_config(file, self.paths.files):
                        yield from self._named_files(setting, repository.tree)
        except UnknownRepository:
            return

    def directories(self) -> list[str]:
        """Return the directories that git reads; empty if it may not read one of them."""
        try:
            return [place for _, places in self._checked_repositories() for place in places]
        except UnknownRepository:
            return []

    def _named_files(self, setting: GitSetting, tree: str) -> Iterator[str]:
        for word in setting.words():
            if not word.startswith("-"):
                yield posixpath.join(tree, word)
        if setting.kind == "core.hookspath":
            yield posixpath.join(tree, setting.value, "*")

    def _is_harmless(self, setting: GitSetting, repository: GitRepository) -> bool:
        if setting.is_harmless:
            return True
        real, value = self.paths.files.real, setting.value
        match setting.kind:
            case "core.fsmonitor":
                return value.lower() in _BOOLEANS
            case "core.hookspath":
                return not self._may_be_rewritten(posixpath.join(repository.tree, value))
            case "core.worktree":
                return real(posixpath.join(repository.own, value)) == real(repository.tree)
        return False

    def _user_objection(self) -> str | None:
        """Check the user's own configuration and all files that it includes, under any
        condition."""
        home = self.paths.home
        files = ["/etc/gitconfig", f"{home}/.gitconfig", f"{home}/.config/git/config"]
        most = len(files) + _MOST_INCLUDED
        for file in files:
            if len(files) > most:
                return f"the git configuration {in_quotes(file)} includes too many files"
            try:
                settings = read_git_config(file, self.paths.files)
            except UnknownRepository:
                continue  # the user's own file, which no agent wrote
            for setting in settings:
                if self._names_file_in_root(setting, file):
                    return (
                        f"{in_quotes(setting.key)} in {in_quotes(file)} names a file in the "
                        "workspace root"
                    )
                included = self._absolute(setting.value, posixpath.dirname(file))
                if setting.is_include and included not in files:
                    files.append(included)
        return None

    def _names_file_in_root(self, setting: GitSetting, file: str) -> bool:
        if setting.names_data:
            return self._leads_to_unreadable(setting.value)
        if setting.is_include:
            included = self._absolute(setting.value, posixpath.dirname(file))
            return self._may_be_rewritten(included)
        return any(self._is_writable_file(word, setting) for word in setting.words())

    def _leads_to_unreadable(self, data: str) -> bool:
        """Return whether a file in the root that git reads is a link to a file that may not be read
        without a question: git prints the lines that it does not understand."""
        path = self._absolute(data, self.paths.root)
        written = posixpath.normpath(path)
        roots = (self.paths.root, self.paths.files.real(self.paths.root))
        if not is_below_any(written, roots):
            return False
        touched = self.paths.touched(PathAccess.READ, path, self.paths.root, SHELL_TOOL)
        return touched.verdict.decision is not Permission.ALLOW

    def _is_writable_file(self, word: str, setting: GitSetting) -> bool:
        """Return whether a word is a file in the root that an agent may write. A word without `/`
        counts if a file of that name exists, except in an alias, which runs only by its name."""
        absolute = self._absolute(word, self.paths.root)
        is_path = word.startswith(("./", "../", "/", "~/")) or setting.kind == "core.attributesfile"
        if not is_path:
            found = self.paths.files.glob(absolute) != ()
            is_path = found and ("/" in word or self._may_be_bare(absolute, setting))
        return is_path and self._may_be_rewritten(absolute)

    def _may_be_bare(self, place: str, setting: GitSetting) -> bool:
        return setting.section != "alias" and not self.paths.files.is_directory(place)

    def _absolute(self, written: str, directory: str) -> str:
        path = self.paths.home + written[1:] if written.startswith("~/") else written
        return posixpath.join(directory, path)

    def _may_be_rewritten(self, place: str) -> bool:
        """Return whether the path is inside the root and its name is not guarded, as `.husky`
        is."""
        real, root = self.paths.files.real(place), self.paths.files.real(self.paths.root)
        return self.paths.is_inside(place) and not is_guarded_name(real.removeprefix(root))

    def _checked_repositories(self) -> Iterator[tuple[GitRepository, list[str]]]:
        """Yield each repository with its directories. Raise `UnknownRepository`."""
        layout = GitLayout(self.paths)
        known: list[str] = []
        for repository in self._repositories():
            directories = layout.directories(repository, known)
            known += directories
            yield repository, directories

    def _repositories(self) -> Iterator[GitRepository]:
        """Yield the repository of the root and those of its submodules, which git reads too."""
        waiting, seen = [self.paths.root], 0
        while waiting:
            tree = waiting.pop()
            if (repository := find_repository(tree, self.paths.files)) is None:
                continue
            seen += 1
            if seen > AGENT_GIT_REPOSITORIES:
                raise UnknownRepository("git would read too many repositories here")
            yield repository
            waiting += self._submodules(repository)

    def _submodules(self, repository: GitRepository) -> list[str]:
        """Return the working trees of the submodules. A link in the path of one is refused, because
        it leads to a repository that is not a submodule of this one."""
        if not may_have_submodules(self._index(repository)):
            return []
        names = self._tracked(repository).submodules
        top, real = repository.tree, self.paths.files.real
        for name in names:
            if real(posixpath.join(top, name)) != posixpath.join(real(top), name):
                raise UnknownRepository(
                    f"the path of the submodule {in_quotes(name)} of {in_quotes(top)} has a link"
                )
        return [posixpath.join(top, name) for name in names]

    def _tracked_secret(self, repository: GitRepository, reads: GitRead) -> str | None:
        if not reads.prints:
            return None
        found, top = self._tracked(repository), self.paths.files.real(repository.tree)
        if reads.enters_links:
            for name in found.directories:
                if self.paths.files.real(place := posixpath.join(top, name)) != place:
                    return f"{in_quotes(name)} is tracked as a directory, but is a link"
        for name in found.secrets:
            path = posixpath.join(top, name)
            if not is_below_any(path, reads.within):
                continue
            verdict = self.paths.touched(PathAccess.READ, path, top, SHELL_TOOL).verdict
            if verdict.decision is not Permission.ALLOW:
                return f"git may print a tracked file: {verdict.why}"
        return None

    def _tracked(self, repository: GitRepository) -> TrackedFiles:
        index = self._index(repository)
        if not index:
            return TrackedFiles((), (), ())
        sha256 = any(
            setting.kind == "extensions.objectformat" and setting.value.lower() != "sha1"
            for config in repository.configs
            for setting in read_git_config(config, self.paths.files)
        )
        try:
            return tracked_files(index, 32 if sha256 else 20)
        except NOT_AN_INDEX as error:
            raise UnknownRepository(
                f"the git index in {in_quotes(repository.own)} cannot be parsed"
            ) from error

    def _index(self, repository: GitRepository) -> bytes:
        file = posixpath.join(repository.own, "index")
        index = self.paths.files.contents(file, AGENT_GIT_INDEX_BYTES)
        if index is None:
            raise UnknownRepository(f"{in_quotes(file)} cannot be read")
        return index


_HEAD: Final = re.compile(rb"ref:[ \t]*refs/[^\s]+\s*|[0-9a-f]{40}(?:[0-9a-f]{24})?\s*")
_FALSE: Final = word_set("false no off 0")
_FORMAT_VERSIONS: Final = word_set("0 1")
_EXTENSIONS: Final = {"objectformat": word_set("sha1"), "worktreeconfig": word_set("true false")}
"""Extensions, with their values, that are known to every git version that refuses unknown ones."""
_COMPARED: Final = 2


@dataclass(frozen=True, slots=True)
class NoIndexCheck:
    """Finds uses of `git diff` that compare any two files instead of tracked ones."""

    paths: PathPolicy

    def objection(self, operands: Sequence[str], cwd: str) -> str | None:
        """Return why the operands may be any files; None if git takes them as tracked files."""
        for path in operands:
            if self._is_outside(path, cwd):
                return (
                    f"{in_quotes(path)} is outside the working tree, so git diff also compares "
                    "files that are not tracked"
                )
        places = [self.paths.absolute(path, cwd) for path in operands]
        existing = [place for place in places if self.paths.files.glob(place) != ()]
        directories = [place for place in existing if self.paths.files.is_directory(place)]
        if directories and len(existing) >= _COMPARED and (why := self._no_repository()):
            return f"git diff may compare all files below {in_quotes(directories[0])}: {why}"
        return None

    def _is_outside(self, path: str, cwd: str) -> bool:
        """Return whether git takes the path as outside the working tree. Git counts the `..`, and
        resolves links only in the path of the working tree."""
        real, root = self.paths.files.real(cwd), self.paths.files.real(self.paths.root)
        if path.startswith("/"):
            tops = {root, posixpath.normpath(self.paths.root)}
            return not is_below_any(posixpath.normpath(path), tops)
        depth = len(_names(real)) - len(_names(root))
        for name in _names(path):
            depth += -1 if name == ".." else 1
            if depth < 0:
                return True
        return False

    def _no_repository(self) -> str | None:
        """Return why git may find no repository in the root; None if it finds one."""
        try:
            repository = find_repository(self.paths.root, self.paths.files)
            if repository is None:
                return "there is no repository"
            return self._missing_part(repository) or self._unknown_format(repository)
        except UnknownRepository as unknown:
            return str(unknown)

    def _missing_part(self, repository: GitRepository) -> str | None:
        files = self.paths.files
        if not _HEAD.fullmatch(read_git_file(posixpath.join(repository.own, "HEAD"), files)):
            return f"{in_quotes(repository.own)} has no valid HEAD"
        for name in ("objects", "refs"):
            if not files.is_directory(posixpath.join(repository.common, name)):
                return f"{in_quotes(repository.common)} has no directory {name}"
        pointer = posixpath.join(repository.tree, ".git")
        for place in (repository.tree, pointer, repository.own):
            if not files.is_own(files.real(place)):
                return f"{in_quotes(place)} belongs to another user"
        return None

    def _unknown_format(self, repository: GitRepository) -> str | None:
        for file in repository.configs:
            for setting in read_git_config(file, self.paths.files):
                value = setting.value.lower()
                known = {
                    "core.bare": value in _FALSE,
                    "core.repositoryformatversion": value in _FORMAT_VERSIONS,
                }.get(setting.kind, True)
                if setting.section == "extensions":
                    known = value in _EXTENSIONS.get(setting.name, ())
                if not known:
                    return f"git may not accept {in_quotes(setting.key)} in {in_quotes(file)}"
        return None


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
