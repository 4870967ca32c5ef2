"""Finds the peer of a program's JSON escapes: its terminal, or the socket beside it.

The terminal is tried first (DA1, then `detect`). In tmux or screen, which reply to DA1 themselves,
`detect` is passed through to the terminal around them. If no response comes, `TELEX_SOCKET` names a
socket with the same protocol as JSON lines. The terminal stays taken in each case, so that keys are
read in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from telex.escapes.errors import NoTerminal, NotSupported
from telex.escapes.own_tty import OwnTty
from telex.escapes.probe import TMUX, MultiplexerWrap, RoundTrip, multiplexer
from telex.escapes.protocol import ATTRIBUTE
from telex.escapes.tty_channel import ProgramDialect, TtyChannel
from telex.processes.shielded import run_shielded
from telex.rpc.errors import CallError, RpcError
from telex.rpc.peer import DEFAULT_TIMEOUT, Peer
from telex.transports import unix
from telex.transports.errors import CannotConnect
from telex.wire import json_escape, limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from telex.rpc.channel import Channel
    from telex.rpc.methods import Methods

SOCKET: Final = "TELEX_SOCKET"
NOTHING: Final = "nothing"
SOCKET_VIA: Final = "socket"
ADVICE: Final = "start a terminal with JSON escapes by: telex run -- bash"
_TMUX_ADVICE: Final = (
    f"{ADVICE} (or, where telex runs around tmux: tmux set -g allow-passthrough on)"
)


@dataclass(frozen=True, slots=True)
class TtyLine:
    """The program's terminal, taken, with a peer on it."""

    tty: OwnTty
    channel: TtyChannel
    peer: Peer
    round_trip: RoundTrip

    async def close(self) -> None:
        """Wait for outstanding responses, which the next program must not read, and close."""
        try:
            settled = await self._settled()
            await self.peer.close()
            if not settled:
                self.tty.discard_input()
        finally:
            self.tty.close()

    async def _settled(self) -> bool:
        patience = self.round_trip.patience
        if self.round_trip.seconds is None:
            return False  # the terminal does not respond, so a further query would be useless
        if self.channel.wrap is None:
            return await self.channel.attributes(patience) is not None
        try:  # a multiplexer would reply to DA1 itself, before responses of the outer terminal
            await self.peer.call("ping", timeout=patience)
        except CallError as error:
            return isinstance(error, RpcError)
        return True


@dataclass(frozen=True, slots=True)
class EscapeConnection:
    """The peer and the way to it; without a peer, the reason why there is none."""

    via: str
    dialect: ProgramDialect
    round_trip: RoundTrip
    line: TtyLine | None = None
    peer: Peer | None = None
    channel: Channel | None = None
    detected: dict[str, Any] = field(default_factory=dict)
    """The response to `detect`, unchecked."""
    why: str = ""
    advice: str = ADVICE
    """What the person can do if there is no peer."""

    @contextlib.contextmanager
    def awaiting(self) -> Iterator[None]:
        """Count a due response: meanwhile an ESC is more likely its beginning than a key."""
        if self.line is None:
            yield
            return
        self.line.channel.awaiting += 1
        try:
            yield
        finally:
            self.line.channel.awaiting -= 1

    async def close(self) -> None:
        if self.peer is not None and (self.line is None or self.peer is not self.line.peer):
            await self.peer.close()
        if self.line is not None:
            await self.line.close()


async def discover(
    take: Callable[[], OwnTty],
    environ: Mapping[str, str],
    methods: Methods,
    timeout: float,
    *,
    needed: bool,
) -> EscapeConnection:
    """Take the terminal and find the peer.

    Args:
        take: Takes the terminal.
        environ: The environment.
        methods: Methods that the peer may call.
        timeout: Seconds that the terminal may take to reply to the first query.
        needed: Whether to raise if there is no peer.

    Raises:
        NotSupported: There is no peer, and `needed` is true; `NoTerminal` without a terminal.
    """
    unconnected = EscapeConnection(NOTHING, ProgramDialect(), RoundTrip(timeout))
    try:
        unconnected = replace(unconnected, line=_tty_line(take(), unconnected, methods))
    except NoTerminal as error:
        unconnected = replace(unconnected, why=str(error))
    try:
        found = await _find_peer(unconnected, environ, methods, timeout)
    except BaseException:
        await run_shielded(unconnected.close())
        raise
    if found.peer is None and needed:
        await found.close()
        raise (NotSupported if found.line else NoTerminal)(found.why, found.advice)
    return found


