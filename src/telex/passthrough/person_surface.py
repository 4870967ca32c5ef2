"""The person's terminal as the surface of JSON escapes, and a probe of its abilities.

Reports for a program are queried from the person's terminal itself: it knows the colours, the
cursor and the clipboard, and a model of the screen knows at best the cursor.

The terminal's abilities are probed once, when they are first needed, by two queries, each between
marks (`query_replies`). The first asks for attributes and name (DA1, XTVERSION), and is harmless
anywhere. The second asks for pictures and modes. It is not sent to a multiplexer, which shows no
pictures of ours and takes kitty's query for a title; nor to a terminal that did not reply to the
first.

Some abilities cannot be queried: whether the terminal obeys OSC 52, and whether it shows
notifications. They are reported as `unverified`. The clipboard is not read to find out: it belongs
to the person, and their terminal may ask them.
"""

from __future__ import annotations

import asyncio
import binascii
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from telex.escapes.commands import EVENTS, core
from telex.escapes.commands.core import TermReport, TermReported
from telex.escapes.commands.terminal_extensions import ClipRead, ClipText, ImageDelete, ImageShow
from telex.escapes.protocol import ATTRIBUTE
from telex.escapes.server import unsupported
from telex.passthrough.query_replies import ANSWER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.escapes.commands.dec_modes import QueryMode
    from telex.escapes.server import SurfaceHandler
    from telex.rpc.errors import RpcError
    from telex.rpc.handler_tasks import CallContext
    from telex.terminal.cells import Size


QueryTerminal = Callable[[bytes], Awaitable[bytes | None]]
"""Sends a query at once. The result is the reply, None if none came."""

UNKNOWN_SECONDS: Final = 3.0
"""Wait for the clipboard of a terminal of which it is unknown whether it lets programs read it."""
_NO_CLIPBOARD: Final = "The person's terminal does not let programs read its clipboard."
_NO_REPORT: Final = "The person's terminal does not report this."
_NO_PICTURES: Final = "The person's terminal does not show such pictures."
_SELECTIONS: Final = {"clipboard": b"c", "primary": b"p"}
_CLIP: Final = re.compile(rb"\x1b\]52;[a-z0-9]*;([A-Za-z0-9+/=]*)")


