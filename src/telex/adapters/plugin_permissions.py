"""The permissions of a manifest, enforced for every method, every plan, and the results of waits.

A plugin without a permission has no host function for it. But an action is a plain table, which a
plugin can write by itself. So every plan is checked again here, before its first action.

A plugin sees the screen without redaction, so any of its results may quote a secret, the name of a
state as much as its evidence: `redacted_state` and `redacted_manifests` redact them. And a wait
must not return text that `adapter.snapshot` would refuse: `permitted_match` and `permitted_failure`
remove the text that was found if the manifest lacks `screen.read` or `transcript.read`.
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
    """Raise PermissionMissing for the first permission that a method needs and the manifest
    lacks."""
    for permission in REQUIRED[method]:
        if permission not in plugin.permissions:
            raise PermissionMissing(plugin.name, method, permission)


def permission_of_action(action: Action) -> Permission:
    """Return the permission that an action needs."""
    match action:
        case spec.Kill() | spec.Signal():
            return "session.kill"
        case spec.Resize():
            return "session.resize"
        case _:
            return "input.write"


def require_for_next_step(plugin: LuaPlugin, method: str, function: str) -> None:
    """Raise PermissionMissing if the plugin may not wait, as the `next` of a plan does."""
    if "matcher.wait" not in plugin.permissions:
        what = f"{plugin.name}: `{function}`: the `next` of its plan"
        raise PermissionMissing(plugin.name, method, "matcher.wait", what)


def require_for_actions(
    plugin: LuaPlugin, method: str, function: str, actions: tuple[Action, ...]
) -> None:
    """Raise PermissionMissing if a plan has an action without its permission."""
    for action in actions:
        if (permission := permission_of_action(action)) not in plugin.permissions:
            kind = type(action).__struct_config__.tag
            what = f"{plugin.name}: `{function}`: the action {kind!r} of its plan"
            raise PermissionMissing(plugin.name, method, permission, what)


_TRANSCRIPT_MATCHERS = {"transcript_contains", "transcript_regex"}


def redacted_state(state: AdapterState, redactor: Redactor | None) -> AdapterState:
    """Return a state with all its texts redacted."""
    return msgspec.convert(redact_values(msgspec.to_builtins(state), redactor), AdapterState)


def redacted_manifests(plugins: Iterable[LuaPlugin], redactor: Redactor) -> tuple[Manifest, ...]:
    """Return the manifests of plugins, redacted: an argument or a variable may be a secret."""
    values = [redact_values(msgspec.to_builtins(plugin.manifest), redactor) for plugin in plugins]
    return msgspec.convert(values, tuple[Manifest, ...])


def permitted_match(evidence: dict[str, Any], plugin: LuaPlugin) -> dict[str, Any]:
    """Return the evidence of a wait, without text that the plugin may not read."""
    kept = dict(evidence)
    if not _may_read(kept, plugin):
        for text in ("capture", "groups", "evidence"):
            kept.pop(text, None)
    match kept.get("matched"):
        case dict() as branch:
            kept["matched"] = permitted_match(branch, plugin)
        case list() as branches:
            kept["matched"] = [permitted_match(branch, plugin) for branch in branches]
    return kept


def permitted_failure(data: dict[str, Any], plugin: LuaPlugin) -> dict[str, Any]:
    """Return the data of a failed wait, without text that the plugin may not read."""
    hidden = set() if "screen.read" in plugin.permissions else {"screen_tail", "cursor"}
    kept = {name: value for name, value in data.items() if name not in hidden}
    if hidden or "transcript.read" not in plugin.permissions:
        kept["why"] = _without_misses(kept["why"])
    return kept


def _may_read(branch: dict[str, Any], plugin: LuaPlugin) -> bool:
    if branch.get("kind") == "lua":
        both = {"screen.read", "transcript.read"} <= plugin.permissions
        return both or branch.get("plugin") == plugin.name
    is_transcript = branch.get("kind") in _TRANSCRIPT_MATCHERS
    return ("transcript.read" if is_transcript else "screen.read") in plugin.permissions


def _without_misses(why: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in why.items() if name != "nearest"}
    if "branches" in kept:
        kept["branches"] = [_without_misses(branch) for branch in kept["branches"]]
    return kept
