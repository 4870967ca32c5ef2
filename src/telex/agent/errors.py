"""The exceptions of the agent, and how they map to the errors of the wire (spec §9), both ways.

The server raises errors of the protocol: `to_rpc_error` is the only place that maps an exception
of the runtime to a code. The client raises an exception named for each code (`to_agent_error`):

    AgentError                 the runtime refused or failed a request
    ├── InvalidRequest         -32600 not a request, or not allowed now
    ├── MethodNotFound         -32601 this runtime does not have the method
    ├── InvalidParams          -32602 the parameters make no sense: a path, a tool, a model
    ├── RuntimeFailed          -32000 the runtime failed inside
    ├── RuntimeBusy            -32001 the session has a run, or another runtime owns it
    ├── RunNotFound            -32002 no run has that id
    ├── UserCancelled          -32003 the person said no to a tool call
    ├── SessionNotFound        -32004 no session has that id
    ├── SessionLoadFailed      -32005 the session is stored and cannot be read
    ├── SessionListFailed      -32006 the sessions cannot be listed
    ├── UnsupportedVersion     no code: the runtime speaks another version of the protocol
    └── ConnectionLost         no code: the runtime ended, or the connection to it

The client uses this module, so importing it loads nothing of the runtime.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from telex.agent import protocol
from telex.rpc.errors import Condition, RpcError

if TYPE_CHECKING:
    from telex.rpc.errors import Code


class AgentError(Exception):
    """The runtime refused or failed a request.

    Attributes:
        code: The number of the error on the wire; None for a lost connection.
        data: Data that the runtime sent with the message; usually None.
    """

    __module__ = "telex.agent"

    code: int | None = None

    def __init__(self, message: str, data: Any = None, code: int | None = None) -> None:
        super().__init__(message)
        self.data = data
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep `data` and `code` when the exception is sent to another process."""
        return type(self), (self.args[0], self.data, self.code)


class InvalidRequest(AgentError):
    """The runtime does not take this request now, or does not take it as a request at all."""

    __module__ = "telex.agent"

    code = protocol.CODES[Condition.REQUEST]


class MethodNotFound(AgentError):
    """This runtime does not have the method. `data["nearest"]` names similar ones, if any."""

    __module__ = "telex.agent"

    code = protocol.CODES[Condition.METHOD]


class InvalidParams(AgentError, ValueError):
    """The parameters make no sense to the runtime: an unknown tool or model, a path outside."""

    __module__ = "telex.agent"

    code = protocol.CODES[Condition.PARAMS]


class RuntimeFailed(AgentError):
    """The runtime failed inside; its log has the details."""

    __module__ = "telex.agent"

    code = protocol.INTERNAL


class RuntimeBusy(AgentError):
    """The session has a run already, too many runs are active, or another runtime owns the run."""

    __module__ = "telex.agent"

    code = protocol.BUSY


class RunNotFound(AgentError, LookupError):
    """No run has that id."""

    __module__ = "telex.agent"

    code = protocol.RUN_NOT_FOUND


class UserCancelled(AgentError):
    """The person said no to a tool call."""

    __module__ = "telex.agent"

    code = protocol.USER_CANCELLED


class SessionNotFound(AgentError, LookupError):
    """No session has that id."""

    __module__ = "telex.agent"

    code = protocol.SESSION_NOT_FOUND


class SessionLoadFailed(AgentError):
    """The session is stored and cannot be read."""

    __module__ = "telex.agent"

    code = protocol.SESSION_LOAD_FAILED


class SessionListFailed(AgentError):
    """The sessions cannot be listed."""

    __module__ = "telex.agent"

    code = protocol.SESSION_LIST_FAILED


class UnsupportedVersion(AgentError):
    """The runtime answered `initialize` with a version of the protocol that this client lacks."""

    __module__ = "telex.agent"


