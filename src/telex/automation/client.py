"""`telex.spawn` and `telex.connect`: a program to drive, in a few words.

    async with telex.spawn("python3 -q") as term:
        await term.wait(">>> ")
        mark = await term.type("print(6 * 7)\n")
        await term.wait("42", since=mark)

The same object drives a session of a running server (`connect`). What it returns is redacted as
everywhere; `redact=False` gives it raw. `sync` has the same for programs without an event loop, and
`with` instead of `async with` gives that.
"""

from __future__ import annotations

import builtins
import inspect
import os
import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

import msgspec

from telex import match
from telex.automation import protocol as spec
from telex.automation.errors import (
    RecordingLost,
    Refused,
    ServerGone,
    SessionClosed,
    SessionProblem,
    to_session_problem,
)
from telex.automation.notices import Connection
from telex.automation.portal import Closable, DualContext
from telex.processes.shielded import run_shielded
from telex.redaction import Redactor
from telex.rpc.errors import PeerGone, RpcError
from telex.terminal import actions
from telex.terminal.waits import matchers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.automation.protocol import Matched, ScreenSnapshot
    from telex.automation.server import AutomationService
    from telex.automation.sync import BlockingServer, BlockingTerminal
    from telex.rpc.peer import Peer
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import PredicateRunner
    from telex.terminal.waits.matchers import Since

T = TypeVar("T")
A_DAY: Final = 86_400.0
"""The longest wait."""

Signal = Literal["term", "hup", "quit", "int", "kill", "user1", "user2"]


class Caller(Closable, Protocol):
    """Calls the methods of automation: in this process, or on a server."""

    async def call(self, method: str, params: object, returns: type[T]) -> T:
        """Raises a SessionProblem."""
        ...


class LocalCaller:
    """Calls a service in this process, without a wire in between."""

    def __init__(self, service: AutomationService, then: Closable | None = None) -> None:
        self._service = service
        self._then = then
        """What the service needs, and is closed after it."""
        self._connection = Connection(None, service.redactor)

    async def call(self, method: str, params: object, returns: type[T]) -> T:
        try:
            answer: Any = self._service.handlers[method](_validated(params), self._connection)
            return await answer if inspect.isawaitable(answer) else answer  # type: ignore[no-any-return]  # as the table has it
        except RpcError as error:
            raise to_session_problem(error) from None  # what it came from says nothing more

    async def close(self) -> None:
        """End the service, which was started for this caller."""
        self._service.forget(self._connection)
        try:
            await self._service.close()
        finally:
            if self._then is not None:
                await self._then.close()


class RemoteCaller:
    """Calls a server, over a peer."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def call(self, method: str, params: object, returns: type[T]) -> T:
        try:
            checked = _validated(params)
            return await self._peer.call(method, checked, returns=returns, timeout=None)
        except RpcError as error:
            raise to_session_problem(error) from None  # what it came from says nothing more
        except PeerGone as error:
            raise ServerGone(f"the server is gone: {error}", {}) from error

    async def close(self) -> None:
        """End the conversation. The server's sessions go on."""
        await self._peer.close()


def _validated(params: object) -> object:
    """As a server would have read it. Raises Refused for a size of 0 or a text that is none."""
    try:
        return msgspec.convert(msgspec.to_builtins(params), type(params))
    except (msgspec.ValidationError, TypeError) as error:
        raise Refused(f"The parameters are not valid. {error}", {}) from error


class PredicateSource(Protocol):
    """Who knows what a `lua` matcher asks for, as long as a program is driven."""

    def runner(self, session: PtySession, predicate: matchers.Predicate) -> PredicateRunner:
        """For one wait."""
        ...

    async def close(self) -> None: ...


