"""The processes that clauses are tried on.

`CheckedProcess` is one, written to and read from byte by byte. Not `client.RunningPlugin`, which
would repair what it can: here frames are broken on purpose, and a plugin's mistakes are the result.
`Bench` starts them: most clauses share one that is ready to be asked; one that breaks a clause is
not trusted with the next. Used by the clauses only.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import FileIO
from typing import Any, Final, cast

import msgspec

from telex.plugins import plugin_commands
from telex.plugins import protocol as spec
from telex.plugins.check.report import NO_HANDSHAKE, ClauseBroken, ClauseUntried
from telex.plugins.config_values import Sources, resolve
from telex.plugins.errors import PluginHandshakeFailed
from telex.plugins.handshake import HandshakeNotUnderstood, normalize_handshake
from telex.processes import guardian, proc, spawn
from telex.processes.child import Child, Exit
from telex.processes.termination import BRISK
from telex.processes.tree import members
from telex.wire.content_length import ContentLengthDecoder, encode
from telex.wire.events import Event, Fault, Frame, Reason

Message = dict[str, Any]
Id = int | str

UNKNOWN: Final = "telex/check"
"""A method that no plugin has."""
METHOD_NOT_FOUND: Final = -32601
_STDERR_BYTES: Final = 4096
_LAST_WORDS_SECONDS: Final = 0.5


class CheckedProcess:
    """One started process."""

    def __init__(self, child: Child, seconds: float) -> None:
        self.child = child
        self.seconds = seconds
        self.said: list[Message] = []
        """Every message it sent."""
        self.strays: list[str] = []
        """What else it wrote to standard output."""
        self._too_long: str | None = None
        """Of a message it announced that is longer than any host takes: what follows is part of it,
        and nothing more can be heard."""
        self._words = b""
        """The end of what it wrote to standard error."""
        self._ids = itertools.count(1)
        self._more = asyncio.Event()
        self._ended = False
        self._open = 2
        self._silent = asyncio.Event()
        """Both its outputs have ended."""
        self._decoder = ContentLengthDecoder()
        self._writing: asyncio.WriteTransport | None = None
        self._reading: list[asyncio.ReadTransport] = []

    @classmethod
    async def start(
        cls, argv: Sequence[str], env: Mapping[str, str], seconds: float
    ) -> CheckedProcess:
        """Raises spawn.StartFailed."""
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
            lambda: _Input(self._deaf), self.child.stdin
        )
        await self._listen(self.child.stdout, _Ears(self._read, self._end))
        await self._listen(self.child.stderr, _Ears(self._hear, self._close_one))

    async def _listen(self, pipe: FileIO | None, ears: _Ears) -> None:
        loop = asyncio.get_running_loop()
        reading, _ = await loop.connect_read_pipe(lambda: ears, pipe)
        self._reading.append(reading)

    async def close(self) -> None:
        """End its whole tree."""
        # A closing pipe with nothing left to write is lost already: asyncio takes no second end.
        if self._writing is not None and (
            not self._writing.is_closing() or self._writing.get_write_buffer_size()
        ):
            self._writing.abort()
        for transport in self._reading:
            transport.close()
        async with self.child:
            await self.child.end(BRISK)

    # To it.

    def send(self, data: bytes) -> None:
        """Any bytes. Lost, if it does not listen any more."""
        if self._writing is not None:
            self._writing.write(data)

    def say(self, method: str, params: object = None, **members: object) -> None:
        """A notification, or with an `id` a request."""
        self.send(frame(message(method, params, **members)))

    def close_input(self) -> None:
        if self._writing is not None:
            self._writing.close()

    # From it.

    async def ask(self, method: str, params: object = None, id: Id | None = None) -> Message:
        """The answer, whatever it says."""
        asked = self.new_id() if id is None else id
        before = len(self.said)
        self.say(method, params, id=asked)
        return await self.answer(asked, method, before)

    async def result(self, method: str, params: object = None) -> Any:
        """The answer, which has to be a result."""
        answer = await self.ask(method, params)
        if (error := answer.get("error")) is not None:
            raise ClauseBroken(f"{method} was answered with an error: {_shown(error)}")
        return answer.get("result")

    async def refusal(self, method: str, params: object = None) -> int:
        """The code of the answer, which has to be an error."""
        answer = await self.ask(method, params)
        if answer.get("error") is None:
            raise ClauseBroken(
                f"{method} was answered with the result {_shown(answer.get('result'))}"
            )
        return cast("int", answer["error"]["code"])

    async def alive(self) -> None:
        """It answers a question nobody can answer."""
        await self.ask(UNKNOWN)

    def new_id(self) -> int:
        """An id that no request had. Of integers: every implementation can take them, so that a
        fault with other ids is told by the clauses about ids and by no other."""
        return next(self._ids)

    async def answer(self, id: Id | None, method: str, since: int = 0) -> Message:
        """The answer to this id, among the messages from that place on. An integer and a string are
        never the same."""

        def is_it(said: Message) -> bool:
            return "method" not in said and (_same(said.get("id"), id) or _converted(said, id))

        found = await self.until(is_it, f"an answer to {method}", since)
        if not _same(found.get("id"), id):
            raise ClauseBroken(
                f"{method} had the id {_shown(id)}, and its answer {_shown(found['id'])}"
            )
        return checked(found)

    async def until(self, wanted: Callable[[Message], bool], what: str, since: int = 0) -> Message:
        """The first message that is wanted, if it comes in time."""
        try:
            async with asyncio.timeout(self.seconds):
                while True:
                    for said in self.said[since:]:
                        if wanted(said):
                            return said
                    since = len(self.said)
                    self._more.clear()
                    if self._too_long is not None:
                        raise ClauseBroken(f"it announced a message of {self._too_long}")
                    if self._ended:
                        raise ClauseBroken(f"it closed its output before {what} came")
                    await self._more.wait()
        except TimeoutError:
            raise ClauseBroken(f"there was not {what} within {self.seconds:g} s") from None

    @property
    def stderr(self) -> list[str]:
        """The last lines it wrote there."""
        return self._words.decode("utf-8", "replace").splitlines()

    def answers_to(self, id: Id) -> int:
        return sum("method" not in said and _same(said.get("id"), id) for said in self.said)

    async def exit(self) -> Exit:
        """How it ended, if it does in time, with all that it said heard."""
        try:
            async with asyncio.timeout(self.seconds):
                ended = await self.child.wait()
        except TimeoutError:
            raise ClauseBroken(f"it was still there after {self.seconds:g} s") from None
        with contextlib.suppress(TimeoutError):  # what it left behind may hold the pipes open
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._silent.wait()
        return ended

    def left_behind(self) -> list[int]:
        """Processes of its tree that live."""
        living = members(proc.scan(guardian.living()), self.child.tree)
        return sorted(process.pid for process in living)

    def _deaf(self) -> None:
        self._writing = None

    def _read(self, data: bytes) -> None:
        self._take(self._decoder.feed(data))

    def _end(self) -> None:
        self._take(self._decoder.eof())
        self._ended = True
        self._more.set()
        self._close_one()

    def _close_one(self) -> None:
        self._open -= 1
        if not self._open:
            self._silent.set()

    def _take(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Frame(body):
                    self._heard(body)
                case Fault():
                    self.strays.append(event.detail)
                    if event.reason is Reason.TOO_LONG:
                        self._too_long = event.detail
        self._more.set()

    def _heard(self, body: bytes) -> None:
        try:
            said = json.loads(body)
        except ValueError:
            self.strays.append("a frame that is not JSON in UTF-8")
            return
        if not isinstance(said, dict):
            self.strays.append("a frame that is no message")
            return
        self.said.append(said)
        if "method" in said and said.get("id") is not None:
            error = {"code": METHOD_NOT_FOUND, "message": "This is only a check."}
            self.send(frame({"jsonrpc": "2.0", "id": said["id"], "error": error}))

    def _hear(self, data: bytes) -> None:
        self._words = (self._words + data)[-_STDERR_BYTES:]
        self._more.set()


def message(method: str, params: object = None, **members: object) -> Message:
    given = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", **members, "method": method, **given}


def frame(said: object) -> bytes:
    return encode(json.dumps(said, ensure_ascii=False).encode())


def checked(answer: Message) -> Message:
    """An answer, if it is one. Null is as good as omitted."""
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


def _converted(said: Message, id: object) -> bool:
    """Whether it answers this id, made into another type: 1 for "1"."""
    answered = said.get("id")
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


class _Ears(asyncio.Protocol):
    def __init__(self, data: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._data, self._end = data, end

    def data_received(self, data: bytes) -> None:
        self._data(data)

    def eof_received(self) -> None:
        self._end()


class _Input(asyncio.BaseProtocol):
    """What it does not read waits here; a clause sends little."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost

    def connection_lost(self, error: Exception | None) -> None:
        self._lost()


