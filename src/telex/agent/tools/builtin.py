"""Our own tools, in the order in which they are offered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from telex.agent.tools.cached import CACHED, CACHED_GREP, CACHED_LINE
from telex.agent.tools.changing import EDIT, WRITE
from telex.agent.tools.listing import LIST
from telex.agent.tools.reading import READ, READ_LINE
from telex.agent.tools.searching import SEARCH
from telex.agent.tools.shell import SHELL
from telex.agent.tools.todo import TODO

if TYPE_CHECKING:
    from telex.agent.tools.tool import Tool

BUILTIN: Final[tuple[Tool[Any], ...]] = (
    *(READ, READ_LINE, WRITE, EDIT, SEARCH, LIST, SHELL, TODO),
    *(CACHED, CACHED_LINE, CACHED_GREP),
)