class Terminal:
    """One session: type, wait, look. Leaving `async with` ends its program."""

    def __init__(self, caller: Caller, id: str, *, made: bool = False, owns: bool = False) -> None:
        self._caller = caller
        self.id = id
        self._made = made
        """Whether there was such a session for sure."""
        self._owns = owns
        """Whether the caller is closed with the terminal."""
        self._closed = False
        self._records = False
        """Whether a recording was begun here and not stopped."""

    async def __aenter__(self) -> Terminal:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self, warn: Any = warnings.warn) -> None:
        if self._owns and not self._closed:
            warn(f"{self!r} was not closed", ResourceWarning, source=self)

    async def type(self, text: str) -> str:
        """Type characters; "\\n" is Enter for most programs. Answers a mark for `since`."""
        return await self.act(actions.Text(text))

    async def press(self, *keys: str) -> str:
        """Press keys by name: "enter", "ctrl_c", "alt_left". Answers the mark of the first."""
        marks = [await self.act(actions.Key(key)) for key in keys]
        return marks[0] if marks else ""

    async def paste(self, text: str, *, bracketed: bool = False) -> str:
        """Paste as it is, or between the markers of bracketed paste."""
        return await self.act(actions.BracketedPaste(text) if bracketed else actions.Paste(text))

    async def click(self, row: int, col: int, **how: Any) -> str:
        """Click a cell, counted from 0; `how` as in `MouseEvent`."""
        return await self.act(actions.Mouse(actions.MouseEvent(row, col, **how)))

    async def interrupt(self) -> str:
        """Ctrl-C, whatever key that is here, ahead of what is still queued."""
        return await self.act(actions.Interrupt())

    async def eof(self) -> str:
        """Ctrl-D, whatever key that is here."""
        return await self.act(actions.Eof())

    async def signal(self, name: Signal) -> str:
        """A signal to the program in the foreground."""
        return await self.act(actions.Signal(name))

    async def act(self, action: actions.Action) -> str:
        """Any action of the protocol. Answers the mark of the moment before it."""
        sent = await self._call("session.input", spec.Input(self.id, action), spec.Sent)
        return sent.mark

    async def wait(
        self, what: match.What, timeout: float = 30.0, *, since: Since | None = None
    ) -> Matched:
        """Until the text, pattern or matcher is there. With `since`, text that stood there already,
        and the echo of what was typed, do not count. Raises `TimedOut`, which shows the screen."""
        asked = spec.Wait(
            session=self.id,
            matcher=match.matcher(what),
            timeout_ms=milliseconds(timeout),
            since=since,
            cells="none",
        )
        return await self._call("session.wait", asked, spec.Matched)

    async def wait_exit(self, timeout: float = 30.0) -> int | None:
        """Until the program ends. Answers its exit code; None if a signal ended it."""
        matched = await self.wait(match.exited(), timeout)
        code = matched.evidence["exit_code"]
        return code if isinstance(code, int) else None

    async def snapshot(self, *, cells: spec.Cells = "full", redact: bool = True) -> ScreenSnapshot:
        """The visible screen."""
        asked = spec.ReadScreen(session=self.id, cells=cells, redact=redact)
        return await self._call("session.snapshot", asked, spec.ScreenSnapshot)

    async def text(self, *, redact: bool = True) -> str:
        """What can be read on the screen."""
        return (await self.snapshot(cells="none", redact=redact)).plain_text

    async def transcript(self, *, strip: bool = True, redact: bool = True) -> str:
        """What was printed, without escape sequences unless asked."""
        asked = spec.ReadTranscript(session=self.id, strip=strip, redact=redact)
        return (await self._call("session.transcript", asked, spec.TranscriptText)).text

    async def scrollback(self, *, redact: bool = True) -> tuple[str, ...]:
        """The rows that scrolled away, oldest first."""
        asked = spec.ReadScrollback(session=self.id, start=0, count=10_000, redact=redact)
        return (await self._call("session.scrollback", asked, spec.Scrollback)).lines

    async def resize(self, rows: int, cols: int) -> None:
        """Another size for its terminal."""
        asked = spec.ResizeTo(session=self.id, rows=rows, cols=cols)
        await self._call("session.resize", asked, spec.Resized)

    async def record(self, path: str | os.PathLike[str] | None, **how: Any) -> None:
        """Record to an asciicast file from now on; None stops. `how` as in `Record`.

        Raises `RecordingLost` if there is no room for the file or, when it is stopped, if it could
        not be written to its end; who closes the terminal instead is warned of that.
        """
        asked = spec.Record(session=self.id, path=absolute(path), **how)
        self._records = False
        await self._call("session.record", asked, spec.Recorded)
        self._records = path is not None

    async def kill(self) -> None:
        """End the program; its screen can still be read."""
        await self._call("session.kill", spec.OfSession(self.id), spec.Killed)

    async def close(self) -> None:
        """End the program and the session. Idempotent."""
        if not self._closed:
            self._closed = True
            await run_shielded(self._end())

    async def _end(self) -> None:
        if self._records:
            await self._stop_recording()
        try:
            await self._caller.call("session.close", spec.OfSession(self.id), spec.Closed)
        except (Refused, ServerGone):
            if not self._made:
                raise
            # It was there: somebody else closed it, or its server ended and it with that.
        finally:
            if self._owns:
                await self._caller.close()

    async def _stop_recording(self) -> None:
        asked = spec.Record(session=self.id)
        try:
            await self._caller.call("session.record", asked, spec.Recorded)
        except RecordingLost as lost:
            warnings.warn(str(lost), RuntimeWarning, stacklevel=2)
        except SessionProblem:
            pass  # there is no session, or no server, any more: closing it says so

    async def _call(self, method: str, params: object, returns: builtins.type[T]) -> T:
        if self._closed:
            raise SessionClosed(f"the session {self.id} was closed", {})
        return await self._caller.call(method, params, returns)


