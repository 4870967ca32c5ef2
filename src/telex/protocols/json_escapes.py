"""JSON terminal escapes as data: what each command takes and answers, what each event tells, the
error codes, and the number that says "spoken here".

The spec names the packet and leaves the commands open; these are ours, listed in
`docs/reference/escapes.md`. Rows and columns count from 1, as in ANSI; an integer that is left out
is 1 where it counts something. Members that are not known are ignored. `escapes.catalogue` says
which command has which payload; nothing here knows how one is done.

No text that reaches a terminal as it is can hold a control character: what is a title here must not
be a command there. A text that has one is refused when it is decoded (ECARGS). The patterns are
those of JSON Schema as much as Python's, so they end in a lookahead: Python's `$` lets a newline
pass.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from telex.wire import limits

ATTRIBUTE: Final = 23198
"""What the answer to `CSI c` (DA1) also holds, where JSON escapes are understood."""

ECPARSE: Final = "ECPARSE"
"""Not JSON, or not strict JSON."""
ECPROTO: Final = "ECPROTO"
"""JSON that breaks a rule of packets."""
ECNOCMD: Final = "ECNOCMD"
"""No such command here."""
ECARGS: Final = "ECARGS"
"""The data is not what the command takes."""
ECTIMEOUT: Final = "ECTIMEOUT"
"""It took longer than the timeout."""
ECCANCEL: Final = "ECCANCEL"
"""The one who asked no longer wants it."""
ECDENIED: Final = "ECDENIED"
"""The person, or their policy, said no."""
ECLIMIT: Final = "ECLIMIT"
"""Larger, or more, than what is taken."""
ECBUSY: Final = "ECBUSY"
"""Something else has the only one of what it needs."""
ECROUTE: Final = "ECROUTE"
"""What it should go to cannot be reached."""
ECINTERNAL: Final = "ECINTERNAL"
"""A mistake on this side."""
ECUNSUP: Final = "ECUNSUP"
"""A known command that cannot be done here: the terminal lacks what it needs."""
ECCLOSED: Final = "ECCLOSED"
"""The other side is gone, or going."""

_END: Final = r"(?![\s\S])"
_NO_CONTROLS: Final = r"^(?![\s\S]*[\x00-\x1f\x7f-\x9f])"

Text = Annotated[str, Meta(pattern=_NO_CONTROLS, description="Text without control characters.")]
Title = Annotated[
    str,
    Meta(
        pattern=_NO_CONTROLS,
        max_length=limits.TITLE_CHARS,
        description="A line of text without control characters.",
    ),
]
Uri = Annotated[
    str,
    Meta(
        pattern=rf"^[!-~]+{_END}",
        max_length=limits.URI_BYTES,
        description="A URI: printable ASCII, anything else percent-encoded.",
    ),
]
Token = Annotated[
    str,
    Meta(pattern=rf"^[A-Za-z0-9_+.-]{{1,64}}{_END}", description="Letters, digits and `_+.-`."),
]
FileName = Annotated[
    str,
    Meta(
        pattern=rf"^(?!\.)[^/\\\x00-\x1f\x7f-\x9f]{{1,255}}{_END}",
        description="A file's name: no directory, no control characters, no dot at its beginning.",
    ),
]
Row = Annotated[int, Meta(ge=1, le=65535, description="A row, counted from 1.")]
Col = Annotated[int, Meta(ge=1, le=65535, description="A column, counted from 1.")]
Times = Annotated[int, Meta(ge=1, le=65535, description="How many.")]
Signed = Annotated[int, Meta(ge=-65535, le=65535, description="How many, and which way.")]
Extent = Annotated[int, Meta(ge=1, le=1000, description="Rows or columns of a whole terminal.")]
Byte = Annotated[int, Meta(ge=0, le=255, description="0 to 255.")]
Pixels = Annotated[int, Meta(ge=0, le=65535, description="Pixels.")]
Hex = Annotated[str, Meta(pattern=rf"^#[0-9A-Fa-f]{{6}}{_END}", description="`#rrggbb`.")]


class _Data(Struct, frozen=True, omit_defaults=True):
    """What all have in common: they do not change, and what is left out stays out."""


class Nothing(_Data, frozen=True):
    """No data."""


# Cursor


class CursorMove(_Data, frozen=True):
    """Relative to where the cursor is."""

    x: Signed = 0
    """To the right; negative to the left."""
    y: Signed = 0
    """Down; negative up."""


class CursorSet(_Data, frozen=True):
    """A place, or only a row or column to go to."""

    row: Row | None = None
    col: Col | None = None


class CursorLine(_Data, frozen=True):
    """Lines to go, to their first column."""

    n: Signed = 1
    """Down; negative up."""


class CursorStyle(_Data, frozen=True):
    """What the cursor looks like."""

    shape: Literal["default", "block", "underline", "bar"] = "default"
    blink: bool = False
    """Not for `default`, which is as the person has set it."""


class Visible(_Data, frozen=True):
    """Whether it is shown."""

    visible: bool = True


# Erasing, inserting, scrolling


class Count(_Data, frozen=True):
    """How often, or how many."""

    n: Times = 1


class Erase(_Data, frozen=True):
    """What is erased, seen from the cursor."""

    target: Literal["line", "screen"]
    part: Literal["after", "before", "all", "scrollback"] = "all"
    """`after` and `before` include the cursor's own cell; `scrollback` is of a screen only."""
    selective: bool = False
    """Leave what is protected."""

    def __post_init__(self) -> None:
        if self.part == "scrollback" and (self.target == "line" or self.selective):
            raise ValueError("only a screen has a scrollback, and it is erased as a whole")


