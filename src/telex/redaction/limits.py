"""The maximums of `redaction`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB

HELD_SECRET_CHARS: Final = 4 * KIB
"""characters: Text held back while it may be a secret; longer values are masked without being
held."""
