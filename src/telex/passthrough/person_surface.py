"""The person's terminal as the surface of JSON escapes, and what it can do.

A program's reports are queried from the person's terminal itself: it has the colours, the cursor
and the clipboard; a model of it has at best the cursor.

What the terminal can do is probed once, when it first matters, by two queries, each between marks
(`query_replies`). The first is harmless anywhere: what are you, and what are you called? The second
asks for pictures and modes. It is not put to a multiplexer, which shows no pictures of ours and
takes kitty's query for a title; nor to a terminal that did not answer the first.

What a terminal cannot be asked about (whether it obeys OSC 52, whether it shows notifications) is
reported as `unverified`. The clipboard is not read to find out: it is the person's, and their
terminal may ask them.
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


AskTerminal = Callable[[bytes], Awaitable[bytes | None]]
"""Sends a question now, whenever its answer is awaited; None if none comes."""

UNKNOWN_SECONDS: Final = 3.0
"""For the clipboard of a terminal that does not say whether it tells it."""
_NO_CLIPBOARD: Final = "The person's terminal does not tell what is on its clipboard."
_NO_REPORT: Final = "The person's terminal does not report this."
_NO_PICTURES: Final = "The person's terminal does not show such pictures."
_SELECTIONS: Final = {"clipboard": b"c", "primary": b"p"}
_CLIP: Final = re.compile(rb"\x1b\]52;[a-z0-9]*;([A-Za-z0-9+/=]*)")


class PersonSurface:
    """The surface of one person's terminal."""

    def __init__(
        self,
        show: Callable[[bytes], None],
        size: Callable[[], Size],
        ask: AskTerminal | None,
        others: Mapping[str, SurfaceHandler],
    ) -> None:
        """`ask` is None where there is no terminal to ask. `others` are done without one."""
        self._show, self._size, self._ask = show, size, ask
        self._findings = ProbeFindings()
        self._known = ask is None
        self._probing: asyncio.Task[None] | None = None
        asked: Mapping[str, SurfaceHandler] = {} if ask is None else {"clip:read": self._clipboard}
        self.handlers: Mapping[str, SurfaceHandler] = {**others, **asked}

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
        """Whoever asks first has it done, and the others wait for it."""
        if self._probing is None:
            self._probing = asyncio.create_task(self._probe())
        await asyncio.shield(self._probing)

    async def _probe(self) -> None:
        assert self._ask is not None  # else there is nothing to find out
        began = asyncio.get_running_loop().time()
        said = await self._ask(FIRST_PROBE)
        if said is None and asyncio.get_running_loop().time() < began + ANSWER_SECONDS / 2:
            self._probing = None  # it could not be asked now; the next time
            return
        findings = first_findings(said, os.environ)
        if findings.answered and not findings.multiplexer:
            findings = second_findings(findings, await self._ask(SECOND_PROBE))
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
            case ClipRead() if self._findings.tells_clipboard is False:
                return unsupported(_NO_CLIPBOARD)
            case _:
                return None

    def apply(self, ansi: bytes) -> None:
        self._show(ansi)

    @property
    def size(self) -> Size:
        return self._size()

    @property
    def title(self) -> str | None:
        """Only the person's window knows."""
        return None

    def report(self, what: str, asked: TermReport | QueryMode) -> object:
        if isinstance(asked, TermReport) and asked.what == "size-cells":
            return TermReported(rows=self.size.rows, cols=self.size.cols)
        if self._ask is None:
            raise unsupported(_NO_REPORT)
        # Asked before anything that follows in the output is shown; awaited by whoever asked.
        return _reported(asked, self._ask(core.report_question(asked)))

    def set_modes(self, numbers: frozenset[int]) -> None:
        """`listeners` does that, which knows of the program's own."""

    async def _clipboard(self, asked: ClipRead, call: CallContext) -> ClipText:
        assert self._ask is not None  # else it is not among the others
        answer = self._ask(b"\x1b]52;%b;?\x1b\\" % _SELECTIONS[asked.selection])
        # One that is known to tell it may ask its user first; of others nobody knows.
        known = self._findings.tells_clipboard
        try:
            async with asyncio.timeout(None if known else UNKNOWN_SECONDS):
                said = await answer
        except TimeoutError:
            said = None
        found = _CLIP.search(said or b"")
        self._findings = replace(self._findings, told_clipboard=found is not None)
        if found is None:
            raise unsupported(_NO_CLIPBOARD)
        try:
            data = binascii.a2b_base64(found[1], strict_mode=True)
        except binascii.Error:
            raise unsupported(_NO_CLIPBOARD) from None
        return ClipText(data.decode("utf-8", "replace"))


