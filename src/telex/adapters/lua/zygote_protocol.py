"""Records of a fixed size between the server and the zygote: a letter, a worker's number, a value.

Both processes import this module, and it imports nothing of telex.
"""

from __future__ import annotations

import struct
from typing import Final

RECORD: Final = struct.Struct("=cqi")

FORK: Final = b"f"
"""To the zygote: fork a worker with this number. The worker's end of a socket pair is attached."""
KILL: Final = b"k"
"""To the zygote: kill the worker with this number."""

ENDED: Final = b"E"
"""From the zygote: the worker ended and was reaped. The value is its status, as of `waitpid`."""
NOT_FORKED: Final = b"N"
"""From the zygote: `fork` failed. The value is its error number."""
