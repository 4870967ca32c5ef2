"""The plugin protocol, version 0, as data: methods with params and results, errors, manifest.

The published text (`docs/specs/plugin_v0.md`) ends before its methods. There are two generations of
the original, which differ in names and numbers: A says `rpp`, tells all about itself in its
handshake and is initialised; B says `reginald`, has a manifest beside it, is not initialised, and
refuses members that it does not know. We speak A, understand both, and add what has to be announced
as a capability before it is used. The chapter in words is `docs/reference/plugin-protocol.md`, with
schemas that come from here.

`null` is as good as omitted everywhere, as the text says. Unknown members are tolerated.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

PROTOCOL_A: Final = "rpp"
PROTOCOL_B: Final = "reginald"
VERSION: Final = 0

# Error codes beyond JSON-RPC's own.

HANDSHAKE: Final = -32001
INVALID_COMMAND: Final = -32002
NOT_RUNNABLE: Final = -32003
COMMAND_FAILED: Final = -32004
TASK_FAILED: Final = -32005
INVALID_CONFIG: Final = -32050
CANCELLED: Final = -32800
TIMED_OUT: Final = -32801
NOT_INITIALIZED: Final = -32802
SHUTTING_DOWN: Final = -32803

ERRORS: Final[dict[int, str]] = {
    -32700: "Parse error: what came is not JSON.",
    -32600: "Invalid request: the JSON is not a message.",
    -32601: "Method not found.",
    -32602: "Invalid params.",
    -32603: "Internal error.",
    HANDSHAKE: "The handshake was refused: another protocol or version.",
    INVALID_COMMAND: "There is no command of this name.",
    NOT_RUNNABLE: "The command is a group of others and cannot be run itself.",
    COMMAND_FAILED: "The command failed.",
    TASK_FAILED: "The task failed.",
    INVALID_CONFIG: "The configuration is not valid.",
    CANCELLED: "The request was cancelled.",
    TIMED_OUT: "The request took too long.",
    NOT_INITIALIZED: "The plugin has not been initialised yet.",
    SHUTTING_DOWN: "The plugin is shutting down.",
}

_NUMBERS_OF_B: Final = {
    HANDSHAKE: -32000,
    INVALID_COMMAND: -32001,
    NOT_RUNNABLE: -32002,
    COMMAND_FAILED: -32003,
    TASK_FAILED: -32003,
}
_CONDITIONS_OF_B: Final = {
    -32000: HANDSHAKE,
    -32001: INVALID_COMMAND,
    -32002: NOT_RUNNABLE,
    -32003: COMMAND_FAILED,
}


def number_of(condition: int, protocol: str) -> int:
    """The number that a generation has for one of the conditions above."""
    return _NUMBERS_OF_B.get(condition, condition) if protocol == PROTOCOL_B else condition


def condition_of(number: int, protocol: str) -> int:
    """Which of the conditions above a generation means by a number; others stay as they are."""
    return _CONDITIONS_OF_B.get(number, number) if protocol == PROTOCOL_B else number


Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=64)]
Level = Literal["trace", "debug", "info", "warn", "error"]
ValueType = Literal[
    "bool", "int", "string", "path", "boolList", "intList", "stringList", "pathList"
]
CONFIGS: Final = "configs"
"""The type of a value that is a list of values itself: a table. No entry has it."""
Value = bool | int | str | list[bool | int | str]


class Flag(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How a value is given on the command line."""

    name: str | None = None
    """Without one, the key."""
    shorthand: str | None = None
    description: str | None = None
    usage: str | None = None
    """Generation A's word for `description`."""


class ConfigEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A value that a plugin, a command or a task takes, with its default."""

    key: Name
    value: Any = None
    type: ValueType = "string"
    description: str | None = None
    flag: Flag | None = None
    env_override: str | None = None
    """The whole name of a variable, in place of the usual one."""
    flag_only: bool | None = None


class MappedEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A table of tables that a task takes. The person chooses the keys of the outer one, and each
    inner table holds `values`."""

    key: Name
    key_type: Literal["string", "path"]
    values: list[ConfigEntry]
    description: str | None = None


class UnionEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Values of which a task takes one. If none is given, the first of them has its default."""

    alternatives: list[Any]
    """Each a `ConfigEntry` or a `MappedEntry`."""


class KeyValue(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A value, as a plugin gets it. A host always says its type."""

    key: str
    value: Any
    type: str | None = None
    """A `ValueType`, or `configs`: then the value is a list of these again."""


class CommandEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: Name
    usage: str | None = None
    description: str | None = None
    help: str | None = None
    doc: str | None = None
    """Generation B's word for `help`."""
    manual: str | None = None
    aliases: list[Name] | None = None
    configs: list[ConfigEntry] | None = None
    config: list[ConfigEntry] | None = None
    """Generation B's word for `configs`."""
    args: Any = None
    commands: list[CommandEntry] | None = None


