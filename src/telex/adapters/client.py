"""`telex.adapt`: drive a program by its state.

    with telex.adapt("shell") as shell:
        state = shell.turn("run", command="false")
        assert state.metadata["exit_code"] == 1

A turn sends an intent of the plugin and waits until the program has completed it; `describe` lists
the intents and wait matchers. `async with` gives the same object for an event loop; `sync` has the
blocking class. All input goes through the adapter; `telex.spawn` is for single keys without a
plugin. The errors are the same as for `telex.spawn` (`telex.automation.errors`).
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
from telex.automation.arguments import checks_arguments
from telex.automation.caller import LocalCaller, dial_caller
from telex.automation.client import absolute, made_by, milliseconds, words
from telex.automation.errors import NotPermitted, Refused, ServerGone, SessionClosed, TimedOut
from telex.automation.portal import DualContext, end_abandoned, hides_frames
from telex.automation.protocol import Closed, ScreenSnapshot, TranscriptText
from telex.processes.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.protocol import AdapterState, Inspection, PluginDescription
    from telex.adapters.sync import Adapted
    from telex.automation.caller import Caller
    from telex.automation.protocol import Cells

T = TypeVar("T")
__tracebackhide__ = hides_frames

TURN_SECONDS: Final = 120.0
"""The default of the protocol. A turn of a coding agent may take minutes."""

READY_SECONDS: Final = 60.0


@checks_arguments
class AsyncAdapted:
    """A program with its adapter: send intents, wait, read its state. Made by `telex.adapt`.

    Leaving `async with` ends the program. Parameters of an intent or a wait matcher are given by
    name; one whose name is taken, such as `timeout`, goes into `params`.

    Example:
        async with telex.adapt("shell") as shell:
            state = await shell.turn("run", command="false")
            print(state.metadata["exit_code"])
    """

    __module__ = "telex"

    def __init__(
        self, asking: Caller, started: spec.Started, *, shared: bool, redact: bool
    ) -> None:
        self._asking = asking
        self.id = started.adapter
        self.plugin = started.plugin
        self.session = started.session
        self._shared = shared
        """Whether the server is shared with other clients and continues after `close`."""
        self._redact = redact
        """Whether reads mask secrets, unless they say otherwise."""
        self._loop = asyncio.get_running_loop()
        self._closed = False

    async def __aenter__(self) -> AsyncAdapted:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self, warn: Any = warnings.warn) -> None:
        if not self._closed:
            warn(f"{self!r} was not closed", ResourceWarning, source=self)
            end_abandoned(self._loop, self.close)

    async def state(self) -> AdapterState:
        """Read the state that the plugin sees on the screen now.

        Returns:
            The name of the state, its confidence and evidence, and the plugin's metadata.
        """
        reply = await self._ask("adapter.state", spec.OfAdapter(self.id), spec.StateReply)
        return reply.state

    async def send(
        self, intent: str, /, *, params: Mapping[str, Any] | None = None, **more: Any
    ) -> AdapterState:
        """Send an intent of the plugin, without waiting for its outcome; `turn` also waits.

        Args:
            intent: The name of the intent; `describe` lists them.
            params: Parameters of the intent.
            more: Parameters of the intent, by name.

        Returns:
            The state right after the input was typed.

        Raises:
            Refused: There is no such intent, or the plugin refused it.
            NotPermitted: The plugin's manifest does not allow it.
        """
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
        """Wait for a wait matcher of the plugin.

        Args:
            matcher: The name of the matcher; None waits for the end of a turn.
            timeout: Seconds to wait.
            params: Parameters of the matcher.
            more: Parameters of the matcher, by name.

        Returns:
            The state when it matched.

        Raises:
            TimedOut: It did not match in time. The message shows the screen, `data` the state.
        """
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
        """Send an intent and wait, as `send` and `wait` do, with no other input between them.

        Args:
            intent: The name of the intent.
            wait: The name of the wait matcher; None waits for the end of the turn.
            wait_params: Parameters of the wait matcher.
            timeout: Seconds to wait.
            params: Parameters of the intent.
            more: Parameters of the intent, by name.

        Returns:
            The state at the end of the wait.

        Raises:
            TimedOut: The turn did not end in time.
            Refused: There is no such intent or matcher, or the plugin refused it.

        Example:
            state = await shell.turn("run", command="echo hello")
        """
        waiting = spec.Waiting(
            intent=wait, params=dict(wait_params or {}), timeout_ms=milliseconds(timeout)
        )
        sending = spec.Intent(intent, {**(params or {}), **more})
        asked = spec.TakeTurn(adapter=self.id, send=sending, wait=waiting)
        return (await self._ask("adapter.turn", asked, spec.AdapterMatched)).state

    async def snapshot(
        self, *, cells: Cells = "full", redact: bool | None = None
    ) -> ScreenSnapshot:
        """Read the visible screen.

        Args:
            cells: "full" for every cell, "runs" for runs of one style, "none" for text only.
            redact: Mask secrets; None for the default, see `telex.adapt`.
        """
        asked = spec.ReadAdapterScreen(adapter=self.id, cells=cells, redact=self._masks(redact))
        return await self._ask("adapter.snapshot", asked, ScreenSnapshot)

    async def text(self, *, redact: bool | None = None) -> str:
        """Read the text of the visible screen.

        Args:
            redact: Mask secrets; None for the default, see `telex.adapt`.
        """
        return (await self.snapshot(cells="none", redact=redact)).plain_text

    async def transcript(self, *, strip: bool = True, redact: bool | None = None) -> str:
        """Read what the program printed, in order, as far back as it is kept.

        Args:
            strip: Leave out escape sequences.
            redact: Mask secrets; None for the default, see `telex.adapt`.
        """
        asked = spec.ReadAdapterTranscript(adapter=self.id, strip=strip, redact=self._masks(redact))
        return (await self._ask("adapter.transcript", asked, TranscriptText)).text

    async def inspect(self, *, redact: bool | None = None) -> Inspection:
        """Read everything the plugin sees, and the state it derives from that.

        Args:
            redact: Mask secrets; None for the default, see `telex.adapt`.
        """
        asked = spec.ReadAdapter(adapter=self.id, redact=self._masks(redact))
        return await self._ask("adapter.inspect", asked, spec.Inspection)

    async def describe(self) -> PluginDescription:
        """List the plugin's intents, wait matchers and states."""
        asked = spec.OfPlugin(self.plugin)
        return await self._ask("plugin.describe", asked, spec.PluginDescription)

    async def close(self) -> None:
        """End the program and the adapter. A second call does nothing."""
        if not self._closed:
            self._closed = True
            await run_shielded(self._end())

    async def _end(self) -> None:
        try:
            if self._shared:  # a server of this process ends completely, without a permission
                with contextlib.suppress(Refused, ServerGone):  # the adapter is closed already
                    await self._asking.call("adapter.close", spec.OfAdapter(self.id), Closed)
        finally:
            await self._asking.close()

    def _masks(self, redact: bool | None) -> bool:
        return self._redact if redact is None else redact

    async def _ask(self, method: str, params: object, returns: type[T]) -> T:
        if self._closed:
            raise SessionClosed(f"the adapter {self.id} was closed", {})
        return await self._asking.call(method, params, returns)


