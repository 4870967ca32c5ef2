"""The notifications of an MCP client: screens that changed, and sessions that came or went.

A notification says only that something changed; the client reads again if it wants to. Changes in
quick succession become one notification, at most five a second for each subscription, and a client
that reads slowly gets fewer: what waits for it is a set, not a queue.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from telex.server import limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from telex.automation.server import AutomationService
    from telex.server.verb_sessions import VerbSession

LIST_CHANGED: Final = "notifications/resources/list_changed"
UPDATED: Final = "notifications/resources/updated"


class TooManySubscriptions(Exception):
    """The connection follows as many screens as it may; a sentence."""


class ChangeFeed:
    """The subscriptions of one client, or of one `subscriptions/listen`. Call `close`."""

    def __init__(
        self,
        service: AutomationService,
        notify: Callable[[str, dict[str, str]], Awaitable[None]],
        *,
        lists: bool,
    ) -> None:
        """Begin to follow the list of sessions, if `lists`, and no screen yet.

        Args:
            notify: Sends a notification with its parameters; waits while the client is slow.
        """
        self._service = service
        self._notify = notify
        self._lists = lists
        self._screens: dict[str, tuple[VerbSession, Callable[[], None]]] = {}
        """By address: the session, and the callback at its watchers."""
        self._waiting: dict[tuple[str, str], None] = {}
        """Notifications to send: method and address. A dict keeps their order."""
        self._awake = asyncio.Event()
        self._sending = asyncio.create_task(self._send())
        service.closers.add(self._closed)
        service.openers.add(self._opened)

    @property
    def uris(self) -> tuple[str, ...]:
        """The screens that are followed."""
        return tuple(self._screens)

    def follow(self, uri: str, one: VerbSession) -> None:
        """Notify of changes of a screen. Raises TooManySubscriptions."""
        if uri in self._screens:
            return
        if len(self._screens) >= limits.SUBSCRIPTIONS:
            raise TooManySubscriptions(
                f"a connection follows at most {limits.SUBSCRIPTIONS} screens; unsubscribe first"
            )

        def changed() -> None:
            one.session.watchers.discard(changed)  # until the next round
            self._add(UPDATED, uri)

        self._screens[uri] = one, changed
        one.session.watchers.add(changed)

    def unfollow(self, uri: str) -> None:
        """Stop the notifications about a screen."""
        one, changed = self._screens.pop(uri, (None, None))
        if one is not None and changed is not None:
            one.session.watchers.discard(changed)
        self._waiting.pop((UPDATED, uri), None)

    def close(self) -> None:
        """End all subscriptions."""
        self._service.closers.discard(self._closed)
        self._service.openers.discard(self._opened)
        for uri in self.uris:
            self.unfollow(uri)
        self._sending.cancel()

    def _add(self, method: str, uri: str = "") -> None:
        self._waiting[method, uri] = None
        self._awake.set()

    def _opened(self, id: str) -> None:
        if self._lists:
            self._add(LIST_CHANGED)

    def _closed(self, id: str) -> None:
        for uri in [uri for uri, (one, _) in self._screens.items() if one.id == id]:
            self.unfollow(uri)
            self._add(UPDATED, uri)
        self._opened(id)

    async def _send(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            round_, self._waiting = self._waiting, {}
            for method, uri in round_:
                if uri in self._screens:
                    one, changed = self._screens[uri]
                    one.session.watchers.add(changed)
                await self._notify(method, {"uri": uri} if uri else {})
            await asyncio.sleep(1 / limits.CHANGES_PER_SECOND)  # combines quick changes