class PersonSurface:
    """Does commands on the person's terminal: the `Surface` of a `TerminalService`.

    Args:
        insert: Inserts ANSI into the program's output.
        size: Returns the size of the terminal.
        query: Sends a query to the terminal; None if there is no terminal.
        others: Handlers of commands that need no terminal.
    """

    def __init__(
        self,
        insert: Callable[[bytes], None],
        size: Callable[[], Size],
        query: QueryTerminal | None,
        others: Mapping[str, SurfaceHandler],
    ) -> None:
        self._insert, self._size, self._query = insert, size, query
        self._findings = ProbeFindings()
        self._known = query is None
        self._probing: asyncio.Task[None] | None = None
        queried: Mapping[str, SurfaceHandler] = (
            {} if query is None else {"clip:read": self._clipboard}
        )
        self.handlers: Mapping[str, SurfaceHandler] = {**others, **queried}

    @property
    def lacks(self) -> frozenset[str]:
        return self._findings.lacks

    @property
    def unverified(self) -> tuple[str, ...]:
        return self._findings.unverified

    @property
    def probe(self) -> Callable[[], Awaitable[None]] | None:
        return None if self._known else self._probe_once

    async def _probe_once(self) -> None:
        """Start the probe with the first request; further requests wait for the same probe."""
        if self._probing is None:
            self._probing = asyncio.create_task(self._probe())
        await asyncio.shield(self._probing)

    async def _probe(self) -> None:
        assert self._query is not None  # else `probe` is None
        began = asyncio.get_running_loop().time()
        reply = await self._query(FIRST_PROBE)
        if reply is None and asyncio.get_running_loop().time() < began + ANSWER_SECONDS / 2:
            self._probing = None  # the query could not be sent now; the next request tries again
            return
        findings = first_findings(reply, os.environ)
        if findings.answered and not findings.multiplexer:
            findings = second_findings(findings, await self._query(SECOND_PROBE))
        self._findings, self._known = findings, True

    async def close(self) -> None:
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait({self._probing})

    def refusal(self, asked: object) -> RpcError | None:
        match asked:
            case ImageShow(format=kind) if not self._findings.shows(kind):
                return unsupported(_NO_PICTURES)
            case ImageDelete() if "image:delete" in self._findings.lacks:
                return unsupported(_NO_PICTURES)
            case ClipRead() if self._findings.reads_clipboard is False:
                return unsupported(_NO_CLIPBOARD)
            case _:
                return None

    def apply(self, ansi: bytes) -> None:
        self._insert(ansi)

    @property
    def size(self) -> Size:
        return self._size()

    @property
    def title(self) -> str | None:
        """None: only the person's terminal knows its title."""
        return None

    def report(self, what: str, asked: TermReport | QueryMode) -> object:
        if isinstance(asked, TermReport) and asked.what == "size-cells":
            return TermReported(rows=self.size.rows, cols=self.size.cols)
        if self._query is None:
            raise unsupported(_NO_REPORT)
        # Sent now, before output that follows is shown; the handler's task awaits the reply.
        return _reported(asked, self._query(core.report_question(asked)))

    def set_modes(self, numbers: frozenset[int]) -> None:
        """Do nothing: `EventDelivery` sets modes, because it knows the program's own modes."""

    async def _clipboard(self, asked: ClipRead, call: CallContext) -> ClipText:
        assert self._query is not None  # else this handler is not registered
        pending = self._query(b"\x1b]52;%b;?\x1b\\" % _SELECTIONS[asked.selection])
        # No timeout for a terminal known to let programs read: it may ask its user first.
        known = self._findings.reads_clipboard
        try:
            async with asyncio.timeout(None if known else UNKNOWN_SECONDS):
                reply = await pending
        except TimeoutError:
            reply = None
        found = _CLIP.search(reply or b"")
        self._findings = replace(self._findings, clipboard_was_read=found is not None)
        if found is None:
            raise unsupported(_NO_CLIPBOARD)
        try:
            data = binascii.a2b_base64(found[1], strict_mode=True)
        except binascii.Error:
            raise unsupported(_NO_CLIPBOARD) from None
        return ClipText(data.decode("utf-8", "replace"))


async def _reported(asked: TermReport | QueryMode, reply: Awaitable[bytes | None]) -> object:
    answer = core.report_answer(asked, await reply or b"")
    if answer is None:
        raise unsupported(_NO_REPORT)
    if (
        isinstance(asked, TermReport)
        and asked.what == "attributes"
        and isinstance(answer, TermReported)
    ):
        numbers = answer.attributes if isinstance(answer.attributes, tuple) else ()
        return msgspec.structs.replace(answer, attributes=(*numbers, ATTRIBUTE))
    return answer


FIRST_PROBE: Final = b"\x1b[c\x1b[>q"
_MODES: Final = tuple(sorted({2026, *(mode for event in EVENTS.values() for mode in event.modes)}))
SECOND_PROBE: Final = b"".join(
    [
        b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
        b"\x1b]1337;ReportCellSize\x1b\\",
        *[b"\x1b[?%d$p" % mode for mode in _MODES],
    ]
)
_ATTRIBUTES: Final = re.compile(rb"\x1b\[\?([0-9;]*)c")
_VERSION: Final = re.compile(rb"\x1bP>\|([ -~]{1,64})")
_MODE: Final = re.compile(rb"\x1b\[\?([0-9]+);([0-4])\$y")
_KITTY: Final = re.compile(rb"\x1b_G[^\x1b]*i=31[^\x1b]*;OK\x1b\\")
_CELL_SIZE: Final = b"\x1b]1337;ReportCellSize="
_CLIPBOARD: Final = 52
"""The DA1 attribute of a terminal that lets programs use its clipboard."""
_READS_CLIPBOARD: Final = ("kitty", "iTerm2", "foot", "ghostty", "contour")
"""Terminals that reply to OSC 52, some of them after they have asked their user."""
_WRITES_ONLY: Final = ("WezTerm",)
_MULTIPLEXERS: Final = ("tmux", "screen", "zellij")
_NEVER: Final = (0, 4)
"""Replies to DECRQM that mean: the mode is unknown, or cannot be set."""
KITTY_FORMATS: Final = frozenset({"png", "rgb", "rgba"})
PICTURES: Final = frozenset({"image:show", "image:delete"})
READ: Final = "clip:read"
_UNVERIFIABLE: Final = (
    "notify:*",
    "progress:*",
    "shell:*",
    "var:*",
    "term:cwd",
    "term:hyperlink",
    "term:palette",
    "term:resize",
    "term:title",
    "term:window",
)


