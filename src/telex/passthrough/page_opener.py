"""Asks the person whether to show a page that a program offers, and opens it in their browser.

The person is asked on the last row (`question_row`), once for each run of a command, and the
question names the program. Policy rules for `page:open` decide before that, and the decision is in
the audit. Until then no byte is sent to the program. If no browser can be opened, the address is
shown: on a line of its own between two lines of the program; over a program that draws the whole
screen, on the last row. With `--open never` the address is shown first, and opening it is the
consent: the gateway reports the first visitor, and only then are bytes sent to the program.

The browser is `$BROWSER`: commands separated by colons, with `%s` in place of the address. After
these comes the command by which the system opens addresses. No browser is started where the person
would not see it: on a machine without a display, or at the other end of ssh. The browser gets no
terminal, so that it cannot draw over the person's, and it continues when telex exits.

Imported with the first chunk, by `PageFilter`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from telex.escapes import limits
from telex.escapes.gate import GateQuestion, inert
from telex.escapes.protocol import EscapeCommand, Guard
from telex.htty.client import HttyClient
from telex.htty.errors import ConnectionOver
from telex.htty.gateway.pages import Pages, RemotePrograms, program_of
from telex.passthrough.escape_filter import PageOpening
from telex.processes import proc
from telex.processes.child_environment import COOKIE
from telex.processes.launch import launch, null
from telex.transports.web_server import CannotListen
from telex.wire import htty_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.escapes.policy import RequestOrigin
    from telex.htty.client import Offer
    from telex.htty.gateway.pages import Page, PageProgram
    from telex.passthrough.escape_filter import PageOptions
    from telex.passthrough.escape_responder import EscapeResponder
    from telex.passthrough.foreground_history import ForegroundHistory
    from telex.passthrough.joined_terminals import JoinedTerminals


log = logging.getLogger("telex.htty")

_TERMINAL: Final = "run"


class PageOfferData(msgspec.Struct, frozen=True):
    """The payload of `page:open`, without fields: a page is described by the program alone."""


@dataclass(frozen=True, slots=True)
class PageAddressNotice(GateQuestion):
    """A notice on the last row of a program that draws the whole screen. Any answer removes it."""

    @property
    def text(self) -> str:
        return f"{self.summary} (n to continue)"


@dataclass(slots=True)
class _Decision:
    """The person's decision about one run of a program."""

    allowed: bool
    notified: bool = False
    """Whether the page was opened, or its address shown: once for each run."""
    visited: bool = False
    """Whether a browser has opened a page of this run."""


PAGE: Final = EscapeCommand(
    "page:open",
    "Show a page in the person's browser.",
    PageOfferData,
    None,
    guard=Guard.PERSON,
    each_time=True,
    wants="wants to show a page in your browser. Open it?",
)


