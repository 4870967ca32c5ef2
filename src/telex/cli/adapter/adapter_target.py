"""The program of `try` and `record`: the given command, or the one in the manifest."""

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
    """Return the program that a plugin's manifest names."""
    if plugin is None or plugin.manifest.default_target is None:
        raise click.UsageError("name a program: -- COMMAND", context)
    target = plugin.manifest.default_target
    return (target.program, *target.args)


def environment(plugin: LuaPlugin | None) -> Mapping[str, str | None]:
    """Return the environment that a plugin sets for its program."""
    if plugin is None or plugin.manifest.default_target is None:
        return {}
    target = plugin.manifest.default_target
    return {**target.env, **target.required_env}
