"""Whether `git diff` compares what is in the repository, or any two files. Pure, but for `Files`.

Given two paths of which one is outside of the working tree, or without a repository, `git diff` is
`git diff --no-index`: it prints all that is below two directories, hidden files and secrets too.
What is outside it says by the letters of a path: from the top of the tree, `../tree/a` is. And it
finds no repository in a `.git` that lacks something, is of a version or has an extension it does
not know, or belongs to somebody else. Used by `commands`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.display_text import in_quotes
from telex.agent.permissions.git_repository import (
    GitRepository,
    UnknownRepository,
    find_repository,
    read_git_file,
)
from telex.agent.permissions.path_walk import is_below_any
from telex.agent.permissions.read_only_programs import word_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.agent.permissions.git_repository import GitInspector
    from telex.agent.permissions.path_policy import PathPolicy

_HEAD: Final = re.compile(rb"ref:[ \t]*refs/[^\s]+\s*|[0-9a-f]{40}(?:[0-9a-f]{24})?\s*")
_FALSE: Final = word_set("false no off 0")
_VERSIONS: Final = word_set("0 1")
_OF_VERSION_1: Final = {"objectformat": word_set("sha1"), "worktreeconfig": word_set("true false")}
"""Extensions that every git has which refuses what it does not know."""
_COMPARED: Final = 2


@dataclass(frozen=True, slots=True)
class GitOutside:
    paths: PathPolicy
    settings: GitInspector

    def objection(self, operands: Sequence[str], cwd: str) -> str | None:
        """Why the operands of a comparison may be any files; None if git takes them for tracked
        ones."""
        for path in operands:
            if self._is_outside(path, cwd):
                return f"git compares any files where one is outside of its tree: {in_quotes(path)}"
        places = [self.paths.absolute(path, cwd) for path in operands]
        there = [place for place in places if self.paths.files.glob(place) != ()]
        below = [place for place in there if self.paths.files.is_directory(place)]
        if below and len(there) >= _COMPARED and (why := self._is_no_repository()):
            return f"git may compare all files below {in_quotes(below[0])}: {why}"
        return None

    def _is_outside(self, path: str, cwd: str) -> bool:
        """As git has it: it counts the `..`, and follows links only to the top of the tree."""
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

    def _is_no_repository(self) -> str | None:
        """Why git may find none in the root."""
        try:
            repository = find_repository(self.paths.root, self.paths.files)
            if repository is None:
                return "there is no repository"
            return self._what_is_missing(repository) or self._unknown_format(repository)
        except UnknownRepository as unknown:
            return str(unknown)

    def _what_is_missing(self, repository: GitRepository) -> str | None:
        files = self.paths.files
        if not _HEAD.fullmatch(read_git_file(posixpath.join(repository.own, "HEAD"), files)):
            return f"{in_quotes(repository.own)} has no HEAD that is understood"
        for name in ("objects", "refs"):
            if not files.is_directory(posixpath.join(repository.common, name)):
                return f"{in_quotes(repository.common)} has no {name}"
        pointer = posixpath.join(repository.tree, ".git")
        for place in (repository.tree, pointer, repository.own):
            if not files.is_own(files.real(place)):
                return f"{in_quotes(place)} belongs to somebody else"
        return None

    def _unknown_format(self, repository: GitRepository) -> str | None:
        for file in repository.configs:
            for one in self.settings.read(file):
                value = one.value.lower()
                known = {
                    "core.bare": value in _FALSE,
                    "core.repositoryformatversion": value in _VERSIONS,
                }.get(one.kind, True)
                if one.section == "extensions":
                    known = value in _OF_VERSION_1.get(one.name, ())
                if not known:
                    return f"{in_quotes(one.key)} in {in_quotes(file)}"
        return None


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
