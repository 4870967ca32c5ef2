"""Events of a session's terminal: what callers type, and its size, for the program that subscribed.

What is subscribed to comes as an event in place of its bytes, never beside them. A subscription
ends with `term:unsubscribe`, with the process that asked, and when another process group is in the
foreground; the modes of the screen that it needed are switched with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.escapes.events import Typed, translate
from telex.escapes.subscriptions import Subscriptions, switching
from telex.protocols.json_escapes import ResizeEvent
from telex.rpc.messages import Notification

if TYPE_CHECKING:
    from telex.escapes.inband import InBand
    from telex.rpc.handler_tasks import Call
    from telex.terminal.session import PtySession

RESIZE: Final = "event:resize"
_AFTER: Final = 60.0
"""Seconds after which nothing typed is unfinished: what a caller types, it types whole."""
_MODES: Final = (9, 1000, 1002, 1003, 1005, 1006, 1015, 1016, 2004)
"""That events may need, or that keep one of these from being what the program set."""


class SessionEvents:
    """Of one session. The desk of its service."""

    known: Final = frozenset(
        {"event:key", "event:mouse", "event:mouseclick", "event:paste", RESIZE}
    )

    def __init__(self, session: PtySession, channel: InBand) -> None:
        self._session = session
        self._channel = channel
        self._subscriptions = Subscriptions()
        self._typed = Typed()
        self._size = session.size
        self._own: frozenset[int] = frozenset()
        """The modes that the program had set itself, when it subscribed first."""
        self._needed: frozenset[int] = frozenset()

    def subscribe(self, events: tuple[str, ...], call: Call) -> frozenset[str]:
        asker = self._channel.dialect.asker(call.id)
        group = self._session.pty.foreground()
        if call.id is None or asker is None or asker != group:  # it would not hear them
            return frozenset()
        self._subscriptions.foreground(group)
        if not self._subscriptions.names:
            self._begin()
        found = self._subscriptions.subscribe(asker, self.known.intersection(events))
        self._switch()
        return found

    def unsubscribe(self, events: tuple[str, ...], call: Call) -> frozenset[str]:
        asker = self._channel.dialect.asker(call.id)
        left = self._subscriptions.unsubscribe(asker, events)
        self._switch()
        return left

    def _begin(self) -> None:
        session = self._session
        asked = b"".join([b"\x1b[?%d$p" % mode for mode in _MODES])
        said = re.findall(rb"\x1b\[\?(\d+);1\$y", session.screen.feed(asked))
        self._own = frozenset(map(int, said))
        self._size = session.size
        session.input_filter = self._pass
        session.watchers.add(self._look)

    def _switch(self) -> None:
        """Have the screen tell what is needed, and no more."""
        needed = self._subscriptions.needed_modes()
        switch, self._needed = switching(self._needed, needed, self._own), needed
        if not self._subscriptions.names:
            self._session.input_filter = None
            self._session.watchers.discard(self._look)
        if switch:
            self._session.inject_output(switch)

    def _wanted(self) -> frozenset[str]:
        """What the program in the foreground is subscribed to."""
        group = self._session.pty.foreground()
        self._subscriptions.foreground(group)
        if self._subscriptions.needed_modes() != self._needed or not self._subscriptions.names:
            self._switch()
        return self._subscriptions.of(group)

    def _look(self) -> None:
        """Something changed: the size, or who is there."""
        wanted, size = self._wanted(), self._session.size
        if size != self._size:
            self._size = size
            if RESIZE in wanted:
                resized = ResizeEvent(size.rows, size.cols, size.pixel_width, size.pixel_height)
                self._tell(Notification(RESIZE, resized))

    def _pass(self, data: bytes) -> bytes:
        """What is left for the program to read as bytes, after what it was told came before it."""
        if not (wanted := self._wanted()):
            return data
        happened = self._typed.feed(data, 0.0) + self._typed.feed(b"", _AFTER)
        left = b""
        for item in translate(happened, wanted, self._own):
            if isinstance(item, bytes):
                left += item
                continue
            if left:
                self._session.pty.write(left)
                left = b""
            self._tell(item)
        return left

    def _tell(self, event: Notification) -> None:
        self._channel.send(self._channel.dialect.encode(event))