class ConnectionLost(AgentError):
    """The runtime ended, or the connection to it.

    A request that was open at that moment may have been carried out. With `reconnect`, requests
    that only read are repeated instead, and runs continue after their last event.
    """

    __module__ = "telex.agent"


ERRORS: Final[dict[int, type[AgentError]]] = {
    kind.code: kind for kind in AgentError.__subclasses__() if kind.code is not None
}
"""The exception for each code of the wire."""
ERRORS[protocol.CODES[Condition.PARSE]] = InvalidRequest


def to_agent_error(error: RpcError) -> AgentError:
    """Return the exception that is named for the code of an error that the runtime sent."""
    problem = error.problem
    code, data = _number(problem.code), None
    if problem.data is not UNSET:
        data = msgspec.json.decode(msgspec.json.encode(problem.data))
    if isinstance(data, dict) and data.get("kind") == "server_ending":
        return ConnectionLost(problem.message, data)
    return ERRORS.get(code, AgentError)(problem.message, data, code)


def _number(code: Code | Condition) -> int:
    """The number of a code. A condition is one that this side raised and did not send."""
    if isinstance(code, Condition):
        return protocol.CODES.get(code, protocol.INTERNAL)
    return code if isinstance(code, int) else protocol.INTERNAL


# The server's side: exceptions of the runtime as errors of the protocol.


class TooManyRuns(Exception):
    """The runtime has `AGENT_RUNS` active runs already."""


class NoSuchModel(Exception):
    """No core has that name, or the provider is unknown."""


class WorkspaceRefused(Exception):
    """A connection asked for a workspace that it may not have, or for one that does not exist."""


class OtherRoot(Exception):
    """The session belongs to another root than the connection."""


class SeqBeyondEnd(Exception):
    """`after_seq` is beyond the run's last event: the UI has events of another run or store."""


@cache
def _wire_codes() -> tuple[tuple[int | Condition, tuple[type[Exception], ...]], ...]:
    """The code of each exception. A function, so that a client does not import the runtime."""
    from telex.agent import store
    from telex.agent.command_runner import BadShellParams
    from telex.agent.images import ImageRefused
    from telex.agent.permissions import InvalidRule
    from telex.agent.sandbox_files import FileRefused, OutsideSandbox
    from telex.agent.slash_commands import UnknownCommand
    from telex.agent.tools.output_cache import NoSuchOutput
    from telex.agent.tools.tool import ToolFailed
    from telex.agent.tools.tool_registry import BadArguments, UnknownTool
    from telex.agent.undo import CannotUndo
    from telex.config.errors import ConfigError
    from telex.processes.spawn import StartFailed
    from telex.processes.termination import TreeSurvived

    params = (UnknownTool, BadArguments, BadShellParams, OutsideSandbox, NoSuchModel)
    return (
        (protocol.SESSION_NOT_FOUND, (store.UnknownThread,)),
        (protocol.RUN_NOT_FOUND, (store.UnknownRun,)),
        (protocol.BUSY, (store.ThreadBusy, TooManyRuns, store.RunNotOurs)),
        (Condition.PARAMS, (*params, WorkspaceRefused, OtherRoot)),
        (Condition.PARAMS, (FileRefused, ToolFailed, UnknownCommand)),
        (Condition.PARAMS, (NoSuchOutput, CannotUndo, ImageRefused)),
        (Condition.PARAMS, (store.NotStorable, SeqBeyondEnd, msgspec.DecodeError)),
        (protocol.INTERNAL, (store.StoreError, InvalidRule, ConfigError)),
        (protocol.INTERNAL, (StartFailed, TreeSurvived, OSError)),
    )


def to_rpc_error(error: Exception) -> Exception:
    """Return the `RpcError` for an exception. An unexpected exception is returned unchanged; the
    RPC layer logs it and answers with an internal error."""
    if isinstance(error, RpcError):
        return error
    for code, kinds in _wire_codes():
        if isinstance(error, kinds):
            text = f"{code.value} {error}" if isinstance(code, Condition) else str(error)
            return RpcError(code, text)
    return error
