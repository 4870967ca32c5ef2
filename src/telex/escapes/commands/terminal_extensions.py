"""Commands beyond text: clipboard, notifications, progress, shell marks, pictures, files.

A terminal may have each of these systems or not; `detect` reports them. No command here runs a
program, and no picture or file is named by a path: a program that can only write to a terminal must
not reach the files of the person who uses it.
"""

from __future__ import annotations

import binascii
import re
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from telex.escapes import limits
from telex.escapes.commands.ansi import Lift, LiftedCommands, NotLifted, encoded, numbers, osc, text
from telex.escapes.protocol import (
    END,
    EscapeCommand,
    FileName,
    Guard,
    NoData,
    Payload,
    Pixels,
    Title,
    Token,
)
from telex.terminal import limits as terminal_limits


class ClipWrite(Payload, frozen=True):
    """A text for the clipboard."""

    text: Annotated[str, Meta(max_length=limits.CLIPBOARD_CHARS)]
    """Any text, with newlines and tabs: it is sent as base64."""
    selection: Literal["clipboard", "primary"] = "clipboard"


class ClipRead(Payload, frozen=True):
    """The selection from which to read."""

    selection: Literal["clipboard", "primary"] = "clipboard"


class ClipText(Payload, frozen=True):
    """The text on the clipboard."""

    text: str


class ClipTypes(Payload, frozen=True):
    """The media types of the clipboard."""

    types: tuple[str, ...]


class NotifyShow(Payload, frozen=True):
    """A notification to show to the person."""

    title: Title
    body: Title = ""
    id: Token | None = None
    """An id by which to replace or close it later."""
    urgency: Literal["low", "normal", "critical"] | None = None
    when: Literal["always", "unfocused", "invisible"] | None = None
    report: bool = False
    """Whether to send `event:notification` when it is clicked or closed. It needs an id."""

    def __post_init__(self) -> None:
        if self.report and self.id is None:
            raise ValueError("`report` requires `id`")


class NotifyClose(Payload, frozen=True):
    """The id of the notification to close."""

    id: Token


class SetProgress(Payload, frozen=True):
    """The state of a progress bar."""

    state: Literal["none", "normal", "error", "indeterminate", "paused"] = "normal"
    value: Annotated[int, Meta(ge=0, le=100, description="Percent.")] = 0


class ShellDone(Payload, frozen=True):
    """The exit of a command."""

    exitcode: Annotated[int, Meta(ge=-255, le=255)] | None = None


class VarSet(Payload, frozen=True):
    """A variable of the terminal, which its own scripts may show."""

    name: Annotated[str, Meta(pattern=rf"^[A-Za-z_][A-Za-z0-9_]{{0,63}}{END}")]
    value: Annotated[str, Meta(max_length=terminal_limits.TITLE_CHARS)] = ""


class ImageShow(Payload, frozen=True):
    """A picture to show at the cursor."""

    data64: Annotated[bytes, Meta(max_length=limits.IMAGE_BYTES)] = b""
    """Its bytes. Omitted if they are sent as the parts of a streamed request."""
    format: Literal["png", "rgb", "rgba", "jpeg", "gif"] = "png"
    width: Pixels = 0
    """In pixels; required for `rgb` and `rgba`, which do not contain their size."""
    height: Pixels = 0
    cols: Annotated[int, Meta(ge=0, le=1000)] = 0
    """The width in cells to which the picture is scaled; 0 does not scale."""
    rows: Annotated[int, Meta(ge=0, le=1000)] = 0
    id: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    """An id by which to delete it later; not for `jpeg` and `gif`."""

    def __post_init__(self) -> None:
        raw = self.format in ("rgb", "rgba")
        if raw and not (self.width and self.height):
            raise ValueError("rgb and rgba need a width and a height")


class ImageDelete(Payload, frozen=True):
    """The id of the picture to delete."""

    id: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    """0 stands for all pictures."""


class FileDownload(Payload, frozen=True):
    """A file for the person: its bytes are the parts of the streamed request."""

    name: FileName
    size: Annotated[int, Meta(ge=0, le=limits.FILE_BYTES)] | None = None
    """In bytes, if known."""


class FileSaved(Payload, frozen=True):
    """The size of the saved file."""

    size: int


class FileUpload(Payload, frozen=True):
    """A file of the person, who decides about it."""

    name: FileName | None = None
    """A suggested name. The person sees it, and may choose another file."""


class FileSent(Payload, frozen=True):
    """The first part of the response. The following parts are the bytes."""

    name: FileName
    size: int


