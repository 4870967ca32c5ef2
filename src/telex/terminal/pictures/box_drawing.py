"""Lines, blocks and dots, as shapes that meet their neighbours exactly.

The box drawing of a font has gaps wherever a cell is not as high as the font expects, so these
characters are drawn here, in the same way for every kind of picture: box drawing (U+2500), block
elements (U+2580), braille (U+2800), sextants (U+1FB00), the four Powerline arrows (U+E0B0), and a
few signs that programs use and free fonts lack.
Coordinates are whole pixels of one cell, from its top left; a stroke that reaches an edge has the
same position and thickness there in every character.

The shapes of box drawing are parsed from the Unicode names of the characters, which are complete
descriptions: `DOWN HEAVY AND RIGHT UP LIGHT`. Each arm goes from its edge to the crossing; `_reach`
has the rules for the crossing of a double line.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    """From the first corner up to, not including, the second."""

    left: int
    top: int
    right: int
    bottom: int
    shade: float = 1.0
    """The opacity: the share of the background that it covers."""


@dataclass(frozen=True, slots=True)
class Polygon:
    points: tuple[Point, ...]


Shape = Rect | Polygon


class Weight(Enum):
    LIGHT = 1
    HEAVY = 2
    DOUBLE = 3


@dataclass(frozen=True, slots=True)
class CellBox:
    """The size of a cell in pixels."""

    width: int
    height: int
    light: int
    """The thickness of a light line."""

    def strokes(self, length: int, weight: Weight) -> list[tuple[int, int]]:
        """Return the positions of a line's strokes across a cell of this length."""
        if weight is not Weight.DOUBLE:
            return [_centred(length, self.light * weight.value)]
        low, high = _centred(length, 3 * self.light)
        return [(low, low + self.light), (high - self.light, high)]


def _centred(length: int, thickness: int) -> tuple[int, int]:
    start = (length - thickness) // 2
    return start, start + thickness


def is_drawn(text: str) -> bool:
    """Return whether this text is drawn as shapes and not with a font."""
    if len(text) != 1:
        return False
    point = ord(text)
    return (
        point in _SIGNS
        or 0x2500 <= point <= 0x259F
        or 0x2800 <= point <= 0x28FF
        or 0x1FB00 <= point <= 0x1FB3B
        or 0xE0B0 <= point <= 0xE0B3
    )


@lru_cache(maxsize=2048)
def shapes(char: str, frame: CellBox) -> tuple[Shape, ...]:
    """Return the shapes of a character for which `is_drawn` is true."""
    point = ord(char)
    if point in _SIGNS:
        return tuple(_sign(_SIGNS[point], frame))
    if point < 0x2580:
        return tuple(_box(char, frame))
    if point < 0x25A0:
        return tuple(_block(point, frame))
    if point < 0x2900:
        return tuple(_braille(point, frame))
    if point < 0xE0B4:
        return (_powerline(point, frame),)
    return tuple(_sextant(point, frame))


# Box drawing.

_SIDES: Final = {"LEFT": ("LEFT",), "RIGHT": ("RIGHT",), "UP": ("UP",), "DOWN": ("DOWN",)} | {
    "HORIZONTAL": ("LEFT", "RIGHT"),
    "VERTICAL": ("UP", "DOWN"),
}
_WEIGHTS: Final = {
    "LIGHT": Weight.LIGHT,
    "SINGLE": Weight.LIGHT,
    "HEAVY": Weight.HEAVY,
    "DOUBLE": Weight.DOUBLE,
}
_DASHES: Final = {"DOUBLE": 2, "TRIPLE": 3, "QUADRUPLE": 4}


def _box(char: str, frame: CellBox) -> list[Shape]:
    words = unicodedata.name(char).removeprefix("BOX DRAWINGS ").split()
    if "DASH" in words:
        weight, count, _, way = words
        return _dashes(_WEIGHTS[weight], _DASHES[count], way == "HORIZONTAL", frame)
    if "DIAGONAL" in words:
        return _diagonals(words, frame)
    arms = _arms(words)
    if "ARC" in words:
        return _arc(arms, frame)
    return [rect for side in arms for rect in _arm(side, arms, frame)]


def _arms(words: list[str]) -> dict[str, Weight]:
    """Parse arms such as `UP LIGHT AND HORIZONTAL HEAVY`: a weight before or after its sides, or
    for all.
    """
    arms: dict[str, Weight] = {}
    weight = Weight.LIGHT
    for part in " ".join(words).split(" AND "):
        named = part.split()
        weight = next((_WEIGHTS[word] for word in named if word in _WEIGHTS), weight)
        for word in named:
            arms |= dict.fromkeys(_SIDES.get(word, ()), weight)
    return arms