class Scroll(_Data, frozen=True):
    """Lines to scroll by."""

    n: Signed = 1
    """Up, as when text is added below; negative down."""


class ScrollRegion(_Data, frozen=True):
    """The part of the screen that scrolls. Nothing at all is the whole screen again."""

    top: Row | None = None
    bottom: Row | None = None
    left: Col | None = None
    right: Col | None = None


# Styles


class Indexed(_Data, frozen=True):
    """A colour of the palette."""

    index: Byte


_FOREGROUND = Literal[30, 31, 32, 33, 34, 35, 36, 37, 90, 91, 92, 93, 94, 95, 96, 97]
_BACKGROUND = Literal[
    30, 31, 32, 33, 34, 35, 36, 37, 90, 91, 92, 93, 94, 95, 96, 97,
    40, 41, 42, 43, 44, 45, 46, 47, 100, 101, 102, 103, 104, 105, 106, 107,
]  # fmt: skip
_Written = Annotated[
    str, Meta(pattern=rf"^(?:default|#[0-9A-Fa-f]{{6}}){_END}", description="`#rrggbb`, `default`.")
]
Color = _FOREGROUND | Indexed | _Written
"""An SGR number, a colour of the palette, `#rrggbb`, or `default`."""
Background = _BACKGROUND | Indexed | _Written
"""The same. As a number, both 31 and 41 are a red background."""
Underline = Literal["single", "double", "curly", "dotted", "dashed"]
StyleKey = Literal[
    "color", "bgcolor", "ulcolor", "bold", "faint", "italic", "underline", "blink", "inverse",
    "hidden", "strike", "overline",
]  # fmt: skip


class SetStyle(_Data, frozen=True):
    """How what is written next looks. What is left out stays as it is."""

    color: Color | None = None
    bgcolor: Background | None = None
    ulcolor: Color | None = None
    """Of the underline."""
    bold: bool | None = None
    """False also ends `faint`, unless that is true here: ANSI has one end for both."""
    faint: bool | None = None
    """False also ends `bold`, unless that is true here."""
    italic: bool | None = None
    underline: bool | Underline | None = None
    """True is `single`."""
    blink: bool | Literal["slow", "rapid"] | None = None
    """True is `slow`."""
    inverse: bool | None = None
    hidden: bool | None = None
    strike: bool | None = None
    overline: bool | None = None


class StyleKeys(_Data, frozen=True):
    """Which parts of a style."""

    keys: Annotated[tuple[StyleKey, ...], Meta(max_length=12)] = ()
    """None is all."""


class PushStyle(_Data, frozen=True):
    """Which parts of a style to remember. There is no way to say so of the others."""

    keys: Annotated[
        tuple[
            Literal[
                "color", "bgcolor", "bold", "faint", "italic", "underline", "blink", "inverse",
                "hidden", "strike",
            ],
            ...,
        ],
        Meta(max_length=10),
    ] = ()  # fmt: skip
    """None is all."""


# Modes, tabs, character sets, resets


ModeName = Literal[
    "wrap", "origin", "insert", "newline", "appcursor", "appkeypad", "reverse", "altscreen",
    "bracketedpaste", "focus", "sync", "grapheme", "colorscheme", "inbandresize", "mousex10",
    "mouse", "mousedrag", "mousemove", "mousesgr", "mousepixels", "cursorblink", "cursorvisible",
    "margins",
]  # fmt: skip
Mode = ModeName | Annotated[int, Meta(ge=0, le=65535)]
ANSI_MODES: Final = frozenset({"insert", "newline"})
"""The names that are no DEC private modes."""


