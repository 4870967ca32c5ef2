"""Everything that can be set, once: type, default, and a sentence.

The structs are what the rest of telex reads; `TABLE` is the same, flat, for those who fill it, list
it or explain it. A new setting is one annotated field here: its key in `config.toml`, its variable,
`--set`, `telex config show` and the reference page all follow from it.
"""

from __future__ import annotations

import builtins
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct


class Logging(Struct, frozen=True):
    """`[logging]`"""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least serious message that is logged."),
    ] = "warning"


class Redaction(Struct, frozen=True):
    """`[redaction]`"""

    replacement: Annotated[
        str, Meta(description="What stands in the place of a secret that was taken out.")
    ] = "[REDACTED]"
    extra_literals: Annotated[
        tuple[str, ...],
        Meta(
            description="Texts that are secret wherever they appear, of one character or more. "
            "What several places list adds up, and `telex config show` hides it.",
            extra={"secret": True, "adds_up": True},
        ),
    ] = ()


class Agent(Struct, frozen=True):
    """`[agent]`"""

    plugins: Annotated[
        tuple[str, ...],
        Meta(description="Plugins whose tools the agent has, by name; see `telex plugin list`."),
    ] = ()


class Settings(Struct, frozen=True):
    """The whole of `config.toml`."""

    trace: Annotated[
        tuple[Literal["wire", "rpc"], ...],
        Meta(description="Conversations to print as they happen, for a bug report."),
    ] = ()
    logging: Logging = Logging()
    redaction: Redaction = Redaction()
    agent: Agent = Agent()


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the structs above, by its dotted key."""

    key: str
    type: Any
    default: object
    description: str
    secret: bool
    """Its value is never shown."""
    adds_up: bool
    """A list that several sources extend, where otherwise the strongest source would replace the
    others: a project must not make us forget the secrets its user listed."""

    @property
    def variable(self) -> str:
        return "TELEX_" + self.key.upper().replace(".", "_")

    @property
    def is_list(self) -> bool:
        return get_origin(self.type) is tuple

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        return _in_words(self.type)


def _in_words(kind: Any) -> str:
    match get_origin(kind) or kind:
        case builtins.str:
            return "text"
        case typing.Literal:
            return "one of " + ", ".join(get_args(kind))
        case builtins.tuple:
            return f"a list, each {_in_words(get_args(kind)[0])}"
        case other:
            raise TypeError(f"no words yet for a setting of type {other}")


def _table(struct: type[Struct], prefix: str = "") -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for field in msgspec.structs.fields(struct):
        key = prefix + field.name
        if get_origin(field.type) is Annotated:
            found[key] = _setting(key, field)
        else:
            found |= _table(field.type, key + ".")
    return found


def _setting(key: str, field: msgspec.structs.FieldInfo) -> Setting:
    kind, meta = get_args(field.type)
    marks = meta.extra or {}
    secret, adds_up = marks.get("secret", False), marks.get("adds_up", False)
    return Setting(key, kind, field.default, meta.description, secret, adds_up)


TABLE: Final = _table(Settings)
