"""A plugin's files, read once and completely from the directory of its manifest.

All code that can run is in memory when `read_plugin` returns: an adapter keeps the sources it was
started with, and `require` reads no file (decision 0019). No file outside of the directory is read,
neither by `..`, nor by a link, nor by a link created during the read: see `telex.processes.openat`.

These files are read: the entrypoint, whatever its name, and every `.lua` file below the directory.
Hidden files and directories (of an editor, of a checkout), directories called `fixtures`, and links
to directories are skipped. A link to a `.lua` file is read if its target is inside the directory,
and refused otherwise: if it were skipped, it would only be missed when the plugin is in use.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.adapters import manifest as manifests
from telex.adapters.limits import (
    LUA_DEPTH,
    LUA_ENTRIES,
    LUA_FILES,
    LUA_SOURCE_BYTES,
    MANIFEST_BYTES,
)
from telex.adapters.manifest import WHOLE, BadManifest, ManifestProblem
from telex.processes.openat import open_beneath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from telex.adapters.protocol import Manifest, Permission

_SKIPPED: Final = "fixtures"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class LuaPlugin:
    """A manifest and the Lua sources beside it, as they were when they were read."""

    manifest: Manifest
    files: Mapping[str, str]
    """Source by path, relative to the manifest's directory, with `/`. Includes the entrypoint."""
    builtin: bool = False
    directory: Path | None = None
    """The directory of the plugin, for messages only; nothing is read from it again."""

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def permissions(self) -> frozenset[Permission]:
        return frozenset(self.manifest.permissions)


class PluginRefused(ValueError):
    """A plugin is not accepted, because of one of its files."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file = file
        self.problem = problem


def read_plugin(manifest_path: Path, *, builtin: bool = False, ours: bool = False) -> LuaPlugin:
    """Read the plugin of a manifest. Raises `BadManifest` or `PluginRefused`.

    `ours` refuses files that another user could have written. It is for plugins that are found in a
    directory, and not named by the caller.
    """
    directory = manifest_path.parent
    with _opened(directory) as root:
        reading = _Reading(directory, root, ours)
        reading.check_owner(root, ".")
        manifest = reading.manifest(manifest_path.name)
        if manifest.entrypoint is None:
            raise PluginRefused(
                printable_path(manifest_path),
                'it has no entrypoint; add runtime = "lua" and entrypoint = "main.lua"',
            )
        reading.source(manifest.entrypoint)
        reading.sources_below("")
    return LuaPlugin(manifest, reading.files, builtin, directory)


def others_can_write(status: os.stat_result) -> bool:
    """Return whether a user other than this one and root could have written the file."""
    return status.st_uid not in (os.geteuid(), 0) or bool(status.st_mode & 0o022)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    try:
        root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # a ValueError for a NUL
        raise PluginRefused(printable_path(directory), _problem(error)) from error
    try:
        yield root
    finally:
        os.close(root)


@dataclass(slots=True)
class _Reading:
    """Reads one plugin. `files` has the sources read so far; `size` and `entries` the totals."""

    directory: Path
    root: int
    ours: bool
    files: dict[str, str] = field(default_factory=dict)
    size: int = 0
    entries: int = 0

    def manifest(self, name: str) -> Manifest:
        content = self._content(name, MANIFEST_BYTES + 1)
        if len(content) > MANIFEST_BYTES:
            raise self._refused(name, f"a manifest has at most {MANIFEST_BYTES} bytes")
        where = printable_path(self.directory / name)
        try:
            return manifests.parse(content.decode())
        except BadManifest as error:
            raise BadManifest(error.problems, where) from error
        except UnicodeDecodeError as error:
            problem = f"this is not UTF-8 text (line {_line(content, error)})"
            raise BadManifest([ManifestProblem(WHOLE, problem)], where) from error

    def source(self, path: str) -> None:
        if path in self.files:
            return
        if len(self.files) == LUA_FILES:
            raise self._refused(path, f"a plugin has at most {LUA_FILES} Lua files")
        if not path.isprintable():  # also true for a name that is not UTF-8
            raise self._refused(path, "no `require` can name this file; rename it")
        content = self._content(path, LUA_SOURCE_BYTES - self.size + 1)
        self.size += len(content)
        if self.size > LUA_SOURCE_BYTES:
            problem = f"with this file, all Lua files have more than {LUA_SOURCE_BYTES} bytes"
            raise self._refused(path, problem)
        content = content.removeprefix(_BYTE_ORDER_MARK)
        if content.startswith(b"\x1b"):
            raise self._refused(path, "this is Lua bytecode; only source text is run")
        try:
            self.files[path] = content.decode()
        except UnicodeDecodeError as error:
            problem = f"this is not UTF-8 text (line {_line(content, error)})"
            raise self._refused(path, problem) from error

    def sources_below(self, path: str, depth: int = 0) -> None:
        """Read every `.lua` file below a directory. Sorted, so that an error names the same file
        each time."""
        for name, is_directory in self._names(path):
            inside = f"{path}/{name}" if path else name
            if is_directory and name != _SKIPPED:
                if depth == LUA_DEPTH:
                    raise self._refused(inside, f"is more than {LUA_DEPTH} directories deep")
                self.sources_below(inside, depth + 1)
            elif not is_directory and name.endswith(".lua"):
                self.source(inside)

    def check_owner(self, descriptor: int, path: str) -> None:
        if self.ours and others_can_write(os.fstat(descriptor)):
            problem = "another user could have written this; run chown and chmod go-w on it"
            raise self._refused(path, problem)

    def _names(self, path: str) -> list[tuple[str, bool]]:
        """Return the visible entries of a directory, and whether each is a directory itself."""
        with self._open(path or ".") as descriptor:
            self.check_owner(descriptor, path)
            with os.scandir(descriptor) as found:
                return sorted(self._counted(path, found))

    def _counted(self, path: str, found: Iterator[os.DirEntry[str]]) -> Iterator[tuple[str, bool]]:
        for entry in found:
            self.entries += 1
            if self.entries > LUA_ENTRIES:
                problem = f"has more than {LUA_ENTRIES} files; a plugin needs its own directory"
                raise self._refused(path, problem)
            if not entry.name.startswith("."):
                yield entry.name, entry.is_dir(follow_symlinks=False)

    def _content(self, path: str, most: int) -> bytes:
        with self._open(path) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise self._refused(path, "this is not a regular file")
            self.check_owner(descriptor, path)
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(most)

    @contextmanager
    def _open(self, path: str) -> Iterator[int]:
        try:
            descriptor = open_beneath(self.root, path)
            try:
                yield descriptor
            finally:
                os.close(descriptor)
        except OSError as error:  # of `open_beneath`, or of a read in the body
            raise self._refused(path, _problem(error)) from error

    def _refused(self, path: str, problem: str) -> PluginRefused:
        return PluginRefused(printable_path(self.directory / path), problem)


def _problem(error: OSError | ValueError) -> str:
    match error:
        case OSError(errno=errno.EXDEV):
            return "is outside of the plugin's directory; no file outside of it is read"
        case OSError(errno=errno.ENOENT):
            return "there is no such file"
        case OSError(errno=errno.ENXIO):
            return "this is not a regular file"  # a socket
        case OSError(strerror=str(problem)):
            return problem
        case _:
            return str(error)


def printable_path(path: Path) -> str:
    """Return a path for a message, which may be sent as JSON and printed on a terminal."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def _line(content: bytes, error: UnicodeDecodeError) -> int:
    return content.count(b"\n", 0, error.start) + 1