async def _reported(asked: TermReport | QueryMode, said: Awaitable[bytes | None]) -> object:
    answer = core.report_answer(asked, await said or b"")
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
"""The attribute by which a terminal says that programs may use its clipboard."""
_TELLS_CLIPBOARD: Final = ("kitty", "iTerm2", "foot", "ghostty", "contour")
"""Terminals that answer OSC 52, some of them after they have asked their user."""
_WRITES_ONLY: Final = ("WezTerm",)
_MULTIPLEXERS: Final = ("tmux", "screen", "zellij")
_NEVER: Final = (0, 4)
"""How DECRQM says that a mode is not known, or that it cannot be set."""
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
    """What was found; without any answer, nothing is known."""

    answered: bool = False
    attributes: frozenset[int] = frozenset()
    version: str = ""
    multiplexer: bool = False
    kitty: bool = False
    """Whether it shows pictures by kitty's protocol."""
    iterm: bool = False
    """The same by iTerm2's."""
    modes: Mapping[int, int] = field(default_factory=dict)
    """What it said of each mode, where it said anything."""
    told_clipboard: bool | None = None
    """Whether it was asked for its clipboard, and told it."""

    @property
    def tells_clipboard(self) -> bool | None:
        """None if that is not known: it may be tried."""
        if self.told_clipboard is not None:
            return self.told_clipboard
        if not self.answered or self.multiplexer or self.version.startswith(_WRITES_ONLY):
            return False
        known = _CLIPBOARD in self.attributes or self.version.startswith(_TELLS_CLIPBOARD)
        return True if known else None

    @property
    def lacks(self) -> frozenset[str]:
        """Commands and events that it does not have, or that nobody has seen it have."""
        lacks = set() if self.kitty or self.iterm else set(PICTURES)
        if not self.tells_clipboard:
            lacks.add(READ)
        if self.modes.get(2026) in _NEVER:
            lacks.add("term:sync")
        for event in EVENTS.values():
            if any(self.modes.get(mode) in _NEVER for mode in event.modes):
                lacks.add(event.name)
        return frozenset(lacks)

    @property
    def unverified(self) -> tuple[str, ...]:
        """What is passed on to it, and nobody knows to what effect."""
        known = self.tells_clipboard or (_CLIPBOARD in self.attributes and not self.multiplexer)
        writes = () if known else ("clip:write",)
        sync = () if 2026 in self.modes else ("term:sync",)
        events = tuple(
            event.name for event in EVENTS.values() if not self.modes.keys() >= {*event.modes}
        )
        reports = () if self.answered and not self.multiplexer else ("term:report",)
        return (*writes, *_UNVERIFIABLE, *reports, *sync, *events)

    def shows(self, kind: str) -> bool:
        """Whether it shows pictures of this format."""
        return self.kitty if kind in KITTY_FORMATS else self.iterm


def first_findings(said: bytes | None, environ: Mapping[str, str]) -> ProbeFindings:
    """From the answer to `FIRST_PROBE`; None if there was none."""
    within = any(environ.get(name) for name in ("TMUX", "STY", "ZELLIJ"))
    within = within or environ.get("TERM", "").startswith(("screen", "tmux"))
    if not said:
        return ProbeFindings(multiplexer=within)
    found, version = _ATTRIBUTES.search(said), _VERSION.search(said)
    attributes = found[1].split(b";") if found else []
    name = version[1].decode() if version else ""
    return ProbeFindings(
        answered=True,
        attributes=frozenset(int(one) for one in attributes if one and len(one) < 6),
        version=name,
        multiplexer=within or name.lower().startswith(_MULTIPLEXERS),
    )


def second_findings(findings: ProbeFindings, said: bytes | None) -> ProbeFindings:
    """With the answer to `SECOND_PROBE`."""
    said = said or b""
    return ProbeFindings(
        findings.answered,
        findings.attributes,
        findings.version,
        findings.multiplexer,
        kitty=_KITTY.search(said) is not None,
        iterm=_CELL_SIZE in said,
        modes={int(found[1]): int(found[2]) for found in _MODE.finditer(said)},
    )
