"""The server of the SDK: the protocol's methods for a `Plugin`, and the process that serves them.

A host sends `handshake`, then `initialize` if it is of generation A, then any request, then
`shutdown` and `exit`. A request in the wrong order is refused with its own code.

From `run` on, standard output is only for the protocol: `print` goes to standard error, which a
host shows. (Output that a plugin flushed before `run` cannot be redirected; hosts skip it.) The
process exits at `exit` (with 0 after `shutdown`, otherwise 1) and at EOF of its input. After EOF,
running calls have PLUGIN_LEAVING_SECONDS to finish.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import msgspec

from telex.plugins import limits
from telex.plugins import protocol as spec
from telex.plugins.dialect import CODES
from telex.plugins.handshake import PROTOCOL_NAMES, without_nulls
from telex.plugins.plugin_logs import HostLogHandler, install_log_handler
from telex.plugins.sdk.calls import Call, CommandCall, Failed, InvalidConfig, TaskCall, ToolCall
from telex.plugins.sdk.plugin import Group, tools_of
from telex.plugins.sdk.signature import configured_struct, values_of
from telex.rpc import limits as rpc_limits
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import RESERVED, Condition, RpcError
from telex.rpc.messages import Notification
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports.channels import LSP
from telex.transports.stdio import open_stdio

if TYPE_CHECKING:
    from telex.plugins.sdk.plugin import DeclaredFunction, Plugin
    from telex.plugins.sdk.signature import Signature
    from telex.rpc.channel import Channel


T = TypeVar("T")
Params = dict[str, Any]

log = logging.getLogger("telex.plugins.sdk")

_CONFIGS: Final = {"config", "pluginConfig"}
_PARAMS: Final = RESERVED[Condition.PARAMS]
_INTERNAL: Final = RESERVED[Condition.INTERNAL]


class Stage(enum.Enum):
    STARTED = enum.auto()
    INTRODUCED = enum.auto()
    READY = enum.auto()
    SHUTTING_DOWN = enum.auto()


class SdkServer:
    """Serves the requests of one host for one plugin."""

    def __init__(self, plugin: Plugin[Any], notify: Callable[[str, object], None]) -> None:
        self.over = asyncio.Event()
        """Set at `exit`, and some time after the host disconnected."""
        self.exit_code = 0
        self._plugin = plugin
        self._notify = notify
        self._workers = WorkerThreads()
        self._logging = HostLogHandler(notify)
        self._stage = Stage.STARTED
        self._protocol = spec.PROTOCOL_A
        self._set_up: dict[str, spec.SetupCommand] = {}

    def methods(self) -> Methods:
        methods = Methods()
        served: dict[str, Callable[..., Any]] = {
            "handshake": self.handshake,
            "initialize": self.initialize,
            "setupCommand": self.set_up_command,
            "runCommand": self.run_command,
            "validateTask": self.validate_task,
            "runTask": self.run_task,
            "shutdown": self.shut_down,
            "exit": self.exit,
        }
        for name, handler in served.items():
            methods.add(name, handler)
        if self._plugin.tools:
            methods.add("tools/list", self.list_tools)
            methods.add("tools/call", self.call_tool)
        return methods

    def close(self) -> None:
        """Stop sending log records."""
        logging.getLogger().removeHandler(self._logging)

    # The start.

    def handshake(self, params: Params) -> Params:
        self._refuse_unless(Stage.STARTED, Stage.INTRODUCED, Stage.READY)
        offer = _read(params, spec.Handshake)
        if offer.protocol not in PROTOCOL_NAMES or offer.protocol_version != spec.VERSION:
            raise RpcError(
                spec.number_of(spec.HANDSHAKE, offer.protocol),
                f"This plugin speaks {spec.PROTOCOL_A} version {spec.VERSION}, "
                f"not {offer.protocol} version {offer.protocol_version}.",
            )
        self._protocol = self._logging.protocol = offer.protocol
        if offer.protocol == spec.PROTOCOL_B:  # which has no `initialize`
            self._configure({})
            # B cannot request a log level either: it gets all records, and filters them itself.
            install_log_handler(spec.LoggingConfig(enabled=True, level="trace"), self._logging)
            self._stage = Stage.READY
        else:
            self._stage = Stage.INTRODUCED
        capable = offer.capabilities is not msgspec.UNSET
        return self._plugin._introduced(offer.protocol, capable=capable)

    def initialize(self, params: Params) -> spec.Done:
        self._refuse_unless(Stage.INTRODUCED, Stage.READY)
        settings = _read(params, spec.Initialize)
        self._configure(values_of(settings.config))
        install_log_handler(settings.logging, self._logging)
        self._stage = Stage.READY
        return spec.Done()

    # Commands, tasks, tools.

    def set_up_command(self, params: Params) -> spec.Done:
        self._refuse_unless(Stage.READY)
        setup = _read(params, spec.SetupCommand)
        command = self._command(setup.name)
        _configured(command.signature, values_of(setup.config))
        self._set_up[setup.name] = setup
        return spec.Done()

    async def run_command(self, params: Params) -> spec.Done:
        self._refuse_unless(Stage.READY)
        request = _read(params, spec.RunCommand)
        name = request.cmd if isinstance(request.cmd, str) else request.name
        if not isinstance(name, str):
            raise RpcError(_PARAMS, "The member `name` of the command is missing.")
        command = self._command(name)
        if isinstance(request.plugin_config, list):
            self._configure(values_of(_plain(request.plugin_config)))
        set_up = self._set_up.pop(name, spec.SetupCommand(name))
        values = values_of(set_up.config) | values_of(_plain(request.config))
        call = CommandCall(command.name, self._notify, request.progress_token, set_up.args)
        arguments = _configured(command.signature, values)
        await self._run_declared(command, call, arguments, spec.COMMAND_FAILED)
        return spec.Done()

    async def validate_task(self, params: Params) -> spec.Done:
        self._refuse_unless(Stage.READY)
        request = _read(params, spec.ValidateTask)
        task = self._task(request.type)
        values = values_of(request.config)
        arguments = _configured(task.signature, values)
        if (validator := self._plugin.validators.get(request.type)) is not None:
            call = TaskCall(request.type, self._notify, msgspec.UNSET, ".")
            arguments = _configured(validator, values)
            await self._run(validator, call, arguments, request.type, spec.INVALID_CONFIG)
        return spec.Done()

    async def run_task(self, params: Params) -> spec.Done:
        self._refuse_unless(Stage.READY)
        request = _read(params, spec.RunTask)
        name = request.task_type if isinstance(request.task_type, str) else request.type
        if not isinstance(name, str):
            raise RpcError(_PARAMS, "The member `type` of the task is missing.")
        task = self._task(name)
        directory = request.dir if isinstance(request.dir, str) else "."
        call = TaskCall(name, self._notify, request.progress_token, directory)
        arguments = _configured(task.signature, values_of(request.config))
        await self._run_declared(task, call, arguments, spec.TASK_FAILED)
        return spec.Done()

    def list_tools(self, params: Params) -> spec.ToolsList:
        self._refuse_unless(Stage.READY)
        return spec.ToolsList(list(tools_of(self._plugin.tools)))

    async def call_tool(self, params: Params) -> spec.ToolOutput:
        """Call a tool. Its failure is a result: a language model reads it and tries again."""
        self._refuse_unless(Stage.READY)
        request = _read(params, spec.ToolsCall)
        if (tool := self._plugin.tools.get(request.name)) is None:
            raise RpcError(_PARAMS, f"There is no tool {request.name}.")
        try:
            arguments = tool.signature.called(request.arguments or {})
        except msgspec.ValidationError as error:
            raise RpcError(_PARAMS, f"{request.name}: {error}") from None
        call = ToolCall(request.name, self._notify, request.progress_token)
        try:
            return spec.ToolOutput(await self._run_declared(tool, call, arguments, _INTERNAL))
        except RpcError as failed:
            return spec.ToolOutput(failed.problem.message, is_error=True)

    # The end.

    def shut_down(self, params: Params) -> object:
        """Return a coroutine, from a plain function. So the request does not wait in the queue
        behind the calls that it should end, but still starts in its own task, after the requests
        before it."""
        return self._shut_down()

    async def _shut_down(self) -> object:
        self._refuse_unless(Stage.STARTED, Stage.INTRODUCED, Stage.READY)
        self._stage = Stage.SHUTTING_DOWN
        for ending in self._plugin.endings:
            answer = ending()
            if asyncio.iscoroutine(answer):
                await answer
        return True if self._protocol == spec.PROTOCOL_B else spec.Done()

    def exit(self) -> None:
        asyncio.get_running_loop().call_soon(self._exit)  # after a `shutdown` that was just sent

    def _exit(self) -> None:
        self.exit_code = 0 if self._stage is Stage.SHUTTING_DOWN else 1
        self.over.set()

    # Shared by the methods.

    def _refuse_unless(self, *stages: Stage) -> None:
        if self._stage in stages:
            return
        if self._stage is Stage.SHUTTING_DOWN:
            raise RpcError(spec.SHUTTING_DOWN, spec.ERRORS[spec.SHUTTING_DOWN])
        raise RpcError(spec.NOT_INITIALIZED, spec.ERRORS[spec.NOT_INITIALIZED])

    def _configure(self, values: dict[str, object]) -> None:
        if self._plugin.shape is None:
            return
        try:
            self._plugin._configure(configured_struct(self._plugin.shape, values))
        except msgspec.ValidationError as error:
            if self._protocol == spec.PROTOCOL_B and not values:
                return  # a host of generation B sends them with each command
            raise RpcError(spec.INVALID_CONFIG, f"{self._plugin.name}: {error}") from None

    def _command(self, name: str) -> DeclaredFunction:
        found = self._plugin._find(name)
        if found is None:
            raise self._error(spec.INVALID_COMMAND, f"There is no command {name}.")
        if isinstance(found, Group):
            raise self._error(spec.NOT_RUNNABLE, f"{name} is a group; name one of its commands.")
        return found

    def _error(self, condition: int, *arguments: Any) -> RpcError:
        """Return an error with the number of the host's generation."""
        return RpcError(spec.number_of(condition, self._protocol), *arguments)

    def _task(self, name: str) -> DeclaredFunction:
        if (found := self._plugin.tasks.get(name)) is None:
            raise RpcError(_PARAMS, f"There is no task of the type {name}.")
        return found

    async def _run_declared(
        self, declared: DeclaredFunction, call: Call, arguments: Params, code: int
    ) -> Any:
        return await self._run(declared.signature, call, arguments, declared.name, code)

    async def _run(
        self, signature: Signature, call: Call, arguments: Params, name: str, code: int
    ) -> Any:
        """Return the function's result. Raises its exception as an RpcError with this code."""
        work = partial(signature.function, *([call] if signature.wants_call else []), **arguments)
        try:
            return await (work() if signature.is_async else self._workers.run(work))
        except asyncio.CancelledError:
            call._cancel()
            raise
        except InvalidConfig as invalid:
            raise RpcError(spec.INVALID_CONFIG, f"{name}: {invalid}", *_data(invalid)) from None
        except Failed as failed:
            raise self._error(code, str(failed), *_data(failed)) from None
        except RpcError:
            raise
        except Exception as error:
            log.error("%s failed", name, exc_info=error)
            message = f"{name} failed: {type(error).__name__}: {error}"
            raise self._error(code, message) from error


