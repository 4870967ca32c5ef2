"""The terminal's side of JSON escapes: a handler for every command, and the surface it acts on.

Output commands are applied at once, as ANSI: after the output before them, and before the output
after them. If the person has to be asked, the command is applied after their yes. Error messages
are fixed sentences: they are written into the program's input, and must never repeat text that the
program chose.

    service = TerminalService(surface, gate)
    peer = Peer(channel, dialect, service.methods)

The same service responds in band, on a socket and on the web. There are two surfaces: a session's
screen (`session_responder`) and the person's terminal (`passthrough.person_surface`).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Raw

from telex.escapes import limits, protocol
from telex.escapes.capabilities import detect_answer
from telex.escapes.commands import COMMANDS, EVENTS, core, dec_modes, terminal_extensions
from telex.escapes.policy import RequestOrigin
from telex.escapes.protocol import ECUNSUP, EscapeCommand, EscapeEvent, Guard
from telex.rpc.errors import Condition, RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.messages import ABSENT
from telex.rpc.methods import Method, Methods
from telex.wire import limits as wire_limits

if TYPE_CHECKING:
    from collections.abc import Collection

    from telex.escapes.commands.core import TermReport
    from telex.escapes.commands.dec_modes import QueryMode
    from telex.terminal.cells import Size


SurfaceHandler = Callable[..., Any]
"""Called with the payload and the `CallContext`: a function, a coroutine function, or an async
generator function."""


class Surface(Protocol):
    """The terminal or screen on which commands take effect."""

    def apply(self, ansi: bytes) -> None:
        """Apply ANSI now: after the program's earlier output, and before its later output."""
        ...

    @property
    def size(self) -> Size: ...

    @property
    def title(self) -> str | None:
        """The title of the window. It is never sent to a program, which may have chosen it."""
        ...

    def report(self, what: str, asked: TermReport | QueryMode) -> Any:
        """Return the result of `term:report` or `term:querymode` (`what`), or an awaitable of it.
        Raises `unsupported()` if there is none.
        """
        ...

    def set_modes(self, numbers: frozenset[int]) -> None:
        """Set exactly these private modes for events, in addition to the program's own."""
        ...

    @property
    def lacks(self) -> frozenset[str]:
        """Output commands that have no effect here, and events that are not sent here. Complete
        once `probe` is done.
        """
        ...

    @property
    def unverified(self) -> tuple[str, ...]:
        """Commands and events, or globs of them, with unknown effect."""
        ...

    @property
    def probe(self) -> Callable[[], Awaitable[None]] | None:
        """Finds out the abilities of the surface; None once they are known."""
        ...

    def refusal(self, asked: Any) -> RpcError | None:
        """Return an error if the command of this payload is known not to work here."""
        ...

    @property
    def handlers(self) -> Mapping[str, SurfaceHandler]:
        """Handlers of commands that are not output, by name: `clip:read`, files."""
        ...


def unsupported(why: str = "This terminal cannot do that.") -> RpcError:
    """Make the error of a known command that does not work here. `why` is a fixed sentence."""
    return RpcError(ECUNSUP, why)


FallbackHandler = Callable[[Raw, CallContext], AsyncIterator[object]]
"""An async generator that serves unknown commands; `call.method` is the command."""

_WRONG: Final = "The data is not valid for this command."
_TYPED: Final = frozenset({"event:key", "event:paste"})
"""A subscriber to these events gets all keys, also those of a password."""


