"""Find the repository of a working tree, and the directories that git reads for it. Pure, except
for `FileLookup`.

The files of a repository name other files, and git follows them: `.git` may be a file that names
another directory, `commondir` and `objects/info/alternates` name more directories, and any file may
be a link. An archive or an agent may have written these files, so that `git show` would print
another repository of the user. So git may run without a question only if all directories are in the
root, or if the working tree is a worktree of a repository that lists it.

Used by `git_inspector` and `guarded_files`.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.limits import AGENT_GIT_CONFIG_BYTES
from telex.agent.permissions.display_text import in_quotes
from telex.agent.permissions.git_config import GitSetting, UnreadableGitConfig, parse_git_config
from telex.agent.permissions.path_walk import is_below, is_below_any
from telex.agent.permissions.tool_rules import SHELL_TOOL, PathAccess, Permission

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.permissions.path_policy import PathPolicy
    from telex.agent.permissions.path_walk import FileLookup


_MOST_STORES: Final = 8
"""Object stores that borrow from each other; git itself follows them five levels deep."""


@dataclass(frozen=True, slots=True)
class GitRepository:
    """The directories of the repository of one working tree."""

    tree: str
    own: str
    """The git directory of this working tree alone, if it is a worktree or a submodule."""
    common: str

    @property
    def configs(self) -> tuple[str, ...]:
        return (
            posixpath.join(self.common, "config"),
            posixpath.join(self.own, "config.worktree"),
        )


class UnknownRepository(Exception):
    """The files that git reads are not known, or are not the root's. The message is the reason."""


def find_repository(tree: str, files: FileLookup) -> GitRepository | None:
    """Return the repository of a working tree, or None if it has no `.git`. Raise
    `UnknownRepository`."""
    own = posixpath.join(tree, ".git")
    if not files.is_directory(own):
        written = read_git_file(own, files)
        if not written:
            return None
        if not written.startswith(b"gitdir: "):
            raise UnknownRepository(f"{in_quotes(own)} does not name a repository")
        own = posixpath.join(tree, _decode_path(written.removeprefix(b"gitdir: ")))
    common = read_git_file(posixpath.join(own, "commondir"), files)
    return GitRepository(tree, own, posixpath.join(own, _decode_path(common)) if common else own)


def read_git_file(file: str, files: FileLookup) -> bytes:
    """Return the content of a file of git, empty if it does not exist. Raise
    `UnknownRepository`."""
    found = files.contents(file, AGENT_GIT_CONFIG_BYTES)
    if found is None:
        raise UnknownRepository(f"{in_quotes(file)} cannot be read")
    return found


def read_git_config(file: str, files: FileLookup) -> list[GitSetting]:
    """Return the settings of a configuration file. Raise `UnknownRepository`."""
    try:
        return list(parse_git_config(read_git_file(file, files)))
    except UnreadableGitConfig as error:
        raise UnknownRepository(f"{in_quotes(file)} cannot be parsed") from error


@dataclass(frozen=True, slots=True)
class GitLayout:
    """Checks where the directories of a repository are, with the policy that says which of them may
    be read."""

    paths: PathPolicy

    def directories(self, repository: GitRepository, known: Sequence[str] = ()) -> list[str]:
        """Return the directories that git reads, with links resolved.

        Args:
            repository: the repository to check.
            known: the directories of the repository that this one is a submodule of.

        Raises:
            UnknownRepository: git would read files that need a question.
        """
        pointer = posixpath.join(repository.tree, ".git")
        if self._is_link(pointer):
            raise UnknownRepository(f"{in_quotes(pointer)} is a link")
        own, common = self._real(repository.own), self._real(repository.common)
        if not self._is_worktree(pointer, own, common):
            for file, place in ((pointer, own), (f"{repository.own}/commondir", common)):
                if not is_below_any(place, known) and not self._may_be_read(place):
                    raise UnknownRepository(
                        f"{in_quotes(file)} names {in_quotes(place)}, outside the workspace root"
                    )
        directories = [common] if is_below(own, common) else [own, common]
        for directory in directories:
            self._refuse_links(directory)
        return [*directories, *self._borrowed_stores(posixpath.join(common, "objects"))]

    def _is_worktree(self, pointer: str, own: str, common: str) -> bool:
        """Return whether the repository lists this working tree as one of its worktrees."""
        if posixpath.dirname(own) != posixpath.join(common, "worktrees"):
            return False
        back = read_git_file(posixpath.join(own, "gitdir"), self.paths.files)
        named = posixpath.join(own, _decode_path(back))
        return bool(back) and self._real(named) == self._real(pointer)

    def _borrowed_stores(self, objects: str) -> list[str]:
        """Return the object stores that this one borrows from, directly and indirectly."""
        found, waiting = [objects], [objects]
        for store in waiting:
            remote = posixpath.join(store, "info", "http-alternates")
            if read_git_file(remote, self.paths.files):
                raise UnknownRepository(f"{in_quotes(remote)} makes git read objects from a server")
            for line in self._alternates(store):
                named = self._real(posixpath.join(store, line))
                if line.startswith('"') or not self._may_be_read(named):
                    raise UnknownRepository(
                        f"{in_quotes(store)} makes git read {in_quotes(named)}, "
                        "outside the workspace root"
                    )
                if named not in found:
                    self._refuse_links(named)
                    found.append(named)
                    waiting.append(named)
            if len(found) > _MOST_STORES:
                raise UnknownRepository("git would read objects from too many directories")
        return found[1:]

    def _alternates(self, store: str) -> Iterator[str]:
        written = read_git_file(posixpath.join(store, "info", "alternates"), self.paths.files)
        for line in written.decode("utf-8", "surrogateescape").split("\n"):
            if line and not line.startswith("#"):
                yield line

    def _refuse_links(self, place: str) -> None:
        """Raise if there is a link below. Links in `hooks` are harmless: a git that runs without a
        question runs no hooks (`reader_environment`)."""
        found = self.paths.files.scan(place, whole=True)
        if found is None:
            raise UnknownRepository(f"{in_quotes(place)} has too many files to check for links")
        hooks = posixpath.join(place, "hooks")
        for link in found.links:
            if not is_below(link, hooks):
                raise UnknownRepository(f"{in_quotes(link)} is a link, and git reads its target")

    def _may_be_read(self, place: str) -> bool:
        """Return whether the path is inside the root, or a rule allows reading it."""
        if self.paths.is_inside(place):
            return True
        touched = self.paths.touched(PathAccess.READ, place, self.paths.root, SHELL_TOOL)
        return touched.verdict.rule is not None and touched.verdict.decision is Permission.ALLOW

    def _is_link(self, path: str) -> bool:
        real = self._real(path)
        return real != posixpath.join(self._real(posixpath.dirname(path)), posixpath.basename(path))

    def _real(self, path: str) -> str:
        resolved = self.paths.files.resolve(path)
        if resolved.unknown:
            raise UnknownRepository(
                f"telex cannot determine where {in_quotes(path)} leads: {resolved.unknown}"
            )
        return resolved.end


def _decode_path(written: bytes) -> str:
    return written.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
