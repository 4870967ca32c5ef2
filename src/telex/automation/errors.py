"""The exceptions of automation, and how they map to the errors of the wire, both ways.

The server raises errors of the protocol: `maps_errors` wraps its handlers, and `to_rpc_error` knows
the code and the data for each exception of a session. The client raises exceptions with a name for
what the protocol has a number for (`to_session_problem`):

    SessionProblem           a session said no
    ├── TimedOut             nothing matched in time; it shows the screen and the nearest miss
    ├── SessionClosed        the program ended, or the session was closed
    ├── NotPermitted         somebody else has the lease, or a manifest does not allow it
    ├── Cancelled            the wait was cancelled
    ├── NotStarted           the program could not be started
    ├── ServerGone           the server ended, or the connection to it
    ├── RecordingLost        the disk is full, or the file was removed; what came before is in it
    ├── PluginFailed         a plugin threw, looped, or answered what cannot be used
    └── Refused              what was asked makes no sense: a bad key, pattern, size, id
"""

from __future__ import annotations

import errno
import functools
import inspect
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from telex.automation import protocol as spec
from telex.automation.session_reader import child_state, wait_failure_data
from telex.processes import spawn
from telex.redaction import RuleRefused
from telex.rpc.errors import Condition, RpcError
from telex.terminal.actions import InputNotRead, NoMouse, ProgramEnded
from telex.terminal.keys import UnknownKey
from telex.terminal.pty import InputQueueFull, PtyClosed
from telex.terminal.raw_transcript import FileFailed, RawTranscriptRefused
from telex.terminal.redact import redact_values
from telex.terminal.waits.compiler import MatcherRefused
from telex.terminal.waits.engine import ProgramGone, WaitCancelled, WaitFailed
from telex.terminal.waits.evidence import PredicateFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.redaction import Redactor

    Handler = Callable[..., Any]

F = TypeVar("F", bound="Handler")


class SessionProblem(Exception):
    """A session said no. `data` has what it knows, as in the protocol."""

    def __init__(self, sentence: str, data: dict[str, Any]) -> None:
        super().__init__(sentence)
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        """For whoever sends it to another process, as test runners do."""
        return type(self), (self.args[0], self.data)


class TimedOut(SessionProblem, TimeoutError):
    """Nothing matched in time."""

    def __str__(self) -> str:
        return _with_screen(super().__str__(), self.data)


class SessionClosed(SessionProblem):
    """The program ended, or the session was closed."""

    def __str__(self) -> str:
        return _with_screen(super().__str__(), self.data)


class NotPermitted(SessionProblem):
    """Somebody else has the lease, or the plugin's manifest does not allow it."""


class Cancelled(SessionProblem):
    """The wait was cancelled."""


class NotStarted(SessionProblem):
    """The program could not be started."""


class ServerGone(SessionProblem):
    """The server ended, or the connection to it."""


class RecordingLost(SessionProblem):
    """The file could not be written to its end; `data` has its path and the system's error."""


class PluginFailed(SessionProblem):
    """A plugin could not do what it was asked; `data` names the function and the kind."""


class Refused(SessionProblem, ValueError):
    """What was asked makes no sense."""


_KINDS: dict[object, type[SessionProblem]] = {
    spec.TIMED_OUT: TimedOut,
    spec.SESSION_CLOSED: SessionClosed,
    spec.PERMISSION_DENIED: NotPermitted,
    spec.CANCELLED: Cancelled,
    spec.CODES[Condition.PARAMS]: Refused,
}


def to_session_problem(error: RpcError) -> Exception:
    """The exception for what the protocol has a number for."""
    problem = error.problem
    code = problem.code
    if isinstance(code, Condition):  # raised here; from a server it comes as its number
        code = spec.CODES[code]
    data: dict[str, Any] = {}
    if problem.data is not UNSET:  # as a server would have sent it, also if it was raised here
        data = msgspec.json.decode(msgspec.json.encode(problem.data))
    if "program" in data:
        return NotStarted(problem.message, data)
    if data.get("kind") == "server_ending":
        return ServerGone(problem.message, data)
    if data.get("kind") == "recording_failed":
        return RecordingLost(problem.message, data)
    kind = _KINDS.get(code, PluginFailed if "plugin" in data else None)
    return error if kind is None else kind(problem.message, data)


def _with_screen(sentence: str, data: dict[str, Any]) -> str:
    """For a person whose test failed: what was missing, what came nearest, what was there."""
    lines = [sentence]
    lines += _reasons(data.get("why", {}))
    if state := data.get("state"):
        lines.append(f"the state: {state['state']}: {state['evidence']}")
    if "screen_tail" in data:
        lines += ["the screen:", *(f"  | {row}" for row in data["screen_tail"].split("\n"))]
    return "\n".join(lines)


