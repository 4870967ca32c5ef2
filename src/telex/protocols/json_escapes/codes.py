"""The error codes, and the number that says "spoken here"."""

from __future__ import annotations

from typing import Final

ATTRIBUTE: Final = 23198
"""What the answer to `CSI c` (DA1) also holds, where JSON escapes are understood."""

ECPARSE: Final = "ECPARSE"
"""Not JSON, or not strict JSON."""
ECPROTO: Final = "ECPROTO"
"""JSON that breaks a rule of packets."""
ECNOCMD: Final = "ECNOCMD"
"""No such command here."""
ECARGS: Final = "ECARGS"
"""The data is not what the command takes."""
ECTIMEOUT: Final = "ECTIMEOUT"
"""It took longer than the timeout."""
ECCANCEL: Final = "ECCANCEL"
"""The one who asked no longer wants it."""
ECDENIED: Final = "ECDENIED"
"""The person, or their policy, said no."""
ECLIMIT: Final = "ECLIMIT"
"""Larger, or more, than what is taken."""
ECBUSY: Final = "ECBUSY"
"""Something else has the only one of what it needs."""
ECROUTE: Final = "ECROUTE"
"""What it should go to cannot be reached."""
ECINTERNAL: Final = "ECINTERNAL"
"""A mistake on this side."""
ECUNSUP: Final = "ECUNSUP"
"""A known command that cannot be done here: the terminal lacks what it needs."""
ECCLOSED: Final = "ECCLOSED"
"""The other side is gone, or going."""
