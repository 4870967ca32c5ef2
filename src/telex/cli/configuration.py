"""The configuration of a command, including its flags, and its redactor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from telex.config import places
from telex.config.errors import ConfigError
from telex.config.layers import Layer, from_flags
from telex.config.load import Config, load

if TYPE_CHECKING:
    from telex.config.settings import Settings
    from telex.redaction import Redactor


def load_config(context: click.Context) -> Config:
    """Read the configuration. A mistake in `--set` is a usage error."""
    return load(places.find(), flags=flags_of(context))


def flags_of(context: click.Context) -> Layer:
    try:
        return from_flags(context.obj or ())
    except ConfigError as error:
        raise click.UsageError(f"--set: {error}", context.find_root()) from error


def redactor_of(settings: Settings) -> Redactor:
    """Return a redactor with the default rules and the configured literals."""
    from telex.redaction import Redactor  # local: many commands redact nothing

    return Redactor(
        extra_literals=settings.redaction.extra_literals,
        replacement=settings.redaction.replacement,
    )