_SELECTIONS: Final = {"clipboard": "c", "primary": "p"}
_URGENCIES: Final = ("low", "normal", "critical")
_STATES: Final = ("none", "normal", "error", "indeterminate", "paused")
_FORMATS: Final = {"png": 100, "rgb": 24, "rgba": 32}
_PIECE: Final = 4096
"""The most characters of base64 in one piece of a picture, by kitty's protocol."""


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _clip(asked: ClipWrite) -> bytes:
    return osc(52, _SELECTIONS[asked.selection], _base64(encoded(asked.text)))


def _notify(asked: NotifyShow) -> bytes:
    """Most terminals know OSC 777. Fewer know OSC 99 (kitty's), which alone has ids and urgency.

    Even more terminals know OSC 9, but it is not used: `9;4` is progress, and a notification could
    be taken for it.
    """
    details = [
        *([] if asked.id is None else [f"i={asked.id}"]),
        *([] if asked.urgency is None else [f"u={_URGENCIES.index(asked.urgency)}"]),
        *([] if asked.when is None else [f"o={asked.when}"]),
        *(["a=report", "c=1"] if asked.report else []),
    ]
    if not details:
        title = asked.title.replace(";", ",")  # a semicolon would end the title
        return osc(777, "notify", title, asked.body)
    if asked.id is None:
        details.append("i=telex")  # the two parts need a common id
    if not asked.body:
        return osc(99, ":".join(details), asked.title)
    keys = ":".join(details)
    return osc(99, f"{keys}:d=0:p=title", asked.title) + osc(99, f"{keys}:d=1:p=body", asked.body)


def _progress(asked: SetProgress) -> bytes:
    return osc(9, "4", str(_STATES.index(asked.state)), str(asked.value))


def _done(asked: ShellDone) -> bytes:
    return osc(133, "D") if asked.exitcode is None else osc(133, "D", str(asked.exitcode))


def _variable(asked: VarSet) -> bytes:
    return osc(1337, f"SetUserVar={asked.name}={_base64(encoded(asked.value))}")


def _image(asked: ImageShow) -> bytes:
    """Use kitty's protocol, and iTerm2's for formats that kitty's does not have.

    `q=2` forbids the terminal to reply: the reply would reach the program as input.
    """
    if not asked.data64:
        raise msgspec.ValidationError("There is no picture: give data64, or send it in parts.")
    data = _base64(asked.data64)
    if asked.format not in _FORMATS:
        size = [f"width={asked.cols}"] * bool(asked.cols) + [f"height={asked.rows}"] * bool(
            asked.rows
        )
        options = ";".join(["inline=1", f"size={len(asked.data64)}", *size])
        return osc(1337, f"File={options}:{data}")
    keys = {"s": asked.width, "v": asked.height, "c": asked.cols, "r": asked.rows, "i": asked.id}
    options = ",".join(f"{key}={value}" for key, value in keys.items() if value)
    head = f"a=T,f={_FORMATS[asked.format]},q=2" + (f",{options}" if options else "")
    pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]
    return b"".join(
        _apc(f"{head if n == 0 else 'q=2'},m={int(n + 1 < len(pieces))};{piece}")
        for n, piece in enumerate(pieces)
    )


def _apc(body: str) -> bytes:
    return b"\x1b_G" + text(body) + b"\x1b\\"


def _delete(asked: ImageDelete) -> bytes:
    return _apc(f"a=d,q=2,d=I,i={asked.id}" if asked.id else "a=d,q=2,d=A")


def _mark(name: str, about: str, letter: str) -> EscapeCommand:
    return EscapeCommand(name, about, NoData, None, lambda _: osc(133, letter))


