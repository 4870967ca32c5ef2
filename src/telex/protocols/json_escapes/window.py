"""The window, its title and colours; links and text."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from telex.protocols.json_escapes.values import Byte, Data, Extent, Hex, Text, Title, Token, Uri


class SetTitle(Data, frozen=True):
    """What the window, and its icon, are called. At least one of them."""

    title: Title | None = None
    icon: Title | None = None

    def __post_init__(self) -> None:
        if self.title is None and self.icon is None:
            raise ValueError("give a title, an icon, or both")


class TitleStack(Data, frozen=True):
    """Which of the two names."""

    which: Literal["both", "icon", "title"] = "both"


class Cwd(Data, frozen=True):
    """A directory, as `file://host/path`."""

    uri: Uri


class Resize(Data, frozen=True):
    """A size in cells."""

    rows: Extent
    cols: Extent


class Window(Data, frozen=True):
    """What the window should do."""

    op: Literal[
        "iconify", "deiconify", "raise", "lower", "refresh", "maximize", "unmaximize",
        "fullscreen", "unfullscreen",
    ]  # fmt: skip


class Palette(Data, frozen=True):
    """Colours to change. What is reset is reset first."""

    set: Annotated[dict[Byte, Hex], Meta(max_length=256)] = field(default_factory=dict)
    """By their number in the palette."""
    fg: Hex | None = None
    bg: Hex | None = None
    cursor: Hex | None = None
    reset: Annotated[
        tuple[Literal["palette", "fg", "bg", "cursor"] | Byte, ...], Meta(max_length=260)
    ] = ()


class Hyperlink(Data, frozen=True):
    """Where a link begins, or ends. With a text, the whole link."""

    uri: Uri | None = None
    id: Token | None = None
    """Parts of a link with one id belong together."""
    text: Text | None = None
    end: bool = False

    def __post_init__(self) -> None:
        if self.end == (self.uri is not None) or (self.end and (self.id or self.text is not None)):
            raise ValueError("give a uri to begin a link, or only end: true")


class Write(Data, frozen=True):
    """What to write at the cursor."""

    text: Text
