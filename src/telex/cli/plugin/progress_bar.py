"""How far something is, as one line. Pure; `saying` shows it and takes it away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from telex.protocols.plugin_v0 import Progress

_CELLS: Final = 24


def line(label: str, progress: Progress, *, drawn: bool) -> str:
    """`counter: ████████──── 50% (5 of 10) halfway`, as far as it is known; `drawn` has the bar."""
    parts = [f"{label}:", *_how_far(progress, drawn=drawn)]
    if progress.message:
        parts.append(" ".join(progress.message.split()))
    return " ".join(parts)


def _how_far(progress: Progress, *, drawn: bool) -> list[str]:
    done, total = progress.done, progress.total
    if done is None:
        return []
    if total is None:
        return [f"{done:g}"]
    part = min(1.0, done / total)
    bar = ["█" * round(part * _CELLS) + "─" * (_CELLS - round(part * _CELLS))] if drawn else []
    return [*bar, f"{part:.0%}", f"({done:g} of {total:g})"]
