"""`Plugin`: decorators that declare commands, tasks and tools, and `run`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, TypeVar, overload

import msgspec

from telex.plugins import protocol as spec
from telex.plugins.sdk.signature import Signature, struct_configs

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""The protocol's names without the dot, which separates the names of nested commands."""


class BadName(ValueError):
    """A name is invalid for hosts, or is used already."""


@dataclass(frozen=True, slots=True)
class DeclaredFunction:
    """A command, task or tool: its name and the function that runs it."""

    name: str
    description: str | None
    signature: Signature
    aliases: tuple[str, ...] = ()
    usage: str | None = None


class _Commands:
    """Commands and groups by their names: those of a plugin, or of a group."""

    def __init__(self) -> None:
        self._members: dict[str, DeclaredFunction | Group] = {}

    def command(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        usage: str | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Callable[[F], F]:
        """Declare a command.

        Args:
            name: By default the name of the function.
            description: By default the first line of the docstring.
            usage: How the command is called, for its help.
            aliases: Other names.

        Returns:
            A decorator for the function that runs the command.
        """

        def add(function: F) -> F:
            signature = Signature(function)
            signature.configs()  # raises now for a parameter that cannot be configured
            named = name or _named(function)
            words = description or signature.summary
            self._add(named, DeclaredFunction(named, words, signature, aliases, usage))
            return function

        return add

    def group(self, name: str, *, description: str | None = None) -> Group:
        """Declare a group of commands.

        Args:
            name: The name of the group.
            description: A line for its help.
        """
        group = Group(name, description)
        self._add(name, group)
        return group

    def _find(self, path: str) -> DeclaredFunction | Group | None:
        """Return the command or group at a dotted path, or None."""
        name, _, rest = path.partition(".")
        found = self._members.get(name) or self._aliased(name)
        if rest:
            return found._find(rest) if isinstance(found, Group) else None
        return found

    def _entries(self) -> list[spec.CommandEntry]:
        """Return the commands for the answer to the handshake."""
        return [_command_entry(one) for one in self._members.values()]

    def _add(self, name: str, what: DeclaredFunction | Group) -> None:
        check_name(name, self._members)
        self._members[name] = what

    def _aliased(self, name: str) -> DeclaredFunction | None:
        named = (one for one in self._members.values() if isinstance(one, DeclaredFunction))
        return next((one for one in named if name in one.aliases), None)


class Group(_Commands):
    """A group of commands: `telex plugin run NAME remote.add`."""

    __module__ = "telex.plugins.sdk"

    def __init__(self, name: str, description: str | None = None) -> None:
        super().__init__()
        self.name = name
        self.description = description


class Plugin(_Commands, Generic[C]):
    """One plugin. The argument `config`, a msgspec Struct, declares the plugin's own configuration;
    `plugin.config` then has its values."""

    __module__ = "telex.plugins.sdk"

    @overload
    def __init__(
        self: Plugin[None],
        name: str,
        *,
        version: str | None = ...,
        description: str | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        *,
        version: str | None = ...,
        description: str | None = ...,
        config: type[C],
    ) -> None: ...

    def __init__(
        self,
        name: str,
        *,
        version: str | None = None,
        description: str | None = None,
        config: Any = None,
    ) -> None:
        super().__init__()
        check_name(name)
        self.name = name
        self.version = version
        self.description = description
        self.shape: type[msgspec.Struct] | None = config
        self.tasks: dict[str, DeclaredFunction] = {}
        self.validators: dict[str, Signature] = {}
        self.tools: dict[str, DeclaredFunction] = {}
        self.endings: list[Callable[[], Any]] = []
        self._config: C | None = None
        if config is not None:
            struct_configs(config)  # raises now for a field that cannot be configured

    @property
    def config(self) -> C:
        """The plugin's own configuration, set by `initialize`."""
        if self.shape is not None and self._config is None:
            raise RuntimeError("the plugin has no configuration before the host sends `initialize`")
        return self._config  # type: ignore[return-value]  # C is None if there is no shape

    def _configure(self, config: Any) -> None:
        """From the server: set the configuration."""
        self._config = config

    def task(self, name: str | None = None, *, description: str | None = None) -> Callable[[F], F]:
        """Declare a type of task. Its configuration is checked against the function's types; see
        also `validate`.

        Args:
            name: By default the name of the function.
            description: By default the first line of the docstring.

        Returns:
            A decorator for the function that runs the task.
        """

        def add(function: F) -> F:
            signature = Signature(function)
            signature.configs()
            _add(self.tasks, name or _named(function), description, signature)
            return function

        return add

    def validate(self, name: str) -> Callable[[F], F]:
        """Declare a validator of a task: a function with the same parameters, which raises
        `InvalidConfig`.

        Args:
            name: The task, which is already declared.

        Returns:
            A decorator for the validator.
        """

        def add(function: F) -> F:
            if name not in self.tasks:
                raise BadName(f"there is no task {name!r} to validate; declare the task first")
            self.validators[name] = Signature(function)
            return function

        return add

    def tool(self, name: str | None = None, *, description: str | None = None) -> Callable[[F], F]:
        """Declare a tool, which a language model may call. The result of the function is the
        content of the answer.

        Args:
            name: By default the name of the function.
            description: By default the docstring.

        Returns:
            A decorator for the function that runs the tool.
        """

        def add(function: F) -> F:
            signature = Signature(function)
            signature.schema()  # raises now for a parameter without a schema
            words = description or signature.doc or None
            _add(self.tools, name or function.__name__, words, signature)
            return function

        return add

    def at_shutdown(self, function: F) -> F:
        """Register a function that is called at `shutdown`, before it is answered.

        Args:
            function: A function without parameters, `def` or `async def`.
        """
        self.endings.append(function)
        return function

    def _introduced(self, protocol: str, *, capable: bool) -> dict[str, Any]:
        """Return the answer to a handshake. Generation B refuses unknown members, so it gets the
        name only. A host that did not send capabilities receives none."""
        if protocol == spec.PROTOCOL_B:
            return _explicit(spec.Introduced(protocol, spec.VERSION, self.name))
        introduced = spec.Introduced(
            protocol,
            spec.VERSION,
            self.name,
            self.version or "0",
            self.description,
            configs=struct_configs(self.shape) if self.shape is not None else None,
            commands=self._entries() or None,
            tasks=[_task_entry(one) for one in self.tasks.values()] or None,
            capabilities=self._capabilities() if capable else None,
        )
        return _explicit(introduced)

    def run(self) -> NoReturn:
        """Serve the host until it sends `exit` or disconnects, then exit the process."""
        from telex.plugins.sdk import server

        server.run(self)

    def _capabilities(self) -> spec.SideCapabilities:
        return spec.SideCapabilities(cancel=True, progress=True, tools=bool(self.tools))


def _explicit(introduced: spec.Introduced) -> dict[str, Any]:
    """Return the answer with the type of every entry: other hosts have no default for it."""

    def typed(value: Any) -> Any:
        if isinstance(value, list):
            return [typed(one) for one in value]
        if not isinstance(value, dict):
            return value
        entry = {"type": "string"} if "key" in value and "type" not in value else {}
        return {**{name: typed(its) for name, its in value.items()}, **entry}

    answer: dict[str, Any] = typed(msgspec.to_builtins(introduced))
    return answer


def _named(function: Callable[..., Any]) -> str:
    return function.__name__.strip("_").replace("_", "-")


def _add(
    given: dict[str, DeclaredFunction], name: str, description: str | None, signature: Signature
) -> None:
    check_name(name, given)
    given[name] = DeclaredFunction(name, description or signature.summary, signature)


def check_name(name: str, taken: Collection[str] = ()) -> None:
    """Raise BadName if the name is invalid or in `taken`."""
    if not _NAME.fullmatch(name):
        raise BadName(f"{name!r} is not a valid name: use letters, digits, - and _, at most 64")
    if name in taken:
        raise BadName(f"{name!r} is declared twice")


def _command_entry(one: DeclaredFunction | Group) -> spec.CommandEntry:
    if isinstance(one, Group):
        return spec.CommandEntry(one.name, description=one.description, commands=one._entries())
    return spec.CommandEntry(
        one.name,
        usage=one.usage or one.name,
        description=one.description,
        help=one.signature.doc or None,
        aliases=list(one.aliases) or None,
        configs=one.signature.configs() or None,
    )


def _task_entry(one: DeclaredFunction) -> spec.Task:
    return spec.Task(one.name, description=one.description, configs=one.signature.configs() or None)


def tools_of(given: dict[str, DeclaredFunction]) -> Iterator[spec.ToolEntry]:
    """Yield the tools for the result of `tools/list`."""
    for one in given.values():
        yield spec.ToolEntry(one.name, one.description, one.signature.schema())
