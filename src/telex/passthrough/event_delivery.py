"""Delivers events of the person's terminal to their subscribers.

While there is a subscriber, input is parsed here: a subscribed event replaces its bytes, and all
other bytes are written to the program unchanged. The modes that the terminal needs to report the
events are switched on during a subscription, in addition to the modes that the program has set. A
program is subscribed while its process group is in the foreground, a client on a socket until it
disconnects. The bytes of an event that could not be delivered are written to the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from telex.escapes.commands.core import RevokedEvent, TerminalResizeEvent
from telex.escapes.input_events import EVENT_NAMES, MOUSE_CLICK, InputParser, to_notifications
from telex.escapes.subscriptions import REVOKED, Subscriptions, mode_switches
from telex.rpc.messages import Notification
from telex.rpc.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from telex.escapes.input_events import ParsedInput
    from telex.rpc.handler_tasks import CallContext
    from telex.terminal.cells import Size

SendNotification = Callable[[Notification], bool]
"""Sends a notification. Returns False if no process was there to receive it."""

MODES: Final = frozenset({9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2031, 2048})
"""Modes that events need or depend on, so that the program's own setting matters."""
_RESIZE: Final = EVENT_NAMES[TerminalResizeEvent]
_LEFT: Final = "It ended when the program left the foreground."
_NONE: Final[frozenset[int]] = frozenset()


class EventDelivery:
    """Delivers the events of one terminal: the `EventSource` of its `TerminalService`."""

    known: Final = frozenset({*EVENT_NAMES.values(), MOUSE_CLICK, REVOKED})

    def __init__(
        self,
        *,
        foreground: Callable[[], int | None],
        own_modes: Callable[[], frozenset[int]],
        write_control: Callable[[bytes], None],
        is_plain: Callable[[bytes], bool],
        write_to_program: Callable[[bytes], None],
        send: SendNotification,
        asker: Callable[[CallContext], int | None],
    ) -> None:
        """
        Args:
            foreground: Returns the foreground process group, None if it would not read events.
            own_modes: Returns the modes that the program has set itself.
            write_control: Writes to the person's terminal.
            is_plain: Whether input belongs to the line discipline rather than the program.
            write_to_program: Writes input to the program.
            send: Sends a notification to the program.
            asker: Returns the process group that sent a request, which may have exited.
        """
        self._foreground, self._own_modes, self._is_plain = foreground, own_modes, is_plain
        self._write_control, self._write_to_program = write_control, write_to_program
        self._send = send
        self._group_of = asker
        self._subscriptions = Subscriptions()
        self._clients: dict[Peer, SendNotification] = {}
        self._parser = InputParser()
        self._parse_timer: asyncio.TimerHandle | None = None
        self._needed = self._owned = _NONE
        self._loop = asyncio.get_running_loop()

    # Subscribers.

    def add_client(self, peer: Peer, send: SendNotification) -> None:
        """Let a client on a socket subscribe, until `remove_client`."""
        self._clients[peer] = send

    def remove_client(self, peer: Peer) -> None:
        del self._clients[peer]
        self._subscriptions.remove(peer)
        self._changed()

    def subscribe(self, events: tuple[str, ...], call: CallContext) -> tuple[str, ...]:
        """Subscribe a requester that waits for the response; else keys would go to a process that
        does not read them.
        """
        asker = None if call.id is None else self._asker(call)
        if asker is None:
            return ()
        self._update_foreground()
        now = self._subscriptions.subscribe(asker, self.known.intersection(events))
        self._changed()
        return tuple(sorted(now))

    def unsubscribe(self, events: tuple[str, ...], call: CallContext) -> tuple[str, ...]:
        asker = self._asker(call)
        now = self._subscriptions.unsubscribe(asker, events) if asker is not None else ()
        self._changed()
        return tuple(sorted(now))

    def _asker(self, call: CallContext) -> Hashable | None:
        """Return the subscriber, None if the requester has left the foreground: it may do so while
        the person decides.
        """
        if call.peer in self._clients:
            return call.peer
        asker = self._group_of(call)
        return asker if asker == self._foreground() else None

    def check_foreground(self) -> None:
        """Update subscriptions and modes after output: the program may have exited or set one."""
        if self._subscriptions.names:
            self._update_foreground()

    def _update_foreground(self) -> None:
        group = self._foreground()
        self._subscriptions.set_foreground(group)
        self._changed()
        if group is not None and not self._is_plain(b""):  # else it does not read events yet
            for name in sorted(self._subscriptions.take_revoked(group)):
                self._send(Notification(REVOKED, RevokedEvent(name, _LEFT)))

    # Modes of the terminal.

    def _changed(self) -> None:
        needed, own = self._subscriptions.needed_modes(), self._own_modes()
        if own != self._owned:  # the program changed its modes, and may have undone ours
            self._write_control(
                mode_switches(self._needed, needed, own) + mode_switches(_NONE, needed, own)
            )
        elif needed != self._needed:
            self._write_control(mode_switches(self._needed, needed, own))
        self._needed, self._owned = needed, own
        if not self._subscriptions.names:
            self._release()

    def suspend(self) -> None:
        """Switch our modes off, for the shell. `check_foreground` switches them on again."""
        self._write_control(mode_switches(self._needed, _NONE, self._owned))
        self._needed = _NONE

    def close(self) -> None:
        self.suspend()
        if self._parse_timer is not None:
            self._parse_timer.cancel()

    # Events.

    def person_input(self, data: bytes) -> None:
        """Send input as events to subscribers, or write it to the program."""
        if self._subscriptions.names:
            self._update_foreground()
        if self._subscriptions.names and not self._is_plain(data):
            self._feed(data)
        else:
            self._write_to_program(data)

    def resized(self, size: Size) -> None:
        if _RESIZE in self._subscriptions.names:
            resized = TerminalResizeEvent(size.rows, size.cols, size.pixel_width, size.pixel_height)
            self._deliver(Notification(_RESIZE, resized))

    def _feed(self, data: bytes) -> None:
        self._dispatch(self._parser.feed(data, self._loop.time()))
        if self._parse_timer is not None:
            self._parse_timer.cancel()
            self._parse_timer = None
        if self._parser.deadline is not None:
            self._parse_timer = self._loop.call_at(self._parser.deadline, self._feed, b"")

    def _release(self) -> None:
        """Write held input to the program: the last subscription has ended."""
        held = self._parser.feed(b"", float("inf"))
        for item in held:
            self._write_to_program(item if isinstance(item, bytes) else item.raw)

    def _dispatch(self, items: Iterable[ParsedInput | bytes]) -> None:
        """Send each item as an event, or write its bytes, in the order of the input."""
        plain = bytearray()
        for item in items:
            for part in to_notifications((item,), self._subscriptions.names, self._owned):
                if isinstance(part, bytes):
                    plain += part
                    continue
                if plain:
                    self._write_to_program(bytes(plain))
                    plain.clear()
                if not self._deliver(part):
                    plain += item if isinstance(item, bytes) else item.raw
                    break
        if plain:
            self._write_to_program(bytes(plain))

    def _deliver(self, event: Notification) -> bool:
        """Send an event to its subscribers. Return whether any of them received it."""
        received = False
        for asker in self._subscriptions.askers(event.method):
            send = self._clients.get(asker, self._send) if isinstance(asker, Peer) else self._send
            received = send(event) or received
        return received
