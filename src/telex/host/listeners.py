"""What happens at the person's terminal, told to those who subscribed, and to nobody else.

While somebody is subscribed, what is typed comes through here: an event for them takes the place of
its bytes, and all else goes on as it is. The modes that the terminal needs for it are switched on
for so long, beside those that the program has set itself. A program is subscribed while it is there
and its process group is in the foreground, and a door's caller until it leaves. What was typed and
can be told to nobody goes to the program as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from telex.escapes.events import CLICK, NAMES, Typed, translate
from telex.escapes.subscriptions import REVOKED, Subscriptions, switching
from telex.protocols.json_escapes import ResizeEvent, RevokedEvent
from telex.rpc.messages import Notification
from telex.rpc.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from telex.escapes.events import Happened
    from telex.rpc.handler_tasks import Call
    from telex.terminal.cells import Size

Tell = Callable[[Notification], bool]
"""Tells it, or says that nobody is there to hear it."""

MODES: Final = frozenset({9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2031, 2048})
"""Those of which a program's own setting matters here."""
_RESIZE: Final = NAMES[ResizeEvent]
_LEFT: Final = "It ended when the program left the foreground."
_NONE: Final[frozenset[int]] = frozenset()


class Listeners:
    """At one terminal. The `Desk` of its service."""

    known: Final = frozenset({*NAMES.values(), CLICK, REVOKED})

    def __init__(
        self,
        *,
        group: Callable[[], int | None],
        own: Callable[[], frozenset[int]],
        switch: Callable[[bytes], None],
        plain: Callable[[bytes], bool],
        enter: Callable[[bytes], None],
        tell: Tell,
        asker: Callable[[Call], int | None],
    ) -> None:
        """`group` is in the foreground, None if it would not listen; `asker` says which group asked
        something, and may be there no more; `own` are the modes that the
        program has set; `switch` writes to the person's terminal, `enter` types into the program,
        `tell` tells it, and `plain` says what is the line discipline's rather than the program's.
        """
        self._group, self._own, self._plain = group, own, plain
        self._switch, self._enter, self._tell = switch, enter, tell
        self._asked_by = asker
        self._subscriptions = Subscriptions()
        self._doors: dict[Peer, Tell] = {}
        self._typed = Typed()
        self._look: asyncio.TimerHandle | None = None
        self._needed = self._owned = _NONE
        self._loop = asyncio.get_running_loop()

    # Who listens.

    def door(self, peer: Peer, tell: Tell) -> None:
        """Somebody came by a door, and may subscribe until `left`."""
        self._doors[peer] = tell

    def left(self, peer: Peer) -> None:
        del self._doors[peer]
        self._subscriptions.ended(peer)
        self._changed()

    def subscribe(self, events: tuple[str, ...], call: Call) -> tuple[str, ...]:
        """Only for whoever waits for the answer: keys must not go where nobody listens."""
        asker = None if call.id is None else self._asker(call)
        if asker is None:
            return ()
        self._foreground()
        now = self._subscriptions.subscribe(asker, self.known.intersection(events))
        self._changed()
        return tuple(sorted(now))

    def unsubscribe(self, events: tuple[str, ...], call: Call) -> tuple[str, ...]:
        asker = self._asker(call)
        now = self._subscriptions.unsubscribe(asker, events) if asker is not None else ()
        self._changed()
        return tuple(sorted(now))

    def _asker(self, call: Call) -> Hashable | None:
        """Nobody, if who asked is not there when the answer comes: a person may take their time."""
        if call.peer in self._doors:
            return call.peer
        asker = self._asked_by(call)
        return asker if asker == self._group() else None

    def printed(self) -> None:
        """The program printed something: it may have gone, or have set a mode."""
        if self._subscriptions.names:
            self._foreground()

    def _foreground(self) -> None:
        group = self._group()
        self._subscriptions.foreground(group)
        self._changed()
        if group is not None and not self._plain(b""):  # else it does not listen yet
            for name in sorted(self._subscriptions.taken_back(group)):
                self._tell(Notification(REVOKED, RevokedEvent(name, _LEFT)))

    # What the terminal needs.

    def _changed(self) -> None:
        needed, own = self._subscriptions.needed_modes(), self._own()
        if own != self._owned:  # the program changed its modes, and may have undone ours
            self._switch(switching(self._needed, needed, own) + switching(_NONE, needed, own))
        elif needed != self._needed:
            self._switch(switching(self._needed, needed, own))
        self._needed, self._owned = needed, own
        if not self._subscriptions.names:
            self._let_go()

    def suspend(self) -> None:
        """The terminal is somebody else's for a while; `printed` makes it ours again."""
        self._switch(switching(self._needed, _NONE, self._owned))
        self._needed = _NONE

    def close(self) -> None:
        self.suspend()
        if self._look is not None:
            self._look.cancel()

    # What happens.

    def typed(self, data: bytes) -> None:
        if self._subscriptions.names:
            self._foreground()
        if self._subscriptions.names and not self._plain(data):
            self._feed(data)
        else:
            self._enter(data)

    def resized(self, size: Size) -> None:
        if _RESIZE in self._subscriptions.names:
            told = ResizeEvent(size.rows, size.cols, size.pixel_width, size.pixel_height)
            self._told(Notification(_RESIZE, told))

    def _feed(self, data: bytes) -> None:
        self._pass(self._typed.feed(data, self._loop.time()))
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if self._typed.deadline is not None:
            self._look = self._loop.call_at(self._typed.deadline, self._feed, b"")

    def _let_go(self) -> None:
        """Nobody listens any more: what was held back was typed to the program."""
        held = self._typed.feed(b"", float("inf"))
        for one in held:
            self._enter(one if isinstance(one, bytes) else one.raw)

    def _pass(self, happened: Iterable[Happened | bytes]) -> None:
        """Each as an event, or as its bytes, in the order in which they were typed."""
        plain = bytearray()
        for one in happened:
            for part in translate((one,), self._subscriptions.names, self._owned):
                if isinstance(part, bytes):
                    plain += part
                    continue
                if plain:
                    self._enter(bytes(plain))
                    plain.clear()
                if not self._told(part):
                    plain += one if isinstance(one, bytes) else one.raw
                    break
        if plain:
            self._enter(bytes(plain))

    def _told(self, one: Notification) -> bool:
        """Whether anybody heard it."""
        heard = False
        for asker in self._subscriptions.askers(one.method):
            tell = self._doors.get(asker, self._tell) if isinstance(asker, Peer) else self._tell
            heard = tell(one) or heard
        return heard
