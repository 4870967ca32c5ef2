"""Where things live: one value, computed from the environment and what the platform says.

`places` decides and is pure; `find` asks the platform. Neither makes a directory: that is
`private.make_private`, called by whoever is about to put something there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from telex.config.errors import BadPlace, NotPrivate, Unreadable
from telex.config.limits import CONFIG_FILE_BYTES, SOCKET_PATH_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Bases:
    """What the platform gives a person's programs, before any variable of ours."""

    config: Path
    data: Path
    state: Path
    runtime: Path | None
    """The login manager's directory for sockets, where there is one."""
    temporary: Path
    user: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where telex keeps its things. A path here says nothing about whether it exists."""

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
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def recordings(self) -> Path:
        return self.state / "recordings"

    @property
    def trusted(self) -> Path:
        """One small file for each project file that may be read."""
        return self.state / "trusted"

    @property
    def socket(self) -> Path:
        return self.runtime / "telex.sock"


def places(environ: Mapping[str, str], bases: Bases) -> Places:
    """`TELEX_HOME` overrides all; without it each thing goes where the platform keeps its kind."""
    if home := environ.get("TELEX_HOME"):
        root = _absolute("TELEX_HOME", home)
        runtime = _short_enough(root / "run", bases.user)
        return Places(root, root / "data", root / "state", runtime)
    runtime = _short_enough(_runtime(environ, bases), bases.user)
    return Places(bases.config, bases.data, bases.state, runtime)


def find(environ: Mapping[str, str] = os.environ) -> Places:
    """The places of this process: asks the platform, makes nothing."""
    return places(environ, _bases())


def _runtime(environ: Mapping[str, str], bases: Bases) -> Path:
    given = environ.get("XDG_RUNTIME_DIR", "")
    if given.startswith("/"):  # the XDG specification says to ignore relative paths
        return Path(given) / "telex"
    # A job started by cron has no XDG_RUNTIME_DIR, and must still find the server of a login.
    if bases.runtime is not None:
        return bases.runtime / "telex"
    return bases.temporary / f"telex-{bases.user}"


def _short_enough(wanted: Path, user: int) -> Path:
    """The wanted directory, or a short one of its own where a socket's path would not fit in it."""
    if len(os.fsencode(wanted / "telex.sock")) <= SOCKET_PATH_BYTES:
        return wanted
    digest = hashlib.sha256(os.fsencode(wanted)).hexdigest()[:12]
    # Not TMPDIR, which may be the long part. Whoever uses the directory checks that it is ours.
    return Path("/tmp") / f"telex-{user}-{digest}"  # noqa: S108


def _absolute(variable: str, path: str) -> Path:
    if not os.path.isabs(path):
        raise BadPlace(f"{variable} must be an absolute path; it is {path!r}")
    return Path(path)


def _bases() -> Bases:
    # Imported here: 20 ms that a command which needs no places should not pay.
    import tempfile

    from platformdirs import PlatformDirs

    dirs = PlatformDirs("telex", appauthor=False)
    login = Path(f"/run/user/{os.getuid()}")
    return Bases(
        config=dirs.user_config_path,
        data=dirs.user_data_path,
        state=dirs.user_state_path,
        # Not platformdirs' own answer: it warns on stderr and may raise where we only want to look.
        runtime=login if os.access(login, os.W_OK | os.X_OK) else None,
        temporary=Path(tempfile.gettempdir()),
        user=os.getuid(),
    )


# Files and directories that are ours alone: 0600, 0700, no symbolic links, no other owner.
#
# Everything telex writes goes through here. A directory that exists with wider permissions is
# refused, never tightened: it may be somebody's home, and files that others put there would stay.


def make_private(directory: Path) -> Path:
    """The same path, now a directory that only we can enter; `NotPrivate` where it cannot be."""
    lineage = (directory, *directory.parents)
    missing = list(takewhile(lambda path: not path.exists(), lineage))
    for path in reversed(missing):
        # Somebody may have been quicker; whether we can live with theirs is the next question.
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    if problem := privacy_problem(directory):
        raise NotPrivate(problem)
    return directory


def privacy_problem(directory: Path) -> str | None:
    """Why this existing directory is not ours alone, and what to do; None when all is well."""
    status = directory.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"{directory} is a symbolic link; remove it, or set TELEX_HOME to another directory"
    if not stat.S_ISDIR(status.st_mode):
        return f"{directory} is not a directory; remove it, or set TELEX_HOME to another directory"
    if status.st_uid != os.geteuid():
        return (
            f"{directory} belongs to user {status.st_uid} and we are user {os.geteuid()}; "
            "set TELEX_HOME to a directory of your own"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        return (
            f"{directory} is open to others ({mode}); close it: chmod 700 {quote(str(directory))}"
        )
    return None


def write_private(path: Path, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all, readable by us alone."""
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
    """What a regular file holds; None where there is no such file. Never waits, never reads much.

    With `ours`, for a file whose word is taken: `NotPrivate` if others could have written it.
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
    # Opening a named pipe must not hang whoever changes into a hostile directory.
    return os.open(path, flags | os.O_NONBLOCK)
