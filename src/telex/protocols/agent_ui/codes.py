"""The protocol's version, its error numbers, and the names that are kept free (spec §4, §8, §9)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from telex.rpc.errors import RESERVED, Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = "0"

INTERNAL: Final = -32000
BUSY: Final = -32001
RUN_NOT_FOUND: Final = -32002
USER_CANCELLED: Final = -32003
SESSION_NOT_FOUND: Final = -32004
SESSION_LOAD_FAILED: Final = -32005
SESSION_LIST_FAILED: Final = -32006

ERRORS: Final[dict[int, str]] = {
    -32700: "Parse error: what came is not JSON.",
    -32600: "Invalid request: no message, or one that may not come now (`initialize` first, once).",
    -32601: "Method not found.",
    -32602: "Invalid params.",
    INTERNAL: "The runtime failed inside.",
    BUSY: "Busy: the session has a run already, too many run at once, or another runtime has it.",
    RUN_NOT_FOUND: "There is no such run.",
    USER_CANCELLED: "The person said no.",
    SESSION_NOT_FOUND: "There is no such session.",
    SESSION_LOAD_FAILED: "The session is there and cannot be read.",
    SESSION_LIST_FAILED: "The sessions cannot be listed.",
}

CODES: Final[Mapping[Condition, int]] = MappingProxyType(
    {**RESERVED, Condition.INTERNAL: INTERNAL, Condition.CLOSING: INTERNAL}
)
"""§9 has a number of its own for what JSON-RPC calls -32603."""

RESERVED_NAMESPACES: Final = ("artifact", "workspace", "history", "todos", "shell")
"""§8: kept free for what may come."""
