"""The configuration a command runs with: its flags on top of everything else."""

from __future__ import annotations

import click

from telex.config import places
from telex.config.errors import ConfigError
from telex.config.layers import Layer, from_flags
from telex.config.load import Config, load


def load_config(context: click.Context) -> Config:
    """Read it. A mistake in `--set` is a mistake in usage."""
    return load(places.find(), flags=flags_of(context))


def flags_of(context: click.Context) -> Layer:
    try:
        return from_flags(context.obj or ())
    except ConfigError as error:
        raise click.UsageError(f"--set: {error}", context.find_root()) from error
