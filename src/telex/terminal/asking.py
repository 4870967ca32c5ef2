"""How a driver asks for what it wants: of a service in this process, or of a server.

Both take the same parameters and give the same results, and both refuse in the same way: what the
protocol has a number for is an exception with a name here.

    SessionProblem           a session said no
    ├── TimedOut             nothing matched in time; it shows the screen and the nearest miss
    ├── SessionClosed        the program ended, or the session was closed
    ├── NotPermitted         somebody else has the lease, or a manifest does not allow it
    ├── Cancelled            the wait was cancelled
    ├── NotStarted           the program could not be started
    ├── ServerGone           the server ended, or the connection to it
    ├── RecordingLost        the disk is full, or the file was removed; what came before is in it
    ├── PluginFailed         a plugin threw, looped, or answered what cannot be used
    └── Refused              what was asked makes no sense: a bad key, pattern, size, id
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET

from telex.protocols import pty_automation as spec
from telex.rpc.errors import Condition, PeerGone, RpcError
from telex.terminal.connection import Connection

if TYPE_CHECKING:
    from telex.rpc.peer import Peer
    from telex.terminal.service import Automation

T = TypeVar("T")


class SessionProblem(Exception):
    """A session said no. `data` has what it knows, as in the protocol."""

    def __init__(self, sentence: str, data: dict[str, Any]) -> None:
        super().__init__(sentence)
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        """For whoever sends it to another process, as test runners do."""
        return type(self), (self.args[0], self.data)


class TimedOut(SessionProblem, TimeoutError):
    """Nothing matched in time."""

    def __str__(self) -> str:
        return _with_screen(super().__str__(), self.data)


class SessionClosed(SessionProblem):
    """The program ended, or the session was closed."""

    def __str__(self) -> str:
        return _with_screen(super().__str__(), self.data)


class NotPermitted(SessionProblem):
    """Somebody else has the lease, or the plugin's manifest does not allow it."""


class Cancelled(SessionProblem):
    """The wait was cancelled."""


class NotStarted(SessionProblem):
    """The program could not be started."""


class ServerGone(SessionProblem):
    """The server ended, or the connection to it."""


class RecordingLost(SessionProblem):
    """The file could not be written to its end; `data` has its path and the system's error."""


class PluginFailed(SessionProblem):
    """A plugin could not do what it was asked; `data` names the function and the kind."""


class Refused(SessionProblem, ValueError):
    """What was asked makes no sense."""


_KINDS: dict[object, type[SessionProblem]] = {
    spec.TIMED_OUT: TimedOut,
    spec.SESSION_CLOSED: SessionClosed,
    spec.PERMISSION_DENIED: NotPermitted,
    spec.CANCELLED: Cancelled,
    spec.CODES[Condition.PARAMS]: Refused,
}


class Closable(Protocol):
    """What ends."""

    async def close(self) -> None: ...


class Asking(Closable, Protocol):
    """Who is asked."""

    async def ask(self, method: str, params: object, returns: type[T]) -> T:
        """Raises a SessionProblem."""
        ...


class AskingHere:
    """A service in this process: no wire in between."""

    def __init__(self, service: Automation, then: Closable | None = None) -> None:
        self._service = service
        self._then = then
        """What the service needs, and is closed after it."""
        self._connection = Connection(None, service.redactor)

    async def ask(self, method: str, params: object, returns: type[T]) -> T:
        try:
            answer: Any = self._service.handlers[method](_checked(params), self._connection)
            return await answer if inspect.isawaitable(answer) else answer  # type: ignore[no-any-return]  # as the table has it
        except RpcError as error:
            raise named(error) from None  # what it came from says nothing more

    async def close(self) -> None:
        """The service was started for this, and ends with it."""
        self._service.forget(self._connection)
        try:
            await self._service.close()
        finally:
            if self._then is not None:
                await self._then.close()


class AskingThere:
    """A server, over a peer."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def ask(self, method: str, params: object, returns: type[T]) -> T:
        try:
            checked = _checked(params)
            return await self._peer.call(method, checked, returns=returns, timeout=None)
        except RpcError as error:
            raise named(error) from None  # what it came from says nothing more
        except PeerGone as error:
            raise ServerGone(f"the server is gone: {error}", {}) from error

    async def close(self) -> None:
        """The conversation ends; sessions stay."""
        await self._peer.close()


def _checked(params: object) -> object:
    """As a server would have read it. Raises Refused for a size of 0 or a text that is none."""
    try:
        return msgspec.convert(msgspec.to_builtins(params), type(params))
    except (msgspec.ValidationError, TypeError) as error:
        raise Refused(f"The parameters are not valid. {error}", {}) from error


def named(error: RpcError) -> Exception:
    """The exception for what the protocol has a number for."""
    problem = error.problem
    code = problem.code
    if isinstance(code, Condition):  # raised here; from a server it comes as its number
        code = spec.CODES[code]
    told: dict[str, Any] = {}
    if problem.data is not UNSET:  # as a server would have sent it, also if it was raised here
        told = msgspec.json.decode(msgspec.json.encode(problem.data))
    if "program" in told:
        return NotStarted(problem.message, told)
    if told.get("kind") == "server_ending":
        return ServerGone(problem.message, told)
    if told.get("kind") == "recording_failed":
        return RecordingLost(problem.message, told)
    kind = _KINDS.get(code, PluginFailed if "plugin" in told else None)
    return error if kind is None else kind(problem.message, told)


def _with_screen(sentence: str, data: dict[str, Any]) -> str:
    """For a person whose test failed: what was missing, what came nearest, what was there."""
    lines = [sentence]
    lines += _reasons(data.get("why", {}))
    if state := data.get("state"):
        lines.append(f"the state: {state['state']}: {state['evidence']}")
    if "screen_tail" in data:
        lines += ["the screen:", *(f"  | {row}" for row in data["screen_tail"].split("\n"))]
    return "\n".join(lines)


def _reasons(why: dict[str, Any], depth: int = 1) -> list[str]:
    if not why or why.get("matched"):
        return []
    lines = [f"{'  ' * depth}{why.get('kind')}: {why.get('why', '')}".rstrip(": ")]
    if nearest := why.get("nearest"):
        lines.append(f"{'  ' * (depth + 1)}{nearest.get('says', '')}: {nearest.get('line', '')!r}")
    for branch in why.get("branches", ()):
        lines += _reasons(branch, depth + 1)
    return lines