def _reasons(why: dict[str, Any], depth: int = 1) -> list[str]:
    if not why or why.get("matched"):
        return []
    lines = [f"{'  ' * depth}{why.get('kind')}: {why.get('why', '')}".rstrip(": ")]
    if nearest := why.get("nearest"):
        lines.append(f"{'  ' * (depth + 1)}{nearest.get('says', '')}: {nearest.get('line', '')!r}")
    for branch in why.get("branches", ()):
        lines += _reasons(branch, depth + 1)
    return lines


# The server's side: what a session raises, as errors of the protocol.


class SessionOwned(Exception):
    """A call that writes to a session which an adapter has for its own."""

    def __init__(self, session: str, adapter: str, method: str) -> None:
        super().__init__(
            f"{session} is the session of the adapter {adapter}, so {method} is refused; use "
            "adapter.send, adapter.turn or adapter.close"
        )
        self.session, self.adapter = session, adapter


class UnknownSession(Exception):
    """There is no session of that id, or no longer."""


class TooManySessions(Exception):
    """The server holds as many as it may."""


_PARAMS: Final = (
    UnknownSession,
    RuleRefused,
    MatcherRefused,
    UnknownKey,
    NoMouse,
    RawTranscriptRefused,
)
_ERRNO: Final = {
    spawn.NoSuchProgram: errno.ENOENT,
    spawn.NotExecutable: errno.EACCES,
    spawn.NoSuchDirectory: errno.ENOENT,
}


def error_mapper(convert: Callable[[Exception, Any, Redactor], Exception]) -> Callable[[F], F]:
    """A decorator for the handlers of a service: what they raise is sent as `convert` returns it,
    which is given the exception, the parameters of the call, and the service's redactor."""

    def decorate(handler: F) -> F:
        if inspect.iscoroutinefunction(handler):

            @functools.wraps(handler)
            async def later(*arguments: Any) -> Any:
                try:
                    return await handler(*arguments)
                except Exception as error:
                    raise convert(error, arguments[1], arguments[0].redactor) from error

            return later  # type: ignore[return-value]  # the same signature, by wraps

        @functools.wraps(handler)
        def at_once(*arguments: Any) -> Any:
            try:
                return handler(*arguments)
            except Exception as error:
                raise convert(error, arguments[1], arguments[0].redactor) from error

        return at_once  # type: ignore[return-value]  # the same signature, by wraps

    return decorate


def to_rpc_error(error: Exception, asked: Any, redactor: Redactor) -> Exception:
    """The error to send; what is not of these kinds is a mistake of ours and stays what it is."""
    match error:
        case spawn.StartFailed():
            return start_failed(error, asked.program)
        case WaitFailed():
            return wait_failed(error, wait_failure(error))
        case ProgramEnded():
            return RpcError(spec.SESSION_CLOSED, str(error), {"child": child_state(error.exit)})
        case WaitCancelled() | PtyClosed():
            return RpcError(spec.SESSION_CLOSED, str(error))
        case PredicateFailed():
            code = Condition.PARAMS if error.asked_wrongly else Condition.INTERNAL
            sentence = redactor.redact(str(error))
            return RpcError(code, sentence, redact_values(error.facts, redactor))
        case SessionOwned():
            return RpcError(Condition.PARAMS, str(error), {"adapter": error.adapter})
        case InputQueueFull() | InputNotRead() | TooManySessions():
            return RpcError(Condition.INTERNAL, str(error), {"kind": error_kind(error)})
        case FileFailed():
            data = {"kind": f"{error.kind}_failed", "errno": error.errno, "path": error.path}
            return RpcError(Condition.INTERNAL, redactor.redact(str(error)), data)
        case _ if isinstance(error, _PARAMS):
            return RpcError(Condition.PARAMS, str(error))
        case _:
            return error


maps_errors = error_mapper(to_rpc_error)
"""Decorates a handler: what a session raises in it becomes an error of the protocol."""


def wait_failed(error: WaitFailed, data: dict[str, Any]) -> RpcError:
    """The error for a wait that brought nothing."""
    code = spec.SESSION_CLOSED if isinstance(error, ProgramGone) else spec.TIMED_OUT
    return RpcError(code, str(error), data)


def wait_failure(error: WaitFailed) -> dict[str, Any]:
    """The data of that error: why the wait brought nothing."""
    data = wait_failure_data(error.moment, error.explanation, error.moment.exit)
    if not isinstance(error, ProgramGone):
        data["timeout_ms"] = round(error.timeout * 1000)
    return data


def start_failed(error: spawn.StartFailed, program: str) -> RpcError:
    """The error for a program that could not be started."""
    cause = error.__cause__
    number = cause.errno if isinstance(cause, OSError) else _ERRNO.get(type(error))
    data = {"kind": error_kind(error), "errno": number, "program": program}
    return RpcError(Condition.INTERNAL, str(error), data)


def error_kind(error: Exception) -> str:
    """An exception's name as the wire has words."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