class SetMode(_Data, frozen=True):
    """A mode, and what becomes of it."""

    mode: Mode
    """Its name, or its number."""
    private: bool = False
    """Whether a number is that of a DEC private mode. A name knows this itself."""
    value: bool | Literal["save", "restore"] = True

    def __post_init__(self) -> None:
        private = self.mode not in ANSI_MODES if isinstance(self.mode, str) else self.private
        if not private and not isinstance(self.value, bool):
            raise ValueError("only private modes can be saved and restored")


class QueryMode(_Data, frozen=True):
    """Which mode."""

    mode: Mode
    private: bool = False


class ModeState(_Data, frozen=True):
    """What a mode is."""

    state: Literal["set", "reset", "perm-set", "perm-reset", "unknown"]


class Enabled(_Data, frozen=True):
    """On or off."""

    enabled: bool = True


class AltScreen(_Data, frozen=True):
    """The alternate screen, on or off."""

    enabled: bool = True
    clear: bool = True
    """With the cursor saved and the screen cleared, as full-screen programs do it."""


class TabClear(_Data, frozen=True):
    """Which tab stops."""

    all: bool = False
    """Instead of only the one at the cursor."""


class Tab(_Data, frozen=True):
    """How many tab stops to go."""

    n: Signed = 1
    """To the right; negative to the left."""


class Charset(_Data, frozen=True):
    """A character set, and where to keep it."""

    slot: Annotated[int, Meta(ge=0, le=3)] = 0
    set: Literal["ascii", "dec-graphics", "uk"] = "ascii"


class Shift(_Data, frozen=True):
    """Which of the four kept character sets is used."""

    slot: Annotated[int, Meta(ge=0, le=3)] = 0
    once: bool = False
    """For the next character only; slots 2 and 3."""

    def __post_init__(self) -> None:
        if self.once and self.slot < 2:
            raise ValueError("only slots 2 and 3 can be used for one character")


class LineAttr(_Data, frozen=True):
    """The width and height of the cursor's line."""

    kind: Literal["normal", "dwl", "dhl-top", "dhl-bottom"] = "normal"


class Reset(_Data, frozen=True):
    """How much."""

    kind: Literal["soft", "hard"] = "soft"
    """`soft` leaves what is on the screen."""


# Window, title, links, colours, text


class SetTitle(_Data, frozen=True):
    """What the window, and its icon, are called. At least one of them."""

    title: Title | None = None
    icon: Title | None = None

    def __post_init__(self) -> None:
        if self.title is None and self.icon is None:
            raise ValueError("give a title, an icon, or both")


class TitleStack(_Data, frozen=True):
    """Which of the two names."""

    which: Literal["both", "icon", "title"] = "both"


class Cwd(_Data, frozen=True):
    """A directory, as `file://host/path`."""

    uri: Uri


class Resize(_Data, frozen=True):
    """A size in cells."""

    rows: Extent
    cols: Extent


class Window(_Data, frozen=True):
    """What the window should do."""

    op: Literal[
        "iconify", "deiconify", "raise", "lower", "refresh", "maximize", "unmaximize",
        "fullscreen", "unfullscreen",
    ]  # fmt: skip


class Palette(_Data, frozen=True):
    """Colours to change. What is reset is reset first."""

    set: Annotated[dict[Byte, Hex], Meta(max_length=256)] = {}
    """By their number in the palette."""
    fg: Hex | None = None
    bg: Hex | None = None
    cursor: Hex | None = None
    reset: Annotated[
        tuple[Literal["palette", "fg", "bg", "cursor"] | Byte, ...], Meta(max_length=260)
    ] = ()


class Hyperlink(_Data, frozen=True):
    """Where a link begins, or ends. With a text, the whole link."""

    uri: Uri | None = None
    id: Token | None = None
    """Parts of a link with one id belong together."""
    text: Text | None = None
    end: bool = False

    def __post_init__(self) -> None:
        if self.end == (self.uri is not None) or (self.end and (self.id or self.text is not None)):
            raise ValueError("give a uri to begin a link, or only end: true")


class Write(_Data, frozen=True):
    """What to write at the cursor."""

    text: Text


# Questions


What = Literal[
    "cursor", "status", "attributes", "secondary", "version", "size-cells", "size-pixels",
    "cell-pixels", "colors", "palette", "sgr", "cursorstyle", "terminfo",
]  # fmt: skip


