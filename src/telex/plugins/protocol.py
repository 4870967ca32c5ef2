"""The plugin protocol, version 0, as data: methods with params and results, errors, manifest.

The published text (`docs/specs/plugin_v0.md`) ends before its methods. There are two generations of
the original, which differ in names and numbers: A is named `rpp`, describes itself in the handshake
and is initialised; B is named `reginald`, has a manifest file, is not initialised, and refuses
unknown members. telex speaks A and understands both. Its additions must be announced as a
capability before they are used. `docs/reference/plugin-protocol.md` describes the protocol, with
schemas that are rendered from this module.

`null` means absent everywhere, as the text says. Unknown members are tolerated.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

PROTOCOL_A: Final = "rpp"
PROTOCOL_B: Final = "reginald"
VERSION: Final = 0

# Error codes beyond those of JSON-RPC.

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
    -32700: "Parse error: the message is not JSON.",
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
    """Return the number that a generation uses for one of the conditions above."""
    return _NUMBERS_OF_B.get(condition, condition) if protocol == PROTOCOL_B else condition


def condition_of(number: int, protocol: str) -> int:
    """Return the condition above that a generation means by a number; other numbers unchanged."""
    return _CONDITIONS_OF_B.get(number, number) if protocol == PROTOCOL_B else number


Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=64)]
Level = Literal["trace", "debug", "info", "warn", "error"]
ValueType = Literal[
    "bool", "int", "string", "path", "boolList", "intList", "stringList", "pathList"
]
CONFIGS: Final = "configs"
"""The type of a value that is itself a list of values: a table. No entry declares this type."""
Value = bool | int | str | list[bool | int | str]


class Flag(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The flag that sets a value on the command line."""

    name: str | None = None
    """By default the key."""
    shorthand: str | None = None
    description: str | None = None
    usage: str | None = None
    """Generation A's name for `description`."""


class ConfigEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A value that a plugin, a command or a task takes, with its default."""

    key: Name
    value: Any = None
    type: ValueType = "string"
    description: str | None = None
    flag: Flag | None = None
    env_override: str | None = None
    """The whole name of a variable, instead of the default name."""
    flag_only: bool | None = None


class MappedEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A table of tables that a task takes. The person chooses the keys of the outer table; each
    inner table has `values`."""

    key: Name
    key_type: Literal["string", "path"]
    values: list[ConfigEntry]
    description: str | None = None


class UnionEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Values of which a task takes one. If none is set, the first one has its default."""

    alternatives: list[Any]
    """Each is a `ConfigEntry` or a `MappedEntry`."""


class KeyValue(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A value, as it is sent to a plugin. A host always sends its type."""

    key: str
    value: Any
    type: str | None = None
    """A `ValueType`, or `configs`: then the value is a list of `KeyValue`."""


class CommandEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: Name
    usage: str | None = None
    description: str | None = None
    help: str | None = None
    doc: str | None = None
    """Generation B's name for `help`."""
    manual: str | None = None
    aliases: list[Name] | None = None
    configs: list[ConfigEntry] | None = None
    config: list[ConfigEntry] | None = None
    """Generation B's name for `configs`."""
    args: Any = None
    commands: list[CommandEntry] | None = None


class Task(Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: str | None = None
    task_type: str | None = None
    """Generation B's name for `type`."""
    description: str | None = None
    provides: str | None = None
    configs: list[ConfigEntry] | None = None
    config: list[Any] | None = None
    """Generation B only: each is a `ConfigEntry`, a `MappedEntry` or a `UnionEntry`."""


class SideCapabilities(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Optional features that one side supports; telex's addition. Absent means false."""

    cancel: bool = False
    progress: bool = False
    tools: bool = False


# handshake, initialize.


class Handshake(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The first request from host to plugin."""

    protocol: str
    protocol_version: int
    capabilities: SideCapabilities | UnsetType = UNSET


class Introduced(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The answer to `handshake`: the plugin's description of itself."""

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
    """In upper or lower case, also with an offset as in `DEBUG-4`. An unknown level is `info`."""


class Initialize(Struct, frozen=True, omit_defaults=True, rename="camel"):
    logging: LoggingConfig
    config: list[KeyValue] | None = None


# Commands and tasks.


class SetupCommand(Struct, frozen=True, rename="camel"):
    name: str
    args: list[str] = []
    config: list[KeyValue] | UnsetType = UNSET


class RunCommand(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Generation A uses `name`, of the command that was set up; B uses all other members."""

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
    """An empty object, for methods without parameters or without a result."""


# Tools, progress, cancel: each is a capability.


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
    """`$/progress`, plugin to host: the progress of the request with this token."""

    token: int | str
    message: str | None = None
    done: Annotated[float, Meta(ge=0)] | None = None
    total: Annotated[float, Meta(gt=0)] | None = None


class CancelNotice(Struct, frozen=True, rename="camel"):
    """`$/cancelRequest`, in either direction: cancel the request with this id."""

    id: int | str


# log, in the form of either generation.


class Attribute(Struct, frozen=True, rename="camel"):
    key: str
    value: Any = None


class Log(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A log record, plugin to host. `fields` is generation A's; `attrs`, `time` and `source` are
    B's."""

    level: str = "info"
    """In upper or lower case, also with an offset: `INFO`, `DEBUG-4`. An unknown level is
    `info`."""
    msg: str | None = None
    fields: dict[str, Any] | None = None
    message: str | None = None
    """Generation B's name for `msg`."""
    attrs: list[Attribute] | None = None
    time: str | None = None
    source: dict[str, Any] | None = None


# The manifest, `manifest.json`.


class PluginRuntime(Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: str
    version: str | None = None
    run: list[str] | None = None


class Needs(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The files, variables and limits that a plugin needs; telex's addition. Everything else is
    inaccessible, if the kernel can enforce that."""

    read: list[str] | None = None
    """Directories and files, `~` for home, relative to the working directory."""
    write: list[str] | None = None
    network: bool = False
    env: list[str] | None = None
    """Names of variables that are passed on from the host's environment."""
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
    """Generation B's name for `help`."""
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
