"""The screen as one HTML page: text that can be selected, with no script and nothing to load.

The letters are a `<pre>`. Behind it is the scenery of the SVG, scaled to as many `ch` as there are
columns: an inline background does not fill its line, and the lines of a font do not meet, so
neither is left to the browser. A character that may come from another font is in a box with the
width of its cells.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from telex.terminal.pictures.layout import (
    CELL_HEIGHT,
    CELL_WIDTH,
    FONT_SIZE,
    PADDING,
    Form,
    Ink,
    Piece,
    inert,
    lay_out,
)
from telex.terminal.pictures.svg import FONTS, scenery
from telex.terminal.pictures.theme import Theme, css

if TYPE_CHECKING:
    from telex.terminal.cells import Snapshot

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


def draw(snapshot: Snapshot, theme: Theme, cursor: bool) -> bytes:
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
        + "\n".join(["".join([_span(piece, theme) for piece in row]) for row in rows]).rstrip(" \n")
        + "</pre>",
        "</div>",
    ]


def _span(piece: Piece, theme: Theme) -> str:
    if not piece.text.strip(" "):  # blanks alone; a no-break space is a character
        return piece.text
    text, look = escape(piece.text, quote=False), _look(piece.ink, theme)
    if piece.form is Form.TEXT:
        return f'<span style="{look}">{text}</span>' if look else text
    hidden = "color:transparent" if piece.form is Form.DRAWN else look
    return f'<i style="width:{piece.width}ch;{hidden}">{text}</i>'


def _look(ink: Ink, theme: Theme) -> str:
    colour = "transparent" if ink.invisible else css(ink.foreground)
    return ";".join(
        ([f"color:{colour}"] if ink.invisible or ink.foreground != theme.foreground else [])
        + (["font-weight:bold"] if ink.bold else [])
        + (["font-style:italic"] if ink.italic else [])
    )
