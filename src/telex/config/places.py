"""Where things live: one value, computed from the environment and what the platform says.

`places` decides and is pure; `find` asks the platform. Neither makes a directory: that is
`private.make_private`, called by whoever is about to put something there.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from telex.config.errors import BadPlace
from telex.wire.limits import SOCKET_PATH_BYTES

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
