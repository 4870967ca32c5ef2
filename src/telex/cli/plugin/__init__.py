"""`telex plugin`: commands for users and authors of plugins.

`list`, `trust` and `new`, which run no plugin, are here; each other is in the file of its name.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from telex.cli.console import explain, say, warn
from telex.cli.root import LazyCommand

if TYPE_CHECKING:
    from telex.plugins.discovery import FoundPlugin, FoundPlugins

HELP = """Use, make and check plugins: programs in any language.

A plugin gives telex commands, tasks and tools. It is an executable that uses JSON-RPC on its
standard input and output; docs/reference/plugin-protocol.md describes the protocol.

\b
  telex plugin new greet
  telex plugin check ./greet
"""

COMMANDS = {
    "check": "Grade how an executable implements the plugin protocol.",
    "describe": "Show a plugin's commands, tools, values and permissions.",
    "run": "Run a command of a plugin.",
    "task": "Run tasks of a plugin, ordered by their requirements.",
}


@click.group(help=HELP)
def command() -> None:
    pass


for _name, _line in COMMANDS.items():
    command.add_command(LazyCommand(_name, f"telex.cli.plugin.{_name}", _line))


# telex plugin list

LIST_HELP = """List the plugins, without running any.

Plugins are in telex's own directory for plugins, in those of TELEX_PLUGIN_PATH, and in this
project's `.telex/plugins`, once you trusted them: `telex plugin trust`. A plugin that cannot be run
is listed with the reason.

\b
  telex plugin list
  telex plugin list --json
"""


@command.command("list", help=LIST_HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def list_command(as_json: bool) -> None:
    from telex.cli.plugin.plugin_target import find

    findings = find()
    if as_json:
        say(json.dumps(_as_json(findings), ensure_ascii=False))
        return
    for line in _listing(findings.found):
        say(line)
    for problem in findings.problems:
        warn(problem)
    for hint in findings.hints:
        explain(f"telex: {hint}")


def _listing(found: tuple[FoundPlugin, ...]) -> list[str]:
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


def _as_json(findings: FoundPlugins) -> dict[str, Any]:
    return {
        "plugins": [_plugin_as_json(one) for one in findings.found],
        "problems": list(findings.problems),
        "hints": list(findings.hints),
    }


def _plugin_as_json(one: FoundPlugin) -> dict[str, Any]:
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


# telex plugin trust

TRUST_HELP = """Trust this project's plugins, with their present content.

They are the programs in `.telex/plugins` of the current project. Read them first: they can do
whatever you can do. When a file there is changed, added or removed, none is run until you trust
them again.

\b
  telex plugin trust
  telex plugin trust --remove
"""


@command.command("trust", help=TRUST_HELP)
@click.option("--remove", is_flag=True, help="Take that back.")
@click.argument(
    "where",
    metavar="[DIRECTORY]",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
def trust_command(remove: bool, where: Path | None) -> None:
    from telex.config import places
    from telex.plugins import discovery

    start, here = (where or Path()).resolve(), places.find()
    directory = discovery.project_directory(start)
    if directory is None:
        raise click.ClickException(
            f"there is no {discovery.PROJECT_PLUGINS} in {start} or its project"
        )
    directory = directory.resolve()
    if remove:
        was = discovery.untrust_project(directory, here)
        say(f"{directory} is no longer trusted" if was else f"{directory} was not trusted")
        return
    discovery.trust_project(discovery.read_project(directory, here), here)
    findings = discovery.find(here, {}, start)
    for problem in findings.problems:
        warn(problem)
    theirs = [one for one in findings.found if one.project]
    for one in theirs:
        if one.problem:
            warn(one.problem)
    names = ", ".join(one.name for one in theirs) or "no plugins"
    say(f"trusted {directory} as it is, with: {names}")


# telex plugin new

NEW_HELP = """Write a working plugin to start from.

The plugin is one executable file, DIR/NAME, by default ./NAME, with a command, a type of task and
a log line. In Python it uses telex.plugins.sdk; in other languages it needs no library. Existing
files are not replaced.

\b
  telex plugin new greet
  telex plugin new greet --language shell
"""


LANGUAGES: Final = {"python": "greet.py", "shell": "greet.sh", "node": "greet.mjs"}
"""Working plugins that pass the check, so that an author changes running code. Those in shell and
for Node are also the examples in `examples/plugins`."""
_PLACES: Final = ("NAME={}\n", 'NAME = "{}"', 'Plugin("{}"', "./{}\n")
"""The places of the name, which is greet in the files."""


@command.command("new", help=NEW_HELP)
@click.option(
    "--language",
    type=click.Choice([*LANGUAGES]),
    default="python",
    show_default=True,
    help="What it is written in.",
)
@click.option(
    "--dir",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to put it.",
)
@click.argument("name")
def new_command(language: str, parent: Path, name: str) -> None:
    from telex.config import places
    from telex.plugins.sdk.plugin import BadName, check_name

    try:
        check_name(name)
    except BadName as bad:
        raise click.BadParameter(str(bad), param_hint="NAME") from bad
    path = parent / name
    write_skeleton(path, name, language)
    called = path if path.is_absolute() else f"./{path}"
    say(f"wrote {path}")
    say()
    say("Next:")
    say(f"  telex plugin check --run hello {called}   # it does what the protocol asks")
    say(f"  install -D -t {places.find().data / 'plugins'} {called}   # where telex looks")
    say(f"  telex plugin run {name} hello --name you")


def write_skeleton(path: Path, name: str, language: str) -> None:
    """Write an executable, which must not exist yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(skeleton(name, language))
            os.fchmod(file.fileno(), 0o755)
    except FileExistsError:
        message = f"{path} exists already; choose another name or --dir"
        raise click.ClickException(message) from None


def skeleton(name: str, language: str) -> str:
    """Return the text of a plugin with this name."""
    text = files("telex.plugins").joinpath("skeleton", LANGUAGES[language]).read_text("utf-8")
    for place in _PLACES:
        text = text.replace(place.format("greet"), place.format(name))
    if language == "python":  # this interpreter has telex
        text = text.replace("#!/usr/bin/env python3\n", f"#!{sys.executable}\n", 1)
    return text
