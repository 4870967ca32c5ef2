"""The limits of `processes`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import MIB

PLUGIN_MEMORY_MIB: Final = 4096
"""MiB: Memory for each process of a plugin whose manifest does not declare how much it needs."""
PLUGIN_OPEN_FILES: Final = 4096
"""descriptors: Open files in one process of a plugin."""
PLUGIN_PROCESSES: Final = 8192
"""processes: Processes and threads of the user in total, beyond which a plugin cannot create
another. The kernel counts per user, and a desktop has 3000. It stops a fork bomb, and nothing
smaller."""
PLUGIN_FILE_BYTES: Final = 16 * 1024 * MIB
"""bytes: Size of one file that a plugin writes."""
FOREGROUND_PROCESSES: Final = 512
"""processes: Processes of one terminal searched for one that waits for input: 20 ms. A parallel
build has dozens."""
FOREGROUND_THREADS: Final = 64
"""threads: Threads of one process searched likewise. A program with more is not said to wait."""
