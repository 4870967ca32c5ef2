"""What the person's terminal can do, as far as it says so when it is asked. Pure.

Two questions, each in one piece between marks (`asking`). The first is harmless anywhere: what are
you, and what are you called? The second asks for pictures and modes. It is not put to a
multiplexer, which shows no pictures of ours and takes kitty's question for a title; nor to a
terminal that did not answer the first.

What a terminal cannot be asked about (whether it obeys OSC 52, whether it shows notifications) is
known of none, and said to be `unverified`. The clipboard is not read to find out: it is the
person's, and their terminal may ask them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.escapes.catalogue import EVENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST: Final = b"\x1b[c\x1b[>q"
_MODES: Final = tuple(sorted({2026, *(mode for event in EVENTS.values() for mode in event.modes)}))
SECOND: Final = b"".join(
    [
        b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
        b"\x1b]1337;ReportCellSize\x1b\\",
        *[b"\x1b[?%d$p" % mode for mode in _MODES],
    ]
)
_ATTRIBUTES: Final = re.compile(rb"\x1b\[\?([0-9;]*)c")
_VERSION: Final = re.compile(rb"\x1bP>\|([ -~]{1,64})")
_MODE: Final = re.compile(rb"\x1b\[\?([0-9]+);([0-4])\$y")
_KITTY: Final = re.compile(rb"\x1b_G[^\x1b]*i=31[^\x1b]*;OK\x1b\\")
_CELL_SIZE: Final = b"\x1b]1337;ReportCellSize="
_CLIPBOARD: Final = 52
"""The attribute by which a terminal says that programs may use its clipboard."""
_TELLS_CLIPBOARD: Final = ("kitty", "iTerm2", "foot", "ghostty", "contour")
"""Terminals that answer OSC 52, some of them after they have asked their user."""
_WRITES_ONLY: Final = ("WezTerm",)
_MULTIPLEXERS: Final = ("tmux", "screen", "zellij")
_NEVER: Final = (0, 4)
"""How DECRQM says that a mode is not known, or that it cannot be set."""
KITTY_FORMATS: Final = frozenset({"png", "rgb", "rgba"})
PICTURES: Final = frozenset({"image:show", "image:delete"})
READ: Final = "clip:read"
_UNVERIFIABLE: Final = (
    "notify:*",
    "progress:*",
    "shell:*",
    "var:*",
    "term:cwd",
    "term:hyperlink",
    "term:palette",
    "term:resize",
    "term:title",
    "term:window",
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found; without any answer, nothing is known."""

    answered: bool = False
    attributes: frozenset[int] = frozenset()
    version: str = ""
    multiplexer: bool = False
    kitty: bool = False
    """Whether it shows pictures by kitty's protocol."""
    iterm: bool = False
    """The same by iTerm2's."""
    modes: Mapping[int, int] = field(default_factory=dict)
    """What it said of each mode, where it said anything."""
    told_clipboard: bool | None = None
    """Whether it was asked for its clipboard, and told it."""

    @property
    def tells_clipboard(self) -> bool | None:
        """None if that is not known: it may be tried."""
        if self.told_clipboard is not None:
            return self.told_clipboard
        if not self.answered or self.multiplexer or self.version.startswith(_WRITES_ONLY):
            return False
        known = _CLIPBOARD in self.attributes or self.version.startswith(_TELLS_CLIPBOARD)
        return True if known else None

    @property
    def lacks(self) -> frozenset[str]:
        """Commands and events that it does not have, or that nobody has seen it have."""
        lacks = set() if self.kitty or self.iterm else set(PICTURES)
        if not self.tells_clipboard:
            lacks.add(READ)
        if self.modes.get(2026) in _NEVER:
            lacks.add("term:sync")
        for event in EVENTS.values():
            if any(self.modes.get(mode) in _NEVER for mode in event.modes):
                lacks.add(event.name)
        return frozenset(lacks)

    @property
    def unverified(self) -> tuple[str, ...]:
        """What is passed on to it, and nobody knows to what effect."""
        known = self.tells_clipboard or (_CLIPBOARD in self.attributes and not self.multiplexer)
        writes = () if known else ("clip:write",)
        sync = () if 2026 in self.modes else ("term:sync",)
        events = tuple(
            event.name for event in EVENTS.values() if not self.modes.keys() >= {*event.modes}
        )
        return (*writes, *_UNVERIFIABLE, *sync, *events)

    def shows(self, kind: str) -> bool:
        """Whether it shows pictures of this format."""
        return self.kitty if kind in KITTY_FORMATS else self.iterm


def first(said: bytes | None, environ: Mapping[str, str]) -> Findings:
    """From the answer to `FIRST`; None if there was none."""
    within = any(environ.get(name) for name in ("TMUX", "STY", "ZELLIJ"))
    within = within or environ.get("TERM", "").startswith(("screen", "tmux"))
    if not said:
        return Findings(multiplexer=within)
    found, version = _ATTRIBUTES.search(said), _VERSION.search(said)
    attributes = found[1].split(b";") if found else []
    name = version[1].decode() if version else ""
    return Findings(
        answered=True,
        attributes=frozenset(int(one) for one in attributes if one and len(one) < 6),
        version=name,
        multiplexer=within or name.lower().startswith(_MULTIPLEXERS),
    )


def second(findings: Findings, said: bytes | None) -> Findings:
    """With the answer to `SECOND`."""
    said = said or b""
    return Findings(
        findings.answered,
        findings.attributes,
        findings.version,
        findings.multiplexer,
        kitty=_KITTY.search(said) is not None,
        iterm=_CELL_SIZE in said,
        modes={int(found[1]): int(found[2]) for found in _MODE.finditer(said)},
    )
