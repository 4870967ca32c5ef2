"""The plugin that a command line names, its settings and its output; for commands that run one."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import click

from telex.cli.configuration import load_config, redactor_of
from telex.cli.console import printable, warn
from telex.config import places
from telex.config.layers import nearest
from telex.plugins import discovery, errors
from telex.plugins.config_values import ConfigSection, Sources, sections_of, values_for_initialize
from telex.plugins.plugin_settings import PluginSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from telex.plugins.discovery import FoundPlugin
    from telex.plugins.protocol import Introduced, KeyValue, ProgressNotice
    from telex.redaction import Redactor

    Config = Callable[[FoundPlugin, Introduced], list[KeyValue]]


class NotUsable(click.ClickException):
    """A plugin that does not exist or does not start."""


class NotAllowed(NotUsable):
    """A plugin that exists and may not be run, for example because it is not trusted."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class Host:
    """The options of a command line for plugins."""

    redactor: Redactor
    level: str
    sections: Sequence[ConfigSection]

    def sources(self, flags: Mapping[str, Sequence[str]] | None = None) -> Sources:
        return Sources(self.sections, os.environ, flags or {}, Path.cwd())

    def settings(
        self, shown: Callable[[str], None], config: Config | None = None
    ) -> PluginSettings:
        """Return the settings to run plugins with; `config` are values from flags."""
        values = config or values_for_initialize(self.sources())
        return PluginSettings(on_stderr_line=shown, config=values, redactor=self.redactor)


def host(context: click.Context) -> Host:
    """Read the configuration for plugins, and print its warnings."""
    config = load_config(context)
    for warning in config.warnings:
        warn(warning)
    settings = config.settings
    return Host(redactor_of(settings), settings.logging.level, sections_of(config))


def plugin(name: str) -> FoundPlugin:
    """Return the plugin of this name. Raises NotUsable if it may not be run."""
    findings = find()
    found = next((one for one in findings.found if one.name == name), None)
    if found is None:
        names = [one.name for one in findings.found]
        near = nearest(name, names)
        meant = f"; did you mean {near}?" if near else "; see: telex plugin list"
        raise NotUsable(f"there is no plugin {name}{meant}")
    if found.refusal is not None:
        raise NotAllowed(f"the plugin {name} is not run: {found.refusal}")
    return found


def ended(failure: errors.PluginError) -> click.ClickException:
    """Convert a failure of a plugin to a click exception with its exit code."""
    match failure:
        case errors.PluginNotStarted() | errors.PluginHandshakeFailed():
            return NotUsable(str(failure))
        case errors.PluginErrorReply():
            return click.ClickException(f"{failure.plugin}: {failure.message}")
        case _:
            return click.ClickException(str(failure))


def find() -> discovery.FoundPlugins:
    return discovery.find(places.find(), os.environ, Path.cwd())


# Progress, log and output of plugins, on standard error. The formatting of progress is pure.


_CELLS: Final = 24


def line(label: str, progress: ProgressNotice, *, drawn: bool) -> str:
    """Return `counter: ████████──── 50% (5 of 10) halfway`; `drawn` adds the bar."""
    parts = [f"{label}:", *_how_far(progress, drawn=drawn)]
    if progress.message:
        parts.append(" ".join(progress.message.split()))
    return " ".join(parts)


def _how_far(progress: ProgressNotice, *, drawn: bool) -> list[str]:
    done, total = progress.done, progress.total
    if done is None:
        return []
    if total is None:
        return [f"{done:g}"]
    part = min(1.0, done / total)
    bar = ["█" * round(part * _CELLS) + "─" * (_CELLS - round(part * _CELLS))] if drawn else []
    return [*bar, f"{part:.0%}", f"({done:g} of {total:g})"]


# Output of running plugins on standard error: their lines, their log, their progress.
#
# Each line has the plugin's name, `[name] line`; a log message has its level before it, unless the
# level is `info`. On a terminal, progress is one line that is redrawn and removed at the end;
# elsewhere it is a line from time to time. Control characters are escaped.


_DRAWN_EVERY: Final = 0.1
_TOLD_EVERY: Final = 5.0
_OURS: Final = logging.getLogger("telex")
_THEIRS: Final = logging.getLogger("telex.plugins")
_NAMED: Final = f"{_THEIRS.name}."
# Without wrapping: a line wider than the terminal could not be removed.
_DRAW: Final = "\r\x1b[?7l{}\x1b[K\x1b[?7h"
_TAKE_AWAY: Final = "\r\x1b[K"


class Saying(logging.Handler):
    """A context manager, entered while plugins may print."""

    def __init__(
        self,
        redactor: Redactor,
        level: str = "warning",
        *,
        write: Callable[[str], None] | None = None,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`level` is for telex's own log; a plugin's log is shown from `info` on."""
        super().__init__()
        self._redact = redactor.redact
        self._own_level = logging.getLevelName(level.upper())
        self._write = write or _on_stderr
        self._terminal = _is_terminal() if terminal is None else terminal
        self._clock = clock
        self._next = 0.0
        self._bar = ""

    def line(self, text: str) -> None:
        """Print a complete line, redacted."""
        back = _DRAW.format(self._bar) if self._bar else ""
        self._write(f"{self._gone()}{printable(text)}\n{back}")

    def progress(self, label: str, progress: ProgressNotice) -> None:
        now = self._clock()
        if now < self._next:
            return
        text = line(label, progress, drawn=self._terminal)
        text = printable(self._redact(text)).replace("\n", " ")
        self._next = now + (_DRAWN_EVERY if self._terminal else _TOLD_EVERY)
        if self._terminal:
            self._bar = text
            self._write(_DRAW.format(text))
        else:
            self._write(f"{text}\n")

    def emit(self, record: logging.LogRecord) -> None:
        name = record.name.removeprefix(_NAMED) if record.name.startswith(_NAMED) else "telex"
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        fields = getattr(record, "fields", None) or {}
        said = "".join(f" {key}={_plain(value)}" for key, value in fields.items())
        for line in f"{record.getMessage()}{said}".splitlines():
            self.line(f"[{name}] {level}{line}")

    def __enter__(self) -> Self:
        self._before = (_OURS.level, _THEIRS.level)
        _OURS.addHandler(self)
        _OURS.setLevel(self._own_level)
        _THEIRS.setLevel(min(logging.INFO, self._own_level))
        return self

    def __exit__(self, *_: object) -> None:
        _OURS.removeHandler(self)
        for logger, level in zip((_OURS, _THEIRS), self._before, strict=True):
            logger.setLevel(level)
        self.end()

    def end(self) -> None:
        """Remove the progress line."""
        if self._bar:
            self._write(self._gone())
            self._bar = ""

    def _gone(self) -> str:
        return _TAKE_AWAY if self._bar else ""


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _on_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
