"""Commands for modes, the alternate screen, tab stops, character sets and resets."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from telex.escapes.commands.ansi import (
    Lift,
    LiftedCommands,
    NotLifted,
    counting,
    csi,
    numbers,
    plain,
)
from telex.escapes.protocol import (
    EscapeCommand,
    NoData,
    Payload,
    Signed,
)

ModeName = Literal[
    "wrap", "origin", "insert", "newline", "appcursor", "appkeypad", "reverse", "altscreen",
    "bracketedpaste", "focus", "sync", "grapheme", "colorscheme", "inbandresize", "mousex10",
    "mouse", "mousedrag", "mousemove", "mousesgr", "mousepixels", "cursorblink", "cursorvisible",
    "margins",
]  # fmt: skip


Mode = ModeName | Annotated[int, Meta(ge=0, le=65535)]


ANSI_MODES: Final = frozenset({"insert", "newline"})
"""The names of modes that are not DEC private modes."""


class SetMode(Payload, frozen=True):
    """A mode, and its new value."""

    mode: Mode
    """Its name, or its number."""
    private: bool = False
    """Whether a number is that of a DEC private mode. Not needed with a name."""
    value: bool | Literal["save", "restore"] = True

    def __post_init__(self) -> None:
        private = self.mode not in ANSI_MODES if isinstance(self.mode, str) else self.private
        if not private and not isinstance(self.value, bool):
            raise ValueError("only private modes can be saved and restored")


class QueryMode(Payload, frozen=True):
    """The mode whose state is reported."""

    mode: Mode
    private: bool = False


class ModeState(Payload, frozen=True):
    """The state of a mode."""

    state: Literal["set", "reset", "perm-set", "perm-reset", "unknown"]


class Enabled(Payload, frozen=True):
    """Whether to switch something on or off."""

    enabled: bool = True


class AltScreen(Payload, frozen=True):
    """The alternate screen, on or off."""

    enabled: bool = True
    clear: bool = True
    """Whether to save the cursor and clear the screen, as full-screen programs do."""


class TabClear(Payload, frozen=True):
    """The tab stops to clear."""

    all: bool = False
    """All of them, instead of only the one at the cursor."""


class Tab(Payload, frozen=True):
    """A movement by tab stops."""

    n: Signed = 1
    """Tab stops to the right; negative to the left."""


class Charset(Payload, frozen=True):
    """A character set, and its slot."""

    slot: Annotated[int, Meta(ge=0, le=3)] = 0
    set: Literal["ascii", "dec-graphics", "uk"] = "ascii"


class Shift(Payload, frozen=True):
    """The slot of the character set to use."""

    slot: Annotated[int, Meta(ge=0, le=3)] = 0
    once: bool = False
    """For the next character only; with slots 2 and 3."""

    def __post_init__(self) -> None:
        if self.once and self.slot < 2:
            raise ValueError("only slots 2 and 3 can be used for one character")


class Reset(Payload, frozen=True):
    """The extent of a reset."""

    kind: Literal["soft", "hard"] = "soft"
    """`soft` does not clear the screen."""


MODES: Final[dict[str, int]] = {
    "insert": 4,
    "newline": 20,
    "appcursor": 1,
    "reverse": 5,
    "origin": 6,
    "wrap": 7,
    "mousex10": 9,
    "cursorblink": 12,
    "cursorvisible": 25,
    "appkeypad": 66,
    "margins": 69,
    "mouse": 1000,
    "mousedrag": 1002,
    "mousemove": 1003,
    "focus": 1004,
    "mousesgr": 1006,
    "mousepixels": 1016,
    "altscreen": 1049,
    "bracketedpaste": 2004,
    "sync": 2026,
    "grapheme": 2027,
    "colorscheme": 2031,
    "inbandresize": 2048,
}
_FINALS: Final = {True: "h", False: "l", "save": "s", "restore": "r"}
_SETS: Final = {"ascii": "B", "dec-graphics": "0", "uk": "A"}
_SHIFTS: Final = {
    (0, False): b"\x0f",
    (1, False): b"\x0e",
    (2, False): b"\x1bn",
    (3, False): b"\x1bo",
    (2, True): b"\x1bN",
    (3, True): b"\x1bO",
}


def mode_number(mode: str | int, private: bool = False) -> tuple[int, bool]:
    """Return the number of a mode, and whether it is a private mode."""
    return (mode, private) if isinstance(mode, int) else (MODES[mode], mode not in ANSI_MODES)


def _set(asked: SetMode) -> bytes:
    if asked.mode == "appkeypad" and isinstance(asked.value, bool):
        return b"\x1b=" if asked.value else b"\x1b>"  # more terminals know these than its number
    number, private = mode_number(asked.mode, asked.private)
    return csi(("?" if private else "") + _FINALS[asked.value], number)


def _altscreen(asked: AltScreen) -> bytes:
    return csi("?h" if asked.enabled else "?l", 1049 if asked.clear else 47)


def _tab(asked: Tab) -> bytes:
    return csi("I" if asked.n > 0 else "Z", abs(asked.n)) if asked.n else b""


COMMANDS: Final = (
    EscapeCommand("term:setmode", "Set, reset, save or restore a mode.", SetMode, 1, _set),
    EscapeCommand(
        "term:querymode",
        "Report the state of a mode (DECRQM).",
        QueryMode,
        2,
        returns=ModeState,
    ),
    EscapeCommand(
        "term:altscreen", "Switch to the alternate screen, or back.", AltScreen, 2, _altscreen
    ),
    EscapeCommand(
        "term:sync",
        "Begin or end an update that is shown at once.",
        Enabled,
        2,
        lambda asked: csi("?h" if asked.enabled else "?l", 2026),
    ),
    EscapeCommand("term:tabset", "Set a tab stop at the cursor.", NoData, 1, lambda _: b"\x1bH"),
    EscapeCommand(
        "term:tabclear",
        "Clear the tab stop at the cursor, or all.",
        TabClear,
        1,
        lambda asked: csi("g", 3 if asked.all else 0),
    ),
    EscapeCommand("term:tab", "Move the cursor to another tab stop.", Tab, 1, _tab),
    EscapeCommand(
        "term:charset",
        "Put a character set into a slot (SCS).",
        Charset,
        1,
        lambda asked: f"\x1b{'()*+'[asked.slot]}{_SETS[asked.set]}".encode(),
    ),
    EscapeCommand(
        "term:shift",
        "Use the character set of another slot.",
        Shift,
        1,
        lambda asked: _SHIFTS[asked.slot, asked.once],
    ),
    EscapeCommand(
        "term:reset",
        "Reset the terminal: its modes, or everything.",
        Reset,
        1,
        lambda asked: b"\x1b[!p" if asked.kind == "soft" else b"\x1bc",
    ),
)

_NAMES: Final = {mode_number(name): name for name in MODES if name != "appkeypad"}
"""Without the keypad mode: its name is lowered to other bytes than its number."""


def _lift_modes(private: bool, value: bool | str) -> Lift:
    def lift(parameters: list[str]) -> LiftedCommands:
        if not all(parameters):
            raise NotLifted
        return [_lifted(numbers([one], 0)[0], private, value) for one in parameters]

    return lift


def _lifted(number: int, private: bool, value: bool | str) -> tuple[str, dict[str, object]]:
    """Lift a mode to its own command, if there is one; else to `term:setmode`."""
    match number, private, value:
        case 25, True, bool():
            return "term:cursorvisible", {"visible": value}
        case ((47 | 1049), True, bool()):
            return "term:altscreen", {"enabled": value, "clear": number == 1049}
        case 2026, True, bool():
            return "term:sync", {"enabled": value}
    if name := _NAMES.get((number, private)):
        return "term:setmode", {"mode": name, "value": value}
    return "term:setmode", {"mode": number, "private": private, "value": value}


def _lift_tabclear(parameters: list[str]) -> LiftedCommands:
    number = numbers(parameters, 0)[0]
    if number not in (0, 3):
        raise NotLifted
    return [("term:tabclear", {"all": number == 3})]


LIFTS: Final[dict[bytes, Lift]] = {
    b"\x1b[h": _lift_modes(False, True),
    b"\x1b[l": _lift_modes(False, False),
    b"\x1b[?h": _lift_modes(True, True),
    b"\x1b[?l": _lift_modes(True, False),
    b"\x1b[?s": _lift_modes(True, "save"),
    b"\x1b[?r": _lift_modes(True, "restore"),
    b"\x1b=": plain("term:setmode", mode="appkeypad", value=True),
    b"\x1b>": plain("term:setmode", mode="appkeypad", value=False),
    b"\x1bH": plain("term:tabset"),
    b"\x1b[g": _lift_tabclear,
    b"\x1b[I": counting("term:tab"),
    b"\x1b[Z": counting("term:tab", -1),
    b"\x1b[!p": plain("term:reset", kind="soft"),
    b"\x1bc": plain("term:reset", kind="hard"),
    **{
        f"\x1b{slot}{final}".encode(): plain("term:charset", slot=n, set=name)
        for n, slot in enumerate("()*+")
        for name, final in _SETS.items()
    },
    **{
        bytes_: plain("term:shift", slot=slot, once=once)
        for (slot, once), bytes_ in _SHIFTS.items()
    },
}
