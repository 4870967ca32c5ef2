"""Colours: the RGB values of `idx:3` and `default` in a picture.

A theme defines 16 colours, the two defaults and the cursor; the other 240 are the same in every
terminal and are computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

RGB = tuple[int, int, int]


class UnknownColour(ValueError):
    """A colour that has none of the three forms that `cells.Style` allows."""

    def __init__(self, colour: str) -> None:
        super().__init__(
            f"{colour!r} is not a colour; use 'default', 'idx:N' (0..255) or 'rgb:R:G:B' (0..255)"
        )


def _rgb(colour: str) -> RGB:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@dataclass(frozen=True, eq=False)
class Theme:
    """The RGB values of a terminal's own colours."""

    foreground: RGB
    background: RGB
    cursor: RGB
    ansi: tuple[RGB, ...]
    """Black, red, green, yellow, blue, magenta, cyan, white, and their bright versions."""

    def colour(self, name: str, default: RGB) -> RGB:
        if name == "default":
            return default
        index, *rest = numbers(name)
        if rest:
            return index, rest[0], rest[1]
        return self.ansi[index] if index < 16 else _xterm(index)


@lru_cache(maxsize=4096)
def numbers(name: str) -> tuple[int, ...]:
    """Return the numbers in a colour: one index, or three levels; none of `default`."""
    if name == "default":
        return ()
    form, *parts = name.split(":")
    if {"idx": 1, "rgb": 3}.get(form) != len(parts) or not all(_is_byte(part) for part in parts):
        raise UnknownColour(name)
    return tuple(int(part) for part in parts)


def _is_byte(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3 and int(text) < 256


def _xterm(index: int) -> RGB:
    """Return colours 16..231, a cube of six levels, and 232..255, greys: xterm's 256colres.h."""
    if index >= 232:
        grey = 8 + 10 * (index - 232)
        return grey, grey, grey
    red, rest = divmod(index - 16, 36)
    green, blue = divmod(rest, 6)
    return _level(red), _level(green), _level(blue)


def _level(step: int) -> int:
    return 55 + 40 * step if step else 0


def blend(over: RGB, under: RGB, share: float) -> RGB:
    """Mix `over` onto `under` with this opacity."""
    red, green, blue = (
        round(top * share + bottom * (1 - share)) for top, bottom in zip(over, under, strict=True)
    )
    return red, green, blue


def css(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _theme(foreground: str, background: str, cursor: str, ansi: str) -> Theme:
    colours = tuple(_rgb(colour) for colour in ansi.split())
    return Theme(_rgb(foreground), _rgb(background), _rgb(cursor), colours)


DARK: Final = _theme(
    "#d4d7dd",
    "#15171c",
    "#e8c268",
    "#2b2f38 #e5645f #7fb867 #d9a74a #4a88db #b583dd #4fb5bd #b9bec9 "
    "#6b7280 #ff8a84 #a3d98a #f5cb74 #86bbff #d3a6f5 #7ad7de #ffffff",
)
LIGHT: Final = _theme(
    "#24292f",
    "#ffffff",
    "#0550ae",
    "#24292f #c2262e #1a7035 #8a5a00 #0a5bc4 #7a3fbf #0b6b75 #6e7781 "
    "#57606a #e0434b #2c9a4e #b07a08 #3b82e6 #9a62de #1a8f9c #d0d5db",
)
