"""Settings of a host for all its plugins: environment, callbacks and deadlines. Data only."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.plugins import errors, limits, restrictions
from telex.processes.child_environment import child_environment
from telex.redaction import Redactor

if TYPE_CHECKING:
    from telex.plugins import protocol as spec
    from telex.plugins.discovery import FoundPlugin
    from telex.rpc.methods import Methods

COOKIE: Final = "TELEX_PLUGIN_COOKIE"
"""Set in a plugin's environment by a host. A plugin that a person starts directly does not have
it."""

_PASSED_ON: Final = frozenset(
    ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
)
_PASSED_ON_FAMILIES: Final = ("LC_", "XDG_")


_REDACTOR: Final = Redactor()
"""Shared by all settings, because its patterns are compiled once."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for each step of a plugin's life."""

    handshake: float = limits.PLUGIN_HANDSHAKE_SECONDS
    initialize: float = limits.PLUGIN_INITIALIZE_SECONDS
    shutdown: float = limits.PLUGIN_SHUTDOWN_SECONDS
    exit: float = limits.PLUGIN_EXIT_SECONDS
    stdin: float = limits.PLUGIN_STDIN_SECONDS
    term: float = limits.PLUGIN_TERM_SECONDS


@dataclass(frozen=True, slots=True)
class CallDeadline:
    """The point in time when a call has failed. `None` is no deadline.

    `of` creates one from seconds, or returns the one it is given. So each function of a chain of
    calls takes a `timeout`, and only the first of them starts the clock.
    """

    seconds: float | None
    at: float | None

    @classmethod
    def of(cls, timeout: float | CallDeadline | None) -> CallDeadline:
        if isinstance(timeout, CallDeadline):
            return timeout
        at = None if timeout is None else asyncio.get_running_loop().time() + timeout
        return cls(timeout, at)

    def clock(self) -> asyncio.Timeout:
        return asyncio.timeout_at(self.at)

    def missed(self, plugin: str, what: str, hint: str) -> errors.PluginTimedOut:
        """Return the error for a clock that expired. `what` is the verb: `did not answer work`."""
        seconds = errors.seconds(self.seconds or 0)
        return errors.PluginTimedOut(plugin, f"{what} within {seconds}", hint)


def _write_to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _no_values(found: FoundPlugin, introduced: spec.Introduced) -> list[spec.KeyValue]:
    return []


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The settings of a host, the same for each of its plugins."""

    on_stderr_line: Callable[[str], None] = _write_to_stderr
    """Called with each line of a plugin's standard error, as `[name] line`. Must not block."""
    config: Callable[[FoundPlugin, spec.Introduced], list[spec.KeyValue]] = _no_values
    """Returns the values for `initialize`, for the entries that the handshake declared."""
    methods: Methods | None = None
    """Methods of the host that plugins may call, besides `log` and `$/progress`."""
    command: Callable[[FoundPlugin], Sequence[str]] = restrictions.restricted_command
    """Returns the command to run: by default the shim, which restricts itself and executes the
    plugin."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The host's environment. A plugin gets only some of its variables."""
    cwd: str | None = None
    redactor: Redactor = _REDACTOR
    deadlines: Deadlines = Deadlines()


def plugin_environment(found: FoundPlugin, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a plugin's environment: the variables every program needs, those in `needs.env` of its
    manifest, and the cookie."""
    needs = found.manifest.needs if found.manifest else None
    wanted = _PASSED_ON.union((needs.env if needs else None) or ())
    kept = {
        name: value
        for name, value in child_environment(environ).items()
        if name in wanted or name.startswith(_PASSED_ON_FAMILIES)
    }
    # Bytecode files beside a project's plugin would change the directory that was trusted. And with
    # an umask that lets the group write, `discovery` would refuse the plugin the next time.
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", COOKIE: secrets.token_hex(16)}
