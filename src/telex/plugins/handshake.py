"""The start of a conversation: `handshake`, and for generation A `initialize`, with deadlines. The
answer is normalized to generation A's form.

Generation A (`rpp`) describes itself in the answer to `handshake` and is initialised. Generation B
(`reginald`) answers with its name, has the rest in a manifest, and is not initialised. The host
chooses the handshake like this:

- a plugin without a manifest, or with a manifest that describes no features, gets A's
- a plugin with a manifest of B's form (with commands, tasks or config, and without `needs`, which
  is
  telex's addition) gets B's
- the host understands both protocol names in the answer; a plugin that refuses one gets the other
- the host's capabilities are sent to A only, and left out for a plugin that refuses them: B refuses
  unknown members

A null member means absent. A's tasks have values without a type: the type is that of the value.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from telex.plugins import errors
from telex.plugins import protocol as spec
from telex.plugins.plugin_settings import CallDeadline

if TYPE_CHECKING:
    from telex.plugins.discovery import FoundPlugin
    from telex.plugins.plugin_settings import PluginSettings


_METHOD_NOT_FOUND: Final = -32601

SendRequest = Callable[[str, object, float | CallDeadline | None, Any], Awaitable[Any]]
"""Takes a method, parameters, a timeout and the result's type. Raises a `PluginError`."""


@dataclass(frozen=True, slots=True)
class HandshakeContext:
    """The plugin of a handshake, and the functions that a handshake needs."""

    found: FoundPlugin
    settings: PluginSettings
    request: SendRequest
    silence_hint: Callable[[], str]
    """Returns a likely reason why no answer came."""

    def failed(self, what: str, hint: str = "") -> errors.PluginHandshakeFailed:
        return errors.PluginHandshakeFailed(self.found.name, what, hint)


async def perform_handshake(asking: HandshakeContext, level: spec.Level) -> spec.Introduced:
    """Do the handshake and `initialize`; return the normalized answer.

    Raises PluginHandshakeFailed, or PluginEnded if the plugin ended meanwhile.
    """
    try:
        answer = await _offer_handshakes(asking)
    except errors.PluginTimedOut as failure:
        raise asking.failed(failure.what, asking.silence_hint()) from None
    except errors.PluginBadResult as failure:
        raise asking.failed(failure.what, failure.hint) from None
    try:
        introduced = normalize_handshake(answer, asking.found.manifest)
    except HandshakeNotUnderstood as error:
        raise asking.failed(str(error)) from None
    if introduced.protocol == spec.PROTOCOL_A:
        await _initialize(asking, introduced, level)
    return introduced


async def _offer_handshakes(asking: HandshakeContext) -> object:
    """Return the answer to the first handshake that the plugin accepts. If it refuses all, the
    error has the first refusal."""
    deadline = CallDeadline.of(asking.settings.deadlines.handshake)
    refusals: list[errors.PluginErrorReply] = []
    for offer in handshakes(asking.found.manifest):
        try:
            return await asking.request("handshake", offer, deadline, Any)
        except errors.PluginErrorReply as refusal:
            refusals.append(refusal)
        except errors.PluginEnded:
            if not refusals:
                raise
            break  # the plugin exited after its refusal
    raise asking.failed(refusals[0].what)


async def _initialize(
    asking: HandshakeContext, introduced: spec.Introduced, level: spec.Level
) -> None:
    values = asking.settings.config(asking.found, introduced)
    params = spec.Initialize(spec.LoggingConfig(enabled=True, level=level), values or None)
    try:
        await asking.request("initialize", params, asking.settings.deadlines.initialize, Any)
    except errors.PluginErrorReply as refusal:
        if refusal.code != _METHOD_NOT_FOUND:  # a plugin may have nothing to initialise
            raise asking.failed(refusal.what) from None
    except (errors.PluginTimedOut, errors.PluginBadResult) as failure:
        raise asking.failed(failure.what, failure.hint) from None


