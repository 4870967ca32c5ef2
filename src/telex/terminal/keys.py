"""Names of keys, and what pasting types.

`parse_key` reads a name as people write it (`enter`, `ctrl_c`, `Ctrl+X`, `C-x`, `alt-left`, `é`)
and answers a `KeyPress`; `Screen.encode_key` makes bytes of it, by the modes of the program.
Pasted text becomes bytes here, as no mode changes it. Pure; used by `session` and `screen`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Final

NAMED: Final = (
    *("enter", "escape", "tab", "backspace", "delete", "space", "insert"),
    *("up", "down", "right", "left", "home", "end", "page_up", "page_down"),
    *(f"f{n}" for n in range(1, 13)),
)
"""Keys that have a name. Every other key is called by its character."""

ALIASES: Final = {
    **{name.replace("_", ""): name for name in NAMED},
    **{f"arrow{name}": name for name in ("up", "down", "right", "left")},
    "return": "enter",
    "esc": "escape",
    "bs": "backspace",
    "del": "delete",
    "ins": "insert",
    "pgup": "page_up",
    "pgdn": "page_down",
    "spc": "space",
    " ": "space",
    "backtab": "tab",
}
MODIFIERS: Final = {
    **dict.fromkeys(("ctrl", "control", "c"), "ctrl"),
    **dict.fromkeys(("alt", "meta", "option", "m"), "alt"),
    **dict.fromkeys(("shift", "s"), "shift"),
}
_MODIFIER: Final = re.compile(rf"({'|'.join(MODIFIERS)})[-_+](?=.)", re.IGNORECASE | re.DOTALL)
_SUGGESTED: Final = (
    *NAMED,
    "shift_tab",
    *(f"ctrl_{letter}" for letter in ascii_lowercase),
    *(f"{held}_{name}" for held in ("ctrl", "alt", "shift") for name in NAMED),
)


class UnknownKey(ValueError):
    """No key has this name."""


@dataclass(frozen=True, slots=True)
class KeyPress:
    """A key, and what is held with it."""

    key: str
    """A name of `NAMED`, or one character."""
    ctrl: bool = False
    alt: bool = False
    shift: bool = False


def parse_key(name: str) -> KeyPress:
    """The key of that name. With a modifier a letter's case says nothing: `Ctrl+X` is `ctrl_x`."""
    rest, held = name, set[str]()
    while match := _MODIFIER.match(rest):
        held.add(MODIFIERS[match[1].lower()])
        rest = rest[match.end() :]
    key = ALIASES.get(re.sub("[-_+](?=.)", "", rest).lower())
    if key is None:
        if len(rest) != 1 or not rest.isprintable():
            raise UnknownKey(_unknown(name))
        key = rest.lower() if held and rest.isascii() else rest
    elif rest.lower() == "backtab":
        held.add("shift")
    return KeyPress(key, "ctrl" in held, "alt" in held, "shift" in held)


def _unknown(name: str) -> str:
    # Cut short it could be the beginning of a secret, which nothing gives away any more.
    shown = ascii(name) if len(name) <= 40 else f"by {len(name)} characters"
    tidy = re.sub("[-+ ]", "_", name[:40]).lower()
    near = difflib.get_close_matches(tidy, _SUGGESTED, n=3)
    if near:
        return f"no key is called {shown}; near names are {', '.join(near)}"
    return f"no key is called {shown}; keys are called like enter, page_up, f5, ctrl_c, alt_left, a"


PASTE_BEGINS: Final = b"\x1b[200~"
PASTE_ENDS: Final = b"\x1b[201~"

_LINE: Final = {0x09, 0x0A, 0x0D}
_REPLACED: Final = {
    code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in _LINE
}
"""What cannot be pasted between the markers.

ESC and U+009B could spell the end marker. The other controls could do worse than end it: with ISIG
on, as bash has it while it reads a line, a pasted 0x03 interrupts the reading, and what follows is
typed at the prompt, line ends included; 0x16 and 0x1a have their own ways. So only tab and line
ends pass, much as in xterm (`allowPasteControls`). The others are replaced, not removed: text that
quietly loses a character is another text, and somebody may be about to run it.

The byte 0x9B also stands inside ordinary characters (`ě` is C4 9B). It stays there: a program that
asks for bracketed paste reads UTF-8, and one that reads bytes as C1 controls would be broken by
every such character that anybody types.
"""


def paste_bytes(text: str) -> bytes:
    """Typed as it is, whatever it holds."""
    return text.encode("utf-8", "replace")


def bracketed_paste_bytes(text: str) -> bytes:
    """Pasted between markers that the text cannot break out of."""
    return PASTE_BEGINS + paste_bytes(text.translate(_REPLACED)) + PASTE_ENDS
