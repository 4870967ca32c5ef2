"""The maximums of `passthrough`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB, limit

PERSON_BYTES: Final = limit(
    "PERSON_BYTES",
    64 * KIB,
    "bytes",
    "What `telex run` holds for a terminal, the person's or the program's, that does not take it. "
    "Little, so that a Ctrl-C is seen to work, and enough that both sides keep busy.",
)
UNSEEN_BYTES: Final = limit(
    "UNSEEN_BYTES",
    64 * MIB,
    "bytes",
    "Printed under `telex run` without a pause and kept for a model of the screen. A sixteenth of "
    "it is shown to the model when there is time, a quarter in any case, a little between two "
    "reads; and all of it is waited for.",
)
ATTRIBUTE_QUESTIONS: Final = limit(
    "ATTRIBUTE_QUESTIONS",
    64,
    "questions",
    "Asked of the person's terminal (`CSI c`) and not answered yet. More than any program asks.",
)
