"""`telex.adapt`: a program to drive by its state, in a few words.

    with telex.adapt("shell") as shell:
        state = shell.turn("run", command="false")
        assert state.metadata["exit_code"] == 1

A turn sends an intent of the plugin and waits until the program is done with it; `describe` lists
the intents and wait matchers. `async with` gives the same for an event loop; `sync` is the blocking
twin. The program is driven through its adapter alone; `telex.spawn` is for single keys without a
plugin. Errors are those of `telex.spawn` (`telex.automation.errors`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from telex.adapters import protocol as spec
from telex.automation.client import LocalCaller, RemoteCaller, absolute, milliseconds, words
from telex.automation.errors import NotPermitted, Refused, ServerGone, SessionClosed, TimedOut
from telex.automation.portal import DualContext
from telex.automation.protocol import Closed, ScreenSnapshot, TranscriptText
from telex.processes.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.protocol import AdapterState, Inspection, PluginDescription
    from telex.adapters.sync import BlockingAdapted
    from telex.automation.client import Caller
    from telex.automation.protocol import Cells

T = TypeVar("T")

TURN_SECONDS: Final = 120.0
"""As the protocol has it: a turn of a coding agent takes its time."""

READY_SECONDS: Final = 60.0


class Adapted:
    """One program with its adapter: send, wait, look. Leaving `async with` ends the program.

    Parameters of an intent or a wait matcher are given by name. One whose name is taken here, such
    as `timeout`, goes into `params`.
    """

    def __init__(self, asking: Caller, started: spec.Started, *, shared: bool) -> None:
        self._asking = asking
        self.id = started.adapter
        self.plugin = started.plugin
        self.session = started.session
        self._shared = shared
        """Whether its server is everybody's, and goes on without us."""
        self._closed = False

    async def __aenter__(self) -> Adapted:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self, warn: Any = warnings.warn) -> None:
        if not self._closed:
            warn(f"{self!r} was not closed", ResourceWarning, source=self)

    async def state(self) -> AdapterState:
        """What the program is doing now, in the plugin's words."""
        told = await self._ask("adapter.state", spec.OfAdapter(self.id), spec.StateReply)
        return told.state

    async def send(
        self, intent: str, /, *, params: Mapping[str, Any] | None = None, **more: Any
    ) -> AdapterState:
        """Do what an intent wants done. Answers the state right after it, when the program has
        hardly begun; `turn` also waits."""
        asked = spec.SendIntent(self.id, intent, {**(params or {}), **more})
        return (await self._ask("adapter.send", asked, spec.StateReply)).state

    async def wait(
        self,
        matcher: str | None = None,
        /,
        *,
        timeout: float = TURN_SECONDS,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> AdapterState:
        """Until a wait matcher of the plugin finds what it looks for; by default the end of a turn.
        Raises `TimedOut`, which shows the screen and has the state in its `data`."""
        asked = spec.WaitFor(
            adapter=self.id,
            intent=matcher,
            params={**(params or {}), **more},
            timeout_ms=milliseconds(timeout),
        )
        return (await self._ask("adapter.wait", asked, spec.AdapterMatched)).state

    async def turn(
        self,
        intent: str,
        /,
        *,
        wait: str | None = None,
        wait_params: Mapping[str, Any] | None = None,
        timeout: float = TURN_SECONDS,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> AdapterState:
        """Send an intent and wait, as `send` and `wait` do, with nobody else's input in between.
        Answers the state at the end of the wait."""
        waiting = spec.Waiting(
            intent=wait, params=dict(wait_params or {}), timeout_ms=milliseconds(timeout)
        )
        sending = spec.Intent(intent, {**(params or {}), **more})
        asked = spec.TakeTurn(adapter=self.id, send=sending, wait=waiting)
        return (await self._ask("adapter.turn", asked, spec.AdapterMatched)).state

    async def snapshot(self, *, cells: Cells = "full", redact: bool = True) -> ScreenSnapshot:
        """The visible screen."""
        asked = spec.ReadAdapterScreen(adapter=self.id, cells=cells, redact=redact)
        return await self._ask("adapter.snapshot", asked, ScreenSnapshot)

    async def text(self, *, redact: bool = True) -> str:
        """What can be read on the screen."""
        return (await self.snapshot(cells="none", redact=redact)).plain_text

    async def transcript(self, *, strip: bool = True, redact: bool = True) -> str:
        """What was printed, without escape sequences unless asked."""
        asked = spec.ReadAdapterTranscript(adapter=self.id, strip=strip, redact=redact)
        return (await self._ask("adapter.transcript", asked, TranscriptText)).text

    async def inspect(self, *, redact: bool = True) -> Inspection:
        """What the plugin sees, and what it makes of it."""
        asked = spec.ReadAdapter(adapter=self.id, redact=redact)
        return await self._ask("adapter.inspect", asked, spec.Inspection)

    async def describe(self) -> PluginDescription:
        """What the plugin offers: its intents, wait matchers and states."""
        asked = spec.OfPlugin(self.plugin)
        return await self._ask("plugin.describe", asked, spec.PluginDescription)

    async def close(self) -> None:
        """End the program and the adapter. Idempotent."""
        if not self._closed:
            self._closed = True
            await run_shielded(self._end())

    async def _end(self) -> None:
        try:
            if self._shared:  # one that is ours ends whole, whatever the manifest allows
                with contextlib.suppress(Refused, ServerGone):  # it is gone already
                    await self._asking.call("adapter.close", spec.OfAdapter(self.id), Closed)
        finally:
            await self._asking.close()

    async def _ask(self, method: str, params: object, returns: type[T]) -> T:
        if self._closed:
            raise SessionClosed(f"the adapter {self.id} was closed", {})
        return await self._asking.call(method, params, returns)


def adapt(
    plugin: str | os.PathLike[str],
    command: str | Sequence[str] | None = None,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    rows: int | None = None,
    cols: int | None = None,
    at: str | None = None,
    token: str | None = None,
    ready: float | None = READY_SECONDS,
) -> DualContext[Adapted, BlockingAdapted]:
    """A program, with a plugin that knows it, to be driven from here.

    `plugin` is a name (`telex serve` has the same ones), or the path of a plugin's directory.
    `command` is an argument list, or a string that is split as a shell would; without one the
    plugin's own program is started. `env` is what differs from our own environment and from what
    the plugin sets. With `at`, an address as for `telex.connect`, it runs on that server, which
    knows the plugin by its name.

    It is there when the program has come to rest for the first time, as the plugin's
    `wait_turn_matcher` sees it. `ready` is how many seconds that may take; None does not wait.

    Use it by `async with`, or without an event loop by `with`.
    """
    program, *args = (None,) if command is None else words(command)
    asked = spec.Start(
        plugin=str(Path(plugin).absolute()) if isinstance(plugin, os.PathLike) else plugin,
        program=program,
        args=None if program is None else tuple(args),
        cwd=absolute(cwd),
        env=dict(env or {}),
        rows=rows,
        cols=cols,
    )

    async def start() -> Adapted:
        adapted = await (_started_here(asked) if at is None else _started_there(asked, at, token))
        try:
            if ready is not None:
                await _come_to_rest(adapted, ready)
        except BaseException:
            await adapted.close()
            raise
        return adapted

    return DualContext(start, _blocking)


async def _started_here(asked: spec.Start) -> Adapted:
    from telex.adapters.server import AutomationServer
    from telex.redaction import Redactor

    plugin = await asyncio.to_thread(_found, asked.plugin)
    server = AutomationServer([plugin], redactor=Redactor())
    asked = msgspec.structs.replace(asked, plugin=plugin.name)
    return await _started(LocalCaller(server.automation, server), asked, shared=False)


async def _started_there(asked: spec.Start, address: str, token: str | None) -> Adapted:
    from telex.automation.dialer import dial

    return await _started(RemoteCaller(await dial(address, token)), asked, shared=True)


async def _started(asking: Caller, asked: spec.Start, *, shared: bool) -> Adapted:
    try:
        started = await asking.call("adapter.start", asked, spec.Started)
    except BaseException:
        await asking.close()
        raise
    return Adapted(asking, started, shared=shared)


def _found(name: str) -> LuaPlugin:
    """Raises Refused, as a server would that does not have it."""
    from telex.adapters.lua_plugin import PluginRefused
    from telex.adapters.manifest import BadManifest
    from telex.adapters.plugin_registry import PluginNotFound, find_plugin
    from telex.automation.errors import error_kind
    from telex.config import places

    try:
        return find_plugin(name, places.find())
    except PluginNotFound as error:
        raise Refused(str(error), {"reason": "unknown_plugin"}) from None
    except (BadManifest, PluginRefused) as error:
        raise Refused(str(error), {"reason": error_kind(error)}) from None


async def _come_to_rest(adapted: Adapted, timeout: float) -> None:
    """Until there is something to say to it. A plugin that cannot wait is not waited for."""
    try:
        await adapted.wait(timeout=timeout)
    except NotPermitted:
        return
    except Refused as refused:
        if refused.data.get("reason") != "unknown_function":
            raise
    except TimedOut as late:
        late.add_note("telex.adapt waited for the program to come to rest; ready=None does not")
        raise


def _blocking(adapted: Adapted, portal: Any) -> BlockingAdapted:
    from telex.adapters.sync import BlockingAdapted

    return BlockingAdapted(adapted, portal)
