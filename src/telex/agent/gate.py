"""What a connection is served: nothing but `initialize` before it, and afterwards everything else.

A table like another (`rpc.methods`), of which each connection has its own, in front of the one that
all share. Names that the spec keeps free for later are refused with a hint (§8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.protocols.agent_ui.codes import RESERVED_NAMESPACES
from telex.rpc.errors import Condition, Problem, RpcError
from telex.rpc.methods import Method, Methods

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST: Final = "initialize"
_HINTS: Final = {
    "shell": "`shell.exec` is there",
    "todos": "the tool `todo` keeps the list, and `todos.update` tells of it",
    "history": "`session.list` and `session.history` are there",
    "workspace": "the tools `list`, `read` and `search` are there, by `tool.call`",
    "artifact": "the tool `tool_output_cache` has long outputs, by `tool.call`",
}


class Gate(Methods):
    """`is_open` says whether `initialize` came."""

    def __init__(self, behind: Methods, is_open: Callable[[], bool]) -> None:
        super().__init__()
        self._behind = behind
        self._is_open = is_open

    def get(self, name: str) -> Method | None:
        if self._is_open() == (name == FIRST):
            again = "once, and it has been" if self._is_open() else f"after {FIRST!r}"
            return _refusing(name, Problem.of(Condition.REQUEST, f"{name!r} may come {again}."))
        if (found := self._behind.get(name)) is not None:
            return found
        namespace = name.partition(".")[0]
        if namespace in RESERVED_NAMESPACES:
            hint = f"{namespace}.* is kept for later; {_HINTS[namespace]}."
            return _refusing(name, self.unknown(name, hint))
        return None

    def unknown(self, name: str, detail: str = "") -> Problem:
        return self._behind.unknown(name, detail)


def _refusing(name: str, problem: Problem) -> Method:
    def refuse() -> None:
        raise RpcError.carrying(problem)

    table = Methods()
    table.add(name, refuse)
    found = table.get(name)
    assert found is not None
    return found
