"""What a session raises, as the errors of terminal automation. The one place that knows both."""

from __future__ import annotations

import errno
import functools
import inspect
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from telex.processes import spawn
from telex.protocols import pty_automation as spec
from telex.redaction import RuleRefused
from telex.rpc.errors import Condition, RpcError
from telex.terminal.acting import InputNotRead, NoMouse, ProgramEnded
from telex.terminal.bindings import SessionOwned
from telex.terminal.evidence import NoAnswer
from telex.terminal.keys import UnknownKey
from telex.terminal.matchers import MatcherRefused
from telex.terminal.outbox import InputQueueFull
from telex.terminal.pty import PtyClosed
from telex.terminal.raw_transcript import FileFailed, RawTranscriptRefused
from telex.terminal.registry import TooManySessions, UnknownSession
from telex.terminal.telling import child_state, failure, redacted
from telex.terminal.waiting import ProgramGone, WaitCancelled, WaitFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.redaction import Redactor

    Handler = Callable[..., Any]

F = TypeVar("F", bound="Handler")

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


def answering(told: Callable[[Exception, Any, Redactor], Exception]) -> Callable[[F], F]:
    """Decorates the handlers of a service: what they raise is told as `told` says, given it, what
    was asked, and the service's redactor."""

    def answered(handler: F) -> F:
        if inspect.iscoroutinefunction(handler):

            @functools.wraps(handler)
            async def later(*arguments: Any) -> Any:
                try:
                    return await handler(*arguments)
                except Exception as error:
                    raise told(error, arguments[1], arguments[0].redactor) from error

            return later  # type: ignore[return-value]  # the same signature, by wraps

        @functools.wraps(handler)
        def at_once(*arguments: Any) -> Any:
            try:
                return handler(*arguments)
            except Exception as error:
                raise told(error, arguments[1], arguments[0].redactor) from error

        return at_once  # type: ignore[return-value]  # the same signature, by wraps

    return answered


def told(error: Exception, asked: Any, redactor: Redactor) -> Exception:
    """The error to send; what is not of these kinds is a mistake of ours and stays what it is."""
    match error:
        case spawn.StartFailed():
            return not_started(error, asked.program)
        case WaitFailed():
            return failed(error, failure_data(error))
        case ProgramEnded():
            return RpcError(spec.SESSION_CLOSED, str(error), {"child": child_state(error.exit)})
        case WaitCancelled() | PtyClosed():
            return RpcError(spec.SESSION_CLOSED, str(error))
        case NoAnswer():
            code = Condition.PARAMS if error.asked_wrongly else Condition.INTERNAL
            told = redactor.redact(str(error))
            return RpcError(code, told, redacted(error.facts, redactor))
        case SessionOwned():
            return RpcError(Condition.PARAMS, str(error), {"adapter": error.adapter})
        case InputQueueFull() | InputNotRead() | TooManySessions():
            return RpcError(Condition.INTERNAL, str(error), {"kind": kind(error)})
        case FileFailed():
            data = {"kind": f"{error.kind}_failed", "errno": error.errno, "path": error.path}
            return RpcError(Condition.INTERNAL, redactor.redact(str(error)), data)
        case _ if isinstance(error, _PARAMS):
            return RpcError(Condition.PARAMS, str(error))
        case _:
            return error


answered = answering(told)
"""A handler whose sessions' exceptions become errors of the protocol."""


def failed(error: WaitFailed, data: dict[str, Any]) -> RpcError:
    """The error for a wait that brought nothing."""
    code = spec.SESSION_CLOSED if isinstance(error, ProgramGone) else spec.TIMED_OUT
    return RpcError(code, str(error), data)


def failure_data(error: WaitFailed) -> dict[str, Any]:
    """Why it did not."""
    data = failure(error.moment, error.explanation, error.moment.exit)
    if not isinstance(error, ProgramGone):
        data["timeout_ms"] = round(error.timeout * 1000)
    return data


def not_started(error: spawn.StartFailed, program: str) -> RpcError:
    """The error for a program that could not be started."""
    cause = error.__cause__
    number = cause.errno if isinstance(cause, OSError) else _ERRNO.get(type(error))
    data = {"kind": kind(error), "errno": number, "program": program}
    return RpcError(Condition.INTERNAL, str(error), data)


def kind(error: Exception) -> str:
    """An exception's name as the wire has words."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
