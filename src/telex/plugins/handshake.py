"""The start of a conversation: `handshake`, and for generation A `initialize`, with deadlines; and
the answer, made the same whichever generation the plugin is of.

Generation A (`rpp`) tells all in its handshake and is initialised. Generation B (`reginald`) tells
its name, has the rest in a manifest, and is not initialised. Which handshake a plugin is sent:

- without a manifest, or with one that tells nothing of what the plugin gives: A's
- with a manifest of B's form (commands, tasks or config in it, and no `needs`, which is ours): B's
- either name in the answer is understood; a plugin that refuses one name is sent the other
- our capabilities go to A alone, and are left out for a plugin that refuses them: B takes no member
  that it does not know

Null members are as good as omitted. A's tasks have values without a type: the type is the value's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from telex.plugins import errors
from telex.plugins import protocol as spec

if TYPE_CHECKING:
    from telex.plugins.discovery import FoundPlugin
    from telex.plugins.plugin_settings import PluginSettings


_METHOD_NOT_FOUND: Final = -32601

Ask = Callable[[str, object, float | None, Any], Awaitable[Any]]
"""Method, params, seconds and the result's type; raises a `PluginError`."""


@dataclass(frozen=True, slots=True)
class HandshakeContext:
    """Who is asked, and how."""

    found: FoundPlugin
    settings: PluginSettings
    ask: Ask
    silence_hint: Callable[[], str]
    """What may be behind its silence."""

    def failed(self, what: str, hint: str = "") -> errors.PluginHandshakeFailed:
        return errors.PluginHandshakeFailed(self.found.name, what, hint)


async def perform_handshake(asking: HandshakeContext, level: spec.Level) -> spec.Introduced:
    """What it is. Raises PluginHandshakeFailed, or why it is over."""
    seconds = asking.settings.deadlines.handshake
    try:
        async with asyncio.timeout(seconds):
            answer = await _shake_hands(asking)
    except TimeoutError:
        what = f"did not answer the handshake within {seconds:g} s"
        raise asking.failed(what, asking.silence_hint()) from None
    except errors.PluginBadResult as failure:
        raise asking.failed(failure.what, failure.hint) from None
    try:
        said = normalize_handshake(answer, asking.found.manifest)
    except HandshakeNotUnderstood as error:
        raise asking.failed(str(error)) from None
    if said.protocol == spec.PROTOCOL_A:
        await _initialize(asking, said, level)
    return said


async def _shake_hands(asking: HandshakeContext) -> object:
    """Its answer to the first handshake that it accepts. The first refusal is what is told."""
    refusals: list[errors.PluginErrorReply] = []
    for offer in handshakes(asking.found.manifest):
        try:
            return await asking.ask("handshake", offer, None, Any)
        except errors.PluginErrorReply as refusal:
            refusals.append(refusal)
        except errors.PluginEnded:
            if not refusals:
                raise
            break  # it ended because of what it refused
    raise asking.failed(refusals[0].what)


async def _initialize(asking: HandshakeContext, said: spec.Introduced, level: spec.Level) -> None:
    values = asking.settings.config(asking.found, said)
    params = spec.Initialize(spec.LoggingConfig(enabled=True, level=level), values or None)
    try:
        await asking.ask("initialize", params, asking.settings.deadlines.initialize, Any)
    except errors.PluginErrorReply as refusal:
        if refusal.code != _METHOD_NOT_FOUND:  # else it has nothing to initialise
            raise asking.failed(refusal.what) from None
    except (errors.PluginTimedOut, errors.PluginBadResult) as failure:
        raise asking.failed(failure.what, failure.hint) from None


PROTOCOL_NAMES: Final = (spec.PROTOCOL_A, spec.PROTOCOL_B)
_OURS: Final = spec.SideCapabilities(cancel=True, progress=True, tools=True)


class HandshakeNotUnderstood(Exception):
    """Inside this package: what a handshake says that we cannot take, as part of a sentence."""


def handshakes(manifest: spec.PluginManifest | None) -> tuple[spec.Handshake, ...]:
    """What the plugin is asked with, one after the other, until it accepts one."""
    a = spec.Handshake(spec.PROTOCOL_A, spec.VERSION, _OURS)
    bare_a = spec.Handshake(spec.PROTOCOL_A, spec.VERSION)
    b = spec.Handshake(spec.PROTOCOL_B, spec.VERSION)
    return (b, a, bare_a) if _is_b(manifest) else (a, b, bare_a)


def _is_b(manifest: spec.PluginManifest | None) -> bool:
    if manifest is None or manifest.needs is not None:
        return False
    return bool(manifest.commands or manifest.tasks or manifest.config)


def normalize_handshake(answer: object, manifest: spec.PluginManifest | None) -> spec.Introduced:
    """The answer to a handshake, completed from the manifest, in generation A's words."""
    bare = without_nulls(answer)
    _check_protocol(bare)
    try:
        said = msgspec.convert(_typed(bare), spec.Introduced)
    except msgspec.ValidationError as error:
        raise HandshakeNotUnderstood(
            f"introduced itself in a way that cannot be read: {error}"
        ) from None
    if manifest is not None and said.name != manifest.name:
        raise HandshakeNotUnderstood(
            f"says that its name is {said.name}, which its manifest does not"
        )
    return _completed(said, manifest)


def _check_protocol(said: object) -> None:
    members = said if isinstance(said, dict) else {}
    name, version = members.get("protocol"), members.get("protocolVersion")
    if name not in PROTOCOL_NAMES:
        shown = msgspec.json.encode(name).decode()[:80]
        raise HandshakeNotUnderstood(f"speaks {shown}, and not {' or '.join(PROTOCOL_NAMES)}")
    if version != spec.VERSION or isinstance(version, bool):
        shown = msgspec.json.encode(version).decode()[:80]
        raise HandshakeNotUnderstood(
            f"speaks version {shown} of {name}, and telex version {spec.VERSION}"
        )


def without_nulls(value: object) -> Any:
    """The same without members that are null."""
    match value:
        case dict():
            return {key: without_nulls(its) for key, its in value.items() if its is not None}
        case list():
            return [without_nulls(its) for its in value]
        case _:
            return value


def _typed(value: Any) -> Any:
    """The same, where a value without a type has the one it shows."""
    match value:
        case {"key": _, "value": bool() | int() as its} if "type" not in value:
            return {**value, "type": "bool" if isinstance(its, bool) else "int"}
        case dict():
            return {key: _typed(its) for key, its in value.items()}
        case list():
            return [_typed(its) for its in value]
        case _:
            return value


def _completed(said: spec.Introduced, manifest: spec.PluginManifest | None) -> spec.Introduced:
    told = manifest or spec.PluginManifest(said.name, "")
    return replace(
        said,
        version=said.version or told.version,
        description=said.description or told.description,
        configs=said.configs or told.config or [],
        commands=[_command(command) for command in said.commands or told.commands or []],
        tasks=[_task(task) for task in said.tasks or told.tasks or []],
        capabilities=said.capabilities or spec.SideCapabilities(),
    )


def _command(command: spec.CommandEntry) -> spec.CommandEntry:
    below = [_command(its) for its in command.commands or []]
    configs = command.configs or command.config or []
    about = command.help or command.doc
    return replace(command, configs=configs, config=None, help=about, doc=None, commands=below)


def _task(task: spec.Task) -> spec.Task:
    return replace(task, type=task.type or task.task_type, task_type=None)
