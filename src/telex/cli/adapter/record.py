"""`telex adapter record`: use a program by hand, and save its screens as fixtures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli import completion_candidates
from telex.cli.adapter.adapter_target import default_program, environment, target
from telex.cli.configuration import load_config
from telex.cli.console import explain
from telex.config import places

if TYPE_CHECKING:
    from telex.adapters.lua_plugin import LuaPlugin

HELP = """Run a program and save its screens as fixtures.

Press the key to save the screen, and enter a name: Enter alone takes the next number, Escape
cancels. The screen is added to recorded.toml with the state that the adapter sees, for you to
correct. Existing fixtures are not replaced.

The file is in the adapter's directory `fixtures`, or in --into. If there is no adapter NAME yet, it
is in NAME/fixtures, and you add the state of each screen.

Secrets that telex recognises are masked. Read the file before you share it.

\b
  telex adapter record ./mine -- bash
  telex adapter record --key ctrl_g ./mine -- vim
"""


@click.command(help=HELP)
@click.option(
    "--key",
    default="ctrl_]",
    show_default=True,
    metavar="KEY",
    help="Key that saves a screen: ctrl_ and a letter or one of [ \\ ] ^ _.",
)
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), help="Directory for the fixtures."
)
@click.argument("name", shell_complete=completion_candidates.adapters)
@target
@click.pass_context
def command(
    context: click.Context, key: str, into: Path | None, name: str, program: tuple[str, ...]
) -> int:
    from telex.cli.configuration import redactor_of
    from telex.passthrough.adapter_panels import RecordPanel
    from telex.passthrough.attach_view import control_key
    from telex.passthrough.panel_view import run_with_panel

    pressed = control_key(key)
    redactor = redactor_of(load_config(context).settings)
    plugin, problem = _plugin(name)
    argv = program or default_program(context, plugin)
    directory = into or _directory(name, plugin)
    called = plugin.name if plugin is not None else Path(name).absolute().name
    panel = RecordPanel(called, key, directory, redactor, plugin, problem)
    try:
        return run_with_panel(argv, panel, pressed, environment(plugin))
    finally:
        if panel.saved:
            explain(f"telex: saved in {directory}: {', '.join(panel.saved)}")


def _plugin(name: str) -> tuple[LuaPlugin | None, str]:
    """Return the plugin, or why it does not load: screens can be saved before it works."""
    from telex.adapters.lua_plugin import PluginRefused
    from telex.adapters.manifest import BadManifest
    from telex.adapters.plugin_registry import PluginNotFound, find_plugin

    try:
        return find_plugin(name, places.find()), ""
    except PluginNotFound:
        return None, ""
    except (BadManifest, PluginRefused) as bad:
        return None, str(bad)


def _directory(name: str, plugin: LuaPlugin | None) -> Path:
    """Return where to write fixtures; for a built-in adapter not into telex itself."""
    from telex.adapters.fixtures import DIRECTORY
    from telex.adapters.plugin_registry import MANIFEST

    if plugin is not None and plugin.directory is not None and not plugin.builtin:
        return plugin.directory / DIRECTORY
    path = Path(name)
    return (path.parent if path.name == MANIFEST else path) / DIRECTORY
