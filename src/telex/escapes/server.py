"""The terminal's side of JSON escapes: a handler for every command, and the surface it acts on.

Commands that are output are applied at once, as the ANSI they lower to: after what stood before
them in the program's output, and before what follows. Where the person has to be asked, the command
is applied when they said yes. Errors are fixed sentences: they are typed into the program, and must
never repeat text that it chose.

    service = TerminalService(surface, gate)
    peer = Peer(channel, dialect, service.methods)

The same service answers in band, on the socket and on the web. There are two surfaces: a session's
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
"""Given the payload and the `CallContext`: a function, a coroutine, or an async generator."""


class Surface(Protocol):
    """Where commands take effect."""

    def apply(self, ansi: bytes) -> None:
        """Do this, now: after all that the program printed before, and before all that follows."""
        ...

    @property
    def size(self) -> Size: ...

    @property
    def title(self) -> str | None:
        """What the window is called. Never told to a program, which may have chosen it."""
        ...

    def report(self, what: str, asked: TermReport | QueryMode) -> Any:
        """The answer to `term:report` or `term:querymode`, which is `what`; or an awaitable of it,
        where it takes time. Raises `unsupported()` where there is none."""
        ...

    def set_modes(self, numbers: frozenset[int]) -> None:
        """Have these private modes set as well, for events, and no others."""
        ...

    @property
    def lacks(self) -> frozenset[str]:
        """Commands that are output, and yet change nothing here, and events that nobody tells; all
        that is known of it once `probe` is done."""
        ...

    @property
    def unverified(self) -> tuple[str, ...]:
        """Commands and events, or globs of them, that are passed on to whatever effect."""
        ...

    @property
    def probe(self) -> Callable[[], Awaitable[None]] | None:
        """Finds out what there is; None once that is known."""
        ...

    def refusal(self, asked: Any) -> RpcError | None:
        """Why this cannot be done here, if that is known: its payload tells what it is."""
        ...

    @property
    def handlers(self) -> Mapping[str, SurfaceHandler]:
        """How commands are done here that are no output: `clip:read`, files. By name."""
        ...


def unsupported(why: str = "This terminal cannot do that.") -> RpcError:
    """A known command that cannot be done here. The sentence is ours, and fixed."""
    return RpcError(ECUNSUP, why)


FallbackHandler = Callable[[Raw, CallContext], AsyncIterator[object]]
"""Serves commands that are not in the table; `call.method` names them. An async generator."""

_WRONG: Final = "The data is not what the command takes."
_TYPED: Final = frozenset({"event:key", "event:paste"})
"""Whoever hears these has the keyboard: what is typed goes to them, a password too."""


class CommandGate(Protocol):
    """Decides whether a command may be done. `gate.Gate` is one."""

    def settled(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool | None:
        """Whether this may be done; None if somebody has to be asked."""
        ...

    async def allow(self, command: EscapeCommand, origin: RequestOrigin, summary: str) -> bool: ...


class EventSource(Protocol):
    """Where events are subscribed to; it knows who a caller is, and for how long."""

    @property
    def known(self) -> Collection[str]:
        """The events that can be told here."""
        ...

    def subscribe(self, events: tuple[str, ...], call: CallContext) -> Collection[str]:
        """What the caller is subscribed to then."""
        ...

    def unsubscribe(self, events: tuple[str, ...], call: CallContext) -> Collection[str]: ...


def _local(call: CallContext) -> RequestOrigin:
    return RequestOrigin("local")


class TerminalService:
    """One for each terminal."""

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
        """With `keyboard`, a person types here, and is asked who may hear that. Without, whoever
        subscribes to keys is like any other subscriber.
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
        """What `detect` answers, once the surface was probed."""
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
        """Give it a handler. Whether that can do it."""
        handler = self._handler(command)
        known = self._surface.probe is None  # else it shows when somebody wants it
        able = handler is not None and not (known and command.name in self._surface.lacks)
        served = handler if able and handler is not None else _at_once(_unable, command)
        # What `Methods` reads: each handler is a function of its own, for the types of its command.
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
        # What only says that the terminal is there, and what gives a yes back, pass no gate.
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

    # What is output.

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
                _check_whole(call)  # its bytes are here, or in the parts, and not in both
                return self._apply(command, asked, call)
            return self._gathered(command, asked, call)

        return picture

    def _if_possible(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """What would do nothing, without a word, is an error instead. Only the first, of a program
        that never asked what there is, is done later than where it stood."""

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
        """The data is looked at first: nobody is asked in vain."""
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

    # What is asked.

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
        """A surface's own way, behind the gate."""
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

    # Who may.

    def _once_allowed(
        self, command: EscapeCommand, asked: Any, call: CallContext, work: Callable[[], Any]
    ) -> Any:
        """Now, or once somebody said yes."""
        _check_heard(command, call)
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
        _check_heard(command, call)
        if command.name == "clip:read" and (probe := self._surface.probe) is not None:
            await probe()
        if (refusal := self._surface.refusal(asked)) is not None:
            raise refusal  # nobody is asked in vain
        summary = _summary(command, asked)
        with call.clock_stopped():  # a person reads at their own pace, whatever the caller's is
            allowed = await self._gate.allow(command, self._origin(call), summary)
        if not allowed:
            raise _denied()


class _MethodsWithFallback(Methods):
    """A method table with a handler for every name, if there is a fallback."""

    positional = False

    def __init__(self, extra: FallbackHandler | None) -> None:
        super().__init__()
        self._extra: Method | None = None
        if extra is not None:
            others = Methods()
            others.add("*", extra)
            self._extra = others.get("*")

    def foreign(self, name: str) -> bool:
        """Whether a command is for those others, and not in the table."""
        return self._extra is not None and super().get(name) is None

    def get(self, name: str) -> Method | None:
        known = super().get(name)
        if known is None and self._extra is not None:
            return dataclasses.replace(self._extra, name=name)
        return known


def _unable(asked: Any, call: CallContext) -> None:
    raise unsupported()


def _check_heard(command: EscapeCommand, call: CallContext) -> None:
    """Nobody is asked for an answer that goes nowhere: that would only wear them out."""
    if call.id is None and command.returns is not None and command.guard is not Guard.FREE:
        raise RpcError(
            protocol.ECPROTO, "It is sent with an id, for there is nothing but its answer."
        )


def _check_parts(command: EscapeCommand, call: CallContext) -> None:
    if not command.streamed:
        _check_whole(call)


def _check_whole(call: CallContext) -> None:
    """To do what the first part says, and drop the others, would be half of what was asked."""
    if call.in_parts:
        raise RpcError(protocol.ECPROTO, "It is sent in one packet: the command takes no parts.")


def _denied() -> RpcError:
    return RpcError(protocol.ECDENIED, "The person, or their policy, said no.")


def _summary(command: EscapeCommand, asked: msgspec.Struct) -> str:
    """What exactly is to be done, for the person and the audit. What is free needs none."""
    return "" if command.guard is Guard.FREE else msgspec.json.encode(asked).decode()


def _at_once(work: Callable[[Any, CallContext], Any], command: EscapeCommand) -> Callable[..., Any]:
    def at_once(asked: Any, call: CallContext) -> Any:
        _check_parts(command, call)
        return work(asked, call)

    return at_once
