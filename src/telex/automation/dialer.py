"""From an address to a peer of the automation protocol; `transports.addresses` has the syntax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.automation.protocol import DIALECT
from telex.rpc.peer import Peer
from telex.transports.addresses import AUTOMATION, open_channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.rpc.methods import Methods


async def dial(
    address: str = "unix:",
    token: str | None = None,
    methods: Methods | None = None,
    on_binary: Callable[[bytes], None] | None = None,
) -> Peer:
    """Connect to the server at an address. Raises `CannotConnect`."""
    channel = await open_channel(address, token, AUTOMATION)
    return Peer(channel, DIALECT, methods, on_binary=on_binary)
