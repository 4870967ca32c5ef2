"""The person's terminal as what JSON escapes act on.

What it can do it is asked (`terminal_probe`), when somebody first wants to know. What a program
wants to know is asked of the person's terminal itself. It has the colours, the cursor and the
clipboard; a model of it has at best the cursor.
"""

from __future__ import annotations

import asyncio
import binascii
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from telex.escapes import reporting
from telex.escapes.surface import unsupported
from telex.host import terminal_probe
from telex.host.asking import ANSWER_SECONDS
from telex.host.terminal_probe import Findings
from telex.protocols.json_escapes import (
    ATTRIBUTE,
    ClipRead,
    ClipText,
    ImageDelete,
    ImageShow,
    Report,
    Reported,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.escapes.surface import Other
    from telex.protocols.json_escapes import QueryMode
    from telex.rpc.errors import RpcError
    from telex.rpc.handler_tasks import Call
    from telex.terminal.cells import Size

Ask = Callable[[bytes], Awaitable[bytes | None]]
"""Sends a question now, whenever its answer is awaited; None if none comes."""

UNKNOWN_SECONDS: Final = 3.0
"""For the clipboard of a terminal that does not say whether it tells it."""
_NO_CLIPBOARD: Final = "The person's terminal does not tell what is on its clipboard."
_NO_PICTURES: Final = "The person's terminal does not show such pictures."
_SELECTIONS: Final = {"clipboard": b"c", "primary": b"p"}
_CLIP: Final = re.compile(rb"\x1b\]52;[a-z0-9]*;([A-Za-z0-9+/=]*)")


class PersonSurface:
    """One of them."""

    def __init__(
        self,
        show: Callable[[bytes], None],
        size: Callable[[], Size],
        ask: Ask | None,
        others: Mapping[str, Other],
    ) -> None:
        """`ask` is None where there is no terminal to ask. `others` are done without one."""
        self._show, self._size, self._ask = show, size, ask
        self._findings = Findings()
        self._known = ask is None
        self._probing: asyncio.Task[None] | None = None
        asked: Mapping[str, Other] = {} if ask is None else {"clip:read": self._clipboard}
        self.others: Mapping[str, Other] = {**others, **asked}

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
        said = await self._ask(terminal_probe.FIRST)
        if said is None and asyncio.get_running_loop().time() < began + ANSWER_SECONDS / 2:
            self._probing = None  # it could not be asked now; the next time
            return
        findings = terminal_probe.first(said, os.environ)
        if findings.answered and not findings.multiplexer:
            findings = terminal_probe.second(findings, await self._ask(terminal_probe.SECOND))
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

    def report(self, what: str, asked: Report | QueryMode) -> object:
        if isinstance(asked, Report) and asked.what == "size-cells":
            return Reported(rows=self.size.rows, cols=self.size.cols)
        if self._ask is None:
            raise unsupported()
        # Asked before anything that follows in the output is shown; awaited by whoever asked.
        return _reported(asked, self._ask(reporting.question(asked)))

    def set_modes(self, numbers: frozenset[int]) -> None:
        """`listeners` does that, which knows of the program's own."""

    async def _clipboard(self, asked: ClipRead, call: Call) -> ClipText:
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


async def _reported(asked: Report | QueryMode, said: Awaitable[bytes | None]) -> object:
    answer = reporting.answer(asked, await said or b"")
    if answer is None:
        raise unsupported()
    if isinstance(asked, Report) and asked.what == "attributes" and isinstance(answer, Reported):
        told = answer.attributes if isinstance(answer.attributes, tuple) else ()
        return msgspec.structs.replace(answer, attributes=(*told, ATTRIBUTE))
    return answer
