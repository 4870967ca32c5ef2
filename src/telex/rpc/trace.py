"""`TELEX_TRACE=wire,rpc`: the conversation on stderr, redacted, as it can be pasted into a test.

    wire << {"jsonrpc":"2.0","id":1,"method":"session.list"}
    wire >> {"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}

`>>` is what this side sends and `<<` what it gets, as in `testing.play`. The layer `rpc` prints the
decoded messages instead. Nothing here decides anything.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from telex.rpc.messages import Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.rpc.messages import Malformed, Message

LAYERS = ("wire", "rpc")


class UnknownLayer(ValueError):
    """TELEX_TRACE names something that is not a layer."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Where the conversation is printed, and how much of it."""

    layers: frozenset[str]
    redact: Callable[[str], str]
    output: TextIO

    def wire(self, arrow: str, body: bytes) -> None:
        if "wire" in self.layers:
            self._print("wire", arrow, body.decode("utf-8", "backslashreplace"))

    def rpc(self, arrow: str, message: Message | Malformed) -> None:
        if "rpc" in self.layers:
            self._print("rpc", arrow, _told(message))

    def _print(self, layer: str, arrow: str, text: str) -> None:
        self.output.write(f"{layer} {arrow} {self.redact(text)}\n")
        self.output.flush()


def from_environment(environment: Mapping[str, str], redact: Callable[[str], str]) -> Trace | None:
    """The trace that TELEX_TRACE asks for, if it asks for one."""
    asked = frozenset(part.strip() for part in environment.get("TELEX_TRACE", "").split(","))
    asked -= {""}
    if unknown := asked - set(LAYERS):
        known = ", ".join(LAYERS)
        raise UnknownLayer(f"TELEX_TRACE knows {known}, not {', '.join(sorted(unknown))}")
    return Trace(asked, redact, sys.stderr) if asked else None


def _told(message: Message | Malformed) -> str:
    """One line: the kind of message and its members, raw JSON as it is."""
    members = ((name, getattr(message, name)) for name in message.__slots__)
    shown = (f"{name}={_shown(value)}" for name, value in members if value)
    return f"{type(message).__name__} {' '.join(shown)}"


def _shown(value: object) -> str:
    return (
        bytes(value).decode("utf-8", "backslashreplace") if isinstance(value, Raw) else repr(value)
    )
