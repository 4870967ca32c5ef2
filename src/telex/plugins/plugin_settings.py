"""How plugins are run: what the host gives them, and how long each step may take. Data only."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.plugins import limits, restrictions
from telex.processes.child_environment import child_environment
from telex.redaction import Redactor

if TYPE_CHECKING:
    from telex.plugins import protocol as spec
    from telex.plugins.discovery import FoundPlugin
    from telex.rpc.methods import Methods

COOKIE: Final = "TELEX_PLUGIN_COOKIE"
"""A plugin finds it in its environment when a host started it, and not when a person did."""

_PASSED_ON: Final = frozenset(
    ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
)
_PASSED_ON_FAMILIES: Final = ("LC_", "XDG_")


_REDACTOR: Final = Redactor()
"""One for all: what it looks for is compiled once."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for each step of a plugin's life."""

    handshake: float = limits.PLUGIN_HANDSHAKE_SECONDS
    initialize: float = limits.PLUGIN_INITIALIZE_SECONDS
    shutdown: float = limits.PLUGIN_SHUTDOWN_SECONDS
    exit: float = limits.PLUGIN_EXIT_SECONDS
    stdin: float = limits.PLUGIN_STDIN_SECONDS
    term: float = limits.PLUGIN_TERM_SECONDS


def _on_our_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _no_values(found: FoundPlugin, introduced: spec.Introduced) -> list[spec.KeyValue]:
    return []


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The same for every plugin of a host."""

    on_stderr_line: Callable[[str], None] = _on_our_stderr
    """Gets each line of a plugin's standard error, as `[name] line`. Must not block."""
    config: Callable[[FoundPlugin, spec.Introduced], list[spec.KeyValue]] = _no_values
    """The values a plugin is initialised with, once it is known which it takes."""
    methods: Methods | None = None
    """What plugins may ask of the host. `log` and `$/progress` are there already."""
    command: Callable[[FoundPlugin], Sequence[str]] = restrictions.restricted_command
    """What is run: something that restricts itself and becomes the executable."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The host's environment, of which plugins get little."""
    cwd: str | None = None
    redactor: Redactor = _REDACTOR
    deadlines: Deadlines = Deadlines()


def plugin_environment(found: FoundPlugin, environ: Mapping[str, str]) -> dict[str, str]:
    """What a plugin gets: what every program needs, what its manifest asks for, and the cookie."""
    needs = found.manifest.needs if found.manifest else None
    wanted = _PASSED_ON.union((needs.env if needs else None) or ())
    kept = {
        name: value
        for name, value in child_environment(environ).items()
        if name in wanted or name.startswith(_PASSED_ON_FAMILIES)
    }
    # What Python would write beside a project's is a change nobody agreed to; and where our group
    # may write what we make, `discovery` would refuse the plugin the next time.
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", COOKIE: secrets.token_hex(16)}