def _tty_line(tty: OwnTty, unconnected: EscapeConnection, methods: Methods) -> TtyLine:
    channel = TtyChannel(tty.fd, unconnected.round_trip)
    peer = Peer(channel, unconnected.dialect, methods)
    return TtyLine(tty, channel, peer, unconnected.round_trip)


async def _find_peer(
    unconnected: EscapeConnection, environ: Mapping[str, str], methods: Methods, timeout: float
) -> EscapeConnection:
    found = unconnected
    if unconnected.line is not None:
        found = await _by_terminal(unconnected, unconnected.line, multiplexer(environ), timeout)
    if found.peer is None and (path := environ.get(SOCKET)):
        return await _by_socket(found, path, methods)
    return found


async def _by_terminal(
    unconnected: EscapeConnection, line: TtyLine, wrap: MultiplexerWrap | None, timeout: float
) -> EscapeConnection:
    attributes = await line.channel.attributes(timeout)
    if attributes is None:
        return replace(unconnected, why=f"the terminal does not respond within {timeout:g} s")
    connection = replace(unconnected, via="terminal", peer=line.peer, channel=line.channel)
    if ATTRIBUTE in attributes.numbers:
        try:
            return await with_detected(connection, line.peer, timeout=DEFAULT_TIMEOUT)
        except CallError as error:
            return replace(
                unconnected, why=f"the terminal reports {ATTRIBUTE}, but detect failed: {error}"
            )
    if wrap is None:
        why = f"the terminal does not speak JSON escapes (no {ATTRIBUTE})"
        return replace(unconnected, why=why)
    return await _through(replace(connection, via=wrap.name), line, wrap, timeout)


async def _through(
    connection: EscapeConnection, line: TtyLine, wrap: MultiplexerWrap, timeout: float
) -> EscapeConnection:
    line.channel.wrap = wrap
    try:
        return await with_detected(connection, line.peer, timeout=timeout)
    except CallError:
        line.channel.wrap = None
        return replace(
            connection,
            via=NOTHING,
            peer=None,
            channel=None,
            why=f"no response came through {wrap.name}, which may not pass escapes on",
            advice=_TMUX_ADVICE if wrap is TMUX else ADVICE,
        )


async def _by_socket(
    unconnected: EscapeConnection, path: str, methods: Methods
) -> EscapeConnection:
    try:
        channel = await unix.connect(Path(path))
    except (CannotConnect, unix.SocketError, OSError) as error:
        return replace(unconnected, why=f"{unconnected.why}; {SOCKET}: {error}")
    by_socket = EscapeConnection(
        SOCKET_VIA, ProgramDialect(), RoundTrip(), unconnected.line, channel=channel
    )
    by_socket.dialect.json_bytes = limits.LINE_BYTES
    peer = Peer(channel, by_socket.dialect, methods)
    connection = replace(by_socket, peer=peer)
    try:
        return await with_detected(connection, peer, timeout=DEFAULT_TIMEOUT)
    except CallError as error:
        await peer.close()
        return replace(unconnected, why=f"{unconnected.why}; {SOCKET}: {error}")
    except BaseException:
        await peer.close()
        raise


async def with_detected(
    connection: EscapeConnection, peer: Peer, *, timeout: float
) -> EscapeConnection:
    """Call `detect`, and add its response to the connection. An error is a response too."""
    ask = {"maxframe": limits.CONTROL_STRING_BYTES}
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        with connection.awaiting():
            answer: Any = await peer.call("detect", ask, timeout=timeout)
    except RpcError:
        return connection
    connection.round_trip.took(loop.time() - began)
    if not isinstance(answer, dict):
        return connection
    if connection.via != SOCKET_VIA and type(most := answer.get("maxframe")) is int:
        wrap = connection.line.channel.wrap if connection.line else None
        passed = wrap.frame_bytes if wrap is not None else None
        connection.dialect.json_bytes = (
            most if passed is None else min(most, passed - json_escape.AROUND)
        )
    return replace(connection, detected=answer)
