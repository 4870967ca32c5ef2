"""The protocol's methods, answered from what a plugin gives, and the process they are answered in.

A host sends `handshake`, then `initialize` if it is of generation A, then anything, then `shutdown`
and `exit`. What comes too early or too late is refused with its own code.

Standard output is the protocol's alone from `run` on: `print` goes to standard error, which a host
shows. (What a plugin prints and flushes before `run` is out already; hosts skip it.) The process
ends with `exit` (0 after `shutdown`, else 1) and when its input ends: what still runs has a moment
to finish.
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
from telex.plugins.sdk.calls import Call, CommandCall, Failed, InvalidConfig, TaskCall, ToolCall
from telex.plugins.sdk.log_handler import HostLogHandler, install_log_handler
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
Asked = dict[str, Any]

log = logging.getLogger("telex.plugins.sdk")

_CONFIGS: Final = {"config", "pluginConfig"}
_PARAMS: Final = RESERVED[Condition.PARAMS]
_INTERNAL: Final = RESERVED[Condition.INTERNAL]


class Stage(enum.Enum):
    STRANGER = enum.auto()
    INTRODUCED = enum.auto()
    READY = enum.auto()
    LEAVING = enum.auto()


class SdkServer:
    """One plugin's side of one conversation."""

    def __init__(self, plugin: Plugin[Any], tell: Callable[[str, object], None]) -> None:
        self.over = asyncio.Event()
        """Set by `exit`."""
        self.exit_code = 0
        self._plugin = plugin
        self._tell = tell
        self._workers = WorkerThreads()
        self._logging = HostLogHandler(tell)
        self._stage = Stage.STRANGER
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
        """Nothing is told any more."""
        logging.getLogger().removeHandler(self._logging)

    # From stranger to ready.

    def handshake(self, asked: Asked) -> Asked:
        self._refuse_unless(Stage.STRANGER, Stage.INTRODUCED, Stage.READY)
        said = _read(asked, spec.Handshake)
        if said.protocol not in PROTOCOL_NAMES or said.protocol_version != spec.VERSION:
            raise RpcError(
                spec.number_of(spec.HANDSHAKE, said.protocol),
                f"This plugin speaks {spec.PROTOCOL_A} version {spec.VERSION}, "
                f"not {said.protocol} version {said.protocol_version}.",
            )
        self._protocol = self._logging.protocol = said.protocol
        if said.protocol == spec.PROTOCOL_B:  # which has no `initialize`
            self._configure({})
            # Nor a way to say what it wants to hear: it gets all, and leaves out what it does not.
            install_log_handler(spec.LoggingConfig(enabled=True, level="trace"), self._logging)
            self._stage = Stage.READY
        else:
            self._stage = Stage.INTRODUCED
        capable = said.capabilities is not msgspec.UNSET
        return self._plugin.introduced(said.protocol, capable=capable)

    def initialize(self, asked: Asked) -> spec.Done:
        self._refuse_unless(Stage.INTRODUCED, Stage.READY)
        said = _read(asked, spec.Initialize)
        self._configure(values_of(said.config))
        install_log_handler(said.logging, self._logging)
        self._stage = Stage.READY
        return spec.Done()

    # Commands, tasks, tools.

    def set_up_command(self, asked: Asked) -> spec.Done:
        self._refuse_unless(Stage.READY)
        said = _read(asked, spec.SetupCommand)
        command = self._command(said.name)
        _configured(command.signature, values_of(said.config))
        self._set_up[said.name] = said
        return spec.Done()

    async def run_command(self, asked: Asked) -> spec.Done:
        self._refuse_unless(Stage.READY)
        said = _read(asked, spec.RunCommand)
        name = said.cmd if isinstance(said.cmd, str) else said.name
        if not isinstance(name, str):
            raise RpcError(_PARAMS, "It does not say which command: give its `name`.")
        command = self._command(name)
        if isinstance(said.plugin_config, list):
            self._configure(values_of(_plain(said.plugin_config)))
        set_up = self._set_up.pop(name, spec.SetupCommand(name))
        values = values_of(set_up.config) | values_of(_plain(said.config))
        call = CommandCall(command.name, self._tell, said.progress_token, set_up.args)
        await self._done(command, call, _configured(command.signature, values), spec.COMMAND_FAILED)
        return spec.Done()

    async def validate_task(self, asked: Asked) -> spec.Done:
        self._refuse_unless(Stage.READY)
        said = _read(asked, spec.ValidateTask)
        task = self._task(said.type)
        values = values_of(said.config)
        arguments = _configured(task.signature, values)
        if (validator := self._plugin.validators.get(said.type)) is not None:
            call = TaskCall(said.type, self._tell, msgspec.UNSET, ".")
            arguments = _configured(validator, values)
            await self._run(validator, call, arguments, said.type, spec.INVALID_CONFIG)
        return spec.Done()

    async def run_task(self, asked: Asked) -> spec.Done:
        self._refuse_unless(Stage.READY)
        said = _read(asked, spec.RunTask)
        name = said.task_type if isinstance(said.task_type, str) else said.type
        if not isinstance(name, str):
            raise RpcError(_PARAMS, "It does not say which task: give its `type`.")
        task = self._task(name)
        directory = said.dir if isinstance(said.dir, str) else "."
        call = TaskCall(name, self._tell, said.progress_token, directory)
        arguments = _configured(task.signature, values_of(said.config))
        await self._done(task, call, arguments, spec.TASK_FAILED)
        return spec.Done()

    def list_tools(self, asked: Asked) -> spec.ToolsList:
        self._refuse_unless(Stage.READY)
        return spec.ToolsList(list(tools_of(self._plugin.tools)))

    async def call_tool(self, asked: Asked) -> spec.ToolOutput:
        """What a tool says no with is a result: a language model reads it and tries again."""
        self._refuse_unless(Stage.READY)
        said = _read(asked, spec.ToolsCall)
        if (tool := self._plugin.tools.get(said.name)) is None:
            raise RpcError(_PARAMS, f"There is no tool {said.name}.")
        try:
            arguments = tool.signature.called(said.arguments or {})
        except msgspec.ValidationError as error:
            raise RpcError(_PARAMS, f"{said.name}: {error}") from None
        call = ToolCall(said.name, self._tell, said.progress_token)
        try:
            return spec.ToolOutput(await self._done(tool, call, arguments, _INTERNAL))
        except RpcError as failed:
            return spec.ToolOutput(failed.problem.message, is_error=True)

    # The end.

    def shut_down(self, asked: Asked) -> object:
        """Plain, so that it does not wait behind what it is to end; and yet it begins in a task of
        its own, after those that came before it."""
        return self._shut_down()

    async def _shut_down(self) -> object:
        self._refuse_unless(Stage.STRANGER, Stage.INTRODUCED, Stage.READY)
        self._stage = Stage.LEAVING
        for ending in self._plugin.endings:
            answer = ending()
            if asyncio.iscoroutine(answer):
                await answer
        return True if self._protocol == spec.PROTOCOL_B else spec.Done()

    def exit(self) -> None:
        asyncio.get_running_loop().call_soon(self._exit)  # a `shutdown` just before it begins first

    def _exit(self) -> None:
        self.exit_code = 0 if self._stage is Stage.LEAVING else 1
        self.over.set()

    # What they share.

    def _refuse_unless(self, *stages: Stage) -> None:
        if self._stage in stages:
            return
        if self._stage is Stage.LEAVING:
            raise RpcError(spec.SHUTTING_DOWN, spec.ERRORS[spec.SHUTTING_DOWN])
        raise RpcError(spec.NOT_INITIALIZED, spec.ERRORS[spec.NOT_INITIALIZED])

    def _configure(self, values: dict[str, object]) -> None:
        if self._plugin.shape is None:
            return
        try:
            self._plugin.configure(configured_struct(self._plugin.shape, values))
        except msgspec.ValidationError as error:
            if self._protocol == spec.PROTOCOL_B and not values:
                return  # its host says them with each command
            raise RpcError(spec.INVALID_CONFIG, f"{self._plugin.name}: {error}") from None

    def _command(self, name: str) -> DeclaredFunction:
        found = self._plugin.commands.find(name)
        if found is None:
            raise self._error(spec.INVALID_COMMAND, f"There is no command {name}.")
        if isinstance(found, Group):
            raise self._error(spec.NOT_RUNNABLE, f"{name} is a group of commands; say which one.")
        return found

    def _error(self, condition: int, *said: Any) -> RpcError:
        """An error, with the number that the host's generation has for it."""
        return RpcError(spec.number_of(condition, self._protocol), *said)

    def _task(self, name: str) -> DeclaredFunction:
        if (found := self._plugin.tasks.get(name)) is None:
            raise RpcError(_PARAMS, f"There is no task of the type {name}.")
        return found

    async def _done(self, given: DeclaredFunction, call: Call, arguments: Asked, code: int) -> Any:
        return await self._run(given.signature, call, arguments, given.name, code)

    async def _run(
        self, signature: Signature, call: Call, arguments: Asked, name: str, code: int
    ) -> Any:
        """The function's result, or what it raised as an answer with the code."""
        work = partial(signature.function, *([call] if signature.wants_call else []), **arguments)
        try:
            return await (work() if signature.is_async else self._workers.run(work))
        except asyncio.CancelledError:
            call.cancel()
            raise
        except InvalidConfig as invalid:
            raise RpcError(spec.INVALID_CONFIG, f"{name}: {invalid}", *_data(invalid)) from None
        except Failed as failed:
            raise self._error(code, str(failed), *_data(failed)) from None
        except RpcError:
            raise
        except Exception as error:
            log.error("%s failed", name, exc_info=error)
            said = f"{name} failed: {type(error).__name__}: {error}"
            raise self._error(code, said) from error


