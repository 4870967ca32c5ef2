"""The program's side inside a real tmux: by passthrough, or else by the socket."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import termios
from typing import TYPE_CHECKING, Any

import pytest

from escapes.terminals import running, terminal
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports import unix

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAM = """
import sys, json
from telex import escapes
try:
    with escapes.connect() as term:
        told = [term.via, term.call("x:one")]
except escapes.NotSupported as error:
    told = ["not", str(error)]
print(json.dumps(told), file=open(sys.argv[1], "w"))
"""


def one() -> int:
    return 1


def detect() -> dict[str, Any]:
    return {"capabilities": {}}


async def inside(tmux: str, passthrough: str, tmp_path: Path, **env: str) -> list[Any]:
    """Run the program in a tmux whose terminal speaks JSON escapes. Return its output."""
    config, program, said = (tmp_path / name for name in ("tmux.conf", "program.py", "said"))
    config.write_text(f"set -g allow-passthrough {passthrough}\nset -g update-environment ''\n")
    program.write_text(PROGRAM)
    command = shlex.join([sys.executable, str(program), str(said)])
    argv = ("-S", str(tmp_path / "tmux"), "-f", str(config), "new-session", command)
    async with terminal(None, x_one=one) as fake:
        termios.tcsetwinsize(fake.fd, (24, 80))
        async with running(fake, *argv, program=tmux, piped=False, **env) as child:
            async with asyncio.timeout(60):
                assert await child.wait() == 0
    told: list[Any] = json.loads(said.read_text())
    return told


async def test_with_passthrough_the_terminal_around_tmux_responds(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    assert await inside(program("tmux"), "on", tmp_path) == ["tmux", 1]


async def test_without_passthrough_tmux_drops_the_request(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    what, why = await inside(program("tmux"), "off", tmp_path)
    assert what == "not"
    assert why.startswith("no response came through tmux")


@pytest.mark.parametrize("passthrough", ["on", "off"])
async def test_the_socket_is_used_only_if_tmux_drops_requests(
    program: Callable[[str], str], tmp_path: Path, passthrough: str
) -> None:
    peers: list[Peer] = []
    methods = Methods()
    methods.add("detect", detect)
    methods.add("x:one", one)
    path = tmp_path / "socket"
    async with unix.listen(path, lambda ch: peers.append(Peer(ch, JsonEscapes(), methods))):
        told = await inside(program("tmux"), passthrough, tmp_path, TELEX_SOCKET=str(path))
        assert told == ["tmux" if passthrough == "on" else "socket", 1]
        for peer in peers:
            await peer.close()