class Report(_Data, frozen=True):
    """What to tell."""

    what: What
    index: Byte = 0
    """For `palette`: which colour."""
    name: Annotated[str, Meta(pattern=rf"^[A-Za-z0-9]{{1,32}}{_END}")] | None = None
    """For `terminfo`: which capability."""

    def __post_init__(self) -> None:
        if (self.what == "terminfo") != (self.name is not None):
            raise ValueError("a name is given for terminfo, and for nothing else")


class Reported(_Data, frozen=True):
    """What was asked for, and only that: numbers, colours and the terminal's own name."""

    row: int | UnsetType = UNSET
    """`cursor`, with `col`."""
    col: int | UnsetType = UNSET
    ok: bool | UnsetType = UNSET
    """`status`."""
    attributes: tuple[int, ...] | UnsetType = UNSET
    """`attributes` and `secondary`."""
    version: str | UnsetType = UNSET
    """`version`."""
    rows: int | UnsetType = UNSET
    """`size-cells`, with `cols`."""
    cols: int | UnsetType = UNSET
    width: int | UnsetType = UNSET
    """`size-pixels` and `cell-pixels`, with `height`."""
    height: int | UnsetType = UNSET
    fg: Hex | UnsetType = UNSET
    """`colors`, with `bg` and, if it is known, `cursor`."""
    bg: Hex | UnsetType = UNSET
    cursor: Hex | UnsetType = UNSET
    color: Hex | UnsetType = UNSET
    """`palette`."""
    style: SetStyle | UnsetType = UNSET
    """`sgr`."""
    cursorstyle: CursorStyle | UnsetType = UNSET
    """`cursorstyle`."""
    value: str | UnsetType | None = UNSET
    """`terminfo`; null where the terminal has no such capability."""


# Core


class Capability(_Data, frozen=True):
    """How much of a system is there."""

    level: int | UnsetType = UNSET
    """Everything of this level, and of those below."""
    include: tuple[str, ...] = ()
    """Commands; `*` stands for any run of characters, colons too."""
    exclude: tuple[str, ...] = ()
    """Commands that are not there after all. It wins over the others."""


class Detected(_Data, frozen=True):
    """What is supported."""

    capabilities: dict[str, Capability]
    """By system."""
    capabilties: dict[str, Capability]
    """The same, as the spec spells it."""
    maxframe: int
    """The most bytes of JSON in one frame that are read here."""


class Subscribe(_Data, frozen=True):
    """Which events."""

    events: Annotated[
        tuple[
            Annotated[str, Meta(pattern=rf"^event:[a-z]{{1,32}}{_END}", description="An event.")],
            ...,
        ],
        Meta(max_length=32),
    ] = ()
    """To unsubscribe, none is all."""


class Subscribed(_Data, frozen=True):
    """What is subscribed to now. An event that is not known here is not in it."""

    events: tuple[str, ...]


class BatchItem(_Data, frozen=True):
    """One command of several."""

    command: Annotated[str, Meta(max_length=64)]
    data: Any = None
    """What that command takes. Any JSON here, because its type is that of the command."""


class Batch(_Data, frozen=True):
    """Commands to be done in this order, or not at all."""

    commands: Annotated[tuple[BatchItem, ...], Meta(max_length=limits.BATCH_COMMANDS)]


# Extensions


class ClipWrite(_Data, frozen=True):
    """What to put there."""

    text: Annotated[str, Meta(max_length=limits.CLIPBOARD_CHARS)]
    """Any text, lines and tabs included: it travels on as base64."""
    selection: Literal["clipboard", "primary"] = "clipboard"


class ClipRead(_Data, frozen=True):
    """Where to read."""

    selection: Literal["clipboard", "primary"] = "clipboard"


class ClipText(_Data, frozen=True):
    """What is there."""

    text: str


class ClipTypes(_Data, frozen=True):
    """As what it can be read."""

    types: tuple[str, ...]


class NotifyShow(_Data, frozen=True):
    """What to tell the person."""

    title: Title
    body: Title = ""
    id: Token | None = None
    """To replace or close it later."""
    urgency: Literal["low", "normal", "critical"] | None = None
    when: Literal["always", "unfocused", "invisible"] | None = None
    report: bool = False
    """Whether `event:notification` should tell of a click and of its end; with an id."""

    def __post_init__(self) -> None:
        if self.report and self.id is None:
            raise ValueError("what is reported needs an id to be reported by")


