"""Finds who answers a program's JSON escapes: its terminal, or the socket beside it.

The terminal is asked first (DA1, then `detect`); in tmux or screen, which answer DA1 themselves,
`detect` is sent through to the terminal behind. If nothing comes back that way, `TELEX_SOCKET` is a
socket with the same protocol as JSON lines. The terminal stays taken in each case, so that keys are
read in the same way however the answers come.
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
from telex.escapes.program_dialect import ProgramDialect
from telex.escapes.protocol import ATTRIBUTE
from telex.escapes.tty_channel import TtyChannel
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
ADVICE: Final = "start one that answers with: telex run -- bash"
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
        """After all that still comes has come: the next program is not to find it."""
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
            return False  # it answers nothing, and a further question would only add to that
        if self.channel.wrap is None:
            return await self.channel.attributes(patience) is not None
        try:  # a multiplexer would answer DA1 itself, before the answers from behind it
            await self.peer.call("ping", timeout=patience)
        except CallError as error:
            return isinstance(error, RpcError)
        return True


@dataclass(frozen=True, slots=True)
class EscapeConnection:
    """The peer that answers and the way to it; or why there is none."""

    via: str
    dialect: ProgramDialect
    round_trip: RoundTrip
    line: TtyLine | None = None
    peer: Peer | None = None
    channel: Channel | None = None
    detected: dict[str, Any] = field(default_factory=dict)
    """What `detect` answered, whatever that is."""
    why: str = ""
    advice: str = ADVICE
    """What to do where nobody answers."""

    @contextlib.contextmanager
    def awaiting(self) -> Iterator[None]:
        """While an answer is due, an ESC is sooner its beginning than a key."""
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
    """Take the terminal and find who answers. If `needed`, nobody is `NotSupported`."""
    nobody = EscapeConnection(NOTHING, ProgramDialect(), RoundTrip(timeout))
    try:
        nobody = replace(nobody, line=_taken(take(), nobody, methods))
    except NoTerminal as none:
        nobody = replace(nobody, why=str(none))
    try:
        reached = await _answering(nobody, environ, methods, timeout)
    except BaseException:
        await run_shielded(nobody.close())
        raise
    if reached.peer is None and needed:
        await reached.close()
        raise (NotSupported if reached.line else NoTerminal)(reached.why, reached.advice)
    return reached


def _taken(tty: OwnTty, nobody: EscapeConnection, methods: Methods) -> TtyLine:
    channel = TtyChannel(tty.fd, nobody.round_trip)
    return TtyLine(tty, channel, Peer(channel, nobody.dialect, methods), nobody.round_trip)


async def _answering(
    nobody: EscapeConnection, environ: Mapping[str, str], methods: Methods, timeout: float
) -> EscapeConnection:
    reached = nobody
    if nobody.line is not None:
        reached = await _by_terminal(nobody, nobody.line, multiplexer(environ), timeout)
    if reached.peer is None and (path := environ.get(SOCKET)):
        return await _by_socket(reached, path, methods)
    return reached


async def _by_terminal(
    nobody: EscapeConnection, line: TtyLine, wrap: MultiplexerWrap | None, timeout: float
) -> EscapeConnection:
    attributes = await line.channel.attributes(timeout)
    if attributes is None:
        return replace(nobody, why=f"the terminal answers nothing within {timeout:g} s")
    reached = replace(nobody, via="terminal", peer=line.peer, channel=line.channel)
    if ATTRIBUTE in attributes.numbers:
        try:
            return await with_detected(reached, line.peer, timeout=DEFAULT_TIMEOUT)
        except CallError as error:
            return replace(nobody, why=f"the terminal names {ATTRIBUTE}, but: {error}")
    if wrap is None:
        return replace(nobody, why=f"the terminal does not speak JSON escapes (no {ATTRIBUTE})")
    return await _through(replace(reached, via=wrap.name), line, wrap, timeout)


async def _through(
    reached: EscapeConnection, line: TtyLine, wrap: MultiplexerWrap, timeout: float
) -> EscapeConnection:
    line.channel.wrap = wrap
    try:
        return await with_detected(reached, line.peer, timeout=timeout)
    except CallError:
        line.channel.wrap = None
        return replace(
            reached,
            via=NOTHING,
            peer=None,
            channel=None,
            why=f"nothing comes back through {wrap.name}; it may not be allowed to pass it on",
            advice=_TMUX_ADVICE if wrap is TMUX else ADVICE,
        )


async def _by_socket(nobody: EscapeConnection, path: str, methods: Methods) -> EscapeConnection:
    try:
        channel = await unix.connect(Path(path))
    except (CannotConnect, unix.SocketError, OSError) as error:
        return replace(nobody, why=f"{nobody.why}; {SOCKET}: {error}")
    there = EscapeConnection(
        SOCKET_VIA, ProgramDialect(), RoundTrip(), nobody.line, channel=channel
    )
    there.dialect.json_bytes = limits.LINE_BYTES
    peer = Peer(channel, there.dialect, methods)
    reached = replace(there, peer=peer)
    try:
        return await with_detected(reached, peer, timeout=DEFAULT_TIMEOUT)
    except CallError as error:
        await peer.close()
        return replace(nobody, why=f"{nobody.why}; {SOCKET}: {error}")
    except BaseException:
        await peer.close()
        raise


async def with_detected(
    reached: EscapeConnection, peer: Peer, *, timeout: float
) -> EscapeConnection:
    """With what `detect` answers. That there is no such command is an answer too."""
    ask = {"maxframe": limits.CONTROL_STRING_BYTES}
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        with reached.awaiting():
            answer: Any = await peer.call("detect", ask, timeout=timeout)
    except RpcError:
        return reached
    reached.round_trip.took(loop.time() - began)
    if not isinstance(answer, dict):
        return reached
    if reached.via != SOCKET_VIA and type(most := answer.get("maxframe")) is int:
        wrap = reached.line.channel.wrap if reached.line else None
        passed = wrap.frame_bytes if wrap is not None else None
        reached.dialect.json_bytes = (
            most if passed is None else min(most, passed - json_escape.AROUND)
        )
    return replace(reached, detected=answer)
