"""One running plugin: started, introduced, asked, and ended with everything that came of it.

    async with start(found, Settings()) as plugin:
        await plugin.call("runCommand", RunCommand(name="hello"))

One task owns the process from its start to its reaping, and nobody else touches it: `close` only
says that it is time, so that it does not matter who closes, or whether the closer is cancelled.
Whatever goes wrong with the plugin is a `PluginFailed` whose sentence names it. A start that fails
has ended the whole tree before it says so.

Ending goes down a ladder: `shutdown`, `exit`, standard input closed, SIGTERM to the tree, SIGKILL,
reaped. A plugin that broke off, or off the protocol, is not asked: for it the ladder begins with
its standard input. Who is cancelled while it waits for the end has no more patience: the plugin is
ended without it, and still waited for. Restarts are `keeper`'s.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from telex.plugins import logs, problems
from telex.plugins.handshake import Asking, introduce
from telex.plugins.process import Process
from telex.plugins.settings import Settings, environment
from telex.plugins.stderr import Stderr
from telex.plugins.talk import Talk
from telex.processes import spawn
from telex.processes.termination import TreeSurvived
from telex.rpc.messages import ABSENT
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from types import TracebackType

    from telex.plugins.finding import Found
    from telex.protocols import plugin_v0 as spec

T = TypeVar("T")

_CLOSED = "was closed by its host"


def start(found: Found, settings: Settings | None = None) -> Plugin:
    """A plugin, started by `async with`, or by `begin` and then closed by `close`."""
    return Plugin(found, settings or Settings())


class Plugin:
    """One process, from `begin` to `close`."""

    introduced: spec.Introduced
    """What it said of itself, in generation A's words whichever it is of. Set by `begin`."""

    def __init__(self, found: Found, settings: Settings) -> None:
        self.found, self.name = found, found.name
        self.why: problems.PluginOver | None = None
        """Why it ended or is being ended; None while it runs."""
        self.over_since: float | None = None
        """When that was, on the event loop's clock."""
        self.talk = Talk(found.name, settings, self._end, self._over)
        self._settings = settings
        self._polite = False
        self._ending = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start it and hear what it is. Raises NotStarted or NotIntroduced, and nothing is left."""
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
            await self.gone()
        except asyncio.CancelledError:
            await self._hurried()
            raise

    async def _hurried(self) -> None:
        while self._owner is not None and not self._owner.done():
            self._owner.cancel()
            with suppress(asyncio.CancelledError):  # as good as once
                await asyncio.wait({self._owner})

    async def gone(self) -> None:
        """Wait until nothing of it is left, whoever ended it."""
        if self._owner is not None:
            await asyncio.wait({self._owner})
            if not self._owner.cancelled():
                self._owner.result()

    @property
    def over(self) -> str | None:
        """Why it is over, as a sentence that names it; None while it runs."""
        return str(self.why) if self.why else None

    @property
    def failed(self) -> bool:
        """Whether it is over, and not because it was closed here."""
        return self.why is not None and not self._polite

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
        on_progress: Callable[[spec.Progress], None] | None = None,
    ) -> T:
        """Ask, and wait for the answer; None is as long as it takes. Raises a `PluginFailed`.

        Cancelled or out of time, it tells the plugin, if that announced that it listens; whatever
        comes then is ignored. Progress is asked for where the plugin announced it.
        """
        if self.why is not None:
            raise await self._over()
        can = self.introduced.capabilities
        answer: T
        if on_progress is None or can is None or not can.progress:
            answer = await self.talk.ask(method, params, timeout, returns)
        else:
            ask = self.talk.ask_with_progress
            answer = await ask(method, params, timeout, returns, on_progress)
        return answer

    async def notify(self, method: str, params: object = ABSENT) -> None:
        """Tell. Raises PluginOver."""
        if self.why is not None:
            raise await self._over()
        await self.talk.tell(method, params)

    async def _over(self) -> problems.PluginOver:
        """Why, to be raised. A new one each time: an exception keeps all places it was raised."""
        await self._ending.wait()
        assert self.why is not None
        return problems.PluginOver(self.name, self.why.what, self.why.hint)

    def _end(self, what: str, hint: str = "", *, polite: bool = False) -> None:
        """It is over, for this reason; the first one counts. The owner does the rest."""
        if self.why is None:
            self.why, self._polite = problems.PluginOver(self.name, what, hint), polite
            self.over_since = asyncio.get_running_loop().time()
            self._ending.set()

    # The owner task.

    async def _own(self, begun: asyncio.Future[None]) -> None:
        try:
            await self._live(begun)
        except problems.PluginFailed as failure:
            self._end(failure.what, failure.hint)
            begun.set_exception(failure)  # only a beginning raises one

    async def _live(self, begun: asyncio.Future[None]) -> None:
        process = self._spawned()
        introduced = False
        try:
            await process.attach()
            self.talk.open(process.pipes)
            async with _beside(self._watch(process)):
                await self._introduced(process)
                introduced = True
                begun.set_result(None)
                await self._ending.wait()
                if self._polite:
                    await self._take_leave(process)
        except problems.PluginFailed as failure:
            self._end(failure.what, failure.hint)
            raise
        finally:
            self._end("was abandoned by its host")
            await self._buried(process, patiently=introduced and self._polite)

    def _spawned(self) -> Process:
        found, settings = self.found, self._settings
        if found.refusal is not None:
            raise problems.NotStarted(self.name, f"is not run: {found.refusal}")
        env = environment(found, settings.environ)
        stderr = Stderr(self.name, settings.shown, settings.redactor)
        try:
            return Process(settings.command(found), env, settings.cwd, stderr)
        except spawn.StartFailed as error:
            raise problems.NotStarted(self.name, f"did not start: {error}") from error

    async def _watch(self, process: Process) -> None:
        what, last_words = await process.over(self._settings.deadlines.stdin)
        self._end(what, last_words)

    async def _unless_over(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this, unless it is over first."""
        async with _beside(self._ending.wait()) as over, _beside(work) as working:
            await asyncio.wait({working, over}, return_when=asyncio.FIRST_COMPLETED)
        if working.cancelled():
            raise await self._over()

    async def _introduced(self, process: Process) -> None:
        try:
            await self._unless_over(self._introduce(process))
        except problems.PluginOver as over:
            what = f"{over.what} before it was introduced"
            raise problems.NotIntroduced(self.name, what, over.hint) from None

    async def _introduce(self, process: Process) -> None:
        def suspicion() -> str:
            return self.talk.began_with(process.pipes.began)

        asking = Asking(self.found, self._settings, self.talk.ask, suspicion)
        self.introduced = said = await introduce(asking, logs.level_of(self.talk.log))
        self.talk.protocol = said.protocol
        if said.capabilities is not None and said.capabilities.cancel:
            self.talk.may_cancel()

    async def _take_leave(self, process: Process) -> None:
        """`shutdown`, then `exit`, each with its time. It cannot refuse, only take longer."""
        deadlines = self._settings.deadlines
        try:
            if await self.talk.ask("shutdown", ABSENT, deadlines.shutdown, Any) is False:
                self.talk.log.info("%s answered shutdown with false", self.name)
        except problems.PluginFailed as failure:
            self.talk.log.info("%s", failure)
        try:
            async with asyncio.timeout(deadlines.exit):
                await self.talk.tell("exit")
                await process.exited()
        except problems.PluginOver:
            return
        except TimeoutError:
            self.talk.log.info("%s did not end when told to", self.name)

    async def _buried(self, process: Process, *, patiently: bool) -> None:
        """Cancelled or not, it is done when this returns; each cancel only takes time away."""
        try:
            await self._bury(process, self._settings.deadlines.term, patiently=patiently)
        except asyncio.CancelledError:
            await self._buried_at_once(process)
            raise

    async def _buried_at_once(self, process: Process) -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await self._bury(process, 0, patiently=False)
                return

    async def _bury(self, process: Process, term: float, *, patiently: bool) -> None:
        """The rest of the ladder. What survives all of it is named in the log."""
        deadlines = self._settings.deadlines
        process.pipes.give_up()
        await self.talk.close()
        if patiently:
            await process.exits_within(deadlines.stdin)
        try:
            await process.end(term, deadlines.stdin)
        except TreeSurvived as survived:
            self.talk.log.error("%s did not end: %s", self.name, survived)


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
