"""Test support: cuts a byte stream into reads and runs a codec over them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from hypothesis import strategies as st

from telex.wire.events import Event, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import Iterable


class Codec(Protocol):
    def feed(self, data: bytes) -> list[Event]: ...
    def eof(self) -> list[Event]: ...


def split(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Return the stream as reads that end at the given places (taken modulo its length)."""
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[a:b] for a, b in pairwise(places)]


def run(codec: Codec, reads: Iterable[bytes]) -> list[Event]:
    """Return every event of these reads and of EOF, with neighbouring visible bytes joined."""
    events = [event for read in reads for event in codec.feed(read)]
    return joined(events + codec.eof())


def joined(events: Iterable[Event]) -> list[Event]:
    out: list[Event] = []
    for event in events:
        if isinstance(event, Visible) and out and isinstance(out[-1], Visible):
            out[-1] = Visible(out[-1].data + event.data)
        else:
            out.append(event)
    return out


def visible(events: Iterable[Event]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Visible))


def faults(events: Iterable[Event]) -> list[Fault]:
    return [event for event in events if isinstance(event, Fault)]


cuts = st.lists(st.integers(min_value=0, max_value=1 << 16), max_size=12)
"""Where the reads end."""


def streams_of(*pieces: bytes) -> st.SearchStrategy[bytes]:
    """Return byte streams made mostly of these pieces, and of single bytes from them."""
    alphabet = sorted({bytes([byte]) for piece in pieces for byte in piece})
    token = st.sampled_from(pieces) | st.sampled_from(alphabet) | st.binary(max_size=3)
    return st.lists(token, max_size=24).map(b"".join)
