"""Connects an agent of its own process to the one server, which is started on demand."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from telex.agent.terminal_server import NoTerminalServer
from telex.automation.caller import dial_caller
from telex.config import places
from telex.processes import spawn
from telex.transports.errors import CannotConnect

if TYPE_CHECKING:
    from telex.automation.caller import RemoteCaller
    from telex.processes.child import Child

_START: Final = ("-P", "-m", "telex", "list", "--json")
"""A verb starts the server, in a process of its own: it waits with signals, which a program with an
event loop cannot."""


async def connect_server() -> RemoteCaller:
    """Connect to the one server. Raises NoTerminalServer."""
    address = f"unix:{places.find().socket}"
    try:
        return await dial_caller(address)
    except CannotConnect:
        await _start()
    try:
        return await dial_caller(address)
    except CannotConnect as problem:
        raise NoTerminalServer(f"the terminal server cannot be reached: {problem}") from None


async def _start() -> None:
    stdio = spawn.Pipes(spawn.PipeEnd.NULL, spawn.PipeEnd.NULL, spawn.PipeEnd.PIPE)
    try:
        child = spawn.start([sys.executable, *_START], stdio=stdio, env=os.environ)
    except spawn.StartFailed as problem:
        raise NoTerminalServer(f"the terminal server cannot be started: {problem}") from None
    async with child:
        ended = await child.wait()
        said = _said(child)
    if ended.code != 0:
        raise NoTerminalServer(f"the terminal server did not start: {said.strip()}")


def _said(child: Child) -> str:
    """Return what the ended process wrote to its standard error: less than a pipe holds."""
    assert child.stderr is not None
    return (child.stderr.read(1 << 16) or b"").decode(errors="replace")