def _arm(side: str, arms: dict[str, Weight], frame: CellBox) -> list[Shape]:
    """Return the strokes from one edge to the crossing."""
    flat = side in ("LEFT", "RIGHT")
    along, across = (frame.width, frame.height) if flat else (frame.height, frame.width)
    crossing = _crossing(("UP", "DOWN") if flat else ("LEFT", "RIGHT"), arms, along, frame)
    rects: list[Shape] = []
    for number, (low, high) in enumerate(frame.strokes(across, arms[side])):
        reach = _reach(side, number, arms, flat)
        if side in ("LEFT", "UP"):
            start, end = 0, crossing[-1 if reach else 0][1]
        else:
            start, end = crossing[0 if reach else -1][0], along
        rects.append(Rect(start, low, end, high) if flat else Rect(low, start, high, end))
    return rects


def _crossing(
    sides: tuple[str, str], arms: dict[str, Weight], along: int, frame: CellBox
) -> list[tuple[int, int]]:
    """Return the strokes that cross this one, by the heavier side; else the middle of the cell."""
    heaviest = max(
        (arms[side] for side in sides if side in arms),
        key=lambda weight: weight.value,
        default=Weight.LIGHT,
    )
    return frame.strokes(along, heaviest)


def _reach(side: str, number: int, arms: dict[str, Weight], flat: bool) -> bool:
    """Return whether a stroke continues to the far line of a double line that crosses it.

    A stroke of a double pair ends at the near line if that line leaves to the stroke's own side:
    the inner corner of ╔. A single line stops at the near line where the double line passes its
    end, ╟; otherwise it continues through, ╫, or round the corner, ╓.
    """
    lower, upper = ("UP", "DOWN") if flat else ("LEFT", "RIGHT")
    if arms[side] is Weight.DOUBLE:
        return (lower, upper)[number] not in arms
    opposite = {"LEFT": "RIGHT", "RIGHT": "LEFT", "UP": "DOWN", "DOWN": "UP"}[side]
    return opposite in arms or not (lower in arms and upper in arms)


