"""The directory of the server's socket. Only `os` is imported: every verb of the shell looks here.

`places` uses the same functions, so all parts of telex agree on the directory.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET_PATH_BYTES = 103
"""See `config.limits`."""
SOCKET_NAME = "telex.sock"


def find_runtime_directory(environ: Mapping[str, str]) -> str:
    """Return the directory for this process. Raises BadPlace for a relative TELEX_HOME."""
    login = f"/run/user/{os.getuid()}"
    return runtime_directory(
        environ,
        login if os.access(login, os.W_OK | os.X_OK) else None,
        temporary_directory(environ),
        os.getuid(),
    )


def runtime_directory(
    environ: Mapping[str, str], login: str | None, temporary: str, user: int
) -> str:
    """Return the directory. `login` is the login manager's directory for sockets, if there is one.

    If a socket's path in the wanted directory would be too long, the directory is a short one.
    """
    if home := environ.get("TELEX_HOME"):
        if not os.path.isabs(home):
            from telex.config.errors import BadPlace

            raise BadPlace(f"TELEX_HOME must be an absolute path; it is {home!r}")
        wanted = os.path.join(home, "run")
    elif (given := environ.get("XDG_RUNTIME_DIR", "")).startswith("/"):
        # The XDG specification says to ignore relative paths.
        wanted = os.path.join(given, "telex")
    elif login is not None:
        # A job started by cron has no XDG_RUNTIME_DIR, and must still find the server of a login.
        wanted = os.path.join(login, "telex")
    else:
        wanted = os.path.join(temporary, f"telex-{user}")
    wanted = os.path.normpath(wanted)
    if len(os.fsencode(os.path.join(wanted, SOCKET_NAME))) <= SOCKET_PATH_BYTES:
        return wanted
    import hashlib  # rarely needed, and slow to import

    digest = hashlib.sha256(os.fsencode(wanted)).hexdigest()[:12]
    # Not TMPDIR, which may be the long part. Every user of the directory checks that it is private.
    return f"/tmp/telex-{user}-{digest}"  # noqa: S108


def temporary_directory(environ: Mapping[str, str]) -> str:
    """Return the directory for temporary files, by the variables that `tempfile` reads."""
    named = [environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    for path in named:
        if path and os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK):
            return os.path.abspath(path)
    return "/tmp"  # noqa: S108
