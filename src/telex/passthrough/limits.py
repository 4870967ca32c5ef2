"""The maximums of `passthrough`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB

PERSON_BYTES: Final = 64 * KIB
"""bytes: Data queued by `telex run` for a terminal that does not read, the person's or the
program's. Little, so that Ctrl-C takes effect at once, and enough to keep both sides busy."""
UNSEEN_BYTES: Final = 64 * MIB
"""bytes: Output under `telex run` kept for a model of the screen. Above a sixteenth of this, the
model parses the output when the program is idle; above a quarter, in any case, in slices between
two reads; above all of it, the program's output is paused."""
ATTRIBUTE_QUESTIONS: Final = 64
"""questions: Queries to the person's terminal, such as `CSI c`, without a reply yet. More than any
program sends."""
