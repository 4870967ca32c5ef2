"""The plugin that a command line names, and its settings; for commands that run one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli.configuration import load_config, redactor_of
from telex.cli.console import warn
from telex.config import places
from telex.config.layers import nearest
from telex.plugins import discovery, errors
from telex.plugins.config_values import ConfigSection, Sources, sections_of, values_for_initialize
from telex.plugins.plugin_settings import PluginSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from telex.plugins.discovery import FoundPlugin
    from telex.plugins.protocol import Introduced, KeyValue
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
