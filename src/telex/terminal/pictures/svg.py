"""The screen as one SVG: sharp at any size, with text that can be searched and copied.

The viewer's font, and thus the width of its letters, is unknown. Each piece of text has its own
column and a fixed length; other characters are centred in their cells. Lines and blocks are paths
(`box_drawing`); their characters are placed over them invisibly, so that they are copied with the
text. All shapes of one colour are one path: two that only touch would show a seam at odd zooms.

`scenery` is the picture without its letters; the HTML page puts it behind its own.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from telex.terminal.pictures.box_drawing import CellBox, Polygon, Rect, shapes
from telex.terminal.pictures.layout import (
    BASELINE,
    CELL_HEIGHT,
    CELL_WIDTH,
    FONT_SIZE,
    PADDING,
    STRIKE,
    Form,
    Ink,
    Piece,
    inert,
    lay_out,
    pixels,
    underline_shapes,
)
from telex.terminal.pictures.theme import RGB, Theme, css

if TYPE_CHECKING:
    from telex.terminal.cells import Snapshot


FONTS: Final = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace"
_WORDS: Final = re.compile(r"[^ ]+(?: [^ ]+)*| +")
_FRAME: Final = CellBox(CELL_WIDTH, CELL_HEIGHT, 1)

_LETTERS: Final = (
    f"font:{FONT_SIZE}px {FONTS};"
    "white-space:pre;unicode-bidi:bidi-override;direction:ltr;font-variant-ligatures:none"
)
"""Spaces are kept, and no script reorders its letters: the program has placed them."""


def draw(snapshot: Snapshot, theme: Theme, cursor: bool) -> bytes:
    width, height = pixels(snapshot.size)
    extent = f'width="{width}" height="{height}"'
    rows = list(lay_out(snapshot, theme, cursor))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {extent} viewBox="0 0 {width} {height}">',
            f'<rect {extent} fill="{css(theme.background)}"/>',
            f'<g transform="translate({PADDING} {PADDING})">',
            *scenery(rows, theme),
            f'<g fill="{css(theme.foreground)}" style="{_LETTERS}">',
            *[_text(number, pieces, theme) for number, pieces in enumerate(rows) if _says(pieces)],
            "</g>",
            "</g>",
            "</svg>",
            "",
        ]
    ).encode()


def scenery(rows: list[list[Piece]], theme: Theme) -> list[str]:
    """Return backgrounds, then lines and blocks, then underlines and strikethroughs."""
    behind, blocks, lines = _Paths(), _Paths(), _Paths()
    for number, pieces in enumerate(rows):
        top = number * CELL_HEIGHT
        for piece in pieces:
            left, right = piece.col * CELL_WIDTH, (piece.col + piece.width) * CELL_WIDTH
            if piece.ink.background != theme.background:
                behind.rect(piece.ink.background, Rect(left, top, right, top + CELL_HEIGHT))
            if not piece.ink.invisible:
                _blocks(blocks if _is_block(piece) else lines, piece, left, top)
                _strokes(lines, piece, left, right, top)
    # Areas of colour end on whole pixels; otherwise the background shows between two of them.
    crisp = [*behind.elements(), *blocks.elements()]
    return ['<g shape-rendering="crispEdges">', *crisp, "</g>", *lines.elements()]


def _is_block(piece: Piece) -> bool:
    return piece.form is Form.DRAWN and "\u2580" <= piece.text[0] <= "\u259f"


def _blocks(paths: _Paths, piece: Piece, left: int, top: int) -> None:
    if piece.form is Form.DRAWN:
        for place, char in enumerate(piece.text):
            for shape in shapes(char, _FRAME):
                paths.shape(piece.ink.foreground, shape, left + place * CELL_WIDTH, top)


def _strokes(paths: _Paths, piece: Piece, left: int, right: int, top: int) -> None:
    ink = piece.ink
    if ink.underline:
        colour = ink.underline_colour or ink.foreground
        for place in range(left, right, CELL_WIDTH):
            for shape in underline_shapes(ink.underline, 1):
                paths.shape(colour, shape, place, top)
    if ink.strikethrough:
        paths.rect(ink.foreground, Rect(left, top + STRIKE[0], right, top + STRIKE[1]))


class _Paths:
    """Shapes by colour. A rectangle that continues the last one extends it."""

    def __init__(self) -> None:
        self._parts: dict[tuple[RGB, float], list[str]] = {}
        self._open: dict[tuple[RGB, float, int, int], tuple[int, int]] = {}

    def shape(self, colour: RGB, shape: Rect | Polygon, left: int, top: int) -> None:
        match shape:
            case Rect(x0, y0, x1, y1, shade):
                self.rect(colour, Rect(left + x0, top + y0, left + x1, top + y1, shade))
            case Polygon(points):
                corners = "L".join(f"{left + x:.5g} {top + y:.5g}" for x, y in points)
                self._parts.setdefault((colour, 1.0), []).append(f"M{corners}Z")

    def rect(self, colour: RGB, rect: Rect) -> None:
        line = (colour, rect.shade, rect.top, rect.bottom)
        started, ended = self._open.get(line, (rect.left, rect.left))
        if not started <= rect.left <= ended:
            self._close(line)
            started = rect.left
        self._open[line] = (started, rect.right)

    def _close(self, line: tuple[RGB, float, int, int]) -> None:
        (colour, shade, top, bottom), (left, right) = line, self._open.pop(line)
        path = f"M{left} {top}H{right}V{bottom}H{left}Z"
        self._parts.setdefault((colour, shade), []).append(path)

    def elements(self) -> list[str]:
        for line in list(self._open):
            self._close(line)
        return [
            f'<path fill="{css(colour)}"{_attribute("fill-opacity", shade)} d="{"".join(parts)}"/>'
            for (colour, shade), parts in self._parts.items()
        ]


def _attribute(name: str, share: float) -> str:
    return "" if share == 1 else f' {name}="{share}"'


def _says(pieces: list[Piece]) -> bool:
    return any(not piece.text.isspace() for piece in pieces)


def _text(number: int, pieces: list[Piece], theme: Theme) -> str:
    """Return the text of one row, without the blanks at its end."""
    spans: list[str] = []
    centred = False
    for piece in pieces:
        for word in _words(piece):
            spans.append(_span(word, theme, centred))
            centred = word.form is Form.ALONE
    while spans[-1].isspace():
        del spans[-1]
    top = number * CELL_HEIGHT + BASELINE
    return f'<text y="{top}" xml:space="preserve">{"".join(spans)}</text>'


def _words(piece: Piece) -> list[Piece]:
    """Split text at wider gaps: columns hold even if a viewer ignores lengths and spaces."""
    if piece.form is not Form.TEXT:
        return [piece]
    return [
        Piece(piece.col + found.start(), len(found[0]), found[0], piece.ink, piece.form)
        for found in _WORDS.finditer(piece.text)
    ]


def _span(piece: Piece, theme: Theme, after_centred: bool) -> str:
    left, width = piece.col * CELL_WIDTH, piece.width * CELL_WIDTH
    if piece.text.isspace():
        # Without a position of its own, a blank would be centred together with the text before it.
        return f'<tspan x="{left}">{piece.text}</tspan>' if after_centred else piece.text
    if piece.form is Form.ALONE:
        place = f'x="{left + width / 2:g}" text-anchor="middle"'
    else:
        place = f'x="{left}" textLength="{width}" lengthAdjust="spacingAndGlyphs"'
    return f"<tspan {place}{_look(piece, theme)}>{escape(piece.text, quote=False)}</tspan>"


def _look(piece: Piece, theme: Theme) -> str:
    ink = piece.ink
    hidden = ink.invisible or piece.form is Form.DRAWN
    return (
        (' fill-opacity="0"' if hidden else "")
        + (f' fill="{css(ink.foreground)}"' if ink.foreground != theme.foreground else "")
        + (' font-weight="bold"' if ink.bold else "")
        + (' font-style="italic"' if ink.italic else "")
    )


# The screen as one HTML page: text that can be selected, with no script and nothing to load.
#
# The letters are a `<pre>`. Behind it is the scenery of the SVG, scaled to as many `ch` as there
# are columns: an inline background does not fill its line, and the lines of a font do not meet,
# so neither is left to the browser. A character that may come from another font is in a box with
# the width of its cells.


_STYLE: Final = (
    f".telex{{position:relative;display:inline-block;font:{FONT_SIZE}px/{CELL_HEIGHT}px {FONTS};"
    f"padding:{PADDING}px;font-variant-ligatures:none;text-size-adjust:none}}"
    f".telex svg{{position:absolute;left:{PADDING}px;top:{PADDING}px}}"
    ".telex pre{position:relative;margin:0;font:inherit;white-space:pre;"
    "direction:ltr;unicode-bidi:bidi-override}"
    f".telex i{{display:inline-block;height:{CELL_HEIGHT}px;overflow:hidden;vertical-align:top;"
    "font-style:inherit;text-align:center}"
)

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""The policy of the page: it loads and runs nothing, whatever a program printed."""


