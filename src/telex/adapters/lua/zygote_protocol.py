"""What the server and the zygote send each other: records of a fixed size.

A letter, the number of a worker, and a value. Both sides import this, and it imports nothing.
"""

from __future__ import annotations

import struct
from typing import Final

RECORD: Final = struct.Struct("=cqi")

FORK: Final = b"f"
"""Make a worker of this number; its end of a socket comes along."""
KILL: Final = b"k"

ENDED: Final = b"E"
"""It is gone and reaped; the value is its status, as of `waitpid`."""
NOT_FORKED: Final = b"N"
"""The system made none; the value is its error number."""