INITIALIZE: Final = {"logging": {"enabled": True, "level": "info"}}


@dataclass
class Bench:
    """One plugin, and what is known of it by now."""

    argv: Sequence[str]
    env: Mapping[str, str]
    manifest: spec.PluginManifest | None
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
    _ready: CheckedProcess | None = None

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[CheckedProcess]:
        """A new process, asked nothing yet."""
        subject = await CheckedProcess.start(self.argv, self.env, self.seconds)
        try:
            yield subject
        finally:
            await self._gone(subject)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[CheckedProcess]:
        """A new process, ready."""
        self.known()
        async with self.fresh() as subject:
            await self._begin(subject)
            yield subject

    async def ready(self) -> CheckedProcess:
        """The shared process, ready."""
        self.known()
        if self._ready is not None and self._ready.child.exit is not None:
            await self.discard()
        if self._ready is None:
            self._ready = await CheckedProcess.start(self.argv, self.env, self.seconds)
            await self._begin(self._ready)
        return self._ready

    async def discard(self) -> None:
        """The shared process is not trusted any more."""
        if (subject := self._ready) is not None:
            self._ready = None
            await self._gone(subject)

    def known(self) -> spec.Introduced:
        if self.introduced is None:
            raise ClauseUntried(NO_HANDSHAKE)
        return self.introduced

    def can(self, capability: str) -> None:
        """Raises Untried unless it announced it."""
        capabilities = self.known().capabilities or spec.SideCapabilities()
        if not getattr(capabilities, capability):
            raise ClauseUntried(f"it does not announce {capability}")

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
            found = plugin_commands.find_command(below, word)
            below = found.commands if found else None
        return found.configs if found else None

    async def shake(self, subject: CheckedProcess, protocol: str) -> Any:
        """What it says of itself. Raises Broken for what no host would take."""
        said = await subject.result("handshake", handshake(protocol))
        try:
            understood = normalize_handshake(said, self.manifest)
            plugin_commands.check(understood.name, understood)
        except HandshakeNotUnderstood as reason:
            raise ClauseBroken(f"it {reason}") from None
        except PluginHandshakeFailed as wrong:
            raise ClauseBroken(f"it {wrong.what}") from None
        return said, understood

    async def _begin(self, subject: CheckedProcess) -> None:
        await self.shake(subject, self.protocol)
        if self.is_a:
            await subject.result("initialize", INITIALIZE)

    async def _gone(self, subject: CheckedProcess) -> None:
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