def _plain(config: list[spec.KeyValue] | msgspec.UnsetType) -> list[spec.KeyValue]:
    """Return the values without tables: a host of generation B sends the values of every command,
    as a table with its name, among those of the plugin."""
    pairs = config if isinstance(config, list) else []
    return [pair for pair in pairs if pair.type != spec.CONFIGS]


def _data(failed: Failed) -> tuple[object, ...]:
    return () if failed.data is None else (failed.data,)


def _read(params: Params, kind: type[T]) -> T:
    """Convert the parameters; a null member means absent."""
    bare = without_nulls(params)
    for name in _CONFIGS & bare.keys():
        if isinstance(bare[name], list):
            bare[name] = [pair for pair in bare[name] if not _has_no_value(pair)]
    try:
        return msgspec.convert(bare, kind)
    except msgspec.ValidationError as error:
        raise RpcError(_PARAMS, f"The parameters are not valid. {error}") from None


def _has_no_value(pair: object) -> bool:
    return isinstance(pair, dict) and "value" not in pair


def _configured(signature: Signature, values: dict[str, object]) -> Params:
    try:
        return signature.configured(values)
    except msgspec.ValidationError as error:
        name = signature.function.__name__
        raise RpcError(spec.INVALID_CONFIG, f"{name}: {error}") from None


