"""The processes that clauses test, and the outcome of each clause.

`CheckedProcess` is one process, with raw bytes in and out. It is not `client.RunningPlugin`, which
tolerates faults: clauses send broken frames on purpose, and the faults of a plugin are the result.
`Bench` starts the processes. Most clauses share a process that is ready for requests; a process
that failed a clause is not used for the next one. Used by the clauses only.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from io import FileIO
from typing import Any, Final, cast

import msgspec

from telex.plugins import plugin_commands
from telex.plugins import protocol as spec
from telex.plugins.config_values import Sources, resolve
from telex.plugins.errors import PluginHandshakeFailed
from telex.plugins.handshake import HandshakeNotUnderstood, normalize_handshake
from telex.processes import guardian, proc, spawn
from telex.processes.child import Child, Exit
from telex.processes.termination import BRISK
from telex.processes.tree import members
from telex.wire.content_length import ContentLengthDecoder, encode
from telex.wire.events import Event, Fault, Frame, Reason

# Clauses, and the outcome of each for one plugin.


class ClauseLevel(Enum):
    MUST = "MUST"
    SHOULD = "SHOULD"


class ClauseResult(Enum):
    PASSED = "passed"
    FAILED = "failed"
    UNTRIED = "untried"


class ClauseBroken(Exception):
    """The plugin violates a clause; the message has what was observed."""


class ClauseUntried(Exception):
    """A clause could not be tested; the message has the reason."""


Test = Callable[["Bench"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule of the protocol, with a test."""

    id: str
    level: ClauseLevel
    text: str
    """The rule."""
    advice: str
    """What an author should do if the plugin violates the rule."""
    test: Test


@dataclass(frozen=True, slots=True)
class ClauseOutcome:
    clause: Clause
    result: ClauseResult
    seen: str = ""


@dataclass(slots=True)
class CheckReport:
    """The outcomes of all clauses for one plugin."""

    path: str
    name: str | None = None
    version: str | None = None
    protocol: str | None = None
    outcomes: list[ClauseOutcome] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    """The last lines of standard error, which often have a reason."""

    @property
    def ok(self) -> bool:
        """Whether no MUST clause failed."""
        return not self.count(ClauseLevel.MUST, ClauseResult.FAILED)

    @property
    def grade(self) -> str:
        """The result of the check in a few words."""
        if failed := self.count(ClauseLevel.MUST, ClauseResult.FAILED):
            return f"does not conform: {failed} MUST {_clauses(failed)} failed"
        if failed := self.count(ClauseLevel.SHOULD, ClauseResult.FAILED):
            return f"conforms, but {failed} SHOULD {_clauses(failed)} failed"
        return "conforms"

    def count(self, level: ClauseLevel, result: ClauseResult) -> int:
        return sum(one.clause.level is level and one.result is result for one in self.outcomes)


def _clauses(count: int) -> str:
    return "clause" if count == 1 else "clauses"


class Clauses:
    """Collects the clauses of one chapter in order: decorators for their tests. The docstring of a
    test is the rule."""

    def __init__(self) -> None:
        self.all: list[Clause] = []

    def must(self, id: str, advice: str) -> Callable[[Test], Test]:
        return self._add(id, ClauseLevel.MUST, advice)

    def should(self, id: str, advice: str) -> Callable[[Test], Test]:
        return self._add(id, ClauseLevel.SHOULD, advice)

    def _add(self, id: str, level: ClauseLevel, advice: str) -> Callable[[Test], Test]:
        def add(test: Test) -> Test:
            text = " ".join((test.__doc__ or "").split())
            self.all.append(Clause(id, level, text, advice, test))
            return test

        return add


NO_HANDSHAKE: Final = "there was no handshake"


Message = dict[str, Any]
Id = int | str

UNKNOWN: Final = "telex/check"
"""A method that no plugin has."""
METHOD_NOT_FOUND: Final = -32601
_STDERR_BYTES: Final = 4096
_LAST_OUTPUT_SECONDS: Final = 0.5


