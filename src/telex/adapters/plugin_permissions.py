"""What a manifest allows: checked before every method, in every plan, and in what a caller is told.

A plugin without a permission has no host function for it; but an action is a plain table, and
anybody can write one. So plans are checked again here, before anything is done.

A plugin sees the screen as it is, so anything it answers may quote a secret, a state's name as much
as its evidence: `redacted_state` and `redacted_manifests` hide it. And a wait must not tell what
`adapter.snapshot` would refuse: `permitted_match` and `permitted_failure` leave out what was found
where the manifest lacks `screen.read` or `transcript.read`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from telex.adapters.errors import PermissionMissing
from telex.adapters.protocol import REQUIRED, AdapterState, Manifest
from telex.terminal import actions as spec
from telex.terminal.redact import redact_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.protocol import Permission
    from telex.redaction import Redactor
    from telex.terminal.actions import Action


def require_permission(plugin: LuaPlugin, method: str) -> None:
    """Raise PermissionMissing unless the plugin's manifest has all that a method needs. The first
    that is missing is named."""
    for permission in REQUIRED[method]:
        if permission not in plugin.permissions:
            raise PermissionMissing(plugin.name, method, permission)


def permission_of_action(action: Action) -> Permission:
    """What an action needs, whoever asks for it."""
    match action:
        case spec.Kill() | spec.Signal():
            return "session.kill"
        case spec.Resize():
            return "session.resize"
        case _:
            return "input.write"


def require_for_next_step(plugin: LuaPlugin, method: str, function: str) -> None:
    """Raise PermissionMissing if a plan would wait, and the plugin may not."""
    if "matcher.wait" not in plugin.permissions:
        what = f"{plugin.name}: `{function}`: the `next` of its plan"
        raise PermissionMissing(plugin.name, method, "matcher.wait", what)


def require_for_actions(
    plugin: LuaPlugin, method: str, function: str, actions: tuple[Action, ...]
) -> None:
    """Raise PermissionMissing if a plan has an action that the plugin may not ask for."""
    for action in actions:
        if (permission := permission_of_action(action)) not in plugin.permissions:
            kind = type(action).__struct_config__.tag
            what = f"{plugin.name}: `{function}`: the action {kind!r} of its plan"
            raise PermissionMissing(plugin.name, method, permission, what)


_PRINTED = {"transcript_contains", "transcript_regex"}


def redacted_state(said: AdapterState, redactor: Redactor | None) -> AdapterState:
    """A state, as it may be told."""
    return msgspec.convert(redact_values(msgspec.to_builtins(said), redactor), AdapterState)


def redacted_manifests(plugins: Iterable[LuaPlugin], redactor: Redactor) -> tuple[Manifest, ...]:
    """The manifests of plugins; one may start its program with a secret."""
    told = [redact_values(msgspec.to_builtins(plugin.manifest), redactor) for plugin in plugins]
    return msgspec.convert(told, tuple[Manifest, ...])


def permitted_match(evidence: dict[str, Any], plugin: LuaPlugin) -> dict[str, Any]:
    """What ended a wait, without what the plugin may not read."""
    told = dict(evidence)
    if not _may_tell(told, plugin):
        told.pop("capture", None)
        told.pop("evidence", None)
    match told.get("matched"):
        case dict() as branch:
            told["matched"] = permitted_match(branch, plugin)
        case list() as branches:
            told["matched"] = [permitted_match(branch, plugin) for branch in branches]
    return told


def permitted_failure(data: dict[str, Any], plugin: LuaPlugin) -> dict[str, Any]:
    """Why a wait brought nothing, without what the plugin may not read."""
    hidden = set() if "screen.read" in plugin.permissions else {"screen_tail", "cursor"}
    told = {name: value for name, value in data.items() if name not in hidden}
    if hidden or "transcript.read" not in plugin.permissions:
        told["why"] = _without_misses(told["why"])
    return told


def _may_tell(branch: dict[str, Any], plugin: LuaPlugin) -> bool:
    if branch.get("kind") == "lua":
        both = {"screen.read", "transcript.read"} <= plugin.permissions
        return both or branch.get("plugin") == plugin.name
    needed = "transcript.read" if branch.get("kind") in _PRINTED else "screen.read"
    return needed in plugin.permissions


def _without_misses(why: dict[str, Any]) -> dict[str, Any]:
    told = {name: value for name, value in why.items() if name != "nearest"}
    if "branches" in told:
        told["branches"] = [_without_misses(branch) for branch in told["branches"]]
    return told
