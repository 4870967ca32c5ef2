"""The adapters of one server, by id: started, attached, found, closed.

All connections share them, and they outlive each. An adapter that started a program has its session
for its own; one that was attached leaves the session when it is closed, and goes when the session
does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from telex.adapters.adapter import Adapter
from telex.automation.errors import start_failed
from telex.processes.spawn import StartFailed
from telex.protocols.pty_adapters import DefaultTarget
from telex.terminal.cells import Size
from telex.terminal.pty import Program
from telex.wire import limits

if TYPE_CHECKING:
    from telex.adapters.lua.nursery import Nursery
    from telex.adapters.sources import Plugin
    from telex.automation.server import AutomationService
    from telex.protocols.pty_adapters import Start

ROWS: Final = 40
COLS: Final = 120
"""The size of a terminal when neither the caller nor the manifest says one."""


class UnknownAdapter(LookupError):
    """There is no adapter of that id, or no longer."""


class TooManyAdapters(Exception):
    """The server holds as many as it may."""


class NoProgram(ValueError):
    """Neither the caller nor the manifest says what to start."""


class NotAnAdapter(ValueError):
    """A plugin that knows no program: it is there for its predicates."""


class Live:
    """Every adapter that was not closed."""

    def __init__(self, automation: AutomationService, nursery: Nursery) -> None:
        self._automation = automation
        self._nursery = nursery
        self._adapters: dict[str, Adapter] = {}
        self._ending: dict[str, tuple[Adapter, asyncio.Task[None]]] = {}
        self._count = 0
        automation.closers.add(self._session_closed)

    def all(self) -> tuple[Adapter, ...]:
        return tuple(self._adapters.values())  # they are numbered as they come

    def knows(self, id: str) -> bool:
        return id in self._adapters

    def find(self, id: str, *, ending: bool = False) -> Adapter:
        """Raises UnknownAdapter. One that is being closed is found by those who ask for it."""
        if ending and id in self._ending:
            return self._ending[id][0]
        try:
            return self._adapters[id]
        except KeyError:
            known = ", ".join([*self._adapters][:8])
            listed = f"there are {known}" if known else "there are none"
            raise UnknownAdapter(f"unknown adapter: {id}; {listed}") from None

    def start(self, plugin: Plugin, asked: Start) -> Adapter:
        """A new adapter on a program of its own. Raises what starting it raises."""
        self.check(plugin, asked)
        program = target(plugin, asked)
        try:
            session, _ = self._automation.open(program)
        except StartFailed as error:
            raise start_failed(error, program.argv[0]) from error
        return self._bound(plugin, session, owns=True)

    def check(self, plugin: Plugin, asked: Start, instead_of: str | None = None) -> None:
        """Raise what can be known to be wrong before anything is started, or closed for it."""
        self._room_for(plugin, 0 if instead_of is None else self.knows(instead_of))
        target(plugin, asked)

    def attach(self, plugin: Plugin, session: str) -> Adapter:
        """A new adapter on a session that is there. Raises UnknownSession."""
        self._automation.find(session)
        self._room_for(plugin)
        return self._bound(plugin, session, owns=False)

    async def shut(self, adapter: Adapter) -> None:
        """End an adapter, and its session if that is its own. What waits on it is told so. Goes on
        to its end whoever leaves meanwhile."""
        ending = self._ending.get(adapter.id)
        if ending is not None:  # somebody closes it already: it is closed when that is done
            await asyncio.shield(ending[1])
        elif not adapter.closed:
            await asyncio.shield(self._begin_to_end(adapter))

    async def close(self) -> None:
        """Let go of all plugins."""
        for adapter in self.all():
            _ = self._begin_to_end(adapter)
        if self._ending:
            await asyncio.wait({task for _, task in self._ending.values()})

    def _room_for(self, plugin: Plugin, leaving: int = 0) -> None:
        if plugin.manifest.kind != "adapter":
            raise NotAnAdapter(f"{plugin.name} is a {plugin.manifest.kind}, not an adapter")
        if len(self._adapters) - leaving >= limits.ADAPTERS:
            raise TooManyAdapters(f"there are {limits.ADAPTERS} adapters already; close some")

    def _bound(self, plugin: Plugin, session_id: str, *, owns: bool) -> Adapter:
        session, _ = self._automation.find(session_id)
        self._count += 1
        id = f"e{self._count}"
        instance = self._nursery.instance(plugin)
        adapter = Adapter(id, plugin, instance, session_id, session, owns=owns)
        self._adapters[id] = adapter
        self._automation.bindings.bind(session_id, id, own=owns)
        self._automation.session_appeared(session_id)
        return adapter

    def _session_closed(self, session: str) -> None:
        for adapter in self.all():
            if adapter.session_id == session:
                _ = self._begin_to_end(adapter)

    def _begin_to_end(self, adapter: Adapter) -> asyncio.Task[None]:
        self._adapters.pop(adapter.id, None)
        adapter.closed = True
        task = asyncio.create_task(self._end(adapter))
        self._ending[adapter.id] = (adapter, task)
        task.add_done_callback(lambda _: self._ending.pop(adapter.id))
        return task

    async def _end(self, adapter: Adapter) -> None:
        try:
            if not adapter.owns:
                self._automation.release_session(adapter.session_id, adapter.id)
            elif not adapter.session.closed:
                await self._automation.end_session(adapter.session_id)
        finally:
            await adapter.close()


def target(plugin: Plugin, asked: Start) -> Program:
    """What to start: the caller's word, else the manifest's, else ours. Only `required_env` is the
    manifest's alone."""
    manifest = plugin.manifest.default_target
    name = asked.program or (manifest.program if manifest else None)
    if name is None:
        raise NoProgram(
            f"the manifest of {plugin.name} has no default_target; say which program to start"
        )
    default = manifest or DefaultTarget(name)
    args = asked.args
    if args is None:
        args = default.args if asked.program is None else ()
    size = Size(
        asked.rows or default.rows or ROWS,
        asked.cols or default.cols or COLS,
        asked.pixel_width or 0,
        asked.pixel_height or 0,
    )
    env = {**default.env, **(asked.env or {}), **default.required_env}
    return Program((name, *args), asked.cwd, env, size)
