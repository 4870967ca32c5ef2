"""How the exceptions of a session become errors of the automation protocol, on the server.

`maps_errors` wraps the handlers; `to_rpc_error` knows the code and the data for each exception.
The client's half is `errors`.
"""

from __future__ import annotations

import errno
import functools
import inspect
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

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


class SessionOwned(Exception):
    """A request that writes to a session which belongs to an adapter."""

    def __init__(self, session: str, adapter: str, method: str) -> None:
        super().__init__(
            f"{session} is the session of the adapter {adapter}, so {method} is refused; use "
            "adapter.send, adapter.turn or adapter.close"
        )
        self.session, self.adapter = session, adapter


class UnknownSession(Exception):
    """No session has that id."""


class TooManySessions(Exception):
    """The server has reached its limit of sessions."""


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
    """Return a decorator for handlers: it converts the exceptions they raise.

    Args:
        convert: Gets the exception, the parameters of the call and the service's redactor, and
            returns the exception to raise.
    """

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
    """Return the error to send, masked. An unknown exception is a bug of ours, and returned as it
    is."""
    answer = _rpc_error(error, asked, redactor)
    if isinstance(answer, RpcError):
        problem = answer.problem
        return RpcError(problem.code, redactor.redact(problem.message), problem.data)
    return answer


def _rpc_error(error: Exception, asked: Any, redactor: Redactor) -> Exception:
    match error:
        case spawn.StartFailed():
            return start_failed(error, asked.program)
        case WaitFailed():
            return wait_failed(error, wait_failure(error), str(error))
        case ProgramEnded():
            return RpcError(spec.SESSION_CLOSED, str(error), {"child": child_state(error.exit)})
        case WaitCancelled() | PtyClosed():
            return RpcError(spec.SESSION_CLOSED, str(error))
        case PredicateFailed():
            code = Condition.PARAMS if error.asked_wrongly else Condition.INTERNAL
            return RpcError(code, str(error), redact_values(error.facts, redactor))
        case SessionOwned():
            return RpcError(Condition.PARAMS, str(error), {"adapter": error.adapter})
        case InputQueueFull() | InputNotRead() | TooManySessions():
            return RpcError(Condition.INTERNAL, str(error), {"kind": error_kind(error)})
        case FileFailed():
            data = {"kind": f"{error.kind}_failed", "errno": error.errno, "path": error.path}
            return RpcError(Condition.INTERNAL, str(error), data)
        case _ if isinstance(error, _PARAMS):
            return RpcError(Condition.PARAMS, str(error))
        case _:
            return error


maps_errors = error_mapper(to_rpc_error)
"""Decorates a handler: exceptions of a session become errors of the protocol."""


def wait_failed(error: WaitFailed, data: dict[str, Any], sentence: str) -> RpcError:
    """Return the error for a wait that did not match."""
    code = spec.SESSION_CLOSED if isinstance(error, ProgramGone) else spec.TIMED_OUT
    return RpcError(code, sentence, data)


def wait_failure(error: WaitFailed) -> dict[str, Any]:
    """Return the data of that error: why the wait did not match."""
    data = wait_failure_data(error.moment, error.explanation, error.moment.exit)
    if not isinstance(error, ProgramGone):
        data["timeout_ms"] = round(error.timeout * 1000)
    return data


def start_failed(error: spawn.StartFailed, program: str) -> RpcError:
    """Return the error for a program that could not be started."""
    cause = error.__cause__
    number = cause.errno if isinstance(cause, OSError) else _ERRNO.get(type(error))
    data = {"kind": error_kind(error), "errno": number, "program": program}
    return RpcError(Condition.INTERNAL, str(error), data)


def error_kind(error: Exception) -> str:
    """Return the class name of an exception in snake case, for `kind` in the data."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