class NotifyClose(_Data, frozen=True):
    """Which one."""

    id: Token


class Progress(_Data, frozen=True):
    """How far it is."""

    state: Literal["none", "normal", "error", "indeterminate", "paused"] = "normal"
    value: Annotated[int, Meta(ge=0, le=100, description="Percent.")] = 0


class ShellDone(_Data, frozen=True):
    """How the command ended."""

    exitcode: Annotated[int, Meta(ge=-255, le=255)] | None = None


class VarSet(_Data, frozen=True):
    """A variable of the terminal, which its own scripts may show."""

    name: Annotated[str, Meta(pattern=rf"^[A-Za-z_][A-Za-z0-9_]{{0,63}}{_END}")]
    value: Annotated[str, Meta(max_length=limits.TITLE_CHARS)] = ""


class ImageShow(_Data, frozen=True):
    """A picture, at the cursor."""

    data64: Annotated[bytes, Meta(max_length=limits.IMAGE_BYTES)] = b""
    """Its bytes. Left out if they come as the parts of a streamed request."""
    format: Literal["png", "rgb", "rgba", "jpeg", "gif"] = "png"
    width: Pixels = 0
    """In pixels; needed for `rgb` and `rgba`, which do not say it themselves."""
    height: Pixels = 0
    cols: Annotated[int, Meta(ge=0, le=1000)] = 0
    """In cells, scaled to them; 0 is as large as it is."""
    rows: Annotated[int, Meta(ge=0, le=1000)] = 0
    id: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    """To delete it by later; not for `jpeg` and `gif`."""

    def __post_init__(self) -> None:
        raw = self.format in ("rgb", "rgba")
        if raw and not (self.width and self.height):
            raise ValueError("rgb and rgba need a width and a height")


class ImageDelete(_Data, frozen=True):
    """Which picture."""

    id: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    """0 is all of them."""


class FileDownload(_Data, frozen=True):
    """A file for the person: its bytes are the parts of the streamed request."""

    name: FileName
    size: Annotated[int, Meta(ge=0, le=limits.FILE_BYTES)] | None = None
    """In bytes, if it is known."""


class FileSaved(_Data, frozen=True):
    """What was kept."""

    size: int


class FileUpload(_Data, frozen=True):
    """A file from the person, who chooses which."""

    name: FileName | None = None
    """What would fit; the person sees it and may choose another."""


class FileSent(_Data, frozen=True):
    """The first part of the answer. The parts after it are the bytes."""

    name: FileName
    size: int


# Events


Mod = Literal["shift", "alt", "ctrl", "super", "hyper", "meta", "caps", "num"]
Button = Literal[
    "none", "left", "middle", "right", "wheelup", "wheeldown", "wheelleft", "wheelright", "back",
    "forward", "button10", "button11",
]  # fmt: skip


class KeyEvent(_Data, frozen=True):
    """A key."""

    key: str
    """Its name, as `docs/reference/keys.md` has it, or the character."""
    text: str = ""
    """What it types."""
    mods: tuple[Mod, ...] = ()
    kind: Literal["press", "repeat", "release"] = "press"
    code: int | None = None
    """The number that the terminal gave, where it gave one."""
    shifted: str | None = None
    """The character with shift, where the terminal told."""
    base: str | None = None
    """The character in the standard layout, where the terminal told."""


class MouseEvent(_Data, frozen=True):
    """The mouse, at a cell."""

    row: Row
    col: Col
    button: Button = "left"
    kind: Literal["press", "release", "move", "scroll"] = "press"
    mods: tuple[Mod, ...] = ()
    px: int | None = None
    """In pixels, where the terminal told; with `py`."""
    py: int | None = None


class PasteEvent(_Data, frozen=True):
    """What was pasted."""

    text: str


class FocusEvent(_Data, frozen=True):
    """Whether the terminal has the keyboard."""

    focused: bool


class ResizeEvent(_Data, frozen=True):
    """The size that the terminal has now."""

    rows: int
    cols: int
    width: int = 0
    """In pixels; 0 where unknown."""
    height: int = 0


class ColorScheme(_Data, frozen=True):
    """Whether the terminal is dark or light."""

    dark: bool


class NotificationEvent(_Data, frozen=True):
    """What became of a notification."""

    id: Token
    action: Literal["activated", "closed"]
    button: int | None = None


class RevokedEvent(_Data, frozen=True):
    """Something that was allowed is so no more."""

    capability: str
    """The command or event."""
    reason: str = ""
