"""What adapters and plugins raise, and its mapping to errors of terminal automation.

A `PluginProblem` names the plugin, the function and the problem, and is never a traceback. What a
session raises is mapped by `automation.errors`; what reading a plugin raises is defined where it is
read (`manifest`, `lua_plugin`, `plugin_registry`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from telex.adapters.lua_plugin import PluginRefused
from telex.adapters.manifest import BadManifest
from telex.adapters.plugin_registry import BuiltinStays, NameTaken, UnknownPlugin
from telex.automation import errors
from telex.automation import protocol as spec
from telex.automation.errors import UnknownSession
from telex.rpc.errors import Condition, RpcError
from telex.terminal.redact import redact_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.adapters.protocol import Permission
    from telex.redaction import Redactor


Kind = Literal[
    "threw",  # an error of its own
    "refused",  # it said no, by `telex.refuse`
    "shape",  # an answer that cannot be told, or is not what was asked for
    "budget",  # more instructions than a call may take
    "memory",
    "deadline",  # more time than a call may take
    "died",  # its process ended under it
    "load",  # a source that does not compile, or an entrypoint that answers no table
    "resting",  # ended too often of late to be started again at once
    "no_function",
    "closed",
]


class PluginProblem(Exception):
    """A call of a plugin's function brought no answer. `str` is the whole sentence."""

    def __init__(
        self, plugin: str, function: str, kind: Kind, problem: str, code: str | None = None
    ) -> None:
        # The name between marks: `password: …` would be taken for a secret by whoever redacts it.
        named = f"{plugin}: `{function}`" if function else plugin
        super().__init__(f"{named}: {problem}")
        self.plugin = plugin
        self.function = function
        """Empty where it is not about one, as when the sources do not compile."""
        self.kind: Kind = kind
        self.problem = problem
        self.code = code
        """What `telex.refuse` was given; of no other kind."""

    @property
    def asked_wrongly(self) -> bool:
        """Whether the plugin is fine and the caller asked for what it does not do."""
        return self.kind in {"refused", "no_function"}

    def facts(self) -> dict[str, Any]:
        """The same, for those who read it by program."""
        told = {"plugin": self.plugin, "function": self.function, "kind": self.kind}
        told["problem"] = self.problem
        return told if self.code is None else {**told, "reason": self.code}


class AdapterClosed(Exception):
    """Somebody closed the adapter meanwhile, or its session."""


class UnknownFunction(Exception):
    """The plugin has no such intent, or no such wait matcher."""


class UnknownAdapter(LookupError):
    """There is no adapter of that id, or no longer."""


class TooManyAdapters(Exception):
    """The server holds as many as it may."""


class NoProgram(ValueError):
    """Neither the caller nor the manifest says what to start."""


class NotAnAdapter(ValueError):
    """A plugin that knows no program: it is there for its predicates."""


class PermissionMissing(Exception):
    """The manifest of a plugin does not have a permission that is needed."""

    def __init__(self, plugin: str, method: str, permission: Permission, what: str = "") -> None:
        super().__init__(
            f"{what or method} needs the permission {permission}, which the manifest of {plugin} "
            "lacks"
        )
        self.method, self.permission = method, permission


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


def to_rpc_error(error: Exception, asked: Any, redactor: Redactor) -> Exception:
    """The error to send. What a plugin says may quote the screen, and so all of it is redacted."""
    answer = _to_rpc_error(error, asked, redactor)
    if not isinstance(answer, RpcError):
        return answer
    problem = answer.problem
    return RpcError(
        problem.code, redactor.redact(problem.message), redact_values(problem.data, redactor)
    )


def _to_rpc_error(error: Exception, asked: Any, redactor: Redactor) -> Exception:
    match error:
        case PluginProblem():
            return RpcError(_code(error), str(error), error.facts())
        case PermissionMissing():
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


maps_errors = errors.error_mapper(to_rpc_error)
"""A handler whose adapters' exceptions become errors of the protocol."""
