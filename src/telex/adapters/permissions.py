"""What a manifest allows: asked before every method, and of everything a plugin answers.

A plugin without a permission has no host function for it; but an action is a plain table, and
anybody can write one. So plans are looked at again here, before anything is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.protocols.pty_adapters import REQUIRED
from telex.terminal import actions as spec

if TYPE_CHECKING:
    from telex.adapters.sources import Plugin
    from telex.protocols.pty_adapters import Permission
    from telex.terminal.actions import Action


class NotPermitted(Exception):
    """The manifest of a plugin does not have a permission that is needed."""

    def __init__(self, plugin: str, method: str, permission: Permission, what: str = "") -> None:
        super().__init__(
            f"{what or method} needs the permission {permission}, which the manifest of {plugin} "
            "lacks"
        )
        self.method, self.permission = method, permission


def demand(plugin: Plugin, method: str) -> None:
    """Raise NotPermitted unless the plugin's manifest has all that a method needs. The first that
    is missing is named."""
    for permission in REQUIRED[method]:
        if permission not in plugin.permissions:
            raise NotPermitted(plugin.name, method, permission)


def of_action(action: Action) -> Permission:
    """What an action needs, whoever asks for it."""
    match action:
        case spec.Kill() | spec.Signal():
            return "session.kill"
        case spec.Resize():
            return "session.resize"
        case _:
            return "input.write"


def demand_to_go_on(plugin: Plugin, method: str, function: str) -> None:
    """Raise NotPermitted if a plan would wait, and the plugin may not."""
    if "matcher.wait" not in plugin.permissions:
        what = f"{plugin.name}: `{function}`: the `next` of its plan"
        raise NotPermitted(plugin.name, method, "matcher.wait", what)


def demand_for(plugin: Plugin, method: str, function: str, actions: tuple[Action, ...]) -> None:
    """Raise NotPermitted if a plan has an action that the plugin may not ask for."""
    for action in actions:
        if (permission := of_action(action)) not in plugin.permissions:
            kind = type(action).__struct_config__.tag
            what = f"{plugin.name}: `{function}`: the action {kind!r} of its plan"
            raise NotPermitted(plugin.name, method, permission, what)
