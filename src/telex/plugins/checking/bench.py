"""Where a plugin is held while its clauses are tried: it is started anew when it has to be.

Most clauses share one process, which is ready to be asked. One that breaks a clause is not trusted
with the next. Used by the clauses only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.plugins import commands
from telex.plugins.checking.report import NO_HANDSHAKE, Broken, Untried
from telex.plugins.checking.subject import Subject
from telex.plugins.introducing import NotUnderstood, introduced
from telex.plugins.problems import NotIntroduced
from telex.plugins.values import Sources, resolve
from telex.protocols import plugin_v0 as spec

if TYPE_CHECKING:
    from telex.plugins.checking.subject import Message

INITIALIZE: Final = {"logging": {"enabled": True, "level": "info"}}


@dataclass
class Bench:
    """One plugin, and what is known of it by now."""

    argv: Sequence[str]
    env: Mapping[str, str]
    manifest: spec.Manifest | None
    seconds: float
    command: str | None = None
    """A command that may be run, because the person said so."""
    introduced: spec.Introduced | None = None
    protocol: str = spec.PROTOCOL_A
    refused: int | None = None
    """The code with which it refused another protocol."""
    left: list[int] | None = None
    """Processes it left when it had ended."""
    strays: list[str] = field(default_factory=list)
    """What came on standard output that is no message, from all its processes."""
    said: list[Message] = field(default_factory=list)
    """Every message of those that are gone."""
    stderr: list[str] = field(default_factory=list)
    _ready: Subject | None = None

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[Subject]:
        """A new process, asked nothing yet."""
        subject = await Subject.start(self.argv, self.env, self.seconds)
        try:
            yield subject
        finally:
            await self._gone(subject)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[Subject]:
        """A new process, ready."""
        self.known()
        async with self.fresh() as subject:
            await self._begin(subject)
            yield subject

    async def ready(self) -> Subject:
        """The shared process, ready."""
        self.known()
        if self._ready is not None and self._ready.child.exit is not None:
            await self.discard()
        if self._ready is None:
            self._ready = await Subject.start(self.argv, self.env, self.seconds)
            await self._begin(self._ready)
        return self._ready

    async def discard(self) -> None:
        """The shared process is not trusted any more."""
        if (subject := self._ready) is not None:
            self._ready = None
            await self._gone(subject)

    def known(self) -> spec.Introduced:
        if self.introduced is None:
            raise Untried(NO_HANDSHAKE)
        return self.introduced

    def can(self, capability: str) -> None:
        """Raises Untried unless it announced it."""
        capabilities = self.known().capabilities or spec.Capabilities()
        if not getattr(capabilities, capability):
            raise Untried(f"it does not announce {capability}")

    @property
    def is_a(self) -> bool:
        return self.protocol == spec.PROTOCOL_A

    def number(self, condition: int) -> int:
        """The code that its generation has for this."""
        return spec.number_of(condition, self.protocol)

    def defaults(self, *, of_plugin: bool = False) -> list[dict[str, Any]]:
        """What a host would say where the person gives no value: of the command that may be run, or
        of the plugin itself."""
        said = self.known()
        entries = said.configs if of_plugin else self._entries_of_command()
        values = resolve(said.name, entries or [], Sources())
        pairs: list[dict[str, Any]] = msgspec.to_builtins(values.key_values())
        return pairs

    def _entries_of_command(self) -> list[spec.ConfigEntry] | None:
        below, found = self.known().commands, None
        for word in (self.command or "").split("."):
            found = commands.named(below, word)
            below = found.commands if found else None
        return found.configs if found else None

    async def shake(self, subject: Subject, protocol: str) -> Any:
        """What it says of itself. Raises Broken for what no host would take."""
        said = await subject.result("handshake", handshake(protocol))
        try:
            understood = introduced(said, self.manifest)
            commands.check(understood.name, understood)
        except NotUnderstood as reason:
            raise Broken(f"it {reason}") from None
        except NotIntroduced as wrong:
            raise Broken(f"it {wrong.what}") from None
        return said, understood

    async def _begin(self, subject: Subject) -> None:
        await self.shake(subject, self.protocol)
        if self.is_a:
            await subject.result("initialize", INITIALIZE)

    async def _gone(self, subject: Subject) -> None:
        await subject.close()
        self.strays += subject.strays
        self.said += subject.said
        self.stderr = subject.stderr or self.stderr


def handshake(protocol: str, version: int = spec.VERSION) -> dict[str, Any]:
    capabilities = {"cancel": True, "progress": True, "tools": True}
    return {
        "protocol": protocol,
        "protocolVersion": version,
        **({"capabilities": capabilities} if protocol == spec.PROTOCOL_A else {}),
    }