class PageOpener:
    """Asks about and opens the pages of the programs on one terminal under `telex run`.

    Args:
        terminals: The two terminals.
        foreground: The history of foreground process groups, for the origin of an offer.
        responder: Returns the responder, which has the gate; it is imported on the first call.
        options: How pages are shown.
    """

    def __init__(
        self,
        terminals: JoinedTerminals,
        foreground: ForegroundHistory,
        responder: Callable[[], EscapeResponder],
        options: PageOptions,
    ) -> None:
        self._terminals = terminals
        self._foreground = foreground
        self._responder = responder
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._pages = Pages(port=options.port)
        self.side = HttyClient(
            terminals.pty,
            self._offered,
            self._ended,
            eager=options.eager,
            written=terminals.page_input_written,
        )
        self._tasks: dict[Offer, asyncio.Task[None]] = {}
        self._shown: dict[Offer, Page] = {}
        self._far_ends = RemotePrograms()
        self._remote: dict[Offer, PageProgram] = {}
        self._decided: dict[tuple[int, int], _Decision] = {}
        """By run: the person is asked once about each."""
        self._unseen: Page | None = None
        """A page that was offered and that no browser has opened."""
        self._complained = False
        self._refused: int | None = None
        """The process group of the last refusal that was shown."""
        self._named_raw: tuple[tuple[int, int] | None] | None = None
        """The run that last announced the raw form, if any did."""
        self._notices: set[asyncio.Task[None]] = set()

    def _offered(self, offer: Offer) -> None:
        origin = self._foreground.origin(self._terminals.pty, self._loop.time())
        task = self._loop.create_task(self._consider(offer, replace(origin, waiting=offer.group)))
        self._tasks[offer] = task
        task.add_done_callback(lambda _: self._tasks.pop(offer, None))

    def _ended(self, offer: Offer) -> None:
        page = self._shown.pop(offer, None)
        if page is not None and page.http is offer.http:
            page.http = None
        if (task := self._tasks.get(offer)) is not None:
            task.cancel()
        if (program := self._remote.pop(offer, None)) is not None:
            self._far_ends.left(program, self._loop.time())
        log.info("a page ended: %s", offer.sentence)
        if offer.faulty and not self._complained:
            self._complained = True
            whose = f'the page of "{inert(page.title)}"' if page is not None else "a page"
            self._notify_person(f"{whose} ended: {inert(str(offer.sentence))}")

    def raw_form(self) -> None:
        """Show that the program uses a form of HTTY that telex does not support: once each run."""
        origin = self._foreground.origin(self._terminals.pty, self._loop.time())
        if self._named_raw == (origin.run,):
            return
        self._named_raw = (origin.run,)
        who = f'"{inert(origin.program)}"' if origin.program else "a program"
        text = f"{who} uses {htty_chunk.RAW_FORM}; its page cannot be shown"
        if not self._notify_person(text):
            notice = PageAddressNotice(PAGE.name, origin, f"telex: {text}")
            task = self._loop.create_task(self._responder().gate.show_notice(notice))
            self._notices.add(task)
            task.add_done_callback(self._notices.discard)

    async def close(self) -> None:
        await self.side.close()
        for notice in [*self._notices]:
            notice.cancel()
        if self._notices:
            await asyncio.wait([*self._notices])
        for task in [*self._tasks.values()]:
            task.cancel()
        if self._tasks:
            await asyncio.wait([*self._tasks.values()])
        await self._pages.close()

    # From the offer to the browser.

    async def _consider(self, offer: Offer, origin: RequestOrigin) -> None:
        program = program_of(offer.group, origin.program or "a program")
        if origin.kind == "remote":
            program = self._remote[offer] = self._far_ends.arrived(program, self._loop.time())
        decision = await self._decide(origin)
        if not decision.allowed:
            self._notify_refused(offer, program, decision)
            self.side.refuse(offer)
            return
        page = self._page(program)
        offered = page.offer()
        try:
            await self._hand_over(offer, page, offered, decision, origin)
        except CannotListen as problem:
            self._notify_person(str(problem))
            self.side.refuse(offer)
        finally:
            page.withdraw(offered)

    async def _hand_over(
        self,
        offer: Offer,
        page: Page,
        offered: asyncio.Event,
        decision: _Decision,
        origin: RequestOrigin,
    ) -> None:
        url = await self._pages.url(page)
        notify = not decision.notified
        if self._options.open is PageOpening.NEVER and not decision.visited:
            self._unseen, decision.notified = page, True
            await self._wait_for_visitor(page, offered, url if notify else None, origin)
            self._unseen, decision.visited = None, True
            notify = False
        await self._serve(offer, page, remote=origin.kind == "remote")
        if notify and offer in self._shown:
            decision.notified = True
            await self._show(page, url, origin)

    async def _decide(self, origin: RequestOrigin) -> _Decision:
        run = origin.run
        if run is not None and (known := self._decided.get(run)) is not None:
            return known
        decision = _Decision(await self._responder().gate.allow(PAGE, origin, ""))
        if run is not None:
            self._decided[run] = decision
            if len(self._decided) > limits.ANSWERS_REMEMBERED:
                del self._decided[next(iter(self._decided))]
        if not decision.allowed and not self._terminals.person:
            self._notify_person(
                "a program wants to show a page, and there is no person to ask; see --open"
            )
        return decision

    def _notify_refused(self, offer: Offer, program: PageProgram, decision: _Decision) -> None:
        """Show once for each run that its page was refused. The program is sent nothing, so it
        cannot show itself why it waits. Over a program that draws the whole screen nothing is
        shown: its screen shows that it continues.
        """
        if decision.notified or offer.group == self._refused or not self._terminals.person:
            return
        decision.notified, self._refused = True, offer.group
        self._notify_person(
            f'no page is shown: "{inert(program.command)}" continues without it. Ctrl-C ends it; '
            "start it again to be asked again"
        )

    def _page(self, program: PageProgram) -> Page:
        """Return the page, and drop an unseen one: a program could offer any number of pages."""
        page = self._pages.page_for(_TERMINAL, program)
        unseen, self._unseen = self._unseen, None
        if unseen is not None and unseen is not page:
            self._pages.drop(unseen)
        return page

    async def _wait_for_visitor(
        self, page: Page, offered: asyncio.Event, url: str | None, origin: RequestOrigin
    ) -> None:
        """Show the address, once for each run, and wait until a browser opens it. The address stays
        valid for later offers of the same run.
        """
        showing = self._loop.create_task(self._show(page, url, origin, "offers")) if url else None
        try:
            await offered.wait()
        finally:
            if showing is not None:
                showing.cancel()
                await asyncio.wait({showing})

    async def _serve(self, offer: Offer, page: Page, *, remote: bool) -> None:
        self.side.accept(offer, remote=remote)
        try:
            await offer.http.ready()
        except ConnectionOver:  # `_ended` reports it
            return
        if offer.sentence is None:
            self._shown[offer] = page
            page.http = offer.http

    async def _show(self, page: Page, url: str, origin: RequestOrigin, does: str = "shows") -> None:
        opens = self._terminals.person and self._options.open is not PageOpening.NEVER
        if opens and await open_in_browser(url):
            return
        text = f'"{inert(page.title)}" {does} a page: {url}'
        if not self._notify_person(text):
            notice = PageAddressNotice(PAGE.name, origin, f"telex: {text}")
            await self._responder().gate.show_notice(notice)

    def _notify_person(self, text: str) -> bool:
        """Show a line to the person. False if that would spoil the screen of the program."""
        if self._terminals.person:
            return self._responder().print_notice(f"telex: {text}")
        sys.stderr.write(f"telex: {text}\n")
        sys.stderr.flush()
        return True


