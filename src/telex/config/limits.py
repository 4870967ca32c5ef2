"""The maximums of `config`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import MIB, limit

SOCKET_PATH_BYTES: Final = limit(
    "SOCKET_PATH_BYTES",
    103,
    "bytes",
    "A unix socket's path. macOS has room for 104 with the closing NUL, Linux for 108; the smaller "
    "serves both, so that the same environment means the same path everywhere.",
)
CONFIG_FILE_BYTES: Final = limit(
    "CONFIG_FILE_BYTES",
    1 * MIB,
    "bytes",
    "One configuration file. It is a page; a directory we stand in may hold anything.",
)
MANIFEST_ITEMS: Final = limit(
    "MANIFEST_ITEMS",
    1024,
    "items",
    "In one list or table of a manifest. Each may be a problem, and all problems are told.",
)
