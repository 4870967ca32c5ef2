"""Checks the arguments of the public API: a mistake is named before anything is sent.

    @checks_arguments
    class AsyncTerminal: ...

A name means the same in every method (`timeout`, `rows`, `redact`), so one table has what each
accepts. An unknown keyword is answered with the nearest one. The message never quotes text that may
be secret.
"""

from __future__ import annotations

import enum
import functools
import inspect
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, get_args

from telex.automation.portal import hides_frames
from telex.terminal import actions
from telex.terminal.input_state import WaitingState
from telex.terminal.waits import matchers

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")
__tracebackhide__ = hides_frames

MouseKind = Literal["click", "press", "release", "move", "scroll_up", "scroll_down"]
MouseButton = Literal["left", "middle", "right"]
Signal = Literal["term", "hup", "quit", "int", "kill", "user1", "user2"]


class Accepted(NamedTuple):
    """The values that an argument may have, in words and as checks."""

    words: str
    fits: Callable[[Any], bool]
    """Whether the type is right."""
    holds: Callable[[Any], bool] = lambda _: True
    """Whether the value is right, if the type is."""
    quoted: bool = True
    """Whether the message may quote the value."""
    wrong_item: Callable[[Any], tuple[str, str, object] | None] = lambda _: None
    """Returns the first wrong item of a value: its place, what it must be, and itself."""


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool | enum.Flag)


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_int(value)


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_command(value: object) -> bool:
    if isinstance(value, bytes | bytearray | memoryview):
        return False
    return isinstance(value, Sequence) and _wrong_word(value) is None


def _wrong_word(command: object) -> tuple[str, str, object] | None:
    if isinstance(command, list | tuple):
        for number, word in enumerate(command):
            if not _is_path(word) or not isinstance(os.fspath(word), str):
                return f"[{number}]", "a str or a path", word
    return None


def _is_environment(value: object) -> bool:
    return isinstance(value, Mapping) and _wrong_variable(value) is None


def _wrong_variable(env: object) -> tuple[str, str, object] | None:
    if isinstance(env, Mapping):
        for name, value in env.items():
            if not isinstance(name, str):
                return ", each name in it,", "a str", name
            if not isinstance(value, str | None):
                return f"[{name!r}]", "a str, or None to remove it", value
    return None