PROTOCOL_NAMES: Final = (spec.PROTOCOL_A, spec.PROTOCOL_B)
_HOST_CAPABILITIES: Final = spec.SideCapabilities(cancel=True, progress=True, tools=True)


class HandshakeNotUnderstood(Exception):
    """The answer to a handshake is not supported. The message is the predicate of a sentence, for
    use in this package."""


def handshakes(manifest: spec.PluginManifest | None) -> tuple[spec.Handshake, ...]:
    """Return the handshakes to offer, one after the other, until the plugin accepts one."""
    a = spec.Handshake(spec.PROTOCOL_A, spec.VERSION, _HOST_CAPABILITIES)
    bare_a = spec.Handshake(spec.PROTOCOL_A, spec.VERSION)
    b = spec.Handshake(spec.PROTOCOL_B, spec.VERSION)
    return (b, a, bare_a) if _is_b(manifest) else (a, b, bare_a)


def _is_b(manifest: spec.PluginManifest | None) -> bool:
    if manifest is None or manifest.needs is not None:
        return False
    return bool(manifest.commands or manifest.tasks or manifest.config)


def normalize_handshake(answer: object, manifest: spec.PluginManifest | None) -> spec.Introduced:
    """Return the answer to a handshake in generation A's form, completed from the manifest."""
    bare = without_nulls(answer)
    _check_protocol(bare)
    try:
        introduced = msgspec.convert(_typed(bare), spec.Introduced)
    except msgspec.ValidationError as error:
        raise HandshakeNotUnderstood(
            f"answered the handshake with something that cannot be read: {error}"
        ) from None
    if manifest is not None and introduced.name != manifest.name:
        raise HandshakeNotUnderstood(
            f"calls itself {introduced.name} in the handshake, but {manifest.name} in its manifest"
        )
    return _completed(introduced, manifest)


def _check_protocol(answer: object) -> None:
    members = answer if isinstance(answer, dict) else {}
    name, version = members.get("protocol"), members.get("protocolVersion")
    if name not in PROTOCOL_NAMES:
        shown = msgspec.json.encode(name).decode()[:80]
        raise HandshakeNotUnderstood(f"speaks {shown}, and not {' or '.join(PROTOCOL_NAMES)}")
    if version != spec.VERSION or isinstance(version, bool):
        shown = msgspec.json.encode(version).decode()[:80]
        raise HandshakeNotUnderstood(
            f"speaks version {shown} of {name}; telex speaks version {spec.VERSION}"
        )


def without_nulls(value: object) -> Any:
    """Return the value without null members, at any depth."""
    match value:
        case dict():
            return {key: without_nulls(its) for key, its in value.items() if its is not None}
        case list():
            return [without_nulls(its) for its in value]
        case _:
            return value


def _typed(value: Any) -> Any:
    """Add the missing `type` of a config value, derived from the value itself."""
    match value:
        case {"key": _, "value": bool() | int() as its} if "type" not in value:
            return {**value, "type": "bool" if isinstance(its, bool) else "int"}
        case dict():
            return {key: _typed(its) for key, its in value.items()}
        case list():
            return [_typed(its) for its in value]
        case _:
            return value


def _completed(
    introduced: spec.Introduced, manifest: spec.PluginManifest | None
) -> spec.Introduced:
    declared = manifest or spec.PluginManifest(introduced.name, "")
    return replace(
        introduced,
        version=introduced.version or declared.version,
        description=introduced.description or declared.description,
        configs=introduced.configs or declared.config or [],
        commands=[_command(command) for command in introduced.commands or declared.commands or []],
        tasks=[_task(task) for task in introduced.tasks or declared.tasks or []],
        capabilities=introduced.capabilities or spec.SideCapabilities(),
    )


def _command(command: spec.CommandEntry) -> spec.CommandEntry:
    below = [_command(its) for its in command.commands or []]
    configs = command.configs or command.config or []
    about = command.help or command.doc
    return replace(command, configs=configs, config=None, help=about, doc=None, commands=below)


def _task(task: spec.Task) -> spec.Task:
    return replace(task, type=task.type or task.task_type, task_type=None)
