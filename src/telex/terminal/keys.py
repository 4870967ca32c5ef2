"""Names of keys, and the bytes of pasted text.

`parse_key` reads a name as people write it (`enter`, `ctrl_c`, `Ctrl+X`, `C-x`, `^X`, `alt-left`,
`é`; those of tmux, as `BTab` or `PPage`) and returns a `KeyPress`; `Screen.encode_key` turns it
into bytes by the modes of the program. Pasted text is turned into bytes here, because no mode
changes it. Pure; used by `session` and `screen`.
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
"""Keys that have a name. Every other key is named by its character."""

ALIASES: Final = {
    **{name.replace("_", ""): name for name in NAMED},
    **{f"arrow{name}": name for name in ("up", "down", "right", "left")},
    "return": "enter",
    "cr": "enter",
    "esc": "escape",
    "bs": "backspace",
    "bspace": "backspace",
    "del": "delete",
    "dc": "delete",
    "ins": "insert",
    "ic": "insert",
    "pgup": "page_up",
    "ppage": "page_up",
    "pgdn": "page_down",
    "npage": "page_down",
    "spc": "space",
    " ": "space",
    "backtab": "tab",
    "btab": "tab",
}
MODIFIERS: Final = {
    **dict.fromkeys(("ctrl", "control", "c"), "ctrl"),
    **dict.fromkeys(("alt", "meta", "option", "m"), "alt"),
    **dict.fromkeys(("shift", "s"), "shift"),
}
_MODIFIER: Final = re.compile(rf"({'|'.join(MODIFIERS)})[-_+](?=.)", re.IGNORECASE | re.DOTALL)
_CARETS: Final = {"^[": "escape", "^?": "backspace", "^@": "ctrl_space"}
"""Control characters in caret notation that are keys of other names; `^C` is `ctrl_c`."""
_SUGGESTED: Final = (
    *NAMED,
    "shift_tab",
    *(f"ctrl_{letter}" for letter in ascii_lowercase),
    *(f"{held}_{name}" for held in ("ctrl", "alt", "shift") for name in NAMED),
)


class UnknownKey(ValueError):
    """Raised for a name that is not the name of a key."""


@dataclass(frozen=True, slots=True)
class KeyPress:
    """A key with its modifiers."""

    key: str
    """A name of `NAMED`, or one character."""
    ctrl: bool = False
    alt: bool = False
    shift: bool = False


def parse_key(name: str) -> KeyPress:
    """Return the key of that name. With a modifier the case is ignored: `Ctrl+X` is `ctrl_x`."""
    rest, held = name, set[str]()
    if len(name) == 2 and name[0] == "^":
        rest = _CARETS.get(name, f"ctrl_{name[1]}")
    while match := _MODIFIER.match(rest):
        held.add(MODIFIERS[match[1].lower()])
        rest = rest[match.end() :]
    key = ALIASES.get(re.sub("[-_+](?=.)", "", rest).lower())
    if key is None:
        if len(rest) != 1 or not rest.isprintable():
            raise UnknownKey(_unknown(name))
        key = rest.lower() if held and rest.isascii() else rest
    elif rest.lower() in ("backtab", "btab"):
        held.add("shift")
    return KeyPress(key, "ctrl" in held, "alt" in held, "shift" in held)


def _unknown(name: str) -> str:
    # A shortened name could be the beginning of a secret, which redaction would not recognise.
    shown = ascii(name) if len(name) <= 40 else f"of {len(name)} characters"
    tidy = re.sub("[-+ ]", "_", name[:40]).lower()
    near = difflib.get_close_matches(tidy, _SUGGESTED, n=3)
    if near:
        return f"there is no key {shown}; similar names: {', '.join(near)}"
    return (
        f"there is no key {shown}; names of keys are like enter, page_up, f5, ctrl_c, alt_left, a"
    )


PASTE_BEGINS: Final = b"\x1b[200~"
PASTE_ENDS: Final = b"\x1b[201~"

_LINE: Final = {0x09, 0x0A, 0x0D}
_REPLACED: Final = {
    code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in _LINE
}
"""Control characters that are replaced in text pasted between the markers.

ESC and U+009B could form the end marker. Other controls are more dangerous: with ISIG on, as in
bash while it reads a line, a pasted 0x03 interrupts the line editor, and the text after it is typed
at the prompt, including its line ends; 0x16 and 0x1a have similar effects. So only tab and line
ends pass, much as in xterm (`allowPasteControls`). The others are replaced and not removed: a text
that silently loses a character is a different text, and the user may be about to run it.

The byte 0x9B also occurs inside ordinary characters (`ě` is C4 9B). These stay: a program that asks
for bracketed paste reads UTF-8, and a program that reads bytes as C1 controls would fail on every
such character that is typed.
"""


def paste_bytes(text: str) -> bytes:
    """Return the bytes of a text typed without markers, unchanged."""
    return text.encode("utf-8", "replace")


def bracketed_paste_bytes(text: str) -> bytes:
    """Return the bytes of a text between paste markers, which the text cannot end early."""
    return PASTE_BEGINS + paste_bytes(text.translate(_REPLACED)) + PASTE_ENDS
