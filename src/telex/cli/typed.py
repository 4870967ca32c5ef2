"""A line that the person types, waited for in the event loop: a cancel ends the waiting.

Reading in a thread cannot be cancelled, and the program would hang at its end until Enter is
pressed. So the terminal is read when it has something; it keeps its own line editing.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from telex.wire.limits import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator


async def typed(question: str, *, hide: bool = False, fresh: bool = False) -> str | None:
    """What was typed on standard input, a terminal; None at its end. `fresh`: what was typed before
    the question was there is no answer to it."""
    descriptor = sys.stdin.fileno()
    if fresh:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    click.echo(question, nl=False, err=True)
    came: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    with _silent(descriptor, hide), _reading(descriptor, came):
        try:
            line = await came
        except asyncio.CancelledError:
            click.echo(err=True)
            raise
    if hide or not line.endswith(b"\n"):
        click.echo(err=True)
    return line.decode(errors="replace").rstrip("\r\n") if line else None


@contextmanager
def _reading(descriptor: int, came: asyncio.Future[bytes]) -> Iterator[None]:
    def ready() -> None:
        if not came.done():
            came.set_result(os.read(descriptor, CHUNK_BYTES))

    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ready)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)


@contextmanager
def _silent(descriptor: int, hide: bool) -> Iterator[None]:
    if not hide:
        yield
        return
    before = termios.tcgetattr(descriptor)
    silent = termios.tcgetattr(descriptor)
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