DIALECT: Final = JsonRpc(CODES, cancel_method="$/cancelRequest")
_BY_HAND = """\
{name} is a plugin: it is used by a program over standard input and output, not by a person.
Try: telex plugin check {path}
"""


def run(plugin: Plugin[Any]) -> NoReturn:
    """Serve this plugin on standard input and output, then exit the process."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.exit(_BY_HAND.format(name=plugin.name, path=sys.argv[0]).rstrip())
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a real one here
    code = asyncio.run(_serve(plugin))
    os.dup2(2, 1)  # redirects later output, of a thread or at exit, to standard error
    sys.exit(code)


async def _serve(plugin: Plugin[Any]) -> int:
    async with open_stdio(LSP) as channel:
        service = SdkServer(plugin, _Notifier(channel))
        async with _Peer(channel, service) as peer:
            over = asyncio.create_task(peer.closed())
            over.add_done_callback(lambda _: service.over.set())
            await service.over.wait()
            service.close()
        await over
        sys.stdout.flush()
        return service.exit_code


class _Peer(Peer):
    """A peer that waits only PLUGIN_LEAVING_SECONDS for running functions after the host
    disconnected."""

    def __init__(self, channel: Channel, service: SdkServer) -> None:
        self._service = service
        super().__init__(channel, DIALECT, service.methods())

    def finished(self) -> None:
        self._loop.call_later(limits.PLUGIN_LEAVING_SECONDS, self._service.over.set)
        super().finished()


class _Notifier:
    """Sends notifications, from the event loop or any thread, in order with the responses.

    It never waits: a function that logs must not block because the host does not read. If too many
    bytes are unsent, notifications are dropped; when there is room again, a log record has their
    number.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._dropped = 0

    def __call__(self, method: str, params: object) -> None:
        body = DIALECT.encode(Notification(method, params))
        if threading.get_ident() == self._thread:
            self._send(body)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send, body)

    def _send(self, body: bytes) -> None:
        if self._channel.unsent > rpc_limits.OUTBOUND_BYTES:
            self._dropped += 1
            return
        if self._dropped:
            text = f"{self._dropped} messages were dropped: the host did not read them"
            self._dropped = 0
            self._channel.send(DIALECT.encode(Notification("log", {"level": "warn", "msg": text})))
        self._channel.send(body)


_Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class WorkerThreads:
    """The threads for plain functions, for one event loop.

    This is not an executor of the standard library: Python waits for executor threads at exit, and
    a plugin must not wait at `exit` for a function that ignores `call.cancelled`. These threads are
    daemons. There are never more than concurrent calls, which the peer limits.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._free = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return the result of the work, or raise its exception. To cancel this stops the wait and
        not the work."""
        done: asyncio.Future[Any] = self._loop.create_future()
        if self._free:
            self._free -= 1
        else:
            threading.Thread(target=self._work, name="plugin worker", daemon=True).start()
        self._jobs.put((work, done))
        return await done

    def _work(self) -> None:
        while True:
            work, done = self._jobs.get()
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  it is raised again, where it is awaited
                outcome: tuple[Callable[[Any], None], Any] = (
                    done.set_exception,
                    _as_exception(error),
                )
            else:
                outcome = (done.set_result, result)
            if self._loop.is_closed():
                return
            self._loop.call_soon_threadsafe(self._finish, done, *outcome)

    def _finish(self, done: asyncio.Future[Any], settle: Callable[[Any], None], value: Any) -> None:
        self._free += 1
        if not done.done():
            settle(value)


def _as_exception(error: BaseException) -> BaseException:
    """Wrap exceptions such as SystemExit: a function that calls `sys.exit` has failed, but the
    plugin must not exit."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"it raised {error!r}")
    wrapped.__cause__ = error
    return wrapped
