"""What `try` and `record` run: the command that was given, or the one that the manifest names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from telex.cli import completion_candidates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.adapters.lua_plugin import LuaPlugin

target = click.argument(
    "program",
    metavar="[-- COMMAND [ARGUMENT]...]",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=completion_candidates.programs,
)


def default_program(context: click.Context, plugin: LuaPlugin | None) -> tuple[str, ...]:
    """What a plugin's manifest says to start."""
    if plugin is None or plugin.manifest.default_target is None:
        raise click.UsageError("say what to run: -- COMMAND", context)
    target = plugin.manifest.default_target
    return (target.program, *target.args)


def environment(plugin: LuaPlugin | None) -> Mapping[str, str | None]:
    """What a plugin wants its program to find."""
    if plugin is None or plugin.manifest.default_target is None:
        return {}
    target = plugin.manifest.default_target
    return {**target.env, **target.required_env}
