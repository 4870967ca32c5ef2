"""The end of a plugin's process: who asks it to exit, and who kills it.

`PluginShutdown` takes these steps, in this order. `Deadlines` has the time of each step.

1. `request_exit`: send `shutdown`, wait for the response; send `exit`, wait for the exit.
2. `end_process`: close standard input, wait; SIGTERM to the process tree, wait; SIGKILL; reap.

The owner task in `client` is the only caller. It skips step 1 for a plugin that failed, because
such a plugin would not read the request. `PluginProcess.end` and below it
`processes.child.Child.end` send the signals and reap.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from telex.plugins import errors
from telex.processes.termination import TreeSurvived
from telex.rpc.messages import ABSENT

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable

    from telex.plugins.handshake import SendRequest
    from telex.plugins.plugin_process import PluginProcess
    from telex.plugins.plugin_settings import Deadlines


class PluginShutdown:
    """Ends one plugin's process."""

    def __init__(
        self, name: str, process: PluginProcess, deadlines: Deadlines, log: logging.Logger
    ) -> None:
        self._name, self._process, self._deadlines, self._log = name, process, deadlines, log

    async def request_exit(
        self, request: SendRequest, notify: Callable[[str], Awaitable[None]]
    ) -> None:
        """Send `shutdown`, then `exit`, each with its deadline. The plugin can delay its end by
        that, and cannot refuse it."""
        try:
            if await request("shutdown", ABSENT, self._deadlines.shutdown, Any) is False:
                self._log.info("%s answered shutdown with false", self._name)
        except errors.PluginError as failure:
            self._log.info("%s", failure)
        try:
            async with asyncio.timeout(self._deadlines.exit):
                await notify("exit")
                await self._process.exited()
        except errors.PluginEnded:
            return
        except TimeoutError:
            self._log.info("%s did not exit after the notification exit", self._name)

    async def end_process(
        self, close_conversation: Callable[[], Awaitable[None]], *, patiently: bool
    ) -> None:
        """End the process tree and wait. The tree has ended when this returns, also if this is
        cancelled: a cancel only shortens the waits. `patiently` waits after standard input closed.
        """
        try:
            await self._end_tree(close_conversation, self._deadlines.term, patiently=patiently)
        except asyncio.CancelledError:
            await self._kill_tree(close_conversation)
            raise

    async def _kill_tree(self, close_conversation: Callable[[], Awaitable[None]]) -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await self._end_tree(close_conversation, 0, patiently=False)
                return

    async def _end_tree(
        self,
        close_conversation: Callable[[], Awaitable[None]],
        term_seconds: float,
        *,
        patiently: bool,
    ) -> None:
        self._process.pipes.abort_writes()
        await close_conversation()
        if patiently:
            await self._process.exits_within(self._deadlines.stdin)
        try:
            await self._process.end(term_seconds, self._deadlines.stdin)
        except TreeSurvived as survived:
            self._log.error("%s did not end: %s", self._name, survived)
