"""The process of a plugin: its input and output, how it ends, and its exit code.

Standard output is the protocol's alone from `run` on: `print` goes to standard error, which a host
shows. (What a plugin prints and flushes before `run` is out already; hosts skip it.) The process
ends with `exit` (0 after `shutdown`, else 1) and when its input ends, since then nobody is there to
answer: what still runs has a moment to finish.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, NoReturn

from telex.plugins.hearing import CODES
from telex.plugins.sdk.service import Service
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.messages import Notification
from telex.rpc.peer import Peer
from telex.transports.channels import LSP
from telex.transports.stdio import open_stdio
from telex.wire import limits

if TYPE_CHECKING:
    from telex.plugins.sdk.plugin import Plugin
    from telex.rpc.channel import Channel

DIALECT: Final = JsonRpc(CODES, cancel_method="$/cancelRequest")
_BY_HAND = """\
{name} is a plugin: a program talks to it on its standard input and output, not a person.
Try: telex plugin check {path}
"""


def run(plugin: Plugin[Any]) -> NoReturn:
    """Be this plugin until the end of the process."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.exit(_BY_HAND.format(name=plugin.name, path=sys.argv[0]).rstrip())
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a real one here
    code = asyncio.run(_serve(plugin))
    os.dup2(2, 1)  # what is still printed, by a thread or at exit, is no message either
    sys.exit(code)


async def _serve(plugin: Plugin[Any]) -> int:
    async with open_stdio(LSP) as channel:
        telling = _Telling(channel)
        service = Service(plugin, telling)
        async with _Peer(channel, service) as peer:
            over = asyncio.create_task(peer.closed())
            over.add_done_callback(lambda _: service.over.set())
            await service.over.wait()
            service.close()
        await over
        sys.stdout.flush()
        return service.exit_code


class _Peer(Peer):
    """A peer that does not wait for ever for its own functions when the host is gone."""

    def __init__(self, channel: Channel, service: Service) -> None:
        self._service = service
        super().__init__(channel, DIALECT, service.methods())

    def finished(self) -> None:
        self._loop.call_later(limits.PLUGIN_LEAVING_SECONDS, self._service.over.set)
        super().finished()


class _Telling:
    """Notifications, from the event loop or any thread, in order with the answers.

    They do not wait: a function that logs is not to stand still because the host does not read.
    What there is no room for is dropped, and how much that was is told when there is.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._dropped = 0

    def __call__(self, method: str, params: object) -> None:
        body = DIALECT.encode(Notification(method, params))
        if threading.get_ident() == self._thread:
            self._send(body)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send, body)

    def _send(self, body: bytes) -> None:
        if self._channel.unsent > limits.OUTBOUND_BYTES:
            self._dropped += 1
            return
        if self._dropped:
            words = f"{self._dropped} messages were not sent: nobody read them"
            lost = {"level": "warn", "msg": words}
            self._dropped = 0
            self._channel.send(DIALECT.encode(Notification("log", lost)))
        self._channel.send(body)
