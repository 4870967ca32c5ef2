"""`TELEX_TRACE=wire,rpc`: prints the conversation on stderr, redacted, ready to paste into a test.

    wire << {"jsonrpc":"2.0","id":1,"method":"session.list"}
    wire >> {"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}

`>>` marks messages that this side sends and `<<` messages that it receives, as in `testing.play`.
The layer `rpc` prints the decoded messages instead. The trace has no effect on the conversation.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TextIO

from telex.redaction import Redactor
from telex.rpc.messages import Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.rpc.messages import Malformed, Message

log = logging.getLogger("telex.rpc")

LAYERS = ("wire", "rpc")


@dataclass(frozen=True, slots=True)
class Trace:
    """Prints the messages of the chosen layers to a file."""

    layers: frozenset[str]
    redact: Callable[[str], str]
    output: TextIO

    def wire(self, arrow: str, body: bytes) -> None:
        if "wire" in self.layers:
            self._print("wire", arrow, body.decode("utf-8", "backslashreplace"))

    def rpc(self, arrow: str, message: Message | Malformed) -> None:
        if "rpc" in self.layers:
            self._print("rpc", arrow, _one_line(message))

    def _print(self, layer: str, arrow: str, text: str) -> None:
        self.output.write(f"{layer} {arrow} {self.redact(text)}\n")
        self.output.flush()


@lru_cache(maxsize=1)
def from_environment() -> Trace | None:
    """Return the trace that TELEX_TRACE sets for every peer without one of its own. Read once."""
    asked = {layer.strip() for layer in os.environ.get("TELEX_TRACE", "").split(",")} - {""}
    if unknown := asked - set(LAYERS):
        given, known = ", ".join(sorted(unknown)), ", ".join(LAYERS)
        log.warning("TELEX_TRACE: unknown layer %s; the layers are %s", given, known)
    return to_stderr(frozenset(asked) & frozenset(LAYERS))


def to_stderr(layers: Iterable[str], redact: Callable[[str], str] | None = None) -> Trace | None:
    """Return a trace of these layers, or None if there are none."""
    wanted = frozenset(layers)
    return Trace(wanted, redact or Redactor().redact, sys.stderr) if wanted else None


def _one_line(message: Message | Malformed) -> str:
    """Return the kind of message and its members, with raw JSON unchanged."""
    members = ((name, getattr(message, name)) for name in message.__slots__)
    shown = (f"{name}={_shown(value)}" for name, value in members if value)
    return f"{type(message).__name__} {' '.join(shown)}"


def _shown(value: object) -> str:
    return (
        bytes(value).decode("utf-8", "backslashreplace") if isinstance(value, Raw) else repr(value)
    )
