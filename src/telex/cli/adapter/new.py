"""`telex adapter new`: a working adapter to start from."""

from __future__ import annotations

from pathlib import Path

import click

from telex.cli.console import say

HELP = """Write a working adapter to start from.

The adapter is written to DIR/NAME, by default ./NAME, and recognises any prompt: a manifest, rules
in Lua with comments, one fixture, and a README. Existing files are not replaced.

\b
  telex adapter new mine
  telex adapter try ./mine -- bash
"""


@click.command(help=HELP)
@click.option(
    "--dir",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to put it.",
)
@click.argument("name")
def command(parent: Path, name: str) -> None:
    from telex.adapters.skeleton import write_skeleton

    _check(name)
    directory = parent / name
    for path in write_skeleton(directory, name):
        say(f"wrote {path}")
    called = directory if directory.is_absolute() else f"./{directory}"
    say()
    say("Next:")
    say(f"  telex adapter test {called}             # its fixture passes")
    say(f"  telex adapter try {called} -- bash      # the state beside the program")
    say(f"  telex adapter record {called} -- bash   # keep screens as fixtures")


def _check(name: str) -> None:
    """Check the name: one that no server accepts is a usage error."""
    from telex.adapters.manifest import BadManifest, check
    from telex.adapters.plugin_registry import builtin_plugins

    try:
        check({"name": name, "kind": "adapter", "version": "0.1.0"})
    except BadManifest as bad:
        raise click.BadParameter(bad.problems[0].problem, param_hint="NAME") from bad
    if name in {plugin.name for plugin in builtin_plugins()}:
        raise click.BadParameter(
            f"{name} is a built-in adapter; choose another name", param_hint="NAME"
        )
