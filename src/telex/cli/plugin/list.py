"""`telex plugin list`: the plugins. Their manifests are read, nothing is run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from telex.cli.console import explain, say, warn

if TYPE_CHECKING:
    from telex.plugins.discovery import FoundPlugin, FoundPlugins

HELP = """List the plugins, without running any.

Plugins are in telex's own directory for plugins, in those of TELEX_PLUGIN_PATH, and in this
project's `.telex/plugins`, once you trusted them: `telex plugin trust`. A plugin that cannot be run
is listed with the reason.

\b
  telex plugin list
  telex plugin list --json
"""


@click.command(help=HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def command(as_json: bool) -> None:
    from telex.cli.plugin.plugin_target import find

    findings = find()
    if as_json:
        say(json.dumps(_object(findings), ensure_ascii=False))
        return
    for line in _lines(findings.found):
        say(line)
    for problem in findings.problems:
        warn(problem)
    for hint in findings.hints:
        explain(f"telex: {hint}")


def _lines(found: tuple[FoundPlugin, ...]) -> list[str]:
    rows = [(one.name, _version(one), _state(one), str(one.where)) for one in found]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(3)]
    lines: list[str] = []
    for one, row in zip(found, rows, strict=True):
        lines.append(
            "  ".join([*(f"{cell:{w}}" for cell, w in zip(row, widths, strict=False)), row[3]])
        )
        lines += [f"  {one.problem}"] if one.problem else []
    return lines


def _version(one: FoundPlugin) -> str:
    return (one.manifest.version if one.manifest else None) or "-"


def _state(one: FoundPlugin) -> str:
    if one.problem:
        return "cannot be run"
    return "ok" if one.trusted else "not trusted"


def _object(findings: FoundPlugins) -> dict[str, Any]:
    return {
        "plugins": [_plugin(one) for one in findings.found],
        "problems": list(findings.problems),
        "hints": list(findings.hints),
    }


def _plugin(one: FoundPlugin) -> dict[str, Any]:
    manifest = one.manifest
    return {
        "name": one.name,
        "version": manifest.version if manifest else None,
        "description": manifest.description if manifest else None,
        "manifest": manifest is not None,
        "where": str(one.where),
        "executable": str(one.executable),
        "project": one.project,
        "trusted": one.trusted,
        "problem": one.problem,
        "hints": list(one.hints),
    }
