"""Beyond ANSI: the clipboard, notifications, progress, the shell, pictures, files."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from telex.protocols.json_escapes.values import END, Data, FileName, Pixels, Title, Token
from telex.wire import limits


class ClipWrite(Data, frozen=True):
    """What to put there."""

    text: Annotated[str, Meta(max_length=limits.CLIPBOARD_CHARS)]
    """Any text, lines and tabs included: it travels on as base64."""
    selection: Literal["clipboard", "primary"] = "clipboard"


class ClipRead(Data, frozen=True):
    """Where to read."""

    selection: Literal["clipboard", "primary"] = "clipboard"


class ClipText(Data, frozen=True):
    """What is there."""

    text: str


class ClipTypes(Data, frozen=True):
    """As what it can be read."""

    types: tuple[str, ...]


class NotifyShow(Data, frozen=True):
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


class NotifyClose(Data, frozen=True):
    """Which one."""

    id: Token


class Progress(Data, frozen=True):
    """How far it is."""

    state: Literal["none", "normal", "error", "indeterminate", "paused"] = "normal"
    value: Annotated[int, Meta(ge=0, le=100, description="Percent.")] = 0


class ShellDone(Data, frozen=True):
    """How the command ended."""

    exitcode: Annotated[int, Meta(ge=-255, le=255)] | None = None


class VarSet(Data, frozen=True):
    """A variable of the terminal, which its own scripts may show."""

    name: Annotated[str, Meta(pattern=rf"^[A-Za-z_][A-Za-z0-9_]{{0,63}}{END}")]
    value: Annotated[str, Meta(max_length=limits.TITLE_CHARS)] = ""


class ImageShow(Data, frozen=True):
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


class ImageDelete(Data, frozen=True):
    """Which picture."""

    id: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    """0 is all of them."""


class FileDownload(Data, frozen=True):
    """A file for the person: its bytes are the parts of the streamed request."""

    name: FileName
    size: Annotated[int, Meta(ge=0, le=limits.FILE_BYTES)] | None = None
    """In bytes, if it is known."""


class FileSaved(Data, frozen=True):
    """What was kept."""

    size: int


class FileUpload(Data, frozen=True):
    """A file from the person, who chooses which."""

    name: FileName | None = None
    """What would fit; the person sees it and may choose another."""


class FileSent(Data, frozen=True):
    """The first part of the answer. The parts after it are the bytes."""

    name: FileName
    size: int
