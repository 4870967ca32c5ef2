"""The table of all settings: type, default and description of each.

The rest of telex reads the structs; `TABLE` is the same table, flat, for code that fills, lists or
explains the settings. A new setting is one annotated field here: its key in `config.toml`, its
variable, `--set`, `telex config show` and the reference page all follow from it.
"""

from __future__ import annotations

import builtins
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from telex.config.mcp_settings import McpSection, read_mcp_servers
from telex.config.model_settings import ModelSection, read_models


class Logging(Struct, frozen=True):
    """The section `[logging]` of `config.toml`."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least severe level that is logged."),
    ] = "warning"


class Redaction(Struct, frozen=True):
    """The section `[redaction]` of `config.toml`."""

    replacement: Annotated[str, Meta(description="The text that replaces a redacted secret.")] = (
        "[REDACTED]"
    )
    extra_literals: Annotated[
        tuple[str, ...],
        Meta(
            description="Texts that are secret wherever they appear, of one character or more. "
            "The lists of all sources are joined, and `telex config show` hides them.",
            extra={"secret": True, "adds_up": True},
        ),
    ] = ()


class AgentSettings(Struct, frozen=True):
    """The section `[agent]` of `config.toml`."""

    plugins: Annotated[
        tuple[str, ...],
        Meta(
            description="Names of the plugins whose tools the agent has; see `telex plugin list`."
        ),
    ] = ()
    model: Annotated[
        str,
        Meta(
            description="Name of the model that the agent uses, of those that `telex agent models` "
            "lists. By default the first of them."
        ),
    ] = ""


class McpServerSettings(Struct, frozen=True):
    """The section `[mcp_server]` of `config.toml`. An entry is the name of a program, its path, or
    `*` for all."""

    allow: Annotated[
        tuple[str, ...],
        Meta(description="Programs that MCP clients may use; if there are none, all."),
    ] = ()
    deny: Annotated[
        tuple[str, ...],
        Meta(
            description="Programs that MCP clients may not use. The lists of all sources are "
            "joined.",
            extra={"adds_up": True},
        ),
    ] = ()
    confirm: Annotated[
        tuple[str, ...],
        Meta(
            description="Programs that an MCP client may open once the person has agreed. The "
            "lists of all sources are joined.",
            extra={"adds_up": True},
        ),
    ] = ()


class Settings(Struct, frozen=True):
    """The whole of `config.toml`."""

    trace: Annotated[
        tuple[Literal["wire", "rpc"], ...],
        Meta(description="Layers of the conversations to print on stderr, for a bug report."),
    ] = ()
    logging: Logging = Logging()
    redaction: Redaction = Redaction()
    agent: AgentSettings = AgentSettings()
    mcp_server: McpServerSettings = McpServerSettings()
    models: Annotated[
        dict[str, ModelSection],
        Meta(
            description="Language models, each a table `[models.NAME]`; see the reference of "
            "models. The tables of all files are joined.",
            extra={"adds_up": True, "read": read_models},
        ),
    ] = {}
    mcp: Annotated[
        dict[str, McpSection],
        Meta(
            description="MCP servers whose tools the agent has, each a table `[mcp.NAME]`; see the "
            "reference of MCP servers as tools. The tables of all files are joined.",
            extra={"adds_up": True, "read": read_mcp_servers},
        ),
    ] = {}


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the structs above, by its dotted key."""

    key: str
    type: Any
    default: object
    description: str
    secret: bool
    """Whether the value is never shown."""
    adds_up: bool
    """Whether the lists or tables of several sources are joined. Otherwise the strongest source
    would replace the others: a project must not make telex forget the secrets that its user
    listed."""
    read: Callable[[object, str], Any] | None = None
    """Reads a value of tables, given the place for its errors. Only files can have such a value."""

    @property
    def variable(self) -> str:
        return "TELEX_" + self.key.upper().replace(".", "_")

    @property
    def is_list(self) -> bool:
        return get_origin(self.type) is tuple

    @property
    def expected(self) -> str:
        """The type of the value, in words."""
        return _in_words(self.type)


def _in_words(kind: Any) -> str:
    match get_origin(kind) or kind:
        case builtins.str:
            return "text"
        case typing.Literal:
            return "one of " + ", ".join(get_args(kind))
        case builtins.tuple:
            return f"a list, each {_in_words(get_args(kind)[0])}"
        case builtins.dict:
            return "tables"
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
    default = field.default if field.default_factory is msgspec.NODEFAULT else {}
    return Setting(key, kind, default, meta.description, secret, adds_up, marks.get("read"))


TABLE: Final = _table(Settings)
