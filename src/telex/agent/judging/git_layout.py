"""Where git reads for a working tree: the repository's directories, and stores of objects that it
borrows from. Pure, but for `Files`.

A repository is a directory of files that name each other, and git follows what they say: `.git` may
be a file that names another directory, `commondir` and `objects/info/alternates` name more, and any
file there may be a link. An archive or an agent may have written them, so that `git show` prints
another repository of the person's. So before git goes without a question, all of it has to lie in
the root; or it is a worktree, which the repository that it belongs to names as its own.

Used by `git_repository` to judge, by `guards`, and by `agent.git_places` for the kernel's sandbox.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.judging.links import is_below, is_below_any
from telex.agent.judging.modes import SHELL_TOOL, Access
from telex.agent.judging.rules import Decision
from telex.agent.judging.showing import in_quotes
from telex.wire.limits import AGENT_GIT_CONFIG_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.judging.lookups import Files
    from telex.agent.judging.paths import Paths

_STORES: Final = 8
"""Of objects, that borrow from each other; git itself goes five deep."""


@dataclass(frozen=True, slots=True)
class Repository:
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


def repository_of(tree: str, files: Files) -> Repository | None:
    """Of a working tree, if it is one. Raises `UnknownRepository`."""
    own = posixpath.join(tree, ".git")
    if not files.is_directory(own):
        written = read(own, files)
        if not written:
            return None
        if not written.startswith(b"gitdir: "):
            raise UnknownRepository(f"{in_quotes(own)} does not say where its repository is")
        own = posixpath.join(tree, _path(written.removeprefix(b"gitdir: ")))
    common = read(posixpath.join(own, "commondir"), files)
    return Repository(tree, own, posixpath.join(own, _path(common)) if common else own)


def read(file: str, files: Files) -> bytes:
    """A file of git's. Raises `UnknownRepository`."""
    found = files.contents(file, AGENT_GIT_CONFIG_BYTES)
    if found is None:
        raise UnknownRepository(f"{in_quotes(file)} cannot be read")
    return found


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of repositories, with the policy for paths that says which of them may be read."""

    paths: Paths

    def places(self, repository: Repository, known: Sequence[str] = ()) -> list[str]:
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
        back = read(posixpath.join(own, "gitdir"), self.paths.files)
        named = posixpath.join(own, _path(back))
        return bool(back) and self._real(named) == self._real(pointer)

    def _borrowed(self, objects: str) -> list[str]:
        """Stores that this one names, and those that they name."""
        found, waiting = [objects], [objects]
        for store in waiting:
            remote = posixpath.join(store, "info", "http-alternates")
            if read(remote, self.paths.files):
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
        written = read(posixpath.join(store, "info", "alternates"), self.paths.files)
        for line in written.decode("utf-8", "surrogateescape").split("\n"):
            if line and not line.startswith("#"):
                yield line

    def _refuse_links(self, place: str) -> None:
        """Those of hooks do no harm: git that nobody was asked about has none (`environment`)."""
        found = self.paths.files.below(place, whole=True)
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
        touched = self.paths.touched(Access.READ, place, self.paths.root, SHELL_TOOL)
        return touched.verdict.rule is not None and touched.verdict.decision is Decision.ALLOW

    def _leads_elsewhere(self, path: str) -> bool:
        real = self._real(path)
        return real != posixpath.join(self._real(posixpath.dirname(path)), posixpath.basename(path))

    def _real(self, path: str) -> str:
        way = self.paths.files.way(path)
        if way.unknown:
            raise UnknownRepository(f"nobody can say where {in_quotes(path)} leads: {way.unknown}")
        return way.end


def _path(written: bytes) -> str:
    return written.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
