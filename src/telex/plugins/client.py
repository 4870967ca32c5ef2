"""One running plugin: started, introduced, called, and ended with everything that came of it.

    async with start(found, PluginSettings()) as plugin:
        await plugin.call("runCommand", RunCommand(name="hello"))

One task owns the process from its start to its reaping, and nobody else touches it: `close` only
says that it is time, so that it does not matter who closes, or whether the closer is cancelled.
Whatever goes wrong with the plugin is a `PluginError` whose sentence names it. A start that fails
has ended the whole tree before it says so.

Ending goes down a ladder: `shutdown`, `exit`, standard input closed, SIGTERM to the tree, SIGKILL,
reaped. A plugin that broke off, or off the protocol, is not asked: for it the ladder begins with
its standard input. Cancelling `close` skips the polite steps, and still waits for the end. Restarts
are the `supervisor`'s.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from telex.plugins import errors, limits, plugin_logs
from telex.plugins.conversation import PluginConversation
from telex.plugins.handshake import HandshakeContext, perform_handshake
from telex.plugins.plugin_process import PluginProcess, StderrReader
from telex.plugins.plugin_settings import PluginSettings, plugin_environment
from telex.processes import spawn
from telex.processes.termination import TreeSurvived
from telex.rpc.messages import ABSENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from types import TracebackType

    from telex.plugins import protocol as spec
    from telex.plugins.discovery import FoundPlugin

T = TypeVar("T")

_CLOSED = "was closed by its host"


def start(found: FoundPlugin, settings: PluginSettings | None = None) -> RunningPlugin:
    """A plugin, started by `async with`, or by `begin` and then closed by `close`."""
    return RunningPlugin(found, settings or PluginSettings())


class RunningPlugin:
    """One process, from `begin` to `close`."""

    introduced: spec.Introduced
    """What it said of itself, in generation A's words whichever it is of. Set by `begin`."""

    def __init__(self, found: FoundPlugin, settings: PluginSettings) -> None:
        self.found, self.name = found, found.name
        self.ended: errors.PluginEnded | None = None
        """Why it ended or is being ended; None while it runs."""
        self.ended_at: float | None = None
        """When that was, on the event loop's clock."""
        self.conversation = PluginConversation(found.name, settings, self._end, self._over)
        self._settings = settings
        self._polite = False
        self._ending = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start it and shake hands. Raises PluginNotStarted or PluginHandshakeFailed, and
        then nothing of it is left."""
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(begun), name=f"plugin {self.name}")
        try:
            await asyncio.wait({begun, self._owner}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.close()
            if not begun.cancel():
                begun.exception()  # nobody waits for it any more
            raise
        if not begun.done():
            self._owner.result()
        begun.result()

    def signal_close(self) -> None:
        """Have it end, without waiting."""
        self._end(_CLOSED, polite=True)

    def interrupt(self) -> None:
        """Nobody wants what it does any more. One that listens to cancels has heard so and gets its
        time; another is busy, would not hear `shutdown` either, and is ended without it."""
        if not (self.introduced.capabilities and self.introduced.capabilities.cancel):
            self._end("was interrupted")

    async def close(self) -> None:
        """Have it end, and wait until nothing of it is left. Idempotent. Cancelled, it waits for
        that too, and sees to it that it is soon."""
        self.signal_close()
        try:
            await self.wait_ended()
        except asyncio.CancelledError:
            await self._hurried()
            raise

    async def _hurried(self) -> None:
        while self._owner is not None and not self._owner.done():
            self._owner.cancel()
            with suppress(asyncio.CancelledError):  # as good as once
                await asyncio.wait({self._owner})

    async def wait_ended(self) -> None:
        """Wait until nothing of it is left, whoever ended it."""
        if self._owner is not None:
            await asyncio.wait({self._owner})
            if not self._owner.cancelled():
                self._owner.result()

    @property
    def end_reason(self) -> str | None:
        """Why it is over, as a sentence that names it; None while it runs."""
        return str(self.ended) if self.ended else None

    @property
    def failed(self) -> bool:
        """Whether it is over, and not because it was closed here."""
        return self.ended is not None and not self._polite

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def call(
        self,
        method: str,
        params: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = limits.PLUGIN_CALL_SECONDS,
        on_progress: Callable[[spec.ProgressNotice], None] | None = None,
    ) -> T:
        """Ask, and wait for the answer; None is as long as it takes. Raises a `PluginError`.

        Cancelled or out of time, it tells the plugin, if that announced that it listens; whatever
        comes then is ignored. Progress is asked for where the plugin announced it.
        """
        if self.ended is not None:
            raise await self._over()
        can = self.introduced.capabilities
        if can is None or not can.progress:
            on_progress = None
        answer: T = await self.conversation.call(method, params, timeout, returns, on_progress)
        return answer

    async def notify(self, method: str, params: object = ABSENT) -> None:
        """Send a notification. Raises PluginEnded."""
        if self.ended is not None:
            raise await self._over()
        await self.conversation.notify(method, params)

    async def _over(self) -> errors.PluginEnded:
        """Why, to be raised. A new one each time: an exception keeps all places it was raised."""
        await self._ending.wait()
        assert self.ended is not None
        return errors.PluginEnded(self.name, self.ended.what, self.ended.hint)

    def _end(self, what: str, hint: str = "", *, polite: bool = False) -> None:
        """It is over, for this reason; the first one counts. The owner does the rest."""
        if self.ended is None:
            self.ended, self._polite = errors.PluginEnded(self.name, what, hint), polite
            self.ended_at = asyncio.get_running_loop().time()
            self._ending.set()

    # The owner task.

    async def _own(self, begun: asyncio.Future[None]) -> None:
        try:
            await self._live(begun)
        except errors.PluginError as failure:
            self._end(failure.what, failure.hint)
            begun.set_exception(failure)  # only a beginning raises one

    async def _live(self, begun: asyncio.Future[None]) -> None:
        process = self._spawned()
        introduced = False
        try:
            await process.attach()
            self.conversation.open(process.pipes)
            async with _beside(self._watch(process)):
                await self._introduced(process)
                introduced = True
                begun.set_result(None)
                await self._ending.wait()
                if self._polite:
                    await self._take_leave(process)
        except errors.PluginError as failure:
            self._end(failure.what, failure.hint)
            raise
        finally:
            self._end("was abandoned by its host")
            await self._end_process(process, patiently=introduced and self._polite)

    def _spawned(self) -> PluginProcess:
        found, settings = self.found, self._settings
        if found.refusal is not None:
            raise errors.PluginNotStarted(self.name, f"is not run: {found.refusal}")
        env = plugin_environment(found, settings.environ)
        stderr = StderrReader(self.name, settings.on_stderr_line, settings.redactor)
        try:
            return PluginProcess(settings.command(found), env, settings.cwd, stderr)
        except spawn.StartFailed as error:
            raise errors.PluginNotStarted(self.name, f"did not start: {error}") from error

    async def _watch(self, process: PluginProcess) -> None:
        what, last_words = await process.wait_over(self._settings.deadlines.stdin)
        self._end(what, last_words)

    async def _unless_over(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this, unless it is over first."""
        async with _beside(self._ending.wait()) as over, _beside(work) as working:
            await asyncio.wait({working, over}, return_when=asyncio.FIRST_COMPLETED)
        if working.cancelled():
            raise await self._over()

    async def _introduced(self, process: PluginProcess) -> None:
        try:
            await self._unless_over(self._introduce(process))
        except errors.PluginEnded as over:
            what = f"{over.what} before it was introduced"
            raise errors.PluginHandshakeFailed(self.name, what, over.hint) from None

    async def _introduce(self, process: PluginProcess) -> None:
        def silence_hint() -> str:
            return self.conversation.first_output_hint(process.pipes.first_output)

        asking = HandshakeContext(self.found, self._settings, self.conversation.call, silence_hint)
        self.introduced = said = await perform_handshake(
            asking, plugin_logs.level_of_logger(self.conversation.log)
        )
        self.conversation.protocol = said.protocol
        if said.capabilities is not None and said.capabilities.cancel:
            self.conversation.enable_cancel()

    async def _take_leave(self, process: PluginProcess) -> None:
        """`shutdown`, then `exit`, each with its time. It cannot refuse, only take longer."""
        deadlines = self._settings.deadlines
        try:
            if await self.conversation.call("shutdown", ABSENT, deadlines.shutdown, Any) is False:
                self.conversation.log.info("%s answered shutdown with false", self.name)
        except errors.PluginError as failure:
            self.conversation.log.info("%s", failure)
        try:
            async with asyncio.timeout(deadlines.exit):
                await self.conversation.notify("exit")
                await process.exited()
        except errors.PluginEnded:
            return
        except TimeoutError:
            self.conversation.log.info("%s did not end when told to", self.name)

    async def _end_process(self, process: PluginProcess, *, patiently: bool) -> None:
        """Cancelled or not, it is done when this returns; each cancel only takes time away."""
        try:
            await self._end_by_ladder(process, self._settings.deadlines.term, patiently=patiently)
        except asyncio.CancelledError:
            await self._kill_process(process)
            raise

    async def _kill_process(self, process: PluginProcess) -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await self._end_by_ladder(process, 0, patiently=False)
                return

    async def _end_by_ladder(self, process: PluginProcess, term: float, *, patiently: bool) -> None:
        """The rest of the ladder. What survives all of it is named in the log."""
        deadlines = self._settings.deadlines
        process.pipes.abort_writes()
        await self.conversation.close()
        if patiently:
            await process.exits_within(deadlines.stdin)
        try:
            await process.end(term, deadlines.stdin)
        except TreeSurvived as survived:
            self.conversation.log.error("%s did not end: %s", self.name, survived)


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Something that goes on meanwhile, and no longer."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()
