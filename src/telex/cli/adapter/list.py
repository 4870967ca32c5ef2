"""`telex adapter list`: built-in and installed adapters, read from their manifests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from telex.cli.console import explain, say

if TYPE_CHECKING:
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.config.places import Places

HELP = """List the adapters and their permissions.

Adapters are built in, or are directories with a manifest in telex's data directory for adapters.
None is run. An adapter that cannot be used is listed with the reason. The permissions are those
that its manifest asks for.

\b
  telex adapter list
  telex adapter list --json
"""


@dataclass(frozen=True, slots=True)
class Listed:
    """An adapter in the list."""

    name: str
    plugin: LuaPlugin | None
    where: str
    problem: str = ""

    @property
    def state(self) -> str:
        return "cannot be used" if self.problem else "ok"

    @property
    def builtin(self) -> bool:
        return self.plugin is not None and self.plugin.builtin

    @property
    def version(self) -> str | None:
        return self.plugin.manifest.version if self.plugin is not None else None

    @property
    def permissions(self) -> list[str]:
        return list(self.plugin.manifest.permissions) if self.plugin is not None else []


@click.command(help=HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def command(as_json: bool) -> None:
    from telex.config import places

    here = places.find()
    listed = sorted(_listed(here), key=lambda one: (not one.builtin, one.name))
    if as_json:
        listing = {"adapters": [_object(one) for one in listed], "directory": str(here.adapters)}
        say(json.dumps(listing, ensure_ascii=False))
        return
    for line in _lines(listed):
        say(line)
    if all(one.builtin for one in listed):
        explain(f"telex: yours go to {here.adapters}; `telex adapter new` writes one")


def _listed(here: Places) -> list[Listed]:
    from telex.adapters.plugin_registry import NameTaken, Plugins, builtin_plugins, scan_installed

    builtin = builtin_plugins()
    names = Plugins(builtin)
    listed = [Listed(plugin.name, plugin, "comes with telex") for plugin in builtin]
    for one in scan_installed(here.adapters):
        problem = one.problem
        if one.plugin is not None and not problem:
            try:
                names.add(one.plugin)
            except NameTaken as taken:
                problem = str(taken)
        name = one.plugin.name if one.plugin is not None else one.directory.name
        listed.append(Listed(name, one.plugin, str(one.directory), problem))
    return listed


def _lines(listed: list[Listed]) -> list[str]:
    rows = [(one.name, one.version or "-", one.state, one.where) for one in listed]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    lines: list[str] = []
    for one, row in zip(listed, rows, strict=True):
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=False))
        lines.append("  ".join([*cells, row[3]]))
        if one.problem:
            lines.append(f"  {one.problem}")
        elif one.permissions:
            lines.append(f"  may: {' '.join(one.permissions)}")
    return lines


def _object(one: Listed) -> dict[str, Any]:
    target = one.plugin.manifest.default_target if one.plugin is not None else None
    return {
        "name": one.name,
        "version": one.version,
        "state": one.state,
        "where": None if one.builtin else one.where,
        "builtin": one.builtin,
        "permissions": one.permissions,
        "program": target.program if target is not None else None,
        "problem": one.problem or None,
    }
