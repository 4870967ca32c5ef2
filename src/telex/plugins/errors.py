"""Exceptions of plugins. The message of each names the plugin, what happened, and a remedy.

    PluginError                any of the following
    ├── PluginNotStarted       the executable did not start
    ├── PluginHandshakeFailed  the handshake or `initialize` failed
    ├── PluginEnded            the plugin has ended or is being ended; a call has no result
    ├── PluginSuspended        the plugin failed too often and is not started for a while
    ├── PluginErrorReply       the plugin answered a call with an error; has its code and data
    ├── PluginTimedOut         the plugin did not answer in time; it can be called again
    └── PluginBadResult        the result is not of the expected type

Raised by `client` and `supervisor`. `code` is the protocol's number for the condition.
"""

from __future__ import annotations

from typing import Final

from telex.plugins import protocol as spec

BUFFERED: Final = "its standard output may be buffered until it exits: it must flush each message"


def seconds(time: float) -> str:
    """Return a time for a message, rounded to 10 ms, and below 0.1 s to 1 ms."""
    return f"{round(time, 2 if time >= 0.1 else 3):g} s"


class PluginError(Exception):
    """A plugin failed. `what` is the predicate of the message, and `hint` a remedy."""

    code: int = -32603

    def __init__(self, plugin: str, what: str, hint: str = "") -> None:
        self.plugin, self.what, self.hint = plugin, what, hint
        self.reason = f"{what}; {hint}" if hint else what
        """The message without the plugin's name, for a message that has the name already."""
        super().__init__(f"the plugin {plugin} {self.reason}")


class PluginNotStarted(PluginError):
    """The executable did not start, or must not be run."""


class PluginHandshakeFailed(PluginError):
    """The answer to `handshake` is missing or invalid, or `initialize` failed."""

    code = spec.HANDSHAKE


class PluginEnded(PluginError):
    """The plugin has ended, or is being ended."""


class PluginSuspended(PluginError):
    """The plugin failed too often within PLUGIN_WINDOW_SECONDS, and is not started for a while."""


class PluginErrorReply(PluginError):
    """The plugin answered a call with an error."""

    def __init__(
        self,
        plugin: str,
        method: str,
        number: int,
        message: str,
        data: object,
        protocol: str = spec.PROTOCOL_A,
    ) -> None:
        """`number` is the code that the plugin sent; `code` is its meaning in that generation."""
        super().__init__(plugin, f"answered {method} with an error: {message} ({number})")
        self.method, self.message, self.data = method, message, data
        self.code = spec.condition_of(number, protocol)


class PluginTimedOut(PluginError):
    """The plugin did not answer in time. The connection stays usable."""

    code = spec.TIMED_OUT


class PluginBadResult(PluginError):
    """The result of a call is invalid, or not of the expected type."""
