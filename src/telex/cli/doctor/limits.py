"""Telex's own limits, briefly; `docs/reference/limits.md` has the reasons."""

from __future__ import annotations

from telex.cli.doctor.findings import TIED, Finding, Mark, Section
from telex.wire.limits import KIB, MIB, TABLE, Limit

TOLD = ("SESSIONS", "LINE_BYTES", "CALLS_IN_FLIGHT", "TRANSCRIPT_CHARS")
"""Those that a person may meet; all of them would be a page."""


def limits() -> Section:
    facts = {
        name: {"value": limit.value, "unit": limit.unit, "reason": limit.reason}
        for name, limit in TABLE.items()
    }
    named = ", ".join(f"{name}{TIED}{_amount(TABLE[name])}" for name in TOLD)
    text = f"{named}, and {len(TABLE) - len(TOLD)} more that --json lists"
    return Section("limits", facts, (Finding(Mark.OK, "limits", text),))


def _amount(limit: Limit) -> str:
    if limit.unit == "bytes":
        for size, unit in ((MIB, "MiB"), (KIB, "KiB")):
            if limit.value % size == 0:
                return f"{limit.value // size}{TIED}{unit}"
    return str(limit.value)