class CheckedProcess:
    """One process of the plugin, to send bytes to and to read messages from."""

    def __init__(self, child: Child, seconds: float) -> None:
        self.child = child
        self.seconds = seconds
        self.received: list[Message] = []
        """Every message from the process."""
        self.strays: list[str] = []
        """Other output on standard output."""
        self._too_long: str | None = None
        """Set if the process announced a message that is too long for any host: all further output
        is part of it, so no other message can be read."""
        self._stderr_tail = b""
        """The last bytes of standard error."""
        self._ids = itertools.count(1)
        self._more = asyncio.Event()
        self._output_ended = False
        self._open = 2
        self._outputs_closed = asyncio.Event()
        """Set when standard output and standard error are both at EOF."""
        self._decoder = ContentLengthDecoder()
        self._writing: asyncio.WriteTransport | None = None
        self._reading: list[asyncio.ReadTransport] = []

    @classmethod
    async def start(
        cls, argv: Sequence[str], env: Mapping[str, str], seconds: float
    ) -> CheckedProcess:
        """Start a process. Raises spawn.StartFailed."""
        subject = cls(spawn.start(argv, env=env), seconds)
        try:
            await subject._connect()
        except BaseException:
            await subject.close()
            raise
        return subject

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._writing, _ = await loop.connect_write_pipe(
            lambda: _Input(self._on_input_closed), self.child.stdin
        )
        await self._connect_output(self.child.stdout, _Output(self._on_stdout, self._on_stdout_eof))
        await self._connect_output(self.child.stderr, _Output(self._on_stderr, self._close_one))

    async def _connect_output(self, pipe: FileIO | None, output: _Output) -> None:
        loop = asyncio.get_running_loop()
        reading, _ = await loop.connect_read_pipe(lambda: output, pipe)
        self._reading.append(reading)

    async def close(self) -> None:
        """End the process tree and wait."""
        # A closing pipe with nothing left to write is lost already: asyncio allows no second end.
        if self._writing is not None and (
            not self._writing.is_closing() or self._writing.get_write_buffer_size()
        ):
            self._writing.abort()
        for transport in self._reading:
            transport.close()
        async with self.child:
            await self.child.end(BRISK)

    # Sending.

    def send(self, data: bytes) -> None:
        """Send any bytes. They are dropped if the process has closed its input."""
        if self._writing is not None:
            self._writing.write(data)

    def send_message(self, method: str, params: object = None, **members: object) -> None:
        """Send a notification, or with an `id` a request."""
        self.send(frame(message(method, params, **members)))

    def close_input(self) -> None:
        if self._writing is not None:
            self._writing.close()

    # Receiving.

    async def request(self, method: str, params: object = None, id: Id | None = None) -> Message:
        """Send a request and return its response, a result or an error."""
        sent = self.new_id() if id is None else id
        before = len(self.received)
        self.send_message(method, params, id=sent)
        return await self.answer(sent, method, before)

    async def result(self, method: str, params: object = None) -> Any:
        """Send a request and return its result. Raises ClauseBroken for an error."""
        answer = await self.request(method, params)
        if (error := answer.get("error")) is not None:
            raise ClauseBroken(f"{method} was answered with an error: {_shown(error)}")
        return answer.get("result")

    async def refusal(self, method: str, params: object = None) -> int:
        """Send a request and return the code of its error. Raises ClauseBroken for a result."""
        answer = await self.request(method, params)
        if answer.get("error") is None:
            raise ClauseBroken(
                f"{method} was answered with the result {_shown(answer.get('result'))}"
            )
        return cast("int", answer["error"]["code"])

    async def alive(self) -> None:
        """Check that the process answers, by a request with an unknown method."""
        await self.request(UNKNOWN)

    def new_id(self) -> int:
        """Return an unused id. It is an integer, which every implementation accepts: a fault with
        other ids then only fails the clauses about ids."""
        return next(self._ids)

    async def answer(self, id: Id | None, method: str, since: int = 0) -> Message:
        """Wait for the response with this id, among the messages from index `since` on. An integer
        and a string are different ids."""

        def is_response(received: Message) -> bool:
            if "method" in received:
                return False
            return _same(received.get("id"), id) or _converted(received, id)

        found = await self.until(is_response, f"an answer to {method}", since)
        if not _same(found.get("id"), id):
            raise ClauseBroken(
                f"{method} had the id {_shown(id)}, and its answer {_shown(found['id'])}"
            )
        return checked(found)

    async def until(self, wanted: Callable[[Message], bool], what: str, since: int = 0) -> Message:
        """Wait for the first message that is wanted. Raises ClauseBroken after `seconds`."""
        try:
            async with asyncio.timeout(self.seconds):
                while True:
                    for received in self.received[since:]:
                        if wanted(received):
                            return received
                    since = len(self.received)
                    self._more.clear()
                    if self._too_long is not None:
                        raise ClauseBroken(f"it announced a message of {self._too_long}")
                    if self._output_ended:
                        raise ClauseBroken(f"it closed its output before {what} came")
                    await self._more.wait()
        except TimeoutError:
            raise ClauseBroken(f"there was not {what} within {self.seconds:g} s") from None

    @property
    def stderr(self) -> list[str]:
        """The last lines of standard error."""
        return self._stderr_tail.decode("utf-8", "replace").splitlines()

    def answers_to(self, id: Id) -> int:
        responses = (one for one in self.received if "method" not in one)
        return sum(_same(one.get("id"), id) for one in responses)

    async def exit(self) -> Exit:
        """Wait until the process has exited and its output is read. Raises ClauseBroken after
        `seconds`."""
        try:
            async with asyncio.timeout(self.seconds):
                ended = await self.child.wait()
        except TimeoutError:
            raise ClauseBroken(f"it was still running after {self.seconds:g} s") from None
        with contextlib.suppress(TimeoutError):  # processes left behind may keep the pipes open
            async with asyncio.timeout(_LAST_OUTPUT_SECONDS):
                await self._outputs_closed.wait()
        return ended

    def left_behind(self) -> list[int]:
        """Return the living processes of the tree."""
        living = members(proc.scan(guardian.living()), self.child.tree)
        return sorted(process.pid for process in living)

    def _on_input_closed(self) -> None:
        self._writing = None

    def _on_stdout(self, data: bytes) -> None:
        self._add_events(self._decoder.feed(data))

    def _on_stdout_eof(self) -> None:
        self._add_events(self._decoder.eof())
        self._output_ended = True
        self._more.set()
        self._close_one()

    def _close_one(self) -> None:
        self._open -= 1
        if not self._open:
            self._outputs_closed.set()

    def _add_events(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Frame(body):
                    self._add_message(body)
                case Fault():
                    self.strays.append(event.detail)
                    if event.reason is Reason.TOO_LONG:
                        self._too_long = event.detail
        self._more.set()

    def _add_message(self, body: bytes) -> None:
        try:
            received = json.loads(body)
        except ValueError:
            self.strays.append("a frame that is not JSON in UTF-8")
            return
        if not isinstance(received, dict):
            self.strays.append("a frame that is no message")
            return
        self.received.append(received)
        if "method" in received and received.get("id") is not None:
            error = {"code": METHOD_NOT_FOUND, "message": "This is only a check."}
            self.send(frame({"jsonrpc": "2.0", "id": received["id"], "error": error}))

    def _on_stderr(self, data: bytes) -> None:
        self._stderr_tail = (self._stderr_tail + data)[-_STDERR_BYTES:]
        self._more.set()


def message(method: str, params: object = None, **members: object) -> Message:
    given = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", **members, "method": method, **given}


def frame(content: object) -> bytes:
    return encode(json.dumps(content, ensure_ascii=False).encode())


def expect_code(code: int, wanted: int) -> None:
    """Raise ClauseBroken for another code."""
    if code != wanted:
        raise ClauseBroken(f"the code was {code} instead of {wanted}")


def checked(answer: Message) -> Message:
    """Return a response if it is valid; a null member means absent. Raises ClauseBroken."""
    if answer.get("jsonrpc") != "2.0":
        raise ClauseBroken(f'the answer has no "jsonrpc": "2.0": {_shown(answer)}')
    error = answer.get("error")
    if error is None and "result" not in answer:
        raise ClauseBroken(f"the answer has neither result nor error: {_shown(answer)}")
    if error is not None and answer.get("result") is not None:
        raise ClauseBroken(f"the answer has both result and error: {_shown(answer)}")
    if error is not None and not _is_error(error):
        raise ClauseBroken(f"the error has no integer code and message: {_shown(error)}")
    return answer


def _same(one: object, other: object) -> bool:
    return one == other and type(one) is type(other)


def _converted(response: Message, id: object) -> bool:
    """Return whether a response has this id as another type: 1 for "1"."""
    answered = response.get("id")
    return answered is not None and id is not None and str(answered) == str(id)


def _is_error(error: object) -> bool:
    return (
        isinstance(error, dict)
        and type(error.get("code")) is int
        and isinstance(error.get("message"), str)
    )


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


class _Output(asyncio.Protocol):
    def __init__(self, data: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._data, self._end = data, end

    def data_received(self, data: bytes) -> None:
        self._data(data)

    def eof_received(self) -> None:
        self._end()


class _Input(asyncio.BaseProtocol):
    """The process's standard input. Unread bytes are queued without a limit: clauses send
    little."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost

    def connection_lost(self, error: Exception | None) -> None:
        self._lost()


INITIALIZE: Final = {"logging": {"enabled": True, "level": "info"}}


@dataclass
class Bench:
    """One plugin: starts its processes, and collects what the clauses found out."""

    argv: Sequence[str]
    env: Mapping[str, str]
    manifest: spec.PluginManifest | None
    seconds: float
    command: str | None = None
    """The command that may be run, named by the person."""
    introduced: spec.Introduced | None = None
    protocol: str = spec.PROTOCOL_A
    refused: int | None = None
    """The code with which the plugin refused another protocol."""
    left: list[int] | None = None
    """Processes that were left after the plugin exited."""
    strays: list[str] = field(default_factory=list)
    """Output on standard output that is no message, of all ended processes."""
    received: list[Message] = field(default_factory=list)
    """Every message of all ended processes."""
    stderr: list[str] = field(default_factory=list)
    _ready: CheckedProcess | None = None

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[CheckedProcess]:
        """Start a new process for this context, without a handshake."""
        subject = await CheckedProcess.start(self.argv, self.env, self.seconds)
        try:
            yield subject
        finally:
            await self._end(subject)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[CheckedProcess]:
        """Start a new process for this context, ready for requests."""
        self.known()
        async with self.fresh() as subject:
            await self._begin(subject)
            yield subject

    async def ready(self) -> CheckedProcess:
        """Return the shared process, ready for requests."""
        self.known()
        if self._ready is not None and self._ready.child.exit is not None:
            await self.discard()
        if self._ready is None:
            self._ready = await CheckedProcess.start(self.argv, self.env, self.seconds)
            await self._begin(self._ready)
        return self._ready

    async def discard(self) -> None:
        """End the shared process; the next clause starts another."""
        if (subject := self._ready) is not None:
            self._ready = None
            await self._end(subject)

    def known(self) -> spec.Introduced:
        if self.introduced is None:
            raise ClauseUntried(NO_HANDSHAKE)
        return self.introduced

    def can(self, capability: str) -> None:
        """Raise ClauseUntried unless the plugin announced the capability."""
        capabilities = self.known().capabilities or spec.SideCapabilities()
        if not getattr(capabilities, capability):
            raise ClauseUntried(f"it does not announce {capability}")

    @property
    def is_a(self) -> bool:
        return self.protocol == spec.PROTOCOL_A

    def number(self, condition: int) -> int:
        """Return the error code for a condition in the plugin's generation."""
        return spec.number_of(condition, self.protocol)

    def defaults(self, *, of_plugin: bool = False) -> list[dict[str, Any]]:
        """Return the values that a host sends if the person sets none, of the command that may be
        run or of the plugin itself."""
        introduced = self.known()
        entries = introduced.configs if of_plugin else self._entries_of_command()
        values = resolve(introduced.name, entries or [], Sources())
        pairs: list[dict[str, Any]] = msgspec.to_builtins(values.key_values())
        return pairs

    def _entries_of_command(self) -> list[spec.ConfigEntry] | None:
        below, found = self.known().commands, None
        for word in (self.command or "").split("."):
            found = plugin_commands.find_command(below, word)
            below = found.commands if found else None
        return found.configs if found else None

    async def handshake(self, subject: CheckedProcess, protocol: str) -> spec.Introduced:
        """Do the handshake. Raises ClauseBroken for an answer that no host would accept."""
        answer = await subject.result("handshake", handshake(protocol))
        try:
            introduced = normalize_handshake(answer, self.manifest)
            plugin_commands.check(introduced.name, introduced)
        except HandshakeNotUnderstood as reason:
            raise ClauseBroken(f"it {reason}") from None
        except PluginHandshakeFailed as failure:
            raise ClauseBroken(f"it {failure.what}") from None
        return introduced

    async def _begin(self, subject: CheckedProcess) -> None:
        await self.handshake(subject, self.protocol)
        if self.is_a:
            await subject.result("initialize", INITIALIZE)

    async def _end(self, subject: CheckedProcess) -> None:
        await subject.close()
        self.strays += subject.strays
        self.received += subject.received
        self.stderr = subject.stderr or self.stderr


def handshake(protocol: str, version: int = spec.VERSION) -> dict[str, Any]:
    capabilities = {"cancel": True, "progress": True, "tools": True}
    return {
        "protocol": protocol,
        "protocolVersion": version,
        **({"capabilities": capabilities} if protocol == spec.PROTOCOL_A else {}),
    }
