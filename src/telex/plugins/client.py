"""One running plugin: started, called, and ended with its whole process tree.

    async with start(found, PluginSettings()) as plugin:
        await plugin.call("runCommand", RunCommand(name="hello"))

One task, the owner, holds the process from its start until it is reaped. `close` only signals the
owner, so it does not matter which task closes, or whether that task is cancelled. The owner ends
the process by `PluginShutdown`. A start that fails ends the whole tree before it raises.

`call` has the only deadline of a call: a `CallDeadline`, which a caller may have created earlier to
include the start of the plugin. Every failure is a `PluginError` whose message names the plugin.
Restarts are in `supervisor`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from telex.plugins import errors, limits, plugin_logs
from telex.plugins import protocol as spec
from telex.plugins.dialect import QUOTED_CHARS, PluginDialect, PluginFaults, escape_controls
from telex.plugins.handshake import HandshakeContext, perform_handshake, without_nulls
from telex.plugins.plugin_process import PluginProcess, PluginShutdown, StderrReader
from telex.plugins.plugin_settings import CallDeadline, PluginSettings, plugin_environment
from telex.processes import spawn
from telex.rpc.errors import Condition, PeerGone, Problem, RpcError, UnexpectedReply
from telex.rpc.messages import ABSENT
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from telex.plugins.discovery import FoundPlugin

T = TypeVar("T")

_CLOSED = "was closed by its host"


def start(found: FoundPlugin, settings: PluginSettings | None = None) -> RunningPlugin:
    """Return a plugin that `async with` starts and ends, or `begin` and `close`."""
    return RunningPlugin(found, settings or PluginSettings())


class RunningPlugin:
    """One plugin process and the conversation with it, from `begin` to `close`."""

    introduced: spec.Introduced
    """The answer to the handshake, in generation A's form for both generations. Set by `begin`."""

    def __init__(self, found: FoundPlugin, settings: PluginSettings) -> None:
        self.found, self.name = found, found.name
        self.ended: errors.PluginEnded | None = None
        """Why the plugin ended or is being ended; None while it runs."""
        self.ended_at: float | None = None
        """When `ended` was set, on the event loop's clock."""
        self.log = logging.getLogger(f"telex.plugins.{found.name}")
        self._settings = settings
        self._redact = settings.redactor.redact
        self.faults = PluginFaults(found.name, self.log, self._redact, self._end)
        self._dialect = PluginDialect(self.faults)
        self._peer: Peer | None = None
        self._protocol = spec.PROTOCOL_A
        """From the handshake on the plugin's generation, which decides what error codes mean."""
        self._progress: dict[int | str, Callable[[spec.ProgressNotice], None]] = {}
        self._tokens = itertools.count(1)
        self._polite = False
        self._ending = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    # Life.

    async def begin(self) -> None:
        """Start the process and do the handshake.

        Raises PluginNotStarted or PluginHandshakeFailed after the whole process tree has ended.
        """
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(begun), name=f"plugin {self.name}")
        try:
            await asyncio.wait({begun, self._owner}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.close()
            if not begun.cancel():
                begun.exception()  # mark it as retrieved: no task waits for it any more
            raise
        if not begun.done():
            self._owner.result()
        begun.result()

    def signal_close(self) -> None:
        """Start to end the plugin, without waiting."""
        self._end(_CLOSED, polite=True)

    def interrupt(self) -> None:
        """Abandon the calls that run, before `close`.

        A plugin with the capability `cancel` received a cancel and gets its time to stop. Another
        plugin is busy and would not read `shutdown` either, so it is ended without `shutdown`.
        """
        if not (self.introduced.capabilities and self.introduced.capabilities.cancel):
            self._end("was interrupted")

    async def close(self) -> None:
        """End the plugin and wait until its process tree has ended. Idempotent.

        If this is cancelled, it skips the polite steps and still waits for the end.
        """
        self.signal_close()
        try:
            await self.wait_ended()
        except asyncio.CancelledError:
            await self._cancel_owner()
            raise

    async def _cancel_owner(self) -> None:
        while self._owner is not None and not self._owner.done():
            self._owner.cancel()
            with suppress(asyncio.CancelledError):  # a second cancel of the closer changes nothing
                await asyncio.wait({self._owner})

    async def wait_ended(self) -> None:
        """Wait until the process tree has ended, for whatever reason."""
        if self._owner is not None:
            await asyncio.wait({self._owner})
            if not self._owner.cancelled():
                self._owner.result()

    @property
    def end_reason(self) -> str | None:
        """Why the plugin ended, as a sentence that names it; None while it runs."""
        return str(self.ended) if self.ended else None

    @property
    def failed(self) -> bool:
        """Whether the plugin ended for another reason than `close`."""
        return self.ended is not None and not self._polite

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Calls.

    async def call(
        self,
        method: str,
        params: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | CallDeadline | None = limits.PLUGIN_CALL_SECONDS,
        on_progress: Callable[[spec.ProgressNotice], None] | None = None,
    ) -> T:
        """Send a request and return the result. Raises a `PluginError`.

        Args:
            timeout: seconds, or a deadline that runs already; None waits as long as it takes. When
                it is over, or this is cancelled, a plugin with the capability `cancel` receives a
                cancel, and its late response is ignored.
            on_progress: receives progress, if the plugin has the capability `progress`.
        """
        if self.ended is not None:
            raise await self._ended_error()
        can = self.introduced.capabilities
        if can is None or not can.progress:
            on_progress = None
        result: T = await self._request(method, params, timeout, returns, on_progress)
        return result

    async def notify(self, method: str, params: object = ABSENT) -> None:
        """Send a notification. Raises PluginEnded."""
        if self.ended is not None:
            raise await self._ended_error()
        await self._send_notification(method, params)

    async def _request(
        self,
        method: str,
        params: object,
        timeout: float | CallDeadline | None,
        returns: Any,
        on_progress: Callable[[spec.ProgressNotice], None] | None = None,
    ) -> Any:
        """Send a request at any time of the plugin's life: also `handshake` and `shutdown`."""
        deadline = CallDeadline.of(timeout)
        clock = deadline.clock()
        with self.faults.pending(clock) as pending, self._token(params, on_progress) as sent:
            try:
                # The clock includes the sending, which blocks while the plugin does not read.
                async with clock:
                    return await self._opened.call(method, sent, returns=returns, timeout=None)
            except TimeoutError:
                if pending.unreadable is not None:
                    raise self._bad_result(method, pending.unreadable) from None
                what, hint = f"did not answer {method}", self.faults.timeout_hint()
                raise deadline.missed(self.name, what, hint) from None
            except RpcError as error:
                raise self._error_reply(method, error) from None
            except UnexpectedReply as error:
                what = f"gave an unexpected answer: {error}"
                raise errors.PluginBadResult(self.name, what) from None
            except PeerGone:
                raise await self._ended_error() from None

    async def _send_notification(self, method: str, params: object = ABSENT) -> None:
        try:
            await self._opened.notify(method, params)
        except PeerGone:
            raise await self._ended_error() from None

    @contextmanager
    def _token(
        self, params: object, on_progress: Callable[[spec.ProgressNotice], None] | None
    ) -> Iterator[object]:
        """Yield the parameters with a progress token, valid within this context."""
        if on_progress is None:
            yield params
            return
        token = next(self._tokens)
        self._progress[token] = on_progress
        try:
            yield _with_token(params, token)
        finally:
            del self._progress[token]

    @property
    def _opened(self) -> Peer:
        if self._peer is None:
            raise RuntimeError(f"the plugin {self.name} was called before `begin`")
        return self._peer

    def _error_reply(self, method: str, error: RpcError) -> errors.PluginError:
        code, message, data = error.problem.code, error.problem.message, error.problem.data
        if not isinstance(code, int):  # a `Condition`, set here because the response is invalid
            return self._bad_result(method, message)
        # The Go plugins put the reason into `data`, and a general sentence into `message`.
        reason = data[:QUOTED_CHARS] if isinstance(data, str) and data != message else ""
        text = escape_controls(self._redact(f"{message} ({reason})" if reason else message))
        value = None if data is ABSENT else data
        return errors.PluginErrorReply(self.name, method, code, text, value, self._protocol)

    def _bad_result(self, method: str, why: str) -> errors.PluginBadResult:
        return errors.PluginBadResult(self.name, f"gave no proper answer to {method}: {why}")

    # Notifications and requests of the plugin.

    def _methods(self) -> Methods:
        methods = Methods()
        methods.add("log", self._on_log)
        methods.add("$/progress", self._on_progress)
        for method in self._settings.methods or Methods():
            methods.add(method.name, method.handler)
        return methods

    def _on_log(self, params: dict[str, Any]) -> None:
        plugin_logs.write_log(self.log, _converted(params, spec.Log), self._redact)

    def _on_progress(self, params: dict[str, Any]) -> None:
        progress = _converted(params, spec.ProgressNotice)
        if (on_progress := self._progress.get(progress.token)) is not None:
            on_progress(progress)

    # The end, and the owner task.

    def _end(self, what: str, hint: str = "", *, polite: bool = False) -> None:
        """Record why the plugin ends, and wake the owner. Only the first reason is recorded."""
        if self.ended is None:
            self.ended, self._polite = errors.PluginEnded(self.name, what, hint), polite
            self.ended_at = asyncio.get_running_loop().time()
            self._ending.set()

    async def _ended_error(self) -> errors.PluginEnded:
        """Return a new copy of `ended` to raise: an exception collects every place it was raised.

        Waits for the reason, because a closed pipe is noticed before the exit behind it.
        """
        await self._ending.wait()
        assert self.ended is not None
        return errors.PluginEnded(self.name, self.ended.what, self.ended.hint)

    async def _own(self, begun: asyncio.Future[None]) -> None:
        """The owner task: run the process from its start to its end."""
        try:
            await self._run_process(begun)
        except errors.PluginError as failure:
            self._end(failure.what, failure.hint)
            begun.set_exception(failure)  # only a failed start raises

    async def _run_process(self, begun: asyncio.Future[None]) -> None:
        process = self._spawn()
        shutdown = PluginShutdown(self.name, process, self._settings.deadlines, self.log)
        introduced = False
        try:
            await process.attach()
            self._open(process)
            async with _beside(self._watch(process)):
                await self._introduce(process)
                introduced = True
                begun.set_result(None)
                await self._ending.wait()
                if self._polite:
                    await shutdown.request_exit(self._request, self._send_notification)
        except errors.PluginError as failure:
            self._end(failure.what, failure.hint)
            raise
        finally:
            self._end("was abandoned by its host")
            patiently = introduced and self._polite
            await shutdown.end_process(self._close_conversation, patiently=patiently)

    def _spawn(self) -> PluginProcess:
        found, settings = self.found, self._settings
        if found.refusal is not None:
            raise errors.PluginNotStarted(self.name, f"is not run: {found.refusal}")
        env = plugin_environment(found, settings.environ)
        stderr = StderrReader(self.name, settings.on_stderr_line, settings.redactor)
        try:
            return PluginProcess(settings.command(found), env, settings.cwd, stderr)
        except spawn.StartFailed as error:
            raise errors.PluginNotStarted(self.name, f"did not start: {error}") from error

    def _open(self, process: PluginProcess) -> None:
        self._peer = Peer(process.pipes, self._dialect, self._methods(), redact=self._redact)
        self.faults.absorbed = self._peer.counts

    async def _close_conversation(self) -> None:
        """Fail the pending calls. Idempotent."""
        if self._peer is not None:
            await self._peer.close()

    async def _watch(self, process: PluginProcess) -> None:
        what, last_words = await process.wait_over(self._settings.deadlines.stdin)
        self._end(what, last_words)

    async def _introduce(self, process: PluginProcess) -> None:
        """Do the handshake, unless the plugin ends first."""
        handshake = self._handshake(process)
        async with _beside(self._ending.wait()) as ending, _beside(handshake) as working:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        if working.cancelled():
            raise self._ended_early(await self._ended_error())

    async def _handshake(self, process: PluginProcess) -> None:
        def silence_hint() -> str:
            return self.faults.first_output_hint(process.pipes.first_output)

        context = HandshakeContext(self.found, self._settings, self._request, silence_hint)
        level = plugin_logs.level_of_logger(self.log)
        try:
            self.introduced = introduced = await perform_handshake(context, level)
        except errors.PluginEnded as ended:
            raise self._ended_early(ended) from None
        self._protocol = introduced.protocol
        if introduced.capabilities is not None and introduced.capabilities.cancel:
            self._dialect.cancels = True

    def _ended_early(self, ended: errors.PluginEnded) -> errors.PluginHandshakeFailed:
        what = f"{ended.what} before it was introduced"
        return errors.PluginHandshakeFailed(self.name, what, ended.hint)


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Run a coroutine as a task within this context. Raises its exception at the end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()


def _converted(params: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(without_nulls(params), kind)
    except msgspec.ValidationError as error:
        raise RpcError.carrying(Problem.of(Condition.PARAMS, str(error))) from None


def _with_token(params: object, token: int) -> object:
    members = {} if params is ABSENT else msgspec.to_builtins(params)
    if not isinstance(members, dict):
        return params  # positional parameters cannot carry a token
    return {**members, "progressToken": token}
