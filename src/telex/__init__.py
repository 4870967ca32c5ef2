"""telex: any terminal program, with an answer back.

    with telex.spawn("python3 -q") as term:
        term.wait(">>> ")
        mark = term.type("print(6 * 7)\n")
        term.wait("42", since=mark)

The public names are few and loaded when first used, so that `import telex` costs nothing.
`docs/explain/architecture.md` walks through the packages; `docs/explain/words.md` has the words.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from telex.version import __version__

if TYPE_CHECKING:
    from telex import escapes as escapes
    from telex import match as match
    from telex.adapters.client import Adapted as Adapted
    from telex.adapters.client import adapt as adapt
    from telex.adapters.terminal_spawn import spawn as spawn
    from telex.automation.client import Server as Server
    from telex.automation.client import Terminal as Terminal
    from telex.automation.client import connect as connect
    from telex.automation.errors import NotPermitted as NotPermitted
    from telex.automation.errors import NotStarted as NotStarted
    from telex.automation.errors import PluginFailed as PluginFailed
    from telex.automation.errors import RecordingLost as RecordingLost
    from telex.automation.errors import Refused as Refused
    from telex.automation.errors import ServerGone as ServerGone
    from telex.automation.errors import SessionClosed as SessionClosed
    from telex.automation.errors import SessionProblem as SessionProblem
    from telex.automation.errors import TimedOut as TimedOut
    from telex.transports.errors import CannotConnect as CannotConnect

_PLACES = {
    "Adapted": "telex.adapters.client",
    "CannotConnect": "telex.transports.errors",
    "NotPermitted": "telex.automation.errors",
    "NotStarted": "telex.automation.errors",
    "PluginFailed": "telex.automation.errors",
    "RecordingLost": "telex.automation.errors",
    "Refused": "telex.automation.errors",
    "Server": "telex.automation.client",
    "ServerGone": "telex.automation.errors",
    "SessionClosed": "telex.automation.errors",
    "SessionProblem": "telex.automation.errors",
    "Terminal": "telex.automation.client",
    "TimedOut": "telex.automation.errors",
    "adapt": "telex.adapters.client",
    "connect": "telex.automation.client",
    "spawn": "telex.adapters.terminal_spawn",
}

__all__ = [
    "Adapted",
    "CannotConnect",
    "NotPermitted",
    "NotStarted",
    "PluginFailed",
    "RecordingLost",
    "Refused",
    "Server",
    "ServerGone",
    "SessionClosed",
    "SessionProblem",
    "Terminal",
    "TimedOut",
    "__version__",
    "adapt",
    "connect",
    "escapes",
    "match",
    "spawn",
]


def __getattr__(name: str) -> Any:
    if name in ("escapes", "match"):
        return importlib.import_module(f"telex.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'telex' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