class CommandGate(Protocol):
    """Decides whether a command is allowed. `gate.Gate` implements it."""

    def settled(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool | None:
        """Whether a command is allowed; None if the person has to be asked."""
        ...

    async def allow(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool: ...


class EventSource(Protocol):
    """Keeps subscriptions to events, and their lifetimes."""

    @property
    def known(self) -> Collection[str]:
        """The events that can be sent here."""
        ...

    def subscribe(self, events: tuple[str, ...], call: CallContext) -> Collection[str]:
        """Subscribe the requester. Return all its subscriptions."""
        ...

    def unsubscribe(self, events: tuple[str, ...], call: CallContext) -> Collection[str]: ...


def _local(call: CallContext) -> RequestOrigin:
    return RequestOrigin("local")


class TerminalService:
    """Serves the commands of one terminal: its `methods` are for a `Peer`."""

    def __init__(
        self,
        surface: Surface,
        gate: CommandGate,
        *,
        origin: Callable[[CallContext], RequestOrigin] = _local,
        events: EventSource | None = None,
        keyboard: bool = False,
        extra: FallbackHandler | None = None,
        maxframe: int = wire_limits.CONTROL_STRING_BYTES,
        htty: bool = False,
    ) -> None:
        """
        Args:
            surface: The terminal or screen on which commands take effect.
            gate: Decides about guarded commands.
            origin: Returns the origin of a request.
            events: Keeps subscriptions; None if there are no events.
            keyboard: Whether a person types here. Then the person is asked before a program may
                subscribe to keys; otherwise keys are like other events.
            extra: Serves unknown commands.
            maxframe: The most bytes of JSON in a frame, for `detect`.
            htty: Whether `detect` reports that pages are shown.
        """
        self._surface = surface
        self._gate = gate
        self._keyboard = keyboard
        self._origin = origin
        self._events = events
        self.methods = _MethodsWithFallback(extra)
        self._maxframe, self._htty = maxframe, htty
        self._done = [command for command in COMMANDS.values() if self._serve(command)]

    @property
    def capabilities(self) -> dict[str, object]:
        """The result of `detect`, complete once the surface was probed."""
        lacks = self._surface.lacks
        known = self._events.known if self._events else ()
        events: list[EscapeEvent] = [EVENTS[name] for name in sorted(known)]
        return detect_answer(
            [command for command in self._done if command.name not in lacks],
            maxframe=self._maxframe,
            htty=self._htty,
            events=[event for event in events if event.name not in lacks],
            unverified=self._surface.unverified,
        )

    def _detect(self, asked: Any, call: CallContext) -> Any:
        probe = self._surface.probe
        return self.capabilities if probe is None else self._probed(probe)

    async def _probed(self, probe: Callable[[], Awaitable[None]]) -> dict[str, object]:
        await probe()
        return self.capabilities

    def _serve(self, command: EscapeCommand) -> bool:
        """Add a handler for a command. Return whether the surface can execute the command."""
        handler = self._handler(command)
        known = self._surface.probe is None  # else the probe decides with the first request
        able = handler is not None and not (known and command.name in self._surface.lacks)
        served = handler if able and handler is not None else _at_once(_unable, command)
        # `Methods` reads these: each handler is a function of its own, with its command's types.
        served.__annotations__ = {"asked": command.payload, "call": CallContext, "return": Any}
        served.__doc__ = command.about
        self.methods.add(command.name, served)
        return able

    def _handler(self, command: EscapeCommand) -> Callable[..., Any] | None:
        if command.name == "image:show":
            return self._if_possible(self._picture(command))
        if command.name == "image:delete":
            return self._if_possible(self._output(command))
        if command.lower is not None:
            return self._output(command)
        if (other := self._surface.handlers.get(command.name)) is not None:
            return self._other(command, other)
        # `detect` and `ping` pass no gate, since they only show that the terminal is there.
        # `term:unsubscribe` passes none, since it gives a permission back.
        known: dict[str, Callable[[Any, CallContext], Any]] = {
            "detect": self._detect,
            "ping": lambda asked, call: protocol.NoData(),
            "term:report": self._report,
            "term:querymode": self._report,
        }
        if self._events is not None:
            known |= {"term:subscribe": self._subscribe, "term:unsubscribe": self._unsubscribe}
        work = known.get(command.name)
        return None if work is None else _at_once(work, command)

    # Output commands.

    def _output(self, command: EscapeCommand) -> Callable[..., Any]:
        def output(asked: Any, call: CallContext) -> Any:
            _check_whole(call)
            return self._apply(command, asked, call)

        return output

    def _picture(self, command: EscapeCommand) -> Callable[..., Any]:
        def picture(asked: Any, call: CallContext) -> Any:
            if (
                call.id is None
                or not isinstance(asked, terminal_extensions.ImageShow)
                or asked.data64
            ):
                _check_whole(call)  # the bytes are in the payload or in the parts, not in both
                return self._apply(command, asked, call)
            return self._gathered(command, asked, call)

        return picture

    def _if_possible(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Fail instead of having no effect, if the surface is known not to support the command.

        If the surface has not been probed, the probe runs first, and the command is applied later
        than its place in the output. That happens only to the first such command of a program that
        has not called `detect`.
        """

        def checked(asked: Any, call: CallContext) -> Any:
            if (refusal := self._surface.refusal(asked)) is not None:
                raise refusal
            return work(asked, call)

        async def later(probe: Callable[[], Awaitable[None]], asked: Any, call: CallContext) -> Any:
            await probe()
            done = checked(asked, call)
            return await done if inspect.isawaitable(done) else done

        def possible(asked: Any, call: CallContext) -> Any:
            probe = self._surface.probe
            return checked(asked, call) if probe is None else later(probe, asked, call)

        return possible

    async def _gathered(
        self, command: EscapeCommand, asked: terminal_extensions.ImageShow, call: CallContext
    ) -> Any:
        data = bytearray()
        async for part in call.parts:
            if part.data is not ABSENT:
                data += part.data if isinstance(part.data, bytes) else b""
            if len(data) > limits.IMAGE_BYTES:
                raise RpcError(protocol.ECLIMIT, "The picture is too large.")
        done = self._apply(command, msgspec.structs.replace(asked, data64=bytes(data)), call)
        return await done if inspect.isawaitable(done) else done

    def _apply(self, command: EscapeCommand, asked: Any, call: CallContext) -> Any:
        """Apply a command. The data is checked first, so that the person is not asked in vain."""
        if command.lower is None or not isinstance(asked, command.payload):
            raise RpcError(Condition.PARAMS, _WRONG)
        try:
            ansi = command.lower(asked)
        except msgspec.ValidationError:
            raise RpcError(Condition.PARAMS, _WRONG) from None

        def show() -> Any:
            self._surface.apply(ansi)
            return ABSENT

        return self._once_allowed(command, asked, call, show)

    # Queries and subscriptions.

    def _report(self, asked: Any, call: CallContext) -> Any:
        if not isinstance(asked, (core.TermReport, dec_modes.QueryMode)):
            raise RpcError(Condition.PARAMS, _WRONG)
        if call.id is None:
            return ABSENT
        command = COMMANDS[call.method]
        return self._once_allowed(
            command, asked, call, lambda: self._surface.report(call.method, asked)
        )

    def _subscribe(self, asked: Any, call: CallContext) -> Any:
        if not isinstance(asked, core.Subscribe):
            raise RpcError(Condition.PARAMS, _WRONG)
        command = COMMANDS["term:subscribe"]
        if self._keyboard and not _TYPED.isdisjoint(asked.events):
            command = dataclasses.replace(command, guard=Guard.PERSON, deed="read what you type")
        return self._once_allowed(
            command, asked, call, lambda: self._subscribed(asked, call, "subscribe")
        )

    def _unsubscribe(self, asked: Any, call: CallContext) -> core.Subscribed:
        return self._subscribed(asked, call, "unsubscribe")

    def _subscribed(self, asked: Any, call: CallContext, what: str) -> core.Subscribed:
        if not isinstance(asked, core.Subscribe):
            raise RpcError(Condition.PARAMS, _WRONG)
        return core.Subscribed(tuple(sorted(getattr(self._events, what)(asked.events, call))))

    def _other(self, command: EscapeCommand, other: Callable[..., Any]) -> Callable[..., Any]:
        """Put a surface's own handler behind the gate."""
        if inspect.isasyncgenfunction(other):

            async def parts(asked: Any, call: CallContext) -> AsyncIterator[object]:
                _check_parts(command, call)
                await self._allowed(command, asked, call)
                async for part in other(asked, call):
                    yield part

            return parts

        async def whole(asked: Any, call: CallContext) -> object:
            _check_parts(command, call)
            await self._allowed(command, asked, call)
            result = other(asked, call)
            return await result if inspect.isawaitable(result) else result

        return whole

    # Permission.

    def _once_allowed(
        self, command: EscapeCommand, asked: Any, call: CallContext, work: Callable[[], Any]
    ) -> Any:
        """Do the work now, or after the person's yes."""
        _check_answerable(command, call)
        settled = self._gate.settled(command, self._origin(call), _summary(command, asked))
        if settled is False:
            raise _denied()
        return work() if settled else self._later(command, asked, call, work)

    async def _later(
        self, command: EscapeCommand, asked: Any, call: CallContext, work: Callable[[], Any]
    ) -> Any:
        await self._allowed(command, asked, call)
        done = work()
        return await done if inspect.isawaitable(done) else done

    async def _allowed(self, command: EscapeCommand, asked: Any, call: CallContext) -> None:
        if not isinstance(asked, command.payload):
            raise RpcError(Condition.PARAMS, _WRONG)
        _check_answerable(command, call)
        if command.name == "clip:read" and (probe := self._surface.probe) is not None:
            await probe()
        if (refusal := self._surface.refusal(asked)) is not None:
            raise refusal  # first, so that the person is not asked in vain
        summary = _summary(command, asked)
        with call.clock_stopped():  # the request's timeout must not limit the person
            allowed = await self._gate.allow(command, self._origin(call), summary)
        if not allowed:
            raise _denied()


class _MethodsWithFallback(Methods):
    """A method table that serves unknown names by the fallback handler, if there is one."""

    positional = False

    def __init__(self, extra: FallbackHandler | None) -> None:
        super().__init__("log")
        self._extra: Method | None = None
        if extra is not None:
            others = Methods()
            others.add("*", extra)
            self._extra = others.get("*")

    def foreign(self, name: str) -> bool:
        """Whether a command is unknown here, and served by the fallback."""
        return self._extra is not None and super().get(name) is None

    def get(self, name: str) -> Method | None:
        known = super().get(name)
        if known is None and self._extra is not None:
            return dataclasses.replace(self._extra, name=name)
        return known


def _unable(asked: Any, call: CallContext) -> None:
    raise unsupported()


def _check_answerable(command: EscapeCommand, call: CallContext) -> None:
    """Refuse a guarded query without an id: the person must not be asked for a result that cannot
    be sent.
    """
    if call.id is None and command.returns is not None and command.guard is not Guard.FREE:
        raise RpcError(protocol.ECPROTO, "This command needs an id: it only returns a result.")


def _check_parts(command: EscapeCommand, call: CallContext) -> None:
    if not command.streamed:
        _check_whole(call)


def _check_whole(call: CallContext) -> None:
    """Refuse a request in parts: to execute only its first part would be half of the request."""
    if call.in_parts:
        raise RpcError(protocol.ECPROTO, "This command takes no parts: send it in one packet.")


def _denied() -> RpcError:
    return RpcError(protocol.ECDENIED, "The person or their policy denied this.")


def _summary(command: EscapeCommand, asked: msgspec.Struct) -> str:
    """Return the exact action, for the person and the audit; empty for a free command."""
    return "" if command.guard is Guard.FREE else msgspec.json.encode(asked).decode()


def _at_once(work: Callable[[Any, CallContext], Any], command: EscapeCommand) -> Callable[..., Any]:
    def at_once(asked: Any, call: CallContext) -> Any:
        _check_parts(command, call)
        return work(asked, call)

    return at_once
