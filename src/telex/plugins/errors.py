"""What can be wrong with a plugin, as exceptions: each says which plugin, what happened, and what
may help, in one sentence.

    PluginError                one of the following
    ├── PluginNotStarted       the executable did not run
    ├── PluginHandshakeFailed  it ran, and the handshake or the initialisation came to nothing
    ├── PluginEnded            it has ended, or is being ended; a call has no answer
    ├── PluginSuspended        it failed too often lately, and is not started for a while
    ├── PluginErrorReply       it answered a call with an error, whose code and data are here
    ├── PluginTimedOut         it did not answer in time, and may be asked again
    └── PluginBadResult        its answer is not of the type that was asked for

Raised by `client` and `supervisor`. `code` is the protocol's number for the condition.
"""

from __future__ import annotations

from typing import Final

from telex.plugins import protocol as spec

BUFFERED: Final = "its standard output may be buffered until it ends: it has to flush each message"


def seconds(time: float) -> str:
    """For a sentence. What is left of a second is not told to the microsecond."""
    return f"{round(time, 2 if time >= 0.1 else 3):g} s"


class PluginError(Exception):
    """Something is wrong with a plugin."""

    code: int = -32603

    def __init__(self, plugin: str, what: str, hint: str = "") -> None:
        self.plugin, self.what, self.hint = plugin, what, hint
        self.reason = f"{what}; {hint}" if hint else what
        """The sentence without the plugin's name, for one that has it already."""
        super().__init__(f"the plugin {plugin} {self.reason}")


class PluginNotStarted(PluginError):
    """The executable did not run."""


class PluginHandshakeFailed(PluginError):
    """It did not say, or said wrongly, what it is; or it did not take its configuration."""

    code = spec.HANDSHAKE


class PluginEnded(PluginError):
    """It has ended, or is being ended."""


class PluginSuspended(PluginError):
    """It failed too often lately."""


class PluginErrorReply(PluginError):
    """It answered with an error."""

    def __init__(
        self,
        plugin: str,
        method: str,
        number: int,
        message: str,
        data: object,
        protocol: str = spec.PROTOCOL_A,
    ) -> None:
        """`number` is the error's code as it came; `code` is what its generation means by it."""
        super().__init__(plugin, f"answered {method} with an error: {message} ({number})")
        self.method, self.message, self.data = method, message, data
        self.code = spec.condition_of(number, protocol)


class PluginTimedOut(PluginError):
    """It did not answer in time. The connection stays usable."""

    code = spec.TIMED_OUT


class PluginBadResult(PluginError):
    """It answered with something of another type."""