COMMANDS: Final = (
    EscapeCommand(
        "clip:write",
        "Copy a text to the clipboard.",
        ClipWrite,
        None,
        _clip,
        # A local program can do this without telex. A remote program could plant a line that the
        # person then pastes into a local shell without having seen it.
        guard=Guard.REMOTE,
        deed="put a text on your clipboard",
    ),
    EscapeCommand(
        "clip:read",
        "Read the text on the clipboard.",
        ClipRead,
        None,
        returns=ClipText,
        guard=Guard.PERSON,
        deed="read your clipboard",
    ),
    EscapeCommand(
        "clip:types",
        "Report the media types of the clipboard.",
        ClipRead,
        None,
        returns=ClipTypes,
        # It reveals the kind of data that the person copied, if not the data.
        guard=Guard.PERSON,
        deed="see what is on your clipboard",
    ),
    EscapeCommand(
        "notify:show",
        "Show the person a notification.",
        NotifyShow,
        None,
        _notify,
        # It appears outside the terminal, as if it came from the person's own machine.
        guard=Guard.REMOTE,
        deed="show you a notification",
    ),
    EscapeCommand(
        "notify:close",
        "Close a notification.",
        NotifyClose,
        None,
        lambda asked: osc(99, f"i={asked.id}:p=close", ""),
    ),
    EscapeCommand("progress:set", "Show progress.", SetProgress, None, _progress),
    _mark("shell:prompt", "Mark the beginning of a prompt (OSC 133 A).", "A"),
    _mark("shell:command", "Mark the end of the prompt, where input begins (OSC 133 B).", "B"),
    _mark("shell:output", "Mark the beginning of a command's output (OSC 133 C).", "C"),
    EscapeCommand(
        "shell:done", "Mark the exit of the command (OSC 133 D).", ShellDone, None, _done
    ),
    EscapeCommand("var:set", "Set a variable of the terminal (iTerm2's).", VarSet, None, _variable),
    EscapeCommand(
        "image:show", "Show a picture at the cursor.", ImageShow, None, _image, streamed=True
    ),
    EscapeCommand("image:delete", "Delete a picture.", ImageDelete, None, _delete),
    EscapeCommand(
        "file:download",
        "Send the person a file: its bytes are the parts of the request.",
        FileDownload,
        None,
        returns=FileSaved,
        guard=Guard.PERSON,
        deed="save a file on your machine",
        each_time=True,
        streamed=True,
    ),
    EscapeCommand(
        "file:upload",
        "Request a file of the person: its bytes are the parts of the response, after the first.",
        FileUpload,
        None,
        returns=FileSent,
        guard=Guard.PERSON,
        deed="read a file of yours",
        each_time=True,
    ),
)

_CLIP: Final = re.compile(r"([cp]);([A-Za-z0-9+/=]*)")
_NOTIFY: Final = re.compile(r"notify;([^;]*);(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"SetUserVar=([^=]+)=([A-Za-z0-9+/=]*)")


def _text(base64: str) -> str:
    """Decode a text, if encoding it again gives exactly the same base64."""
    try:
        data = binascii.a2b_base64(base64, strict_mode=True)
        found = data.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise NotLifted from None
    if _base64(data) != base64:
        raise NotLifted
    return found


def _lift_clip(rest: list[str]) -> LiftedCommands:
    if (found := _CLIP.fullmatch(rest[0])) is None:
        raise NotLifted
    selection = "clipboard" if found[1] == "c" else "primary"
    return [("clip:write", {"selection": selection, "text": _text(found[2])})]


def _lift_notify(rest: list[str]) -> LiftedCommands:
    if (found := _NOTIFY.fullmatch(rest[0])) is None:
        raise NotLifted
    return [("notify:show", {"title": found[1], "body": found[2]})]


def _lift_progress(rest: list[str]) -> LiftedCommands:
    kind, *fields = rest[0].split(";")
    if kind != "4" or not fields:
        raise NotLifted
    state, value = numbers(fields, 0, 0)
    if state >= len(_STATES):
        raise NotLifted
    return [("progress:set", {"state": _STATES[state], "value": value})]


def _lift_mark(rest: list[str]) -> LiftedCommands:
    """Lift a mark without options; no command has options such as `A;cl=m`."""
    match rest[0].split(";"):
        case ["A" | "B" | "C" as letter]:
            return [({"A": "shell:prompt", "B": "shell:command", "C": "shell:output"}[letter], {})]
        case ["D"]:
            return [("shell:done", {})]
        case ["D", code] if re.fullmatch(r"-?(?:0|[1-9][0-9]{0,2})", code):
            return [("shell:done", {"exitcode": int(code)})]
    raise NotLifted


def _lift_variable(rest: list[str]) -> LiftedCommands:
    if (found := _VARIABLE.fullmatch(rest[0])) is None:
        raise NotLifted
    return [("var:set", {"name": found[1], "value": _text(found[2])})]


LIFTS: Final[dict[bytes, Lift]] = {
    b"\x1b]52;": _lift_clip,
    b"\x1b]777;": _lift_notify,
    b"\x1b]9;": _lift_progress,
    b"\x1b]133;": _lift_mark,
    b"\x1b]1337;": _lift_variable,
}