def _plain(config: list[spec.KeyValue] | msgspec.UnsetType) -> list[spec.KeyValue]:
    """Without tables: a host of generation B puts the values of every command, by its name, among
    those of the plugin."""
    pairs = config if isinstance(config, list) else []
    return [pair for pair in pairs if pair.type != spec.CONFIGS]


def _data(failed: Failed) -> tuple[object, ...]:
    return () if failed.data is None else (failed.data,)


def _read(asked: Asked, kind: type[T]) -> T:
    """The parameters as their type; null is as good as omitted."""
    bare = without_nulls(asked)
    for name in _CONFIGS & bare.keys():
        if isinstance(bare[name], list):
            bare[name] = [pair for pair in bare[name] if not _is_unsaid(pair)]
    try:
        return msgspec.convert(bare, kind)
    except msgspec.ValidationError as error:
        raise RpcError(_PARAMS, f"The parameters are not valid. {error}") from None


def _is_unsaid(pair: object) -> bool:
    return isinstance(pair, dict) and "value" not in pair


def _configured(signature: Signature, values: dict[str, object]) -> Asked:
    try:
        return signature.configured(values)
    except msgspec.ValidationError as error:
        name = signature.function.__name__
        raise RpcError(spec.INVALID_CONFIG, f"{name}: {error}") from None


