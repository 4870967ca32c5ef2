"""`telex plugin new`: a working plugin to start from."""

from __future__ import annotations

from pathlib import Path

import click

from telex.cli.console import say

HELP = """Write a working plugin to start from.

The plugin is one executable file, DIR/NAME, by default ./NAME, with a command, a type of task and
a log line. In Python it uses telex.plugins.sdk; in other languages it needs no library. Existing
files are not replaced.

\b
  telex plugin new greet
  telex plugin new greet --language shell
"""


@click.command(help=HELP)
@click.option(
    "--language",
    type=click.Choice(["python", "shell", "node"]),
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
def command(language: str, parent: Path, name: str) -> None:
    from telex.config import places
    from telex.plugins.sdk.plugin import BadName, check_name
    from telex.plugins.skeleton import write_skeleton

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
