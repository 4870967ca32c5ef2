"""`telex htty bridge`: a program that serves pages, for curl, nghttp and h2load."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from telex.cli.address import address
from telex.cli.console import explain, say
from telex.cli.run import program

if TYPE_CHECKING:
    from collections.abc import Callable

HELP = """Test a program that serves pages with tools that speak HTTP/2 over TCP.

Each connection to the port starts the command on a new terminal, and carries plaintext HTTP/2 (h2c)
to it; when one ends, the other is ended. Text that the command prints is shown on stderr, with the
number of its connection.

There is no token: every user of this machine can connect, and so run the command, while the bridge
runs. So it listens on loopback only. For a browser, use `telex run`.

Port 0 chooses a free port. The first line of stdout has the address.

\b
  telex htty bridge --listen 127.0.0.1:8042 -- telex htty serve --dir .
  curl --http2-prior-knowledge http://127.0.0.1:8042/
  h2load -n 1000 -m 20 http://127.0.0.1:8042/
"""


@click.command(help=HELP, context_settings={"allow_interspersed_args": False})
@click.option(
    "--listen",
    metavar="HOST:PORT",
    callback=address,
    default="127.0.0.1:0",
    show_default=True,
    help="Address for the tools; loopback only.",
)
@click.option("--quiet", is_flag=True, help="Do not show the output of the commands.")
@click.option("--eager", is_flag=True, help="Send first, for programs that wait for HTTP/2.")
@program
def command(listen: tuple[str, int], quiet: bool, eager: bool, program: tuple[str, ...]) -> int:
    from telex.cli import event_loop

    event_loop.run(_bridged(listen, program, eager, _Prefixed(quiet)))
    return 0


async def _bridged(
    listen: tuple[str, int], argv: tuple[str, ...], eager: bool, shown: _Prefixed
) -> None:
    from telex.htty.tools.tcp_bridge import Bridge

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    host, port = listen
    async with Bridge(
        argv, on_end=shown.ended, text=shown.text, host=host, port=port, eager=eager
    ) as bridge:
        say(f"http://{f'[{host}]' if ':' in host else host}:{bridge.port}/")
        await stop.wait()


class _Prefixed:
    """Prints lines on stderr, each with the number of its connection."""

    def __init__(self, quiet: bool, line: Callable[[str], None] = explain) -> None:
        self._quiet = quiet
        self._line = line
        self._begun: dict[int, bytes] = {}

    def text(self, number: int, data: bytes) -> None:
        if self._quiet:
            return
        *lines, rest = (self._begun.get(number, b"") + data).split(b"\n")
        self._begun[number] = rest[-4096:]  # a line may never end
        for line in lines:
            self._show(number, line)

    def ended(self, number: int, why: str) -> None:
        if rest := self._begun.pop(number, b""):
            self._show(number, rest)
        if not self._quiet:
            self._line(f"[{number}] {why}")

    def _show(self, number: int, line: bytes) -> None:
        self._line(f"[{number}] {line.rstrip(chr(13).encode()).decode('utf-8', 'replace')}")
