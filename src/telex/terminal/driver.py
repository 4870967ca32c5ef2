"""`telex.spawn` and `telex.connect`: a program to drive, in a few words.

    async with telex.spawn("python3 -q") as term:
        await term.wait(">>> ")
        mark = await term.type("print(6 * 7)\n")
        await term.wait("42", since=mark)

The same object drives a session of a running server (`connect`). What is told here is redacted as
everywhere; `redact=False` gives it raw. `blocking` has the same for programs without an event loop,
and `with` instead of `async with` gives that.
"""

from __future__ import annotations

import builtins
import os
import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from telex import match
from telex.protocols import pty_automation as spec
from telex.redaction import Redactor
from telex.terminal.asking import (
    AskingHere,
    AskingThere,
    RecordingLost,
    Refused,
    ServerGone,
    SessionClosed,
    SessionProblem,
)
from telex.terminal.opening import Opening, to_its_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.protocols.pty_automation import Matched, ScreenSnapshot, Since
    from telex.terminal.asking import Asking
    from telex.terminal.blocking import BlockingServer, BlockingTerminal
    from telex.terminal.evidence import PredicateRunner
    from telex.terminal.session import PtySession

T = TypeVar("T")
A_DAY: Final = 86_400.0
"""The longest wait."""

Signal = Literal["term", "hup", "quit", "int", "kill", "user1", "user2"]


class PredicateSource(Protocol):
    """Who knows what a `lua` matcher asks for, as long as a program is driven."""

    def runner(self, session: PtySession, predicate: spec.Predicate) -> PredicateRunner:
        """For one wait."""
        ...

    async def close(self) -> None: ...


class Terminal:
    """One session: type, wait, look. Leaving `async with` ends its program."""

    def __init__(self, asking: Asking, id: str, *, made: bool = False, owns: bool = False) -> None:
        self._asking = asking
        self.id = id
        self._made = made
        """Whether there was such a session for sure."""
        self._owns = owns
        """Whether the asking ends with the terminal."""
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
        return await self.act(spec.Text(text))

    async def press(self, *keys: str) -> str:
        """Press keys by name: "enter", "ctrl_c", "alt_left". Answers the mark of the first."""
        marks = [await self.act(spec.Key(key)) for key in keys]
        return marks[0] if marks else ""

    async def paste(self, text: str, *, bracketed: bool = False) -> str:
        """Paste as it is, or between the markers of bracketed paste."""
        return await self.act(spec.BracketedPaste(text) if bracketed else spec.Paste(text))

    async def click(self, row: int, col: int, **how: Any) -> str:
        """Click a cell, counted from 0; `how` as in `MouseEvent`."""
        return await self.act(spec.Mouse(spec.MouseEvent(row, col, **how)))

    async def interrupt(self) -> str:
        """Ctrl-C, whatever key that is here, ahead of what is still queued."""
        return await self.act(spec.Interrupt())

    async def eof(self) -> str:
        """Ctrl-D, whatever key that is here."""
        return await self.act(spec.Eof())

    async def signal(self, name: Signal) -> str:
        """A signal to the program in the foreground."""
        return await self.act(spec.Signal(name))

    async def act(self, action: spec.Action) -> str:
        """Any action of the protocol. Answers the mark of the moment before it."""
        sent = await self._ask("session.input", spec.Input(self.id, action), spec.Sent)
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
        return await self._ask("session.wait", asked, spec.Matched)

    async def wait_exit(self, timeout: float = 30.0) -> int | None:
        """Until the program ends. Answers its exit code; None if a signal ended it."""
        matched = await self.wait(match.exited(), timeout)
        code = matched.evidence["exit_code"]
        return code if isinstance(code, int) else None

    async def snapshot(self, *, cells: spec.Cells = "full", redact: bool = True) -> ScreenSnapshot:
        """The visible screen."""
        asked = spec.Read(session=self.id, cells=cells, redact=redact)
        return await self._ask("session.snapshot", asked, spec.ScreenSnapshot)

    async def text(self, *, redact: bool = True) -> str:
        """What can be read on the screen."""
        return (await self.snapshot(cells="none", redact=redact)).plain_text

    async def transcript(self, *, strip: bool = True, redact: bool = True) -> str:
        """What was printed, without escape sequences unless asked."""
        asked = spec.ReadTranscript(session=self.id, strip=strip, redact=redact)
        return (await self._ask("session.transcript", asked, spec.TranscriptText)).text

    async def scrollback(self, *, redact: bool = True) -> tuple[str, ...]:
        """The rows that scrolled away, oldest first."""
        asked = spec.ReadScrollback(session=self.id, start=0, count=10_000, redact=redact)
        return (await self._ask("session.scrollback", asked, spec.Scrollback)).lines

    async def resize(self, rows: int, cols: int) -> None:
        """Another size for its terminal."""
        asked = spec.ResizeTo(session=self.id, rows=rows, cols=cols)
        await self._ask("session.resize", asked, spec.Resized)

    async def record(self, path: str | os.PathLike[str] | None, **how: Any) -> None:
        """Record to an asciicast file from now on; None stops. `how` as in `Record`.

        Raises `RecordingLost` if there is no room for the file or, when it is stopped, if it could
        not be written to its end; who closes the terminal instead is warned of that.
        """
        asked = spec.Record(session=self.id, path=absolute(path), **how)
        self._records = False
        await self._ask("session.record", asked, spec.Recorded)
        self._records = path is not None

    async def kill(self) -> None:
        """End the program; its screen can still be read."""
        await self._ask("session.kill", spec.OfSession(self.id), spec.Killed)

    async def close(self) -> None:
        """End the program and the session. Idempotent."""
        if not self._closed:
            self._closed = True
            await to_its_end(self._end())

    async def _end(self) -> None:
        if self._records:
            await self._stop_recording()
        try:
            await self._asking.ask("session.close", spec.OfSession(self.id), spec.Closed)
        except (Refused, ServerGone):
            if not self._made:
                raise
            # It was there: somebody else closed it, or its server ended and it with that.
        finally:
            if self._owns:
                await self._asking.close()

    async def _stop_recording(self) -> None:
        asked = spec.Record(session=self.id)
        try:
            await self._asking.ask("session.record", asked, spec.Recorded)
        except RecordingLost as lost:
            warnings.warn(str(lost), RuntimeWarning, stacklevel=2)
        except SessionProblem:
            pass  # there is no session, or no server, any more: closing it says so

    async def _ask(self, method: str, params: object, returns: builtins.type[T]) -> T:
        if self._closed:
            raise SessionClosed(f"the session {self.id} was closed", {})
        return await self._asking.ask(method, params, returns)


