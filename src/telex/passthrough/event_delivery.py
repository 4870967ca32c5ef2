"""Delivers events of the person's terminal to the subscribers.

While there is a subscriber, all input passes here: a subscribed event takes the place of its bytes,
and all else goes on as it is. The modes that the terminal needs for it are switched on for so long,
beside those that the program has set itself. A program is subscribed while it runs and its process
group is in the foreground, a caller on a socket until it leaves. Input that can be delivered to
nobody goes to the program as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from telex.escapes.commands.event_types import RevokedEvent, TerminalResizeEvent
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
"""Tells it, or says that nobody is there to hear it."""

MODES: Final = frozenset({9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2031, 2048})
"""Those of which a program's own setting matters here."""
_RESIZE: Final = EVENT_NAMES[TerminalResizeEvent]
_LEFT: Final = "It ended when the program left the foreground."
_NONE: Final[frozenset[int]] = frozenset()


class EventDelivery:
    """At one terminal. The `Desk` of its service."""

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
        """`foreground` is the process group in the foreground, None if it would not read events;
        `asker` says which group sent a request, and may be there no more; `own_modes` are the modes
        that the program has set; `write_control` writes to the person's terminal,
        `write_to_program` types into the program, `send` sends it a notification, and `is_plain`
        says which input belongs to the line discipline rather than the program.
        """
        self._foreground, self._own_modes, self._is_plain = foreground, own_modes, is_plain
        self._write_control, self._write_to_program = write_control, write_to_program
        self._send = send
        self._asked_by = asker
        self._subscriptions = Subscriptions()
        self._callers: dict[Peer, SendNotification] = {}
        self._parser = InputParser()
        self._look: asyncio.TimerHandle | None = None
        self._needed = self._owned = _NONE
        self._loop = asyncio.get_running_loop()

    # Who listens.

    def add_caller(self, peer: Peer, send: SendNotification) -> None:
        """A caller on a socket, which may subscribe until `remove_caller`."""
        self._callers[peer] = send

    def remove_caller(self, peer: Peer) -> None:
        del self._callers[peer]
        self._subscriptions.remove(peer)
        self._changed()

    def subscribe(self, events: tuple[str, ...], call: CallContext) -> tuple[str, ...]:
        """Only for whoever waits for the answer: keys must not go where nobody listens."""
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
        """Nobody, if who asked is not there when the answer comes: a person may take their time."""
        if call.peer in self._callers:
            return call.peer
        asker = self._asked_by(call)
        return asker if asker == self._foreground() else None

    def check_foreground(self) -> None:
        """The program printed something: it may have gone, or have set a mode."""
        if self._subscriptions.names:
            self._update_foreground()

    def _update_foreground(self) -> None:
        group = self._foreground()
        self._subscriptions.set_foreground(group)
        self._changed()
        if group is not None and not self._is_plain(b""):  # else it does not listen yet
            for name in sorted(self._subscriptions.take_revoked(group)):
                self._send(Notification(REVOKED, RevokedEvent(name, _LEFT)))

    # What the terminal needs.

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
        """The terminal is somebody else's for a while; `check_foreground` makes it ours again."""
        self._write_control(mode_switches(self._needed, _NONE, self._owned))
        self._needed = _NONE

    def close(self) -> None:
        self.suspend()
        if self._look is not None:
            self._look.cancel()

    # Events.

    def person_input(self, data: bytes) -> None:
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
        self._pass(self._parser.feed(data, self._loop.time()))
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if self._parser.deadline is not None:
            self._look = self._loop.call_at(self._parser.deadline, self._feed, b"")

    def _release(self) -> None:
        """Nobody listens any more: what was held back was typed to the program."""
        held = self._parser.feed(b"", float("inf"))
        for one in held:
            self._write_to_program(one if isinstance(one, bytes) else one.raw)

    def _pass(self, happened: Iterable[ParsedInput | bytes]) -> None:
        """Each as an event, or as its bytes, in the order in which they were typed."""
        plain = bytearray()
        for one in happened:
            for part in to_notifications((one,), self._subscriptions.names, self._owned):
                if isinstance(part, bytes):
                    plain += part
                    continue
                if plain:
                    self._write_to_program(bytes(plain))
                    plain.clear()
                if not self._deliver(part):
                    plain += one if isinstance(one, bytes) else one.raw
                    break
        if plain:
            self._write_to_program(bytes(plain))

    def _deliver(self, one: Notification) -> bool:
        """Whether anybody received it."""
        received = False
        for asker in self._subscriptions.askers(one.method):
            send = self._callers.get(asker, self._send) if isinstance(asker, Peer) else self._send
            received = send(one) or received
        return received
