"""A row of the table, and how a rate is measured: the best of a few short runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    figure: str
    ours: float
    unit: str
    peer: float | None = None
    peer_name: str = ""
    target: str = ""

    def cells(self) -> tuple[str, ...]:
        ratio = f"{self.ours / self.peer:.1f} x" if self.peer else ""
        theirs = f"{_number(self.peer)} {self.peer_name}" if self.peer else ""
        return self.figure, f"{_number(self.ours)} {self.unit}", theirs, ratio, self.target


def _number(value: float | None) -> str:
    return f"{value:,.0f}" if value is None or value >= 100 else f"{value:.3g}"


def rate(work: Callable[[], float], runs: int = 5) -> float:
    """The best rate of a few runs; `work` returns how much it did."""
    best = 0.0
    for _ in range(runs):
        start = time.perf_counter()
        amount = work()
        best = max(best, amount / (time.perf_counter() - start))
    return best


def reads_of(stream: bytes, size: int = 4096) -> list[bytes]:
    """The stream as a PTY hands it over: 4 KiB at a time."""
    return [stream[at : at + size] for at in range(0, len(stream), size)]
