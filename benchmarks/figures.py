"""A row of the table, and how a rate is measured: the best of a few short runs. Contestants take
turns, so that a noisy machine is noisy for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    figure: str
    ours: float
    unit: str
    peer: float | None = None
    peer_name: str = ""
    target: str = ""
    spread: tuple[float, float] | None = None
    """The lowest and the highest of our runs, where there were several."""

    def cells(self) -> tuple[str, ...]:
        ratio = f"{_number(self.ours / self.peer, 2)} x" if self.peer else ""
        theirs = f"{_number(self.peer)} {self.peer_name}" if self.peer else self.peer_name
        within = f" ({'-'.join(map(_number, self.spread))})" if self.spread else ""
        return self.figure, f"{_number(self.ours)} {self.unit}{within}", theirs, ratio, self.target


def _number(value: float, digits: int = 3) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}g}"


def minutes(seconds: float) -> str:
    """A rough duration, for the line that tells a person how long to wait."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def rate(work: Callable[[], float], runs: int = 5) -> float:
    """The best rate of a few runs; `work` returns how much it did."""
    best = 0.0
    for _ in range(runs):
        start = time.perf_counter()
        amount = work()
        best = max(best, amount / (time.perf_counter() - start))
    return best


def in_turns(
    contestants: Mapping[str, Callable[[], float]], rounds: int = 5
) -> dict[str, list[float]]:
    """What each measured, round by round, lowest first."""
    figures: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, measure in contestants.items():
            figures[name].append(measure())
    return {name: sorted(measured) for name, measured in figures.items()}


def against(
    figure: str, unit: str, measured: Mapping[str, list[float]], targets: Mapping[str, str]
) -> list[Row]:
    """A row for each peer: the first that was measured is ours. Rates, and the best of each: what
    others took of the machine meanwhile is nobody's merit."""
    (_, ours), *peers = measured.items()
    return [
        Row(figure, ours[-1], unit, theirs[-1], name, targets.get(name, ""), (ours[0], ours[-1]))
        for name, theirs in peers
    ]


def memory(pid: int | str = "self") -> float:
    """What a process holds, in MB and in proportion (PSS): of what it shares, its part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def reads_of(stream: bytes, size: int = 4096) -> list[bytes]:
    """The stream as a PTY hands it over: 4 KiB at a time."""
    return [stream[at : at + size] for at in range(0, len(stream), size)]
