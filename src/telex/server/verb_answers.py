"""The answers and failures of verbs, and how they are printed: as text, fenced text or JSON.

The text of a program, which may say anything, is kept apart from our own words until it is printed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from telex.automation.errors import NotPermitted, SessionProblem, TimedOut, reasons
from telex.automation.screen_text import fenced, folded, one_line, printable, quoted
from telex.rpc.errors import RpcError
from telex.server.verb_sessions import NameInUse, NoSuchName


@dataclass(frozen=True, slots=True)
class VerbAnswer:
    """The answer of a verb: in words of ours, in text of the program, and as JSON."""

    line: str = ""
    screen: str = ""
    """Text of the program."""
    facts: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    """The title of the terminal, which is text of the program too."""
    note: str = ""
    """A sentence of ours about the screen, for the line above it."""


class VerbFailed(Exception):
    """A verb failed: the exit code, a sentence, the reasons in lines of ours, text of the program,
    and data for programs."""

    def __init__(
        self, code: int, sentence: str, screen: str = "", data: Any = None, reasons: str = ""
    ) -> None:
        super().__init__(sentence)
        self.code, self.screen, self.data, self.reasons = code, screen, data, reasons

    @property
    def told(self) -> str:
        """All our words: the sentence, and the reasons below it."""
        return "\n".join(part for part in (str(self), self.reasons) if part)


FAILURES = (NoSuchName, NameInUse, SessionProblem, RpcError, OSError, ValueError)
"""The exceptions that a caller can cause; any other is a bug of ours. A ValueError is the answer of
the Python API to a wrong argument, such as an empty text."""


def to_failure(error: Exception, more: str = "") -> VerbFailed:
    """Return the failure for one of `FAILURES`; `more` is added to the sentence."""
    match error:
        case SessionProblem():
            why = "\n".join(map(one_line, reasons(error.data)))
            screen = "\n".join(folded(error.data.get("screen_tail", "").split("\n")))
            sentence = f"{error.args[0]}{more}"
            return VerbFailed(_code(error), sentence, screen, error.data, why)
        case RpcError():
            return VerbFailed(1, error.problem.message)
        case OSError():
            what = error.strerror or str(error)
            return VerbFailed(1, f"{error.filename}: {what}" if error.filename else what)
        case NoSuchName() | NameInUse():
            return VerbFailed(1, str(error))
        case _:
            return VerbFailed(2, str(error))


def _code(error: SessionProblem) -> int:
    if isinstance(error, TimedOut):
        return 124
    # A session that belongs to an adapter is refused as a wrong parameter, with the adapter's id.
    return 4 if isinstance(error, NotPermitted) or "adapter" in error.data else 1


def to_text(line: str, screen: str, *, fence: bool, title: str = "", note: str = "") -> str:
    """Return the text to print: our words, then text of the program, between markers if asked."""
    if title and fence:
        screen = f"title: {title}\n{screen}".rstrip("\n")
    elif title:
        line = f"{line}  {quoted(title)}"
    if screen and fence:
        screen = fenced(screen)
    text = "\n".join(part for part in (line, note, screen) if part)
    return printable(text) + "\n" if text else ""


def to_json(facts: dict[str, Any]) -> str:
    """Return a line of JSON. A lone surrogate, which is Python's form of a byte that is not UTF-8,
    is written as an escape."""
    text = json.dumps(msgspec.to_builtins(facts), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace").decode() + "\n"


def plain_facts(facts: Any) -> Any:
    """Return facts as plain JSON, with lone surrogates as in `to_json`."""
    return _encodable(msgspec.to_builtins(facts))


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_encodable(key): _encodable(one) for key, one in value.items()}
        case list() | tuple():
            return [_encodable(one) for one in value]
    return value