def draw_page(snapshot: Snapshot, theme: Theme, cursor: bool) -> bytes:
    title = escape(inert(snapshot.title or "telex"), quote=False)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8"/>',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>',
            f"<title>{title}</title><style>{_STYLE}</style></head>",
            f'<body style="margin:0;background:{css(theme.background)}">',
            *fragment(snapshot, theme, cursor),
            "</body></html>",
            "",
        ]
    ).encode()


def fragment(snapshot: Snapshot, theme: Theme, cursor: bool) -> list[str]:
    rows = list(lay_out(snapshot, theme, cursor))
    cols, lines = snapshot.size.cols, snapshot.size.rows
    width, height = cols * CELL_WIDTH, lines * CELL_HEIGHT
    colours = f"color:{css(theme.foreground)};background:{css(theme.background)}"
    extent = f"width:{cols}ch;height:{height}px"
    return [
        f'<div class="telex" style="{colours}">',
        f'<svg aria-hidden="true" style="{extent}" viewBox="0 0 {width} {height}"',
        ' preserveAspectRatio="none">',
        *scenery(rows, theme),
        "</svg>",
        # HTML drops a newline right after <pre>; the empty span keeps an empty first row.
        f'<pre style="{extent}"><span></span>'
        + "\n".join(["".join([_page_span(piece, theme) for piece in row]) for row in rows]).rstrip(
            " \n"
        )
        + "</pre>",
        "</div>",
    ]


def _page_span(piece: Piece, theme: Theme) -> str:
    if not piece.text.strip(" "):  # blanks alone; a no-break space is a character
        return piece.text
    text, look = escape(piece.text, quote=False), _page_look(piece.ink, theme)
    if piece.form is Form.TEXT:
        return f'<span style="{look}">{text}</span>' if look else text
    hidden = "color:transparent" if piece.form is Form.DRAWN else look
    return f'<i style="width:{piece.width}ch;{hidden}">{text}</i>'


def _page_look(ink: Ink, theme: Theme) -> str:
    colour = "transparent" if ink.invisible else css(ink.foreground)
    return ";".join(
        ([f"color:{colour}"] if ink.invisible or ink.foreground != theme.foreground else [])
        + (["font-weight:bold"] if ink.bold else [])
        + (["font-style:italic"] if ink.italic else [])
    )