class Server:
    """A running server. Leaving `async with` ends the conversation, and no session."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def spawn(self, command: str | Sequence[str], **how: Any) -> Terminal:
        """Start a program there; as `telex.spawn`. It goes on until its terminal is closed."""
        return await _started(self._asking, created(command, **how))

    async def sessions(self) -> tuple[str, ...]:
        """The ids of its sessions."""
        asked = await self._asking.ask("session.list", spec.Nothing(), spec.SessionList)
        return asked.sessions

    def terminal(self, id: str) -> Terminal:
        """One of its sessions. Do not leave it by `async with`, unless it is to end."""
        return Terminal(self._asking, id)

    async def close(self) -> None:
        await self._asking.close()


def spawn(
    command: str | Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    rows: int = 24,
    cols: int = 80,
    predicates: PredicateSource | None = None,
    **more: Any,
) -> Opening[Terminal, BlockingTerminal]:
    """A program on a terminal of its own, to be driven from here.

    `command` is an argument list, or a string that is split as a shell would. `env` is what differs
    from our own environment. `more` is what else `session.create` takes. `predicates` answers `lua`
    matchers; `telex.spawn` is this with one (`telex.adapters.spawning`).

    Use it by `async with`, or without an event loop by `with`.
    """
    asked = created(command, cwd=cwd, env=env, rows=rows, cols=cols, **more)

    async def start() -> Terminal:
        from telex.terminal.service import Automation

        runner = None if predicates is None else predicates.runner
        asking = AskingHere(Automation(redactor=Redactor(), predicates=runner), predicates)
        try:
            return await _started(asking, asked, owns=True)
        except BaseException:
            await asking.close()
            raise

    return Opening(start, _blocking_terminal)


def connect(address: str, *, token: str | None = None) -> Opening[Server, BlockingServer]:
    """A running server: `unix:PATH`, or `ws://HOST:PORT/rpc` with a token (default: TELEX_TOKEN).

    `unix:` alone is the socket that `telex serve --socket` opens without a path.
    """

    async def dial() -> Server:
        from telex.terminal.dialling import dial

        return Server(AskingThere(await dial(address, token)))

    return Opening(dial, _blocking_server)


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


async def _started(asking: Asking, asked: spec.Create, owns: bool = False) -> Terminal:
    made = await asking.ask("session.create", asked, spec.Created)
    return Terminal(asking, made.session, made=True, owns=owns)


def _blocking_terminal(terminal: Terminal, portal: Any) -> BlockingTerminal:
    from telex.terminal.blocking import BlockingTerminal

    return BlockingTerminal(terminal, portal)


def _blocking_server(server: Server, portal: Any) -> BlockingServer:
    from telex.terminal.blocking import BlockingServer

    return BlockingServer(server, portal)