DIALECT: Final = JsonRpc(CODES, cancel_method="$/cancelRequest")
_BY_HAND = """\
{name} is a plugin: a program talks to it on its standard input and output, not a person.
Try: telex plugin check {path}
"""


def run(plugin: Plugin[Any]) -> NoReturn:
    """Be this plugin until the end of the process."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.exit(_BY_HAND.format(name=plugin.name, path=sys.argv[0]).rstrip())
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a real one here
    code = asyncio.run(_serve(plugin))
    os.dup2(2, 1)  # what is still printed, by a thread or at exit, is no message either
    sys.exit(code)


async def _serve(plugin: Plugin[Any]) -> int:
    async with open_stdio(LSP) as channel:
        telling = _Telling(channel)
        service = SdkServer(plugin, telling)
        async with _Peer(channel, service) as peer:
            over = asyncio.create_task(peer.closed())
            over.add_done_callback(lambda _: service.over.set())
            await service.over.wait()
            service.close()
        await over
        sys.stdout.flush()
        return service.exit_code


class _Peer(Peer):
    """A peer that does not wait for ever for its own functions when the host is gone."""

    def __init__(self, channel: Channel, service: SdkServer) -> None:
        self._service = service
        super().__init__(channel, DIALECT, service.methods())

    def finished(self) -> None:
        self._loop.call_later(limits.PLUGIN_LEAVING_SECONDS, self._service.over.set)
        super().finished()


class _Telling:
    """Notifications, from the event loop or any thread, in order with the answers.

    They do not wait: a function that logs is not to stand still because the host does not read.
    What there is no room for is dropped, and how much that was is told when there is.
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
            words = f"{self._dropped} messages were not sent: nobody read them"
            lost = {"level": "warn", "msg": words}
            self._dropped = 0
            self._channel.send(DIALECT.encode(Notification("log", lost)))
        self._channel.send(body)


_Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class WorkerThreads:
    """The threads that plain functions run in. Belongs to the event loop it is made in.

    Not an executor of the standard library: Python waits for those when it exits, and a plugin that
    is told to end must not wait for a function that does not look at `call.cancelled`. These are
    daemons, and never more than calls at once, which the peer bounds.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._free = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Its result, or what it raises. Cancelling this stops the waiting and not the work."""
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
                told: tuple[Callable[[Any], None], Any] = (
                    done.set_exception,
                    _sendable_error(error),
                )
            else:
                told = (done.set_result, result)
            if self._loop.is_closed():
                return
            self._loop.call_soon_threadsafe(self._finish, done, *told)

    def _finish(self, done: asyncio.Future[Any], tell: Callable[[Any], None], what: Any) -> None:
        self._free += 1
        if not done.done():
            tell(what)


def _sendable_error(error: BaseException) -> BaseException:
    """A function that calls `sys.exit` has failed; the plugin has not been told to end."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    told = RuntimeError(f"it raised {error!r}")
    told.__cause__ = error
    return told
