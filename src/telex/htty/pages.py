"""The pages of one process, and the gateway to them, which opens with the first that is looked at.

A page belongs to a command on a terminal: who runs the same once more there takes its place, under
the same name, so that a browser that waits for it finds it again. Another command, though it calls
itself the same, is another origin in the browser, with nothing of the first: no name is used twice.

Used by `telex run` for its one terminal and by a server for all its sessions.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from telex.htty.page import Page, label
from telex.processes import proc
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Hashable

    from telex.htty.gateway import Gateway


@dataclass(frozen=True, slots=True)
class Program:
    """Who offers a page."""

    command: str
    """What it calls itself, for people."""
    identity: Hashable
    """Equal for those who run the same: program, arguments and directory. What it calls itself is
    one word of its own choice, and every script in Python has the same."""


class Pages:
    """Close it."""

    def __init__(self, *, port: int = 0) -> None:
        self._port = port
        self._pages: dict[tuple[str, Hashable], Page] = {}
        """By terminal and identity, the latest used last."""
        self._numbers = count(1)
        self._gateway: Gateway | None = None
        self._open: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Gateway] | None = None
        self._done = asyncio.Event()

    def __contains__(self, page: Page) -> bool:
        return page in self._pages.values()

    def of(self, terminal: str, program: Program) -> Page:
        """Its page on a terminal. Where there are too many, one that nobody serves is forgotten."""
        key = terminal, program.identity
        if (known := self._pages.pop(key, None)) is None:
            self._make_room(terminal)
            known = Page(label(program.command, next(self._numbers)), program.command)
            if self._gateway is not None:
                self._gateway.add(known)
        self._pages[key] = known
        return known

    def _make_room(self, terminal: str) -> None:
        own = [page for key, page in self._pages.items() if key[0] == terminal]
        if len(own) >= limits.HTTY_PAGES:
            self.drop(next(page for page in own if page.http is None))  # one serves at a time

    async def url(self, page: Page) -> str:
        """An address that opens it, once. Raises what opening the port raises."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._open = asyncio.create_task(self._serve(self._ready))
        gateway = await asyncio.shield(self._ready)
        return gateway.url(page)

    def forget(self, terminal: str) -> None:
        """A terminal is no more."""
        for page in [page for key, page in self._pages.items() if key[0] == terminal]:
            self.drop(page)

    def drop(self, page: Page) -> None:
        """Nobody finds it any more. Nothing happens to one that was dropped before."""
        if page not in self:
            return
        self._pages = {key: one for key, one in self._pages.items() if one is not page}
        page.http = None
        if self._gateway is not None:
            self._gateway.remove(page)

    async def close(self) -> None:
        self._done.set()
        if self._open is not None:
            await asyncio.wait({self._open})

    async def _serve(self, ready: asyncio.Future[Gateway]) -> None:
        """In a task of its own, which opens the gateway and closes it."""
        try:
            module = await asyncio.to_thread(import_module, "telex.htty.gateway")
            async with module.Gateway(port=self._port) as gateway:
                self._gateway = gateway
                for page in self._pages.values():
                    gateway.add(page)
                ready.set_result(gateway)
                await self._done.wait()
        except BaseException as error:
            if ready.done():
                raise
            self._ready = None  # the next who asks tries again
            ready.set_exception(error)
        finally:
            self._gateway = None


class FarEnds:
    """Programs on other machines, of which only the `ssh` is seen that leads to them.

    The next one there may be anybody's. So each that comes is another program, with a page and an
    origin of its own, unless the one before left so lately that a browser still waits for it
    (`HTTY_RETURN_SECONDS`): that is a server that was started anew.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[int, float]] = {}
        """By what leads there: how many came, and when the last of them left."""

    def came(self, program: Program, now: float) -> Program:
        """Who it is to be."""
        number, left = self._seen.get(program.identity, (0, -inf))
        if now > left + limits.HTTY_RETURN_SECONDS:
            number += 1
        self._seen[program.identity] = number, inf
        return replace(program, identity=(program.identity, number))

    def left(self, program: Program, now: float) -> None:
        """One that came."""
        for identity, (number, _) in self._seen.items():
            if program.identity == (identity, number):
                self._seen[identity] = number, now
                return


def program_of(group: int, otherwise: str) -> Program:
    """Who leads a process group; `otherwise` is its name where that is not known."""
    name = _read(group, "comm").decode("utf-8", "replace").strip() or otherwise
    if argv := _read(group, "cmdline"):
        return Program(name, (argv, _link(group, "exe"), _link(group, "cwd")))
    started = proc.started(group)
    return Program(name, object() if started is None else (group, started))


def _read(group: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{group}/{what}").read_bytes()
    except OSError:
        return b""


def _link(group: int, what: str) -> str | None:
    """None for a program of another user."""
    try:
        return os.readlink(f"/proc/{group}/{what}")
    except OSError:
        return None
