"""What a plugin says of itself, made the same whichever generation it is of. Pure.

Generation A (`rpp`) tells all in its handshake and is initialised. Generation B (`reginald`) tells
its name, has the rest in a manifest, and is not initialised. Whom we address how:

- without a manifest, or with one that tells nothing of what the plugin gives: as A
- with a manifest of B's form: commands, tasks or config in it, and no `needs`, which is ours: as B
- whichever name the answer says is understood; who refuses one name is asked with the other
- what we can do beyond the rest is said to A alone, and unsaid to a plugin that refuses to hear it:
  B takes no member that it does not know

Null members are as good as omitted. A's tasks have values without a type: the type is the value's.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from telex.protocols import plugin_v0 as spec

NAMES: Final = (spec.PROTOCOL_A, spec.PROTOCOL_B)
_OURS: Final = spec.Capabilities(cancel=True, progress=True, tools=True)


class NotUnderstood(Exception):
    """Inside this package: what a handshake says that we cannot take, as part of a sentence."""


def handshakes(manifest: spec.Manifest | None) -> tuple[spec.Handshake, ...]:
    """What the plugin is asked with, one after the other, until it accepts one."""
    a = spec.Handshake(spec.PROTOCOL_A, spec.VERSION, _OURS)
    bare_a = spec.Handshake(spec.PROTOCOL_A, spec.VERSION)
    b = spec.Handshake(spec.PROTOCOL_B, spec.VERSION)
    return (b, a, bare_a) if _is_b(manifest) else (a, b, bare_a)


def _is_b(manifest: spec.Manifest | None) -> bool:
    if manifest is None or manifest.needs is not None:
        return False
    return bool(manifest.commands or manifest.tasks or manifest.config)


def introduced(answer: object, manifest: spec.Manifest | None) -> spec.Introduced:
    """The answer to a handshake, completed from the manifest, in generation A's words."""
    bare = without_nulls(answer)
    _check_protocol(bare)
    try:
        said = msgspec.convert(_typed(bare), spec.Introduced)
    except msgspec.ValidationError as error:
        raise NotUnderstood(f"introduced itself in a way that cannot be read: {error}") from None
    if manifest is not None and said.name != manifest.name:
        raise NotUnderstood(f"says that its name is {said.name}, which its manifest does not")
    return _completed(said, manifest)


def _check_protocol(said: object) -> None:
    members = said if isinstance(said, dict) else {}
    name, version = members.get("protocol"), members.get("protocolVersion")
    if name not in NAMES:
        shown = msgspec.json.encode(name).decode()[:80]
        raise NotUnderstood(f"speaks {shown}, and not {' or '.join(NAMES)}")
    if version != spec.VERSION or isinstance(version, bool):
        shown = msgspec.json.encode(version).decode()[:80]
        raise NotUnderstood(f"speaks version {shown} of {name}, and telex version {spec.VERSION}")


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


def _completed(said: spec.Introduced, manifest: spec.Manifest | None) -> spec.Introduced:
    told = manifest or spec.Manifest(said.name, "")
    return replace(
        said,
        version=said.version or told.version,
        description=said.description or told.description,
        configs=said.configs or told.config or [],
        commands=[_command(command) for command in said.commands or told.commands or []],
        tasks=[_task(task) for task in said.tasks or told.tasks or []],
        capabilities=said.capabilities or spec.Capabilities(),
    )


def _command(command: spec.Command) -> spec.Command:
    below = [_command(its) for its in command.commands or []]
    configs = command.configs or command.config or []
    about = command.help or command.doc
    return replace(command, configs=configs, config=None, help=about, doc=None, commands=below)


def _task(task: spec.Task) -> spec.Task:
    return replace(task, type=task.type or task.task_type, task_type=None)
