"""Parse HOST:PORT, for every command that listens."""

from __future__ import annotations

import click


def address(_: click.Context, __: click.Parameter, given: str | None) -> tuple[str, int] | None:
    """Callback of an option. An empty host is this machine; an IPv6 address is in brackets."""
    return None if given is None else read_address(given)


def read_address(given: str) -> tuple[str, int]:
    host, colon, port = given.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{given!r} is not HOST:PORT, as in 127.0.0.1:8023")
    return host.strip("[]") or "127.0.0.1", int(port)
