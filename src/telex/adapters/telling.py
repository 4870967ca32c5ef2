"""What leaves of what a plugin says: redacted, and no more than its manifest lets it see.

A plugin sees the screen as it is, so anything it says may quote a secret: a state's name as much as
its evidence. And a wait must not tell what `adapter.snapshot` would refuse: without `screen.read`
or `transcript.read` a caller learns that something matched, and not what it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from telex.protocols.pty_adapters import Manifest, State
from telex.terminal.redact import redact_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.adapters.sources import Plugin
    from telex.redaction import Redactor

_PRINTED = {"transcript_contains", "transcript_regex"}


def state(said: State, redactor: Redactor | None) -> State:
    """A state, as it may be told."""
    return msgspec.convert(redact_values(msgspec.to_builtins(said), redactor), State)


def manifests(plugins: Iterable[Plugin], redactor: Redactor) -> tuple[Manifest, ...]:
    """The manifests of plugins; one may start its program with a secret."""
    told = [redact_values(msgspec.to_builtins(plugin.manifest), redactor) for plugin in plugins]
    return msgspec.convert(told, tuple[Manifest, ...])


def matched(evidence: dict[str, Any], plugin: Plugin) -> dict[str, Any]:
    """What ended a wait, without what the plugin may not read."""
    told = dict(evidence)
    if not _may_tell(told, plugin):
        told.pop("capture", None)
        told.pop("evidence", None)
    match told.get("matched"):
        case dict() as branch:
            told["matched"] = matched(branch, plugin)
        case list() as branches:
            told["matched"] = [matched(branch, plugin) for branch in branches]
    return told


def in_vain(data: dict[str, Any], plugin: Plugin) -> dict[str, Any]:
    """Why a wait brought nothing, without what the plugin may not read."""
    hidden = set() if "screen.read" in plugin.permissions else {"screen_tail", "cursor"}
    told = {name: value for name, value in data.items() if name not in hidden}
    if hidden or "transcript.read" not in plugin.permissions:
        told["why"] = _without_misses(told["why"])
    return told


def _may_tell(branch: dict[str, Any], plugin: Plugin) -> bool:
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
