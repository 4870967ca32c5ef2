"""The directories of telex, computed from the environment and the platform's defaults.

`places` is pure and decides; `find` queries the platform. Neither creates a directory:
`make_private` does, and the code that is about to write a file calls it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from telex.config.errors import BadPlace, NotPrivate, Unreadable
from telex.config.limits import CONFIG_FILE_BYTES
from telex.config.runtime_directory import (
    SOCKET_NAME,
    runtime_directory,
    temporary_directory,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Bases:
    """The platform's directories for a user's programs, before variables of ours apply."""

    config: Path
    data: Path
    state: Path
    runtime: Path | None
    """The login manager's directory for sockets, if there is one."""
    temporary: Path
    user: int


@dataclass(frozen=True, slots=True)
class Places:
    """The directories and files of telex. A path here may not exist yet."""

    config: Path
    data: Path
    state: Path
    runtime: Path

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def adapters(self) -> Path:
        return self.data / "adapters"

    @property
    def plugins(self) -> Path:
        return self.data / "plugins"

    @property
    def database(self) -> Path:
        return self.state / "telex.db"

    @property
    def keys(self) -> Path:
        """The file with the keys of language models that `telex agent login` stored."""
        return self.state / "keys.json"

    @property
    def mcp_tokens(self) -> Path:
        """The file with the tokens of MCP servers that `telex agent mcp login` stored."""
        return self.state / "mcp-tokens.json"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def mcp_logs(self) -> Path:
        """The directory with the standard error of each MCP server."""
        return self.logs / "mcp"

    @property
    def recordings(self) -> Path:
        return self.state / "recordings"

    @property
    def trusted(self) -> Path:
        """The directory with one small file for each trusted project file."""
        return self.state / "trusted"

    @property
    def socket(self) -> Path:
        return self.runtime / SOCKET_NAME


def places(environ: Mapping[str, str], bases: Bases) -> Places:
    """Return the directories. `TELEX_HOME` overrides all; else the platform's directories apply."""
    if home := environ.get("TELEX_HOME"):
        root = _absolute("TELEX_HOME", home)
        return Places(root, root / "data", root / "state", _runtime(environ, bases))
    return Places(bases.config, bases.data, bases.state, _runtime(environ, bases))


def find(environ: Mapping[str, str] = os.environ) -> Places:
    """Return the directories of this process. Queries the platform, creates nothing."""
    return places(environ, _bases())


def _runtime(environ: Mapping[str, str], bases: Bases) -> Path:
    login = None if bases.runtime is None else str(bases.runtime)
    return Path(runtime_directory(environ, login, str(bases.temporary), bases.user))


def _absolute(variable: str, path: str) -> Path:
    if not os.path.isabs(path):
        raise BadPlace(f"{variable} must be an absolute path; it is {path!r}")
    return Path(path)


def _bases() -> Bases:
    # Imported here: it takes 20 ms, which commands that need no places should not pay.
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("telex", appauthor=False)
    login = Path(f"/run/user/{os.getuid()}")
    return Bases(
        config=dirs.user_config_path,
        data=dirs.user_data_path,
        state=dirs.user_state_path,
        # Not platformdirs' own value: it warns on stderr and may raise, and we only want to check.
        runtime=login if os.access(login, os.W_OK | os.X_OK) else None,
        temporary=Path(temporary_directory(os.environ)),
        user=os.getuid(),
    )


# Private files and directories: 0600, 0700, no symbolic links, no other owner.
#
# Every file that telex writes goes through here. An existing directory with wider permissions is
# refused, never tightened: it may be a home directory, and files that others put there would stay.


def make_private(directory: Path) -> Path:
    """Create the directory if needed, private to this user, and return its path.

    Raises:
        NotPrivate: The path exists and is not a private directory.
    """
    lineage = (directory, *directory.parents)
    missing = list(takewhile(lambda path: not path.exists(), lineage))
    for path in reversed(missing):
        # Another process may have created it first; `privacy_problem` then checks that one.
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    if problem := privacy_problem(directory):
        raise NotPrivate(problem)
    return directory


def privacy_problem(directory: Path) -> str | None:
    """Return why this existing directory is not private, and the remedy; None if it is private."""
    status = directory.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"{directory} is a symbolic link; remove it, or set TELEX_HOME to another directory"
    if not stat.S_ISDIR(status.st_mode):
        return f"{directory} is not a directory; remove it, or set TELEX_HOME to another directory"
    if status.st_uid != os.geteuid():
        return (
            f"{directory} belongs to user {status.st_uid}, not to user {os.geteuid()}; "
            "set TELEX_HOME to a directory of your own"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        return (
            f"{directory} is open to others ({mode}); close it: chmod 700 {quote(str(directory))}"
        )
    return None


def write_private(path: Path, content: bytes) -> None:
    """Write `content` to `path`, atomically and readable only by this user."""
    make_private(path.parent)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read_file(path: Path, *, ours: bool = False) -> bytes | None:
    """Return the content of a regular file, or None if there is none. Never blocks.

    Args:
        ours: Raise `NotPrivate` if other users could have written the file.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable(f"{path} cannot be read: it is not a regular file")
            if ours and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
                raise NotPrivate(f"{path} could have been written by others; remove it")
            content = file.read(CONFIG_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > CONFIG_FILE_BYTES:
        raise Unreadable(f"{path} cannot be read: it is larger than {CONFIG_FILE_BYTES} bytes")
    return content


def _at_once(path: str, flags: int) -> int:
    # Opening a named pipe in a hostile directory must not block.
    return os.open(path, flags | os.O_NONBLOCK)