class Task(Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: str | None = None
    task_type: str | None = None
    """Generation B's word for `type`."""
    description: str | None = None
    provides: str | None = None
    configs: list[ConfigEntry] | None = None
    config: list[Any] | None = None
    """Generation B's: each a `ConfigEntry`, a `MappedEntry` or a `UnionEntry`."""


class SideCapabilities(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What one side can do beyond the rest; telex's addition. Absent is no."""

    cancel: bool = False
    progress: bool = False
    tools: bool = False


# handshake, initialize.


class Handshake(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Host to plugin, first of all."""

    protocol: str
    protocol_version: int
    capabilities: SideCapabilities | UnsetType = UNSET


class Introduced(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a plugin says of itself."""

    protocol: str
    protocol_version: int
    name: Name
    version: str | None = None
    description: str | None = None
    configs: list[ConfigEntry] | None = None
    commands: list[CommandEntry] | None = None
    tasks: list[Task] | None = None
    capabilities: SideCapabilities | None = None


class LoggingConfig(Struct, frozen=True, rename="camel"):
    enabled: bool
    level: str = "info"
    """In any case, also with an offset as in `DEBUG-4`. A level that is not known is `info`."""


class Initialize(Struct, frozen=True, omit_defaults=True, rename="camel"):
    logging: LoggingConfig
    config: list[KeyValue] | None = None


# Commands and tasks.


class SetupCommand(Struct, frozen=True, rename="camel"):
    name: str
    args: list[str] = []
    config: list[KeyValue] | UnsetType = UNSET


class RunCommand(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Generation A names the command that was set up; B says all of it here."""

    name: str | UnsetType = UNSET
    cmd: str | UnsetType = UNSET
    config: list[KeyValue] | UnsetType = UNSET
    plugin_config: list[KeyValue] | UnsetType = UNSET
    progress_token: int | str | UnsetType = UNSET


class ValidateTask(Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: str
    config: list[KeyValue] | None = None


class RunTask(Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: str | UnsetType = UNSET
    task_type: str | UnsetType = UNSET
    dir: str | UnsetType = UNSET
    config: list[KeyValue] | None = None
    progress_token: int | str | UnsetType = UNSET


class Done(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The result of what has none of its own."""


# Tools, progress, cancel: each a capability.


class ToolEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: Name
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class ToolsList(Struct, frozen=True, rename="camel"):
    tools: list[ToolEntry]


class ToolsCall(Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: str
    arguments: dict[str, Any] | None = None
    progress_token: int | str | UnsetType = UNSET


class ToolOutput(Struct, frozen=True, omit_defaults=True, rename="camel"):
    content: Any
    """Text, or any JSON."""
    is_error: bool = False


class ProgressNotice(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`$/progress`, plugin to host: of a request that carried this token."""

    token: int | str
    message: str | None = None
    done: Annotated[float, Meta(ge=0)] | None = None
    total: Annotated[float, Meta(gt=0)] | None = None


class CancelNotice(Struct, frozen=True, rename="camel"):
    """`$/cancelRequest`, either way."""

    id: int | str


# log, either spelling.


class Attribute(Struct, frozen=True, rename="camel"):
    key: str
    value: Any = None


class Log(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Plugin to host. `fields` are generation A's; `attrs`, `time` and `source` are B's."""

    level: str = "info"
    """In any case, also with an offset: `INFO`, `DEBUG-4`. One that is not known is `info`."""
    msg: str | None = None
    fields: dict[str, Any] | None = None
    message: str | None = None
    """Read as `msg`."""
    attrs: list[Attribute] | None = None
    time: str | None = None
    source: dict[str, Any] | None = None


# The manifest, `manifest.json`.


class PluginRuntime(Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: str
    version: str | None = None
    run: list[str] | None = None


class Needs(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a plugin needs of the machine; telex's addition. What it does not name it cannot reach,
    where the kernel can see to that."""

    read: list[str] | None = None
    """Directories and files, `~` for home, relative to the working directory."""
    write: list[str] | None = None
    network: bool = False
    env: list[str] | None = None
    """Names of variables passed on from ours."""
    memory: Annotated[int, Meta(ge=1)] | None = None
    """MiB."""


class PluginManifest(Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: Name
    executable: str
    version: str | None = None
    domain: Name | None = None
    description: str | None = None
    help: str | None = None
    doc: str | None = None
    """Generation B's word for `help`."""
    runtime: PluginRuntime | None = None
    config: list[ConfigEntry] | None = None
    commands: list[CommandEntry] | None = None
    tasks: list[Task] | None = None
    needs: Needs | None = None


METHODS: Final[dict[str, tuple[type, type]]] = {
    "handshake": (Handshake, Introduced),
    "initialize": (Initialize, Done),
    "setupCommand": (SetupCommand, Done),
    "runCommand": (RunCommand, Done),
    "validateTask": (ValidateTask, Done),
    "runTask": (RunTask, Done),
    "tools/list": (Done, ToolsList),
    "tools/call": (ToolsCall, ToolOutput),
    "shutdown": (Done, Done),
}
"""Requests from host to plugin: params and result. Generation B answers `shutdown` with true."""

NOTIFICATIONS: Final[dict[str, type]] = {
    "exit": Done,
    "log": Log,
    "$/progress": ProgressNotice,
    "$/cancelRequest": CancelNotice,
}
