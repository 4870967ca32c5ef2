"""What to start: a value, for whoever does not need the machinery of a session yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from telex.terminal.cells import STANDARD, Size

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Program:
    """What to start, where, and on what size of terminal."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    """Overrides on top of what every child inherits; None removes."""
    size: Size = STANDARD
