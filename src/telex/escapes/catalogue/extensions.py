"""What terminals have besides text: clipboard, notifications, progress, marks for shells, pictures,
files. Each system may be there or not; `detect` says which.

Nothing here runs anything, and no picture or file is ever named by its path: a program that can
only write to a terminal must not reach the files of whoever looks at it.
"""

from __future__ import annotations

import binascii
import re
from typing import Final

import msgspec

from telex.escapes.ansi import Lift, Made, NotLifted, encoded, numbers, osc, text
from telex.escapes.command import Command, Guard
from telex.protocols import json_escapes as spec

_SELECTIONS: Final = {"clipboard": "c", "primary": "p"}
_URGENCIES: Final = ("low", "normal", "critical")
_STATES: Final = ("none", "normal", "error", "indeterminate", "paused")
_FORMATS: Final = {"png": 100, "rgb": 24, "rgba": 32}
_PIECE: Final = 4096
"""Characters of base64 in one piece of a picture: the most that kitty's protocol allows."""


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _clip(asked: spec.ClipWrite) -> bytes:
    return osc(52, _SELECTIONS[asked.selection], _base64(encoded(asked.text)))


def _notify(asked: spec.NotifyShow) -> bytes:
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
    told = ":".join(details)
    return osc(99, f"{told}:d=0:p=title", asked.title) + osc(99, f"{told}:d=1:p=body", asked.body)


def _progress(asked: spec.Progress) -> bytes:
    return osc(9, "4", str(_STATES.index(asked.state)), str(asked.value))


def _done(asked: spec.ShellDone) -> bytes:
    return osc(133, "D") if asked.exitcode is None else osc(133, "D", str(asked.exitcode))


def _variable(asked: spec.VarSet) -> bytes:
    return osc(1337, f"SetUserVar={asked.name}={_base64(encoded(asked.value))}")


def _image(asked: spec.ImageShow) -> bytes:
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
        told = ";".join(["inline=1", f"size={len(asked.data64)}", *size])
        return osc(1337, f"File={told}:{data}")
    keys = {"s": asked.width, "v": asked.height, "c": asked.cols, "r": asked.rows, "i": asked.id}
    told = ",".join(f"{key}={value}" for key, value in keys.items() if value)
    head = f"a=T,f={_FORMATS[asked.format]},q=2" + (f",{told}" if told else "")
    pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]
    return b"".join(
        _apc(f"{head if n == 0 else 'q=2'},m={int(n + 1 < len(pieces))};{piece}")
        for n, piece in enumerate(pieces)
    )


def _apc(body: str) -> bytes:
    return b"\x1b_G" + text(body) + b"\x1b\\"


def _forget(asked: spec.ImageDelete) -> bytes:
    return _apc(f"a=d,q=2,d=I,i={asked.id}" if asked.id else "a=d,q=2,d=A")


def _mark(name: str, about: str, letter: str) -> Command:
    return Command(name, about, spec.Nothing, None, lambda _: osc(133, letter))


COMMANDS: Final = (
    Command(
        "clip:write",
        "Put a text on the clipboard.",
        spec.ClipWrite,
        None,
        _clip,
        # A program here can do this without asking anybody. One elsewhere could plant a line that
        # is pasted into a shell here, and the person would not have seen it come.
        guard=Guard.REMOTE,
        deed="put a text on your clipboard",
    ),
    Command(
        "clip:read",
        "Read the text on the clipboard.",
        spec.ClipRead,
        None,
        returns=spec.ClipText,
        guard=Guard.PERSON,
        deed="read your clipboard",
    ),
    Command(
        "clip:types",
        "Ask as what the clipboard can be read.",
        spec.ClipRead,
        None,
        returns=spec.ClipTypes,
        # It tells what the person copied, if not its words.
        guard=Guard.PERSON,
        deed="see what is on your clipboard",
    ),
    Command(
        "notify:show",
        "Show the person a notification.",
        spec.NotifyShow,
        None,
        _notify,
        # It leaves the terminal, and looks as if the person's own machine had said it.
        guard=Guard.REMOTE,
        deed="show you a notification",
    ),
    Command(
        "notify:close",
        "Take a notification away.",
        spec.NotifyClose,
        None,
        lambda asked: osc(99, f"i={asked.id}:p=close", ""),
    ),
    Command("progress:set", "Show how far something is.", spec.Progress, None, _progress),
    _mark("shell:prompt", "A prompt begins here (OSC 133 A).", "A"),
    _mark("shell:command", "The prompt ends; the command is typed here (OSC 133 B).", "B"),
    _mark("shell:output", "The command runs; its output begins here (OSC 133 C).", "C"),
    Command("shell:done", "The command has ended (OSC 133 D).", spec.ShellDone, None, _done),
    Command("var:set", "Set a variable of the terminal (iTerm2's).", spec.VarSet, None, _variable),
    Command(
        "image:show", "Show a picture at the cursor.", spec.ImageShow, None, _image, streamed=True
    ),
    Command("image:delete", "Take a picture away.", spec.ImageDelete, None, _forget),
    Command(
        "file:download",
        "Give the person a file: its bytes are the parts of the request.",
        spec.FileDownload,
        None,
        returns=spec.FileSaved,
        guard=Guard.PERSON,
        deed="save a file on your machine",
        each_time=True,
        streamed=True,
    ),
    Command(
        "file:upload",
        "Ask the person for a file: its bytes are the parts of the answer, after the first.",
        spec.FileUpload,
        None,
        returns=spec.FileSent,
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


def _lift_clip(rest: list[str]) -> Made:
    if (found := _CLIP.fullmatch(rest[0])) is None:
        raise NotLifted
    selection = "clipboard" if found[1] == "c" else "primary"
    return [("clip:write", {"selection": selection, "text": _text(found[2])})]


def _lift_notify(rest: list[str]) -> Made:
    if (found := _NOTIFY.fullmatch(rest[0])) is None:
        raise NotLifted
    return [("notify:show", {"title": found[1], "body": found[2]})]


def _lift_progress(rest: list[str]) -> Made:
    kind, *fields = rest[0].split(";")
    if kind != "4" or not fields:
        raise NotLifted
    state, value = numbers(fields, 0, 0)
    if state >= len(_STATES):
        raise NotLifted
    return [("progress:set", {"state": _STATES[state], "value": value})]


def _lift_mark(rest: list[str]) -> Made:
    """What has options (`A;cl=m`) is left alone: no command has them."""
    match rest[0].split(";"):
        case ["A" | "B" | "C" as letter]:
            return [({"A": "shell:prompt", "B": "shell:command", "C": "shell:output"}[letter], {})]
        case ["D"]:
            return [("shell:done", {})]
        case ["D", code] if re.fullmatch(r"-?(?:0|[1-9][0-9]{0,2})", code):
            return [("shell:done", {"exitcode": int(code)})]
    raise NotLifted


def _lift_variable(rest: list[str]) -> Made:
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
