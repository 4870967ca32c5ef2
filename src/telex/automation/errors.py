"""The exceptions of the automation client, and the wire codes they stand for.

    SessionProblem           the server refused a request about a session
    ├── TimedOut             nothing matched in time; shows the screen and the nearest miss
    ├── SessionClosed        the program ended, or the session was closed
    ├── NotFound             a locator found nothing on the screen
    ├── Ambiguous            a locator found several things; lists them with their places
    ├── NotPermitted         another client holds the lease, or a manifest does not allow it
    ├── Cancelled            the wait was cancelled
    ├── NotStarted           the program could not be started
    ├── ServerGone           the server ended, or the connection to it
    ├── RecordingLost        the disk is full or the file was removed; earlier output is in it
    ├── PluginFailed         a plugin raised, looped, or returned something unusable
    └── Refused              a parameter is wrong: a bad key, pattern, size or id

`error_map` has the server's half: which code and data each of its own exceptions gets. It is a
file of its own because it imports the terminal, and a client of a server does not need that.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec
from msgspec import UNSET

from telex.automation import protocol as spec
from telex.rpc.errors import Condition, RpcError


class SessionProblem(Exception):
    """A request about a session failed. `data` is the structured data of the error."""

    __module__ = "telex"

    def __init__(self, sentence: str, data: dict[str, Any]) -> None:
        super().__init__(sentence)
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle: test runners send exceptions to another process."""
        return type(self), (self.args[0], self.data)


class TimedOut(SessionProblem, TimeoutError):
    """Nothing matched in time. `str()` shows what was waited for, the nearest miss, the screen."""

    __module__ = "telex"

    def __str__(self) -> str:
        return _with_screen(super().__str__(), self.data)


class SessionClosed(SessionProblem):
    """The program ended, or the session was closed."""

    __module__ = "telex"

    def __str__(self) -> str:
        return _with_screen(super().__str__(), self.data)


class NotFound(SessionProblem, LookupError):
    """A locator found nothing on the screen. `str()` shows the screen."""

    __module__ = "telex"

    def __str__(self) -> str:
        return _with_screen(super().__str__(), self.data)


class Ambiguous(SessionProblem, LookupError):
    """A locator found several things. `str()` lists them with their places, and the screen."""

    __module__ = "telex"

    def __str__(self) -> str:
        return _with_screen(super().__str__(), self.data)


class NotPermitted(SessionProblem):
    """Another client holds the lease, or the plugin's manifest does not allow the request."""

    __module__ = "telex"


class Cancelled(SessionProblem):
    """The wait was cancelled."""

    __module__ = "telex"


class NotStarted(SessionProblem):
    """The program could not be started."""

    __module__ = "telex"


class ServerGone(SessionProblem):
    """The server ended, or the connection to it was lost."""

    __module__ = "telex"


class RecordingLost(SessionProblem):
    """A recording could not be written to its end; `data` has its path and the system's error."""

    __module__ = "telex"


class PluginFailed(SessionProblem):
    """A plugin raised, looped or returned something unusable; `data` names the function."""

    __module__ = "telex"


class Refused(SessionProblem, ValueError):
    """A parameter is wrong, or there is no such session."""

    __module__ = "telex"


_KINDS: dict[object, type[SessionProblem]] = {
    spec.TIMED_OUT: TimedOut,
    spec.SESSION_CLOSED: SessionClosed,
    spec.PERMISSION_DENIED: NotPermitted,
    spec.CANCELLED: Cancelled,
    spec.CODES[Condition.PARAMS]: Refused,
}


def to_session_problem(error: RpcError) -> Exception:
    """Return the exception for a wire error; an unknown code stays an RpcError."""
    problem = error.problem
    code = problem.code
    if isinstance(code, Condition):  # raised in this process; a server sends the number
        code = spec.CODES[code]
    data: dict[str, Any] = {}
    if problem.data is not UNSET:  # decoded as from a server, also if raised here
        # Not by msgspec: a path that is not UTF-8 has lone surrogates, which it does not encode.
        data = json.loads(json.dumps(msgspec.to_builtins(problem.data, str_keys=True)))
    if "program" in data:
        return NotStarted(problem.message, data)
    if data.get("kind") == "server_ending":
        return ServerGone(problem.message, data)
    if data.get("kind") == "recording_failed":
        return RecordingLost(problem.message, data)
    kind = _KINDS.get(code, PluginFailed if "plugin" in data else None)
    return error if kind is None else kind(_WIRE_PATH.sub("", problem.message), data)


_WIRE_PATH: Final = re.compile(r" - at `\$[^`]*`")
"""The place in a message on the wire, which a caller of Python has not written."""


def _with_screen(sentence: str, data: dict[str, Any]) -> str:
    """Add what was missing, what came nearest, and the screen, for a person whose test failed."""
    lines = [sentence, *reasons(data)]
    if "screen_tail" in data:
        lines += ["the screen:", *(f"  | {row}" for row in data["screen_tail"].split("\n"))]
    return "\n".join(lines)


def reasons(data: dict[str, Any]) -> list[str]:
    """Return what was missing and what came nearest, from the data of an error, as lines."""
    lines = _reasons(data.get("why", {}))
    if state := data.get("state"):
        lines.append(f"the state: {state['state']}: {state['evidence']}")
    return lines


def _reasons(why: dict[str, Any], depth: int = 1) -> list[str]:
    if not why or why.get("matched"):
        return []
    kind = f"{why.get('kind')}: " if depth > 1 or "branches" in why else ""
    lines = [f"{'  ' * depth}{kind}{why.get('why', '')}".rstrip(": ")]
    if nearest := why.get("nearest"):
        shown = f": {nearest['line']!r}" if "line" in nearest else ""
        lines.append(f"{'  ' * (depth + 1)}nearest: {nearest.get('says', '')}{shown}")
    for branch in why.get("branches", ()):
        lines += _reasons(branch, depth + 1)
    return lines
