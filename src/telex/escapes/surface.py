"""What the terminal's side acts on: a terminal that shows a program, whoever's it is.

There are two: a session's own screen (`session_side`), and the person's terminal under `telex run`.
The service knows nothing else of either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from telex.protocols.json_escapes import ECUNSUP
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from telex.protocols.json_escapes import QueryMode, Report
    from telex.terminal.cells import Size

Other = Callable[..., Any]
"""Given the payload and the `Call`: a function, a coroutine function, or an async generator."""


class Surface(Protocol):
    """Where commands take effect."""

    def apply(self, ansi: bytes) -> None:
        """Do this, now: after all that the program printed before, and before all that follows."""
        ...

    @property
    def size(self) -> Size: ...

    @property
    def title(self) -> str | None:
        """What the window is called. Never told to a program, which may have chosen it."""
        ...

    def report(self, what: str, asked: Report | QueryMode) -> Any:
        """The answer to `term:report` or `term:querymode`, which is `what`; or an awaitable of it,
        where it takes time. Raises `unsupported()` where there is none."""
        ...

    def set_modes(self, numbers: frozenset[int]) -> None:
        """Have these private modes set as well, for events, and no others."""
        ...

    @property
    def lacks(self) -> frozenset[str]:
        """Commands that are output, and yet change nothing here, and events that nobody tells; all
        that is known of it once `probe` is done."""
        ...

    @property
    def unverified(self) -> tuple[str, ...]:
        """Commands and events, or globs of them, that are passed on to whatever effect."""
        ...

    @property
    def probe(self) -> Callable[[], Awaitable[None]] | None:
        """Finds out what there is; None once that is known."""
        ...

    def refusal(self, asked: Any) -> RpcError | None:
        """Why this cannot be done here, if that is known: its payload tells what it is."""
        ...

    @property
    def others(self) -> Mapping[str, Other]:
        """How commands are done here that are no output: `clip:read`, files. By name."""
        ...


def unsupported(why: str = "This terminal cannot do that.") -> RpcError:
    """A known command that cannot be done here. The sentence is ours, and fixed."""
    return RpcError(ECUNSUP, why)
