"""The person's terminal as what JSON escapes act on.

What a program wants to know is asked of the person's terminal itself. It has the colours, the
cursor and the clipboard; a model of it has at best the cursor.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec

from telex.escapes import reporting
from telex.escapes.surface import unsupported
from telex.protocols.json_escapes import ATTRIBUTE, ClipRead, ClipText, Report, Reported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.escapes.surface import Other
    from telex.protocols.json_escapes import QueryMode
    from telex.rpc.serving import Call
    from telex.terminal.cells import Size

Ask = Callable[[bytes], Awaitable[bytes | None]]
"""Sends a question now, whenever its answer is awaited; None if none comes."""

_SELECTIONS: Final = {"clipboard": b"c", "primary": b"p"}
_CLIP: Final = re.compile(rb"\x1b\]52;[a-z0-9]*;([A-Za-z0-9+/=]*)")


class PersonSurface:
    """One of them."""

    lacks: Final[frozenset[str]] = frozenset()

    def __init__(
        self,
        show: Callable[[bytes], None],
        size: Callable[[], Size],
        ask: Ask | None,
        others: Mapping[str, Other],
    ) -> None:
        """`ask` is None where there is no terminal to ask. `others` are done without one."""
        self._show, self._size, self._ask = show, size, ask
        asked: Mapping[str, Other] = {} if ask is None else {"clip:read": self._clipboard}
        self.others: Mapping[str, Other] = {**others, **asked}

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
        said = await self._ask(b"\x1b]52;%b;?\x1b\\" % _SELECTIONS[asked.selection])
        found = _CLIP.search(said or b"")
        if found is None:
            raise unsupported()
        try:
            data = binascii.a2b_base64(found[1], strict_mode=True)
        except binascii.Error:
            raise unsupported() from None
        return ClipText(data.decode("utf-8", "replace"))


async def _reported(asked: Report | QueryMode, said: Awaitable[bytes | None]) -> object:
    answer = reporting.answer(asked, await said or b"")
    if answer is None:
        raise unsupported()
    if isinstance(asked, Report) and asked.what == "attributes" and isinstance(answer, Reported):
        told = answer.attributes if isinstance(answer.attributes, tuple) else ()
        return msgspec.structs.replace(answer, attributes=(*told, ATTRIBUTE))
    return answer
