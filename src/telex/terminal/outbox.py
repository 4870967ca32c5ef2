"""What was typed and the kernel has not taken yet: bounded, in order, with a way past the queue.

Pure: `pty` asks what is next and says how much of it was taken.
"""

from __future__ import annotations

from telex.wire import limits


class InputQueueFull(Exception):
    """The program does not read, and no more is kept for it."""

    def __init__(self, refused: int, queued: int) -> None:
        super().__init__(
            f"{refused} bytes of input were refused, none of them was written: {queued} are queued "
            "and the program does not read; send smaller pieces and wait until each is drained"
        )


class Outbox:
    """Bytes in the order they will be written.

    Urgent bytes go before all others, and after earlier urgent ones. What they overtake stays and
    follows them.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._urgent = 0
        """How many of the first bytes are urgent."""

    def __len__(self) -> int:
        return len(self._bytes)

    def put(self, data: bytes, *, urgent: bool = False) -> None:
        """All of it or, with `InputQueueFull`, nothing. Urgent bytes have room of their own, so
        that an interrupt gets in when nothing else does."""
        taken = self._urgent if urgent else len(self) - self._urgent
        room = limits.URGENT_BYTES_QUEUED if urgent else limits.INPUT_BYTES_QUEUED
        if taken + len(data) > room:
            raise InputQueueFull(len(data), len(self))
        if urgent:
            self._bytes[self._urgent : self._urgent] = data
            self._urgent += len(data)
        else:
            self._bytes += data

    def next(self) -> bytes:
        """What to offer the kernel now; empty when nothing is left."""
        return bytes(memoryview(self._bytes)[: limits.WRITE_BYTES])

    def taken(self, count: int) -> None:
        """So many of them are the kernel's now."""
        del self._bytes[:count]
        self._urgent = max(0, self._urgent - count)

    def clear(self) -> None:
        """Nobody will read them."""
        self.taken(len(self))
