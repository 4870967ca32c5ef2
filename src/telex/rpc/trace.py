"""`TELEX_TRACE=wire,rpc`: the conversation on stderr, redacted, as it can be pasted into a test.

    wire << {"jsonrpc":"2.0","id":1,"method":"session.list"}
    wire >> {"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}

`>>` is what this side sends and `<<` what it gets, as in `testing.play`. The layer `rpc` prints the
decoded messages instead. Nothing here decides anything.
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


@lru_cache(maxsize=1)
def from_environment() -> Trace | None:
    """What TELEX_TRACE asks of every peer that is not told otherwise. Read once."""
    asked = {layer.strip() for layer in os.environ.get("TELEX_TRACE", "").split(",")} - {""}
    if unknown := asked - set(LAYERS):
        log.warning("TELEX_TRACE knows %s, not %s", ", ".join(LAYERS), ", ".join(sorted(unknown)))
    return to_stderr(frozenset(asked) & frozenset(LAYERS))


def to_stderr(layers: Iterable[str], redact: Callable[[str], str] | None = None) -> Trace | None:
    """A trace of these layers; None for none."""
    wanted = frozenset(layers)
    return Trace(wanted, redact or Redactor().redact, sys.stderr) if wanted else None


def _told(message: Message | Malformed) -> str:
    """One line: the kind of message and its members, raw JSON as it is."""
    members = ((name, getattr(message, name)) for name in message.__slots__)
    shown = (f"{name}={_shown(value)}" for name, value in members if value)
    return f"{type(message).__name__} {' '.join(shown)}"


def _shown(value: object) -> str:
    return (
        bytes(value).decode("utf-8", "backslashreplace") if isinstance(value, Raw) else repr(value)
    )
