"""What adapters and plugins raise, as the errors of terminal automation.

What a plugin did wrong names the plugin, the function and the problem, and is never a traceback.
What is a session's, `automation.errors` knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from telex.adapters.adapter import AdapterClosed, UnknownFunction
from telex.adapters.live import NoProgram, NotAnAdapter, TooManyAdapters, UnknownAdapter
from telex.adapters.lua.problems import PluginProblem
from telex.adapters.manifest import BadManifest
from telex.adapters.permissions import NotPermitted
from telex.adapters.registry import BuiltinStays, NameTaken, UnknownPlugin
from telex.adapters.sources import PluginRefused
from telex.automation import errors
from telex.automation import protocol as spec
from telex.automation.errors import UnknownSession
from telex.rpc.errors import Condition, RpcError
from telex.terminal.redact import redact_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.redaction import Redactor

_PARAMS: Final = (
    UnknownAdapter,
    UnknownPlugin,
    UnknownFunction,
    NameTaken,
    BuiltinStays,
    NoProgram,
    NotAnAdapter,
    PluginRefused,
)


class NotGranted(Exception):
    """A server that was started without leave to load plugins."""

    def __init__(self, method: str) -> None:
        super().__init__(f"{method} is not allowed here; start the server with --allow-plugin-load")
        self.method = method


class StillInUse(Exception):
    """A plugin that adapters are bound to."""

    def __init__(self, plugin: str, adapters: Sequence[str]) -> None:
        super().__init__(f"{plugin} is in use by {', '.join(adapters)}; close them first")
        self.adapters = adapters


def told(error: Exception, asked: Any, redactor: Redactor) -> Exception:
    """The error to send. What a plugin says may quote the screen, and so all of it is redacted."""
    answer = _told(error, asked, redactor)
    if not isinstance(answer, RpcError):
        return answer
    problem = answer.problem
    return RpcError(
        problem.code, redactor.redact(problem.message), redact_values(problem.data, redactor)
    )


def _told(error: Exception, asked: Any, redactor: Redactor) -> Exception:
    match error:
        case PluginProblem():
            return RpcError(_code(error), str(error), error.facts())
        case NotPermitted():
            data = {"method": error.method, "required_permission": error.permission}
            return RpcError(spec.PERMISSION_DENIED, str(error), data)
        case NotGranted():
            reason = "server_did_not_grant_plugin_load"
            data = {"method": error.method, "reason": reason}
            return RpcError(spec.PERMISSION_DENIED, str(error), data)
        case AdapterClosed():
            return RpcError(spec.SESSION_CLOSED, str(error))
        case UnknownSession() if hasattr(asked, "adapter"):  # it was there when this began
            return RpcError(spec.SESSION_CLOSED, f"the adapter {asked.adapter} was closed")
        case StillInUse():
            facts = {"reason": "still_in_use", "adapters": list(error.adapters)}
            return RpcError(Condition.PARAMS, str(error), facts)
        case BadManifest():
            named = [{"field": one.field, "problem": one.problem} for one in error.problems]
            return RpcError(
                Condition.PARAMS, str(error), {"reason": "bad_manifest", "problems": named}
            )
        case TooManyAdapters():
            return RpcError(Condition.INTERNAL, str(error), {"kind": errors.error_kind(error)})
        case _ if isinstance(error, _PARAMS):
            return RpcError(Condition.PARAMS, str(error), {"reason": errors.error_kind(error)})
        case _:
            return errors.to_rpc_error(error, asked, redactor)


def _code(problem: PluginProblem) -> Condition | int:
    if problem.kind == "closed":  # while it was asked: its adapter is gone
        return spec.SESSION_CLOSED
    return Condition.PARAMS if problem.asked_wrongly else Condition.INTERNAL


answered = errors.error_mapper(told)
"""A handler whose adapters' exceptions become errors of the protocol."""
