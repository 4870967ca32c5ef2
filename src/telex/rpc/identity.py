"""The identity of the other side of a connection: a process, a token, or this process itself.

The transport sets it from facts that the other side cannot choose: the kernel names the process at
a unix socket, and the authenticator names the token of a request. A name that a client gives itself
(`holder` of a lease, the client of `initialize`) stands beside the identity, never in its place.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct


class Identity(Struct, frozen=True, omit_defaults=True):
    """The other side of a connection. Its `str()` is a short phrase for people."""

    kind: Literal["process", "token", "stdio", "in_process", "unknown"]
    """A process at a unix socket, a token of HTTP, standard input, a caller inside the server's own
    process, or a channel that cannot tell."""
    name: str = ""
    """The name of the program when it connected, where it can be read; the name of the token; or
    the part of this process, as "the agent"."""
    pid: int | None = None
    uid: int | None = None

    def __str__(self) -> str:
        match self.kind:
            case "process" if self.pid is None:
                return f"a process of user {self.uid}"
            case "process":
                return f"{self.name} (pid {self.pid})" if self.name else f"pid {self.pid}"
            case "token":
                return f'token "{self.name}"'
            case "stdio":
                return "standard input"
            case "in_process":
                return self.name or "in process"
            case "unknown":
                return "unknown"


STDIO: Final = Identity("stdio")
IN_PROCESS: Final = Identity("in_process")
UNKNOWN: Final = Identity("unknown")
AGENT: Final = Identity("in_process", "the agent")
