"""`Plugin`: what a plugin gives, said with decorators, and `run`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NoReturn, TypeVar, overload

import msgspec

from telex.plugins import protocol as spec
from telex.plugins.sdk.signature import Signature, struct_configs

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""The protocol's names, without the dot, which parts the names of nested commands."""


class BadName(ValueError):
    """A name that no host would take, or one that is taken."""


@dataclass(frozen=True, slots=True)
class DeclaredFunction:
    """Something that can be asked for, and the function that does it."""

    name: str
    description: str | None
    signature: Signature
    aliases: tuple[str, ...] = ()
    usage: str | None = None


@dataclass(slots=True)
class Group:
    """Commands below a name: `telex plugin run NAME remote.add`."""

    name: str
    description: str | None = None
    _given: dict[str, DeclaredFunction | Group] = field(default_factory=dict)

    def command(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        usage: str | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Callable[[F], F]:
        """A command: the function's name and first line, if nothing else is said."""

        def add(function: F) -> F:
            signature = Signature(function)
            signature.configs()  # what cannot be configured is said now
            named = name or _named(function)
            words = description or signature.summary
            self._add(named, DeclaredFunction(named, words, signature, aliases, usage))
            return function

        return add

    def group(self, name: str, *, description: str | None = None) -> Group:
        """Commands below another name."""
        group = Group(name, description)
        self._add(name, group)
        return group

    def find(self, path: str) -> DeclaredFunction | Group | None:
        """What the dotted path leads to."""
        name, _, rest = path.partition(".")
        found = self._given.get(name) or self._aliased(name)
        if rest:
            return found.find(rest) if isinstance(found, Group) else None
        return found

    def told(self) -> list[spec.CommandEntry]:
        """As the handshake tells it."""
        return [_told(one) for one in self._given.values()]

    def _add(self, name: str, what: DeclaredFunction | Group) -> None:
        check_name(name, self._given)
        self._given[name] = what

    def _aliased(self, name: str) -> DeclaredFunction | None:
        named = (one for one in self._given.values() if isinstance(one, DeclaredFunction))
        return next((one for one in named if name in one.aliases), None)


class Plugin(Generic[C]):
    """One plugin. `config`, a msgspec Struct, is its own configuration: `plugin.config` then."""

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
        check_name(name)
        self.name = name
        self.version = version
        self.description = description
        self.shape: type[msgspec.Struct] | None = config
        self.commands = Group("")
        self.tasks: dict[str, DeclaredFunction] = {}
        self.validators: dict[str, Signature] = {}
        self.tools: dict[str, DeclaredFunction] = {}
        self.endings: list[Callable[[], Any]] = []
        self._config: C | None = None
        if config is not None:
            struct_configs(config)  # what cannot be configured is said now

    @property
    def config(self) -> C:
        """The plugin's own configuration, from `initialize` on."""
        if self.shape is not None and self._config is None:
            raise RuntimeError("the plugin has not been initialised: no host has said a value yet")
        return self._config  # type: ignore[return-value]  # None is C, where there is no shape

    def configure(self, config: Any) -> None:
        """From the service: the values came."""
        self._config = config

    def command(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        usage: str | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Callable[[F], F]:
        """A command: the function's name and first line, if nothing else is said."""
        return self.commands.command(name, description=description, usage=usage, aliases=aliases)

    def group(self, name: str, *, description: str | None = None) -> Group:
        """Commands below a name."""
        return self.commands.group(name, description=description)

    def task(self, name: str | None = None, *, description: str | None = None) -> Callable[[F], F]:
        """A type of task. Its configuration is checked by the function's types, and see
        `validate`."""

        def add(function: F) -> F:
            signature = Signature(function)
            signature.configs()
            _add(self.tasks, name or _named(function), description, signature)
            return function

        return add

    def validate(self, name: str) -> Callable[[F], F]:
        """A function with a task's parameters, which raises `InvalidConfig` before it is run."""

        def add(function: F) -> F:
            if name not in self.tasks:
                raise BadName(f"there is no task {name!r} to validate; write the task first")
            self.validators[name] = Signature(function)
            return function

        return add

    def tool(self, name: str | None = None, *, description: str | None = None) -> Callable[[F], F]:
        """A tool: something a language model may call. What it returns is the answer."""

        def add(function: F) -> F:
            signature = Signature(function)
            signature.schema()  # what has none is said now
            words = description or signature.doc or None
            _add(self.tools, name or function.__name__, words, signature)
            return function

        return add

    def at_shutdown(self, function: F) -> F:
        """Called when the host says `shutdown`, before it is answered."""
        self.endings.append(function)
        return function

    def introduced(self, protocol: str, *, capable: bool) -> dict[str, Any]:
        """The answer to a handshake. Generation B takes no member it does not know, so it gets
        none, and who did not mention capabilities hears of none."""
        if protocol == spec.PROTOCOL_B:
            return _explicit(spec.Introduced(protocol, spec.VERSION, self.name))
        said = spec.Introduced(
            protocol,
            spec.VERSION,
            self.name,
            self.version or "0",
            self.description,
            configs=struct_configs(self.shape) if self.shape is not None else None,
            commands=self.commands.told() or None,
            tasks=[_told_task(one) for one in self.tasks.values()] or None,
            capabilities=self._capabilities() if capable else None,
        )
        return _explicit(said)

    def run(self) -> NoReturn:
        """Be the plugin: answer the host until it says `exit` or goes away. Does not return."""
        from telex.plugins.sdk import server

        server.run(self)

    def _capabilities(self) -> spec.SideCapabilities:
        return spec.SideCapabilities(cancel=True, progress=True, tools=bool(self.tools))


def _explicit(said: spec.Introduced) -> dict[str, Any]:
    """With the type of every entry: other hosts have no default for it."""

    def typed(value: Any) -> Any:
        if isinstance(value, list):
            return [typed(one) for one in value]
        if not isinstance(value, dict):
            return value
        entry = {"type": "string"} if "key" in value and "type" not in value else {}
        return {**{name: typed(its) for name, its in value.items()}, **entry}

    answer: dict[str, Any] = typed(msgspec.to_builtins(said))
    return answer


def _named(function: Callable[..., Any]) -> str:
    return function.__name__.strip("_").replace("_", "-")


def _add(
    given: dict[str, DeclaredFunction], name: str, description: str | None, signature: Signature
) -> None:
    check_name(name, given)
    given[name] = DeclaredFunction(name, description or signature.summary, signature)


def check_name(name: str, taken: Collection[str] = ()) -> None:
    """Raises BadName."""
    if not _NAME.fullmatch(name):
        raise BadName(f"{name!r} is no name: use letters, digits, - and _, 64 at most")
    if name in taken:
        raise BadName(f"{name!r} is given twice")


def _told(one: DeclaredFunction | Group) -> spec.CommandEntry:
    if isinstance(one, Group):
        return spec.CommandEntry(one.name, description=one.description, commands=one.told())
    return spec.CommandEntry(
        one.name,
        usage=one.usage or one.name,
        description=one.description,
        help=one.signature.doc or None,
        aliases=list(one.aliases) or None,
        configs=one.signature.configs() or None,
    )


def _told_task(one: DeclaredFunction) -> spec.Task:
    return spec.Task(one.name, description=one.description, configs=one.signature.configs() or None)


def tools_of(given: dict[str, DeclaredFunction]) -> Iterator[spec.ToolEntry]:
    """As `tools/list` tells them."""
    for one in given.values():
        yield spec.ToolEntry(one.name, one.description, one.signature.schema())