def _dashes(weight: Weight, count: int, flat: bool, frame: CellBox) -> list[Shape]:
    """Return dashes with a gap after each, so that the pattern continues in the next cell."""
    along, across = (frame.width, frame.height) if flat else (frame.height, frame.width)
    [(low, high)] = frame.strokes(across, weight)
    rects: list[Shape] = []
    for number in range(count):
        start, after = number * along // count, (number + 1) * along // count
        end = after - max(frame.light, (after - start) // 3)
        rects.append(Rect(start, low, end, high) if flat else Rect(low, start, high, end))
    return rects


def _arc(arms: dict[str, Weight], frame: CellBox) -> list[Shape]:
    """Return a quarter ring, and straight lines from its ends to the edges of the cell."""
    [(x0, x1)] = frame.strokes(frame.width, Weight.LIGHT)
    [(y0, y1)] = frame.strokes(frame.height, Weight.LIGHT)
    sign_x, sign_y = (1 if "RIGHT" in arms else -1), (1 if "DOWN" in arms else -1)
    radius = min(x0, y0) - frame.light
    centre_x, centre_y = (x0 + x1) / 2 + sign_x * radius, (y0 + y1) / 2 + sign_y * radius

    def ring(distance: float) -> list[Point]:
        turns = [step * math.pi / 32 for step in range(17)]
        return [
            (
                centre_x - sign_x * distance * math.cos(turn),
                centre_y - sign_y * distance * math.sin(turn),
            )
            for turn in turns
        ]

    outer, inner = ring(radius + frame.light / 2), ring(radius - frame.light / 2)
    right, below = (
        Rect(int(centre_x), y0, frame.width, y1),
        Rect(x0, int(centre_y), x1, frame.height),
    )
    left, above = Rect(0, y0, math.ceil(centre_x), y1), Rect(x0, 0, x1, math.ceil(centre_y))
    ends = (right if sign_x > 0 else left), (below if sign_y > 0 else above)
    return [Polygon((*outer, *reversed(inner))), *ends]


def _diagonals(words: list[str], frame: CellBox) -> list[Shape]:
    """Return lines between corners and a little beyond, so that a slope meets the next cell."""
    half, width, height = frame.light * 0.6, frame.width, frame.height
    rising = Polygon(((width - half, 0), (width + half, 0), (half, height), (-half, height)))
    falling = Polygon(((-half, 0), (half, 0), (width + half, height), (width - half, height)))
    if "CROSS" in words:
        return [rising, falling]
    return [rising if words.index("RIGHT") < words.index("LEFT") else falling]


# Blocks and dots.

_SHADES: Final = {0x2591: 0.25, 0x2592: 0.5, 0x2593: 0.75}
_QUADRANTS: Final = {
    0x2596: "c", 0x2597: "d", 0x2598: "a", 0x2599: "acd", 0x259A: "ad",
    0x259B: "abc", 0x259C: "abd", 0x259D: "b", 0x259E: "bc", 0x259F: "bcd",
}  # fmt: skip


def _block(point: int, frame: CellBox) -> list[Shape]:
    width, height = frame.width, frame.height
    if point in _SHADES:
        return [Rect(0, 0, width, height, _SHADES[point])]
    if point in _QUADRANTS:
        return [_tile("abcd".index(name), 2, frame) for name in _QUADRANTS[point]]
    if point == 0x2580:
        return [Rect(0, 0, width, _part(height, 4))]
    if point <= 0x2588:
        return [Rect(0, height - _part(height, point - 0x2580), width, height)]
    if point <= 0x258F:
        return [Rect(0, 0, _part(width, 0x2590 - point), height)]
    if point == 0x2590:
        return [Rect(_part(width, 4), 0, width, height)]
    if point == 0x2594:
        return [Rect(0, 0, width, _part(height, 1))]
    return [Rect(width - _part(width, 1), 0, width, height)]


def _part(length: int, eighths: int) -> int:
    return max(1, (length * eighths + 4) // 8)


def _tile(number: int, rows: int, frame: CellBox) -> Rect:
    """Return one tile of two columns and this many rows, counted in reading order."""
    row, col = divmod(number, 2)
    middle = _part(frame.width, 4)
    left, right = (middle, frame.width) if col else (0, middle)
    return Rect(left, row * frame.height // rows, right, (row + 1) * frame.height // rows)


def _sextant(point: int, frame: CellBox) -> list[Shape]:
    """Bit n is tile n. Four patterns exist as block elements, and are left out of the numbering."""
    bits = point - 0x1FB00 + 1
    bits += (bits >= 0b010101) + (bits + 1 >= 0b101010)
    return [_tile(number, 3, frame) for number in range(6) if bits >> number & 1]


def _braille(point: int, frame: CellBox) -> list[Shape]:
    """Dots 1 to 3 and 7 go down the left column, 4 to 6 and 8 down the right column."""
    size = max(2 * frame.light, frame.width // 5)
    rects: list[Shape] = []
    for bit, (col, row) in enumerate(
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
    ):
        if point >> bit & 1:
            left = (2 * col + 1) * frame.width // 4 - size // 2
            top = (2 * row + 1) * frame.height // 8 - size // 2
            rects.append(Rect(left, top, left + size, top + size))
    return rects


_SIGNS: Final = {
    0x23BA: "scan 0", 0x23BB: "scan 1", 0x23BC: "scan 3", 0x23BD: "scan 4",
    0x23F4: "left", 0x23F5: "right", 0x23F6: "up", 0x23F7: "down", 0x23BF: "corner", 0x2B58: "ring",
}  # fmt: skip
"""The scan lines of a terminal's line drawing, of which the middle one is box drawing; triangles;
the corner before the output of a command; the circle in the title of a Textual program."""


def _sign(name: str, frame: CellBox) -> list[Shape]:
    width, height, light = frame.width, frame.height, frame.light
    x, y, size = width / 2, height / 2, width / 2
    if name.startswith("scan"):
        top = (height - light) * int(name[-1]) // 4
        return [Rect(0, top, width, top + light)]
    if name == "corner":
        [(x0, x1)] = frame.strokes(width, Weight.LIGHT)
        bottom = height * 3 // 4
        return [Rect(x0, 0, x1, bottom), Rect(x0, bottom - light, width, bottom)]
    if name == "ring":
        turns = [step * math.pi / 32 for step in range(65)]
        outer, inner = (
            [(x + far * math.cos(turn), y + far * math.sin(turn)) for turn in turns]
            for far in (size, size - 1.5 * light)
        )
        return [Polygon((*outer, *reversed(inner)))]
    across, along = (-size, size), (size * 0.9, -size * 0.9)
    tip, base = along if name in ("right", "down") else along[::-1]
    corners = ((base, across[0]), (base, across[1]), (tip, 0.0))
    flat = name in ("left", "right")
    return [Polygon(tuple([(x + a, y + b) if flat else (x + b, y + a) for a, b in corners]))]


def _powerline(point: int, frame: CellBox) -> Polygon:
    """Solid and thin arrows, right and left."""
    width, height, thin = frame.width, frame.height, 1.5 * frame.light
    points: tuple[Point, ...] = ((0, 0), (width, height / 2), (0, height))
    if point in (0xE0B1, 0xE0B3):
        points += ((0, height - thin), (width - thin, height / 2), (0, thin))
    if point >= 0xE0B2:
        points = tuple((width - x, y) for x, y in points)
    return Polygon(points)
