"""telex: drive any terminal program from code, and read what it shows.

    with telex.spawn("python3 -q") as term:
        term.wait(">>> ")
        mark = term.type("print(6 * 7)\\n")
        term.wait("42", since=mark)

The public names are those of `__all__`, and docs/reference/python.md describes each. They are
loaded when they are first used, so that `import telex` costs nothing. Everything else is private
and may change. `docs/explain/architecture.md` describes the packages.
"""

from __future__ import annotations

from telex.version import __version__ as __version__

TYPE_CHECKING = False  # not from `typing`, whose import takes as long as starting Python
if TYPE_CHECKING:
    from typing import Any

    from telex import agent as agent
    from telex import escapes as escapes
    from telex import htty as htty
    from telex import match as match
    from telex import plugins as plugins
    from telex import recordings as recordings
    from telex.adapters.client import AsyncAdapted as AsyncAdapted
    from telex.adapters.client import adapt as adapt
    from telex.adapters.sync import Adapted as Adapted
    from telex.adapters.terminal_spawn import spawn as spawn
    from telex.automation.attachments import AsyncAttachment as AsyncAttachment
    from telex.automation.attachments import Attachment as Attachment
    from telex.automation.caller import OutputChunk as OutputChunk
    from telex.automation.client import AsyncServer as AsyncServer
    from telex.automation.client import AsyncTerminal as AsyncTerminal
    from telex.automation.client import connect as connect
    from telex.automation.errors import Ambiguous as Ambiguous
    from telex.automation.errors import Cancelled as Cancelled
    from telex.automation.errors import NotFound as NotFound
    from telex.automation.errors import NotPermitted as NotPermitted
    from telex.automation.errors import NotStarted as NotStarted
    from telex.automation.errors import PluginFailed as PluginFailed
    from telex.automation.errors import RecordingLost as RecordingLost
    from telex.automation.errors import Refused as Refused
    from telex.automation.errors import ServerGone as ServerGone
    from telex.automation.errors import SessionClosed as SessionClosed
    from telex.automation.errors import SessionProblem as SessionProblem
    from telex.automation.errors import TimedOut as TimedOut
    from telex.automation.locators import AsyncLocator as AsyncLocator
    from telex.automation.locators import Locator as Locator
    from telex.automation.portal import DualContext as DualContext
    from telex.automation.portal import OpenedTwice as OpenedTwice
    from telex.automation.protocol import Matched as Matched
    from telex.automation.protocol import ScreenLink as ScreenLink
    from telex.automation.protocol import ScreenPalette as ScreenPalette
    from telex.automation.protocol import ScreenSnapshot as ScreenSnapshot
    from telex.automation.protocol import SessionInput as SessionInput
    from telex.automation.screen_search import Found as Found
    from telex.automation.sync import Server as Server
    from telex.automation.sync import Terminal as Terminal
    from telex.rpc.identity import Identity as Identity
    from telex.terminal.cells import Region as Region
    from telex.terminal.input_state import InputState as InputState
    from telex.transports.errors import AccessDenied as AccessDenied
    from telex.transports.errors import CannotConnect as CannotConnect
    from telex.transports.errors import NoServer as NoServer

_MODULES = {
    "AccessDenied": "telex.transports.errors",
    "Adapted": "telex.adapters.sync",
    "Ambiguous": "telex.automation.errors",
    "AsyncAdapted": "telex.adapters.client",
    "AsyncAttachment": "telex.automation.attachments",
    "AsyncLocator": "telex.automation.locators",
    "AsyncServer": "telex.automation.client",
    "AsyncTerminal": "telex.automation.client",
    "Attachment": "telex.automation.attachments",
    "Cancelled": "telex.automation.errors",
    "CannotConnect": "telex.transports.errors",
    "DualContext": "telex.automation.portal",
    "Found": "telex.automation.screen_search",
    "Identity": "telex.rpc.identity",
    "InputState": "telex.terminal.input_state",
    "Locator": "telex.automation.locators",
    "Matched": "telex.automation.protocol",
    "NoServer": "telex.transports.errors",
    "NotFound": "telex.automation.errors",
    "NotPermitted": "telex.automation.errors",
    "NotStarted": "telex.automation.errors",
    "OpenedTwice": "telex.automation.portal",
    "OutputChunk": "telex.automation.caller",
    "PluginFailed": "telex.automation.errors",
    "RecordingLost": "telex.automation.errors",
    "Refused": "telex.automation.errors",
    "Region": "telex.terminal.cells",
    "ScreenLink": "telex.automation.protocol",
    "ScreenPalette": "telex.automation.protocol",
    "ScreenSnapshot": "telex.automation.protocol",
    "Server": "telex.automation.sync",
    "ServerGone": "telex.automation.errors",
    "SessionClosed": "telex.automation.errors",
    "SessionInput": "telex.automation.protocol",
    "SessionProblem": "telex.automation.errors",
    "Terminal": "telex.automation.sync",
    "TimedOut": "telex.automation.errors",
    "adapt": "telex.adapters.client",
    "connect": "telex.automation.client",
    "spawn": "telex.adapters.terminal_spawn",
}
"""The module of each public name, imported when the name is first used."""

_PACKAGES = ("agent", "escapes", "htty", "match", "plugins", "recordings")
"""Public modules."""

__all__ = sorted([*_MODULES, *_PACKAGES, "__version__"])


def __getattr__(name: str) -> Any:
    import importlib

    if name in _PACKAGES:
        return importlib.import_module(f"telex.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'telex' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
