"""The limits of `config`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.config import runtime_directory
from telex.wire.limits import MIB

SOCKET_PATH_BYTES: Final = runtime_directory.SOCKET_PATH_BYTES
"""bytes: A unix socket's path. macOS has room for 104 with the final NUL, Linux for 108; the
smaller fits both, so the same environment gives the same path everywhere."""
CONFIG_FILE_BYTES: Final = 1 * MIB
"""bytes: One configuration file. A real one is a page long; the working directory may be
hostile."""
MANIFEST_ITEMS: Final = 1024
"""items: Items in one list or table of a manifest. Each may have an error, and all errors are
listed."""
MCP_SERVERS: Final = 32
"""servers: MCP servers in one configuration file; a model chooses badly among the tools of far
fewer."""