@checks_arguments
def adapt(
    plugin: str | os.PathLike[str],
    command: str | Sequence[str | os.PathLike[str]] | None = None,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    rows: int | None = None,
    cols: int | None = None,
    at: str | None = None,
    token: str | None = None,
    ready: float | None = READY_SECONDS,
    redact: bool | None = None,
) -> DualContext[AsyncAdapted, Adapted]:
    """Start a program together with a plugin that knows its states.

    Args:
        plugin: The name of a plugin (`telex adapter list`), or the path of its directory.
        command: An argument list, or a string that is split as a shell splits words; None starts
            the plugin's own program.
        cwd: The working directory.
        env: Changes to this process's environment and to what the plugin sets.
        rows: Height of the terminal; None for the plugin's own.
        cols: Width of the terminal; None for the plugin's own.
        at: The address of a server, as for `telex.connect`; None runs the program in this process.
        token: The token of that server.
        ready: Seconds to wait until the program is ready for a first turn; None does not wait.
        redact: Mask secrets in what is read. None masks on a server and nothing in this process;
            what gets into logs by itself (exceptions) is masked in any case.

    Returns:
        An object for `with` (gives an `Adapted`) or `async with` (gives an `AsyncAdapted`).

    Raises:
        Refused: There is no such plugin, or its manifest is not valid. Raised on entering.
        NotStarted: The program could not be started. Raised on entering.
        TimedOut: The program was not ready in time. Raised on entering.

    Example:
        with telex.adapt("python-repl") as repl:
            print(repl.turn("evaluate", code="6 * 7").metadata)
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

    async def start() -> AsyncAdapted:
        if at is None:
            adapted = await _started_here(asked, bool(redact))
        else:
            caller = await dial_caller(at, token)
            adapted = await _started(caller, asked, shared=True, redact=redact is not False)
        try:
            if ready is not None:
                await _come_to_rest(adapted, ready)
        except BaseException:
            await adapted.close()
            raise
        return adapted

    return DualContext(start, _blocking, made_by("telex.adapt", str(plugin)), "adapted")


async def _started_here(asked: spec.Start, redact: bool) -> AsyncAdapted:
    from telex.adapters.server import AutomationServer
    from telex.redaction import Redactor

    plugin = await asyncio.to_thread(_found, asked.plugin)
    server = AutomationServer([plugin], redactor=Redactor(), masks_states=redact)
    asked = msgspec.structs.replace(asked, plugin=plugin.name)
    caller = LocalCaller(server.automation, server)
    return await _started(caller, asked, shared=False, redact=redact)


async def _started(
    asking: Caller, asked: spec.Start, *, shared: bool, redact: bool
) -> AsyncAdapted:
    try:
        started = await asking.call("adapter.start", asked, spec.Started)
    except BaseException:
        await asking.close()
        raise
    return AsyncAdapted(asking, started, shared=shared, redact=redact)


def _found(name: str) -> LuaPlugin:
    """Find and read a plugin. Raises Refused, like a server without this plugin."""
    from telex.adapters.lua_plugin import PluginRefused
    from telex.adapters.manifest import BadManifest
    from telex.adapters.plugin_registry import PluginNotFound, find_plugin
    from telex.automation.error_map import error_kind
    from telex.config import places

    try:
        return find_plugin(name, places.find())
    except PluginNotFound as error:
        raise Refused(str(error), {"reason": "unknown_plugin"}) from None
    except (BadManifest, PluginRefused) as error:
        raise Refused(str(error), {"reason": error_kind(error)}) from None


async def _come_to_rest(adapted: AsyncAdapted, timeout: float) -> None:
    """Wait until the program waits for input. Returns at once if the plugin cannot wait."""
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


def _blocking(adapted: AsyncAdapted, portal: Any) -> Adapted:
    from telex.adapters.sync import Adapted

    return Adapted(adapted, portal)
