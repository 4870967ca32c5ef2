"""The exceptions of adapters, and their mapping to errors of the automation protocol.

A `PluginProblem` names the plugin, the function and the problem, and is never a traceback.
`automation.errors` maps the exceptions of sessions. Exceptions of reading a plugin are defined in
`manifest`, `lua_plugin` and `plugin_registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from telex.adapters.lua_plugin import PluginRefused
from telex.adapters.manifest import BadManifest
from telex.adapters.plugin_registry import BuiltinStays, NameTaken, UnknownPlugin
from telex.automation import error_map
from telex.automation import protocol as spec
from telex.automation.error_map import UnknownSession
from telex.rpc.errors import Condition, RpcError
from telex.terminal.redact import redact_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.adapters.protocol import Permission
    from telex.redaction import Redactor


Kind = Literal[
    "threw",  # the function raised an error
    "refused",  # the function called `telex.refuse`
    "shape",  # the result is no JSON, or not of the expected type
    "budget",  # more instructions than a call may take
    "memory",
    "deadline",  # more time than a call may take
    "died",  # the worker process exited
    "load",  # a source does not compile, or the entrypoint returns no table
    "resting",  # too many failures in a row; a later call starts a worker again
    "no_function",
    "closed",
]


class PluginProblem(Exception):
    """A call of a plugin's function failed. `str` is the whole message."""

    def __init__(
        self, plugin: str, function: str, kind: Kind, problem: str, code: str | None = None
    ) -> None:
        # The name is in backticks: the redactor would take `password: …` for a secret.
        named = f"{plugin}: `{function}`" if function else plugin
        super().__init__(f"{named}: {problem}")
        self.plugin = plugin
        self.function = function
        """Empty if the problem is of no function, as when the sources do not compile."""
        self.kind: Kind = kind
        self.problem = problem
        self.code = code
        """The first argument of `telex.refuse`; None for every other kind."""

    @property
    def is_callers_error(self) -> bool:
        """Whether the request was wrong, and not the plugin."""
        return self.kind in {"refused", "no_function"}

    def facts(self) -> dict[str, Any]:
        """Return the members as JSON values, for programs."""
        facts = {"plugin": self.plugin, "function": self.function, "kind": self.kind}
        facts["problem"] = self.problem
        return facts if self.code is None else {**facts, "reason": self.code}


class AdapterClosed(Exception):
    """The adapter or its session was closed during the request."""


class UnknownFunction(Exception):
    """The plugin has no such intent, or no such wait matcher."""


class UnknownAdapter(LookupError):
    """There is no open adapter with this id."""


class TooManyAdapters(Exception):
    """The server has the maximum number of adapters."""


class NoProgram(ValueError):
    """Neither the caller nor the manifest names a program to start."""


class NotAnAdapter(ValueError):
    """The plugin is not of kind `adapter` and cannot be bound to a session."""


class PermissionMissing(Exception):
    """The manifest of a plugin does not have a permission that a method needs."""

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
    """The server was started without `--allow-plugin-load`."""

    def __init__(self, method: str) -> None:
        super().__init__(f"{method} is not allowed here; start the server with --allow-plugin-load")
        self.method = method


class StillInUse(Exception):
    """The plugin cannot be unloaded, because adapters are bound to it."""

    def __init__(self, plugin: str, adapters: Sequence[str]) -> None:
        super().__init__(f"{plugin} is in use by {', '.join(adapters)}; close them first")
        self.adapters = adapters


def to_rpc_error(error: Exception, params: Any, redactor: Redactor) -> Exception:
    """Return the error to send. All of it is redacted, because a plugin may quote the screen."""
    mapped = _to_rpc_error(error, params, redactor)
    if not isinstance(mapped, RpcError):
        return mapped
    problem = mapped.problem
    return RpcError(
        problem.code, redactor.redact(problem.message), redact_values(problem.data, redactor)
    )


def _to_rpc_error(error: Exception, params: Any, redactor: Redactor) -> Exception:
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
        case UnknownSession() if hasattr(params, "adapter"):  # closed during the request
            return RpcError(spec.SESSION_CLOSED, f"the adapter {params.adapter} was closed")
        case StillInUse():
            facts = {"reason": "still_in_use", "adapters": list(error.adapters)}
            return RpcError(Condition.PARAMS, str(error), facts)
        case BadManifest():
            named = [{"field": one.field, "problem": one.problem} for one in error.problems]
            return RpcError(
                Condition.PARAMS, str(error), {"reason": "bad_manifest", "problems": named}
            )
        case TooManyAdapters():
            return RpcError(Condition.INTERNAL, str(error), {"kind": error_map.error_kind(error)})
        case _ if isinstance(error, _PARAMS):
            return RpcError(Condition.PARAMS, str(error), {"reason": error_map.error_kind(error)})
        case _:
            return error_map.to_rpc_error(error, params, redactor)


def _code(problem: PluginProblem) -> Condition | int:
    if problem.kind == "closed":  # the adapter was closed during the call
        return spec.SESSION_CLOSED
    return Condition.PARAMS if problem.is_callers_error else Condition.INTERNAL


maps_errors = error_map.error_mapper(to_rpc_error)
"""Decorator for a handler: maps exceptions of adapters to errors of the protocol."""
