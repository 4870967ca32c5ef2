"""Telex's own limits, briefly; `docs/reference/limits.md` has the reasons."""

from __future__ import annotations

from telex.cli.doctor.findings import TIED, Finding, Mark, Section
from telex.wire.limits import KIB, MIB, TABLE, Limit


def limits() -> Section:
    facts = {
        name: {"value": limit.value, "unit": limit.unit, "reason": limit.reason}
        for name, limit in TABLE.items()
    }
    text = ", ".join(f"{name}{TIED}{_amount(limit)}" for name, limit in TABLE.items())
    return Section("limits", facts, (Finding(Mark.OK, "limits", text),))


def _amount(limit: Limit) -> str:
    if limit.unit == "bytes":
        for size, unit in ((MIB, "MiB"), (KIB, "KiB")):
            if limit.value % size == 0:
                return f"{limit.value // size}{TIED}{unit}"
    return str(limit.value)