def _is_region(value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == 4 and all(map(_is_int, value))


def _text(words: str = "a str") -> Accepted:
    return Accepted(words, lambda value: isinstance(value, str), quoted=False)


def _whole(low: int, high: int) -> Accepted:
    words = f"a whole number from {low} to {high}"
    return Accepted(words, _is_int, lambda value: low <= value <= high)


def _one_of(kind: Any) -> Accepted:
    names = get_args(kind)
    words = ", ".join(map(repr, names[:-1])) + f" or {names[-1]!r}"
    return Accepted(words, lambda value: isinstance(value, type(names[0])), names.__contains__)


_FLAG: Final = Accepted("True or False", lambda value: isinstance(value, bool))
_PATH: Final = Accepted("a str or a path", _is_path)
_SIZE: Final = _whole(1, 1000)
_PIXELS: Final = _whole(0, 65_535)
_CELL: Final = _whole(0, 999)
_COLOUR: Final = Accepted(
    "a name, a number from 0 to 255 or '#rrggbb'",
    lambda value: isinstance(value, str) or _is_int(value),
    lambda value: isinstance(value, str) or 0 <= value <= 255,
)
_SECONDS: Final = Accepted(
    "a number of seconds, 0 or more",
    _is_number,
    lambda value: not math.isnan(value) and value >= 0,
)
_ANY: Final = Accepted("anything", lambda _: True)
"""Checked where it is used."""

_ACCEPTED: Final[dict[str, Accepted]] = {
    **dict.fromkeys(("text", "id", "address", "token", "at"), _text()),
    "value": _text("a str that is not empty")._replace(holds=bool),
    "pattern": _text(
        "a str that is not empty; a compiled pattern can be given to wait and find as it is"
    )._replace(holds=bool),
    "keys": _text("names of keys, each a str of its own, as in press('down', 'enter')"),
    **dict.fromkeys(("bracketed", "shift", "alt", "ctrl", "strip", "input"), _FLAG),
    **dict.fromkeys(("bold", "dim", "italic", "underline", "inverse", "redact"), _FLAG),
    **dict.fromkeys(("raw_transcript_append", "escapes", "pages"), _FLAG),
    **dict.fromkeys(("cwd", "path", "raw_transcript_path", "plugin"), _PATH),
    **dict.fromkeys(("rows", "cols"), _SIZE),
    **dict.fromkeys(("pixel_width", "pixel_height"), _PIXELS),
    **dict.fromkeys(("row", "col"), _CELL),
    "find.row": _whole(-1000, 999),
    **dict.fromkeys(("fg", "bg"), _COLOUR),
    **dict.fromkeys(("timeout", "seconds", "ready"), _SECONDS),
    "milliseconds": _whole(0, 86_400_000),
    "event": _one_of(MouseKind),
    "button": _one_of(MouseButton),
    "count": _whole(1, 100),
    "signal.name": _one_of(Signal),
    "cells": _one_of(Literal["full", "runs", "none"]),
    "kinds": _one_of(WaitingState),
    "theme": _one_of(Literal["dark", "light"]),
    "format": _one_of(Literal[2, 3]),
    "code": Accepted("a whole number", _is_int),
    "credit": _whole(1, 16_777_216),
    "transcript_max_chars": _whole(1, 64 * 1024 * 1024),
    "since": Accepted(
        "a mark that type, press or another input returned, or the sequence of a snapshot",
        lambda value: isinstance(value, str) or _is_int(value),
        lambda value: isinstance(value, str) or value >= 0,
    ),
    "inputs.since": Accepted(
        "the number of an input, a whole number from 0", _is_int, lambda value: value >= 0
    ),
    "limit": _whole(1, 1024),
    "find.what": Accepted(
        "a str, a compiled pattern of str or telex.match.regex(...)",
        lambda value: (
            isinstance(value, str | matchers.Matcher)
            or (isinstance(value, re.Pattern) and isinstance(value.pattern, str))
        ),
        quoted=False,
    ),
    "command": Accepted(
        "a str, or a list of str and paths with the program first",
        _is_command,
        quoted=False,
        wrong_item=_wrong_word,
    ),
    "env": Accepted(
        "a dict with str as names and str or None as values",
        _is_environment,
        quoted=False,
        wrong_item=_wrong_variable,
    ),
    "region": Accepted(
        "four whole numbers: top row, left column, height, width",
        _is_region,
    ),
    "data": Accepted("bytes", lambda value: isinstance(value, bytes | bytearray | memoryview)),
    "action": Accepted(
        "a value of telex.terminal.actions", lambda value: isinstance(value, actions.Action)
    ),
    **dict.fromkeys(("what", "below", "above", "right_of", "left_of"), _ANY),
    **dict.fromkeys(("intent", "matcher", "wait", "predicate", "lua.plugin"), _text()),
    **dict.fromkeys(
        ("params", "wait_params"), Accepted("a dict", lambda value: isinstance(value, Mapping))
    ),
}
"""The values for each argument, by its name, or by method and name where a method differs."""

_SYNONYMS: Final = {
    "width": "cols",
    "columns": "cols",
    "height": "rows",
    "lines": "rows",
    "color": "fg",
    "colour": "fg",
    "foreground": "fg",
    "background": "bg",
    "reverse": "inverse",
    "deadline": "timeout",
    "column": "col",
    "args": "command",
    "argv": "command",
    "size": "rows cols",
    "dimensions": "rows cols",
}
"""Words of other libraries."""


_ELSEWHERE: Final = {
    **dict.fromkeys(("send", "write", "send_text", "type_text"), "type('text')"),
    **dict.fromkeys(("sendline", "send_line", "writeline", "submit"), "type('text\\n')"),
    **dict.fromkeys(("send_keys", "send_key", "key", "keys", "sendcontrol"), "press('ctrl_c')"),
    **dict.fromkeys(("expect", "expect_exact", "wait_for", "wait_for_text"), "wait('text')"),
    **dict.fromkeys(("expect_list",), "wait(telex.match.any_of('a', 'b'))"),
    **dict.fromkeys(("get_by_text", "locator", "query"), "find('text')"),
    **dict.fromkeys(("before", "after", "read", "readline", "output"), "transcript()"),
    **dict.fromkeys(("screen", "display", "capture", "capture_pane"), "snapshot() or text()"),
    **dict.fromkeys(("setwinsize", "set_size"), "resize(rows=24, cols=80)"),
    **dict.fromkeys(("sendintr", "send_interrupt"), "interrupt()"),
    **dict.fromkeys(("sendeof", "send_eof"), "eof()"),
    **dict.fromkeys(("wait_for_exit", "exitstatus", "returncode"), "wait_exit()"),
    **dict.fromkeys(("terminate", "stop", "quit"), "close() or signal('term')"),
}
"""Methods of other libraries, and what to write here."""


def unknown_attribute(owner: object, name: str) -> AttributeError:
    """Return the error for a name that an object does not have: with the name it has here."""
    said = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if (here := _ELSEWHERE.get(name)) is not None:
        said = f"{said}; use {here}"
    return AttributeError(said, name=name, obj=owner)


def checks_arguments(checked: F) -> F:
    """Decorate a function, or a class for all its public methods."""
    if not isinstance(checked, type):
        return _checking(checked)  # type: ignore[return-value]  # the same signature, by wraps
    for name, method in [*vars(checked).items()]:
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(checked, name, _checking(method))
    return checked


def _checking(function: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(function).parameters
    plain = [one for one in parameters.values() if one.name != "self"]
    checks = {one.name: _check(function, one) for one in plain if one.kind != one.VAR_KEYWORD}
    offset = int("self" in parameters)
    in_order = [checks[one.name] for one in plain if one.kind <= one.POSITIONAL_OR_KEYWORD]
    rest = next((checks[one.name] for one in plain if one.kind == one.VAR_POSITIONAL), None)
    by_name = {
        one.name: checks[one.name]
        for one in plain
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }
    open_ended = any(one.kind == one.VAR_KEYWORD for one in plain)

    @functools.wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        __tracebackhide__ = True
        for check, value in zip(in_order, args[offset:], strict=False):
            check(value)
        further = args[offset + len(in_order) :]
        for value in further:
            if rest is None:
                raise TypeError(_too_many(function.__qualname__, value, len(in_order), [*by_name]))
            rest(value)
        for name, value in given.items():
            if (known := by_name.get(name)) is not None:
                known(value)
            elif not open_ended:
                raise TypeError(_unknown(function.__qualname__, name, [*by_name]))
        return function(*args, **given)

    if inspect.iscoroutinefunction(function) and sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(checked)  # for tools that ask, such as mocks
    return checked


def _check(function: Callable[..., Any], parameter: inspect.Parameter) -> Callable[[Any], None]:
    name = parameter.name
    accepted = _ACCEPTED.get(f"{function.__name__}.{name}") or _ACCEPTED[name]
    nullable = "None" in str(parameter.annotation)
    words = f"{accepted.words}, or None" if nullable else accepted.words

    def check(value: Any) -> None:
        __tracebackhide__ = True
        if value is None and nullable:
            return
        if not accepted.fits(value):
            place, wanted, wrong = accepted.wrong_item(value) or ("", words, value)
            given = f" {wrong!r:.60}" if accepted.quoted else ""
            kind = type(wrong).__name__
            hint = _FLAGS if isinstance(wrong, re.RegexFlag) else ""
            raise TypeError(f"{name}{place} must be {wanted}; given is the {kind}{given}{hint}")
        if not accepted.holds(value):
            raise ValueError(f"{name} must be {words}; given is {value!r:.60}")

    return check


_FLAGS: Final = "; for flags use (?i) in the pattern, or re.compile(pattern, flags)"


def _too_many(function: str, value: object, positional: int, known: list[str]) -> str:
    """Say how to give an argument that stands where there is none."""
    by_name = known[positional:]
    hint = f"; give by name: {', '.join(f'{one}=' for one in by_name)}" if by_name else ""
    if isinstance(value, re.RegexFlag):
        hint = _FLAGS
    elif "command" in known[:positional]:
        hint = "; give the program and its arguments as one list: ['cat', '-n']"
    taken = f"{positional or 'no'} argument{'s' * (positional != 1)}"
    return f"{function}() takes {taken} by position{hint}"


def _unknown(function: str, name: str, known: list[str]) -> str:
    from telex.rpc.unknown_members import nearest_member

    same = [one for one in _SYNONYMS.get(name, "").split() if one in known]
    near = same or nearest_member(name, known)[:1]
    hint = (
        f"did you mean {' and '.join(map(repr, near))}?"
        if near
        else f"there are {', '.join(known)}"
    )
    if not known:
        hint = "it has no arguments by name"
    return f"{function}() got an unexpected keyword argument {name!r}; {hint}"
