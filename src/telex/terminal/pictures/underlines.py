"""Underlines as shapes: single, double, curly, dotted and dashed, for one cell.

Each pattern ends where it begins, so that it continues in the next cell. Used by `svg` and `png`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from telex.terminal.pictures.box_drawing import Polygon, Rect
from telex.terminal.pictures.layout import BASELINE, CELL_WIDTH

if TYPE_CHECKING:
    from telex.terminal.cells import UnderlineStyle
    from telex.terminal.pictures.box_drawing import Shape

_TOP: Final = BASELINE + 2
_DOTS: Final = 3
_DASH: Final = 6
_STEPS: Final = 16
_SWING: Final = 1.25
"""How far a curl leaves its middle: with the line's own thickness it stays inside its cell."""


@lru_cache(maxsize=64)
def underline_shapes(style: UnderlineStyle, scale: int) -> tuple[Shape, ...]:
    """Return the underline of one cell, in pixels from the cell's upper left corner."""
    match style:
        case "single":
            return (_line(_TOP, scale),)
        case "double":
            return _line(_TOP - 1, scale), _line(_TOP + 1, scale)
        case "dotted":
            step = CELL_WIDTH / _DOTS
            return tuple(_bar(dot * step, step / 2, scale) for dot in range(_DOTS))
        case "dashed":
            return (_bar((CELL_WIDTH - _DASH) / 2, _DASH, scale),)
        case "curly":
            return (_curl(scale),)


def _line(top: int, scale: int) -> Rect:
    return Rect(0, top * scale, CELL_WIDTH * scale, (top + 1) * scale)


def _bar(start: float, width: float, scale: int) -> Shape:
    """Return a part of a line: exact on whole pixels, smooth between them."""
    left, right = start * scale, (start + width) * scale
    top, bottom = _TOP * scale, (_TOP + 1) * scale
    if left == int(left) and right == int(right):
        return Rect(int(left), top, int(right), bottom)
    return Polygon(((left, top), (right, top), (right, bottom), (left, bottom)))


def _curl(scale: int) -> Polygon:
    """Return one wave, as thick as a line: its upper edge to the right, its lower edge back."""
    places = [(step / _STEPS, -math.sin(step / _STEPS * math.tau)) for step in range(_STEPS + 1)]
    upper = [(x * CELL_WIDTH * scale, (_TOP - 0.25 + y * _SWING) * scale) for x, y in places]
    lower = [(x, y + scale) for x, y in reversed(upper)]
    return Polygon((*upper, *lower))
