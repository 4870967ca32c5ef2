"""The values a look around gives: facts for programs, findings for people, from the same look."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

TIED: Final = "\N{NO-BREAK SPACE}"
"""Between two words that should stay on one line; printed as a space."""


class Mark(StrEnum):
    """How a finding stands. The last two make the doctor's exit code 1."""

    OK = "ok"
    NOTE = "note"
    """Works, and could be better."""
    MISSING = "missing"
    """Required, and not there."""
    BROKEN = "broken"
    """There, and not usable as it is."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line for a person."""

    mark: Mark
    name: str
    text: str
    remedy: str = ""
    """What to do about it, where something can be done."""


@dataclass(frozen=True, slots=True)
class Section:
    """One subject: its key and value in `--json`, and what a person should read about it."""

    key: str
    facts: Any
    findings: tuple[Finding, ...]
