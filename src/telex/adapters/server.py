"""All of terminal automation, put together: sessions, plugins, adapters, and the Lua workers.

What `telex serve` serves. Each part is given the ones it needs, and closed after those that need
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from telex.adapters.live import Live
from telex.adapters.lua.nursery import Nursery
from telex.adapters.plugin_service import PluginService
from telex.adapters.predicates import Predicates
from telex.adapters.registry import Plugins
from telex.adapters.service import Adapters
from telex.automation.server import AutomationService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.adapters.sources import Plugin
    from telex.redaction import Redactor
    from telex.rpc.channel import Channel


class Extension(Protocol):
    """Something beside adapters that sessions are given, such as JSON escapes."""

    async def close(self) -> None:
        """All sessions are closed."""
        ...


class AutomationServer:
    """One per server. Close it."""

    def __init__(
        self,
        plugins: Iterable[Plugin],
        *,
        redactor: Redactor | None = None,
        may_load: bool = False,
        extend: Iterable[Callable[[AutomationService], Extension]] = (),
    ) -> None:
        """Each of `extend` is given the sessions, to add what neither they nor adapters know of."""
        self.plugins = Plugins(plugins)
        self._nursery = Nursery()
        self._predicates = Predicates(self.plugins, self._nursery)
        self.automation = AutomationService(redactor=redactor, predicates=self._predicates.runner)
        self._extensions = [extension(self.automation) for extension in extend]
        self._live = Live(self.automation, self._nursery)
        self.adapters = Adapters(self.automation, self.plugins, self._live)
        self.loading = PluginService(
            self.automation, self.plugins, self._predicates, self._live, may_load=may_load
        )

    async def converse(self, channel: Channel, *, one_at_a_time: bool = False) -> None:
        """Serve one connection until it is over."""
        await self.automation.converse(channel, one_at_a_time=one_at_a_time)

    async def leave(self) -> None:
        """Answer what is pending with an error that says that the server ends, and hang up."""
        await self.automation.leave()

    async def close(self) -> None:
        """End every program and every plugin."""
        try:
            await self.automation.close()
            for extension in self._extensions:
                await extension.close()
        finally:
            try:
                await self._live.close()
                await self._predicates.close()
            finally:
                await self._nursery.close()