@dataclass(frozen=True, slots=True)
class ProbeFindings:
    """The results of the two probes. Without a reply, all fields have their defaults."""

    answered: bool = False
    attributes: frozenset[int] = frozenset()
    version: str = ""
    multiplexer: bool = False
    kitty: bool = False
    """Whether the terminal shows pictures by kitty's protocol."""
    iterm: bool = False
    """Whether the terminal shows pictures by iTerm2's protocol."""
    modes: Mapping[int, int] = field(default_factory=dict)
    """The reply to DECRQM by mode, where one came."""
    clipboard_was_read: bool | None = None
    """Whether the last attempt to read the clipboard succeeded; None before the first."""

    @property
    def reads_clipboard(self) -> bool | None:
        """Whether programs can read the clipboard; None if unknown, so that it may be tried."""
        if self.clipboard_was_read is not None:
            return self.clipboard_was_read
        if not self.answered or self.multiplexer or self.version.startswith(_WRITES_ONLY):
            return False
        known = _CLIPBOARD in self.attributes or self.version.startswith(_READS_CLIPBOARD)
        return True if known else None

    @property
    def lacks(self) -> frozenset[str]:
        """Commands and events that the terminal lacks, or has not shown to have."""
        lacks = set() if self.kitty or self.iterm else set(PICTURES)
        if not self.reads_clipboard:
            lacks.add(READ)
        if self.modes.get(2026) in _NEVER:
            lacks.add("term:sync")
        for event in EVENTS.values():
            if any(self.modes.get(mode) in _NEVER for mode in event.modes):
                lacks.add(event.name)
        return frozenset(lacks)

    @property
    def unverified(self) -> tuple[str, ...]:
        """Commands and events that are sent to the terminal with unknown effect."""
        known = self.reads_clipboard or (_CLIPBOARD in self.attributes and not self.multiplexer)
        writes = () if known else ("clip:write",)
        sync = () if 2026 in self.modes else ("term:sync",)
        events = tuple(
            event.name for event in EVENTS.values() if not self.modes.keys() >= {*event.modes}
        )
        reports = () if self.answered and not self.multiplexer else ("term:report",)
        return (*writes, *_UNVERIFIABLE, *reports, *sync, *events)

    def shows(self, kind: str) -> bool:
        """Whether the terminal shows pictures of this format."""
        return self.kitty if kind in KITTY_FORMATS else self.iterm


def first_findings(reply: bytes | None, environ: Mapping[str, str]) -> ProbeFindings:
    """Read the reply to `FIRST_PROBE`, None if there was none."""
    within = any(environ.get(name) for name in ("TMUX", "STY", "ZELLIJ"))
    within = within or environ.get("TERM", "").startswith(("screen", "tmux"))
    if not reply:
        return ProbeFindings(multiplexer=within)
    found, version = _ATTRIBUTES.search(reply), _VERSION.search(reply)
    attributes = found[1].split(b";") if found else []
    name = version[1].decode() if version else ""
    return ProbeFindings(
        answered=True,
        attributes=frozenset(int(one) for one in attributes if one and len(one) < 6),
        version=name,
        multiplexer=within or name.lower().startswith(_MULTIPLEXERS),
    )


def second_findings(findings: ProbeFindings, reply: bytes | None) -> ProbeFindings:
    """Add the reply to `SECOND_PROBE`, None if there was none."""
    reply = reply or b""
    return ProbeFindings(
        findings.answered,
        findings.attributes,
        findings.version,
        findings.multiplexer,
        kitty=_KITTY.search(reply) is not None,
        iterm=_CELL_SIZE in reply,
        modes={int(found[1]): int(found[2]) for found in _MODE.finditer(reply)},
    )
