"""What leaves a connection, in turns: one write per turn of the loop, bodies in fair shares.

Bodies wait here while the wire is full, a frame of each in turn; answers to the peer (settings,
pings, windows) never wait, which is why the reader asks `room` before it reads on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from telex.htty.beneath import Beneath
from telex.htty.connection import Connection
from telex.wire import limits


class Body(Protocol):
    """Something with pieces to send."""

    def send_some(self) -> bool:
        """Send a frame. Whether another could follow at once."""
        ...


class Sending:
    """The one writer of a connection."""

    def __init__(self, beneath: Beneath, connection: Connection) -> None:
        self._beneath = beneath
        self._connection = connection
        self._bodies: deque[Body] = deque()
        self._something = asyncio.Event()
        self._less = asyncio.Event()

    def stir(self) -> None:
        """There is something to send, when everybody had a turn to add to it."""
        self._something.set()

    def enlist(self, body: Body) -> None:
        """A body can go on. Not twice at a time."""
        if body not in self._bodies:
            self._bodies.append(body)
        self._something.set()

    def has_room_for(self, size: int) -> bool:
        """A small body goes at once if nobody waits; it saves a task's turn."""
        return not self._bodies and self._connection.unsent + size <= limits.HTTY_UNSENT_BYTES

    async def room(self) -> None:
        """Until we owe the peer no more than it may make us owe."""
        while self._connection.unsent > limits.HTTY_BACKLOG_BYTES:
            self._less.clear()
            await self._less.wait()

    async def run(self) -> None:
        """For ever; whoever started it ends it."""
        while True:
            await self._something.wait()
            self._something.clear()
            self.flush()
            await self._beneath.drained()
            await asyncio.sleep(0)  # one write a turn, also while the wire takes everything

    def flush(self) -> None:
        """Write what there is, and as much of bodies as may wait on the wire."""
        bodies, connection = self._bodies, self._connection
        while bodies and connection.unsent < limits.HTTY_UNSENT_BYTES:
            body = bodies.popleft()
            if body.send_some():
                bodies.append(body)
        if data := connection.to_send():
            self._beneath.write(data)
        if bodies:
            self._something.set()
        self._less.set()