class Server:
    """A running server. Leaving `async with` ends the conversation, and no session."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def spawn(self, command: str | Sequence[str], **how: Any) -> Terminal:
        """Start a program there; as `telex.spawn`. It goes on until its terminal is closed."""
        return await _started(self._caller, created(command, **how))

    async def sessions(self) -> tuple[str, ...]:
        """The ids of its sessions."""
        asked = await self._caller.call("session.list", spec.NoParams(), spec.SessionList)
        return asked.sessions

    def terminal(self, id: str) -> Terminal:
        """One of its sessions. Do not leave it by `async with`, unless it is to end."""
        return Terminal(self._caller, id)

    async def close(self) -> None:
        await self._caller.close()


def spawn(
    command: str | Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    rows: int = 24,
    cols: int = 80,
    predicates: PredicateSource | None = None,
    **more: Any,
) -> DualContext[Terminal, BlockingTerminal]:
    """A program on a terminal of its own, to be driven from here.

    `command` is an argument list, or a string that is split as a shell would. `env` is what differs
    from our own environment. `more` is what else `session.create` takes. `predicates` answers `lua`
    matchers; `telex.spawn` is this with one (`telex.adapters.terminal_spawn`).

    Use it by `async with`, or without an event loop by `with`.
    """
    asked = created(command, cwd=cwd, env=env, rows=rows, cols=cols, **more)

    async def start() -> Terminal:
        from telex.automation.server import AutomationService

        runner = None if predicates is None else predicates.runner
        caller = LocalCaller(AutomationService(redactor=Redactor(), predicates=runner), predicates)
        try:
            return await _started(caller, asked, owns=True)
        except BaseException:
            await caller.close()
            raise

    return DualContext(start, _blocking_terminal)


def connect(address: str, *, token: str | None = None) -> DualContext[Server, BlockingServer]:
    """A running server: `unix:PATH`, or `ws://HOST:PORT/rpc` with a token (default: TELEX_TOKEN).

    `unix:` alone is the socket that `telex serve --socket` opens without a path.
    """

    async def dial() -> Server:
        from telex.automation.dialer import dial

        return Server(RemoteCaller(await dial(address, token)))

    return DualContext(dial, _blocking_server)


def created(
    command: str | Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    **more: Any,
) -> spec.Create:
    """The parameters of `session.create`. Raises ValueError for an empty command."""
    program, *args = words(command)
    return spec.Create(
        program=program, args=tuple(args), cwd=absolute(cwd), env=dict(env or {}), **more
    )


def words(command: str | Sequence[str]) -> list[str]:
    """A program and its arguments. Raises ValueError for an empty command."""
    argv = shlex.split(command) if isinstance(command, str) else list(command)
    if not argv:
        raise ValueError("there is no program in an empty command")
    return argv


def milliseconds(timeout: float) -> int:
    """As the protocol counts."""
    return round(min(timeout, A_DAY) * 1000)


def absolute(path: str | os.PathLike[str] | None) -> str | None:
    """A server is somewhere else."""
    return None if path is None else str(Path(path).absolute())


async def _started(caller: Caller, asked: spec.Create, owns: bool = False) -> Terminal:
    made = await caller.call("session.create", asked, spec.Created)
    return Terminal(caller, made.session, made=True, owns=owns)


def _blocking_terminal(terminal: Terminal, portal: Any) -> BlockingTerminal:
    from telex.automation.sync import BlockingTerminal

    return BlockingTerminal(terminal, portal)


def _blocking_server(server: Server, portal: Any) -> BlockingServer:
    from telex.automation.sync import BlockingServer

    return BlockingServer(server, portal)