BROWSER_SECONDS: Final = 5.0
"""How long to wait for a browser command to fail."""


def browser_command(url: str, environ: Mapping[str, str]) -> list[str] | None:
    """Return the command that opens this address; None if there is none, or no display."""
    for given in environ.get("BROWSER", "").split(":"):
        words = shlex.split(given)
        if words and (path := shutil.which(words[0], path=environ.get("PATH"))):
            rest = [word.replace("%s", url) for word in words[1:]]
            return [path, *rest] if "%s" in given else [path, *rest, url]
    if "SSH_CONNECTION" in environ or "SSH_TTY" in environ:
        return None
    if sys.platform == "darwin":
        usual = "open"
    elif "DISPLAY" in environ or "WAYLAND_DISPLAY" in environ:
        usual = "xdg-open"
    else:
        return None
    path = shutil.which(usual, path=environ.get("PATH"))
    return None if path is None else [path, url]


async def open_in_browser(url: str) -> bool:
    """Start a browser. Return whether it opened the address, as far as can be known."""
    argv = browser_command(url, os.environ)
    if argv is None:
        return False
    # Without the cookie by which telex finds and kills the processes of a run.
    environment = {name: value for name, value in os.environ.items() if name != COOKIE}
    try:
        pid = launch(argv[0], argv, environment, [null(fd) for fd in (0, 1, 2)])
    except OSError:
        return False
    return await _taken(pid)


async def _taken(pid: int) -> bool:
    """Wait a moment for the exit code. A command that still runs is taken for a browser."""
    fd = proc.pidfd(pid)
    if fd is None:
        return True
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BROWSER_SECONDS):
                await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
    return _runs_or_succeeded(pid)


def _runs_or_succeeded(pid: int) -> bool:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return not ended or os.waitstatus_to_exitcode(status) == 0
