"""Commands beyond text: clipboard, notifications, progress, shell marks, pictures, files.

A terminal may have each of these systems or not; `detect` says which. Nothing here runs anything,
and no picture or file is ever named by its path: a program that can only write to a terminal must
not reach the files of the person who looks at it.
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
    """What to put there."""

    text: Annotated[str, Meta(max_length=limits.CLIPBOARD_CHARS)]
    """Any text, lines and tabs included: it travels on as base64."""
    selection: Literal["clipboard", "primary"] = "clipboard"


class ClipRead(Payload, frozen=True):
    """Where to read."""

    selection: Literal["clipboard", "primary"] = "clipboard"


class ClipText(Payload, frozen=True):
    """What is there."""

    text: str


class ClipTypes(Payload, frozen=True):
    """As what it can be read."""

    types: tuple[str, ...]


class NotifyShow(Payload, frozen=True):
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


class NotifyClose(Payload, frozen=True):
    """Which one."""

    id: Token


class SetProgress(Payload, frozen=True):
    """How far it is."""

    state: Literal["none", "normal", "error", "indeterminate", "paused"] = "normal"
    value: Annotated[int, Meta(ge=0, le=100, description="Percent.")] = 0


class ShellDone(Payload, frozen=True):
    """How the command ended."""

    exitcode: Annotated[int, Meta(ge=-255, le=255)] | None = None


class VarSet(Payload, frozen=True):
    """A variable of the terminal, which its own scripts may show."""

    name: Annotated[str, Meta(pattern=rf"^[A-Za-z_][A-Za-z0-9_]{{0,63}}{END}")]
    value: Annotated[str, Meta(max_length=terminal_limits.TITLE_CHARS)] = ""


class ImageShow(Payload, frozen=True):
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


class ImageDelete(Payload, frozen=True):
    """Which picture."""

    id: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    """0 is all of them."""


class FileDownload(Payload, frozen=True):
    """A file for the person: its bytes are the parts of the streamed request."""

    name: FileName
    size: Annotated[int, Meta(ge=0, le=limits.FILE_BYTES)] | None = None
    """In bytes, if it is known."""


class FileSaved(Payload, frozen=True):
    """What was kept."""

    size: int


class FileUpload(Payload, frozen=True):
    """A file from the person, who chooses which."""

    name: FileName | None = None
    """What would fit; the person sees it and may choose another."""


class FileSent(Payload, frozen=True):
    """The first part of the answer. The parts after it are the bytes."""

    name: FileName
    size: int


_SELECTIONS: Final = {"clipboard": "c", "primary": "p"}
_URGENCIES: Final = ("low", "normal", "critical")
_STATES: Final = ("none", "normal", "error", "indeterminate", "paused")
_FORMATS: Final = {"png": 100, "rgb": 24, "rgba": 32}
_PIECE: Final = 4096
"""Characters of base64 in one piece of a picture: the most that kitty's protocol allows."""


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _clip(asked: ClipWrite) -> bytes:
    return osc(52, _SELECTIONS[asked.selection], _base64(encoded(asked.text)))


def _notify(asked: NotifyShow) -> bytes:
    """OSC 777 is known to most; OSC 99 (kitty's) to fewer, but it alone has ids and urgency.

    OSC 9 is known to more still, and rejected: `9;4` is progress, and one is taken for the other.
    """
    details = [
        *([] if asked.id is None else [f"i={asked.id}"]),
        *([] if asked.urgency is None else [f"u={_URGENCIES.index(asked.urgency)}"]),
        *([] if asked.when is None else [f"o={asked.when}"]),
        *(["a=report", "c=1"] if asked.report else []),
    ]
    if not details:
        title = asked.title.replace(";", ",")  # which ends the title there
        return osc(777, "notify", title, asked.body)
    if asked.id is None:
        details.append("i=telex")  # the two parts need one to be put together by
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
    """By kitty's protocol, and by iTerm2's what kitty cannot decode itself.

    `q=2` forbids the terminal to answer: that would be typed into the program.
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


def _forget(asked: ImageDelete) -> bytes:
    return _apc(f"a=d,q=2,d=I,i={asked.id}" if asked.id else "a=d,q=2,d=A")


def _mark(name: str, about: str, letter: str) -> EscapeCommand:
    return EscapeCommand(name, about, NoData, None, lambda _: osc(133, letter))


COMMANDS: Final = (
    EscapeCommand(
        "clip:write",
        "Put a text on the clipboard.",
        ClipWrite,
        None,
        _clip,
        # A program here can do this without asking anybody. One elsewhere could plant a line that
        # is pasted into a shell here, and the person would not have seen it come.
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
        "Ask as what the clipboard can be read.",
        ClipRead,
        None,
        returns=ClipTypes,
        # It tells what the person copied, if not its words.
        guard=Guard.PERSON,
        deed="see what is on your clipboard",
    ),
    EscapeCommand(
        "notify:show",
        "Show the person a notification.",
        NotifyShow,
        None,
        _notify,
        # It leaves the terminal, and looks as if the person's own machine had said it.
        guard=Guard.REMOTE,
        deed="show you a notification",
    ),
    EscapeCommand(
        "notify:close",
        "Take a notification away.",
        NotifyClose,
        None,
        lambda asked: osc(99, f"i={asked.id}:p=close", ""),
    ),
    EscapeCommand("progress:set", "Show how far something is.", SetProgress, None, _progress),
    _mark("shell:prompt", "A prompt begins here (OSC 133 A).", "A"),
    _mark("shell:command", "The prompt ends; the command is typed here (OSC 133 B).", "B"),
    _mark("shell:output", "The command runs; its output begins here (OSC 133 C).", "C"),
    EscapeCommand("shell:done", "The command has ended (OSC 133 D).", ShellDone, None, _done),
    EscapeCommand("var:set", "Set a variable of the terminal (iTerm2's).", VarSet, None, _variable),
    EscapeCommand(
        "image:show", "Show a picture at the cursor.", ImageShow, None, _image, streamed=True
    ),
    EscapeCommand("image:delete", "Take a picture away.", ImageDelete, None, _forget),
    EscapeCommand(
        "file:download",
        "Give the person a file: its bytes are the parts of the request.",
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
        "Ask the person for a file: its bytes are the parts of the answer, after the first.",
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
    """What it says, if it says it in exactly these bytes: they are written again from it."""
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
    """What has options (`A;cl=m`) is left alone: no command has them."""
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
