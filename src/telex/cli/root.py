"""`telex` itself: its options, and the table of its commands."""

from __future__ import annotations

import importlib
from typing import Any

import click

from telex.version import __version__


class LazyCommand(click.Command):
    """A placeholder for a command whose file is imported when the command runs.

    It has the name and the line of help, which is all that help, completion and suggestions need.
    click enters a command through `make_context`; the context that it returns belongs to the real
    command, so click uses that from then on.
    """

    def __init__(self, name: str, module: str, short_help: str, attribute: str = "command") -> None:
        super().__init__(name, short_help=short_help)
        self._module, self._attribute = module, attribute

    def load(self) -> click.Command:
        """Import the file and return its command."""
        command: click.Command = getattr(importlib.import_module(self._module), self._attribute)
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        return self.load().make_context(info_name, args, parent, **extra)


COMPLETE = "_TELEX_COMPLETE"
"""The variable that the scripts of `telex completions` set to ask for completions."""

COMMANDS = {
    "adapter": "Make, try and test adapters, which know a program's states.",
    "agent": "Serve an agent to any UI, by JSON-RPC.",
    "attach": "Show a running session in this terminal, and type into it.",
    "call": "Send one request to a running server.",
    "codegen": "Run a program, and write a pytest test of what you do in it.",
    "completions": "Print the completion script of a shell.",
    "config": "Show the settings and where each comes from.",
    "detect": "Show whether this terminal supports JSON escapes.",
    "diff": "Show where the screens of two recordings differ.",
    "doctor": "Check what telex needs on this machine.",
    "escape": "Send a JSON escape to this terminal.",
    "frame": "Show the screen of a recording at one time.",
    "htty": "Serve web pages through a terminal, and test the connection.",
    "plugin": "Use, make and check plugins: programs in any language.",
    "record": "Run a program in this terminal and record what it shows.",
    "replay": "Play a recording in this terminal.",
    "run": "Run a program in this terminal, as if telex were not there.",
    "serve": "Serve terminal sessions to programs, by JSON-RPC.",
    "shot": "Run a program and take a picture of its screen.",
    "when": "Show when a text stood on the screen of a recording.",
}
"""The commands: `command` in the file of that name. Its line of help is repeated here, so that
`telex --help` imports none of them."""


def _pair(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in given]
    if bare := [key for key, equals, _ in pairs if not equals]:
        raise click.BadParameter(f"{bare[0]!r} has no '='; write KEY=VALUE")
    return [(key, value) for key, _, value in pairs]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="telex %(version)s")
@click.option(
    "--set",
    "flags",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_pair,
    help="Set one setting for this run; `telex config show` lists them.",
)
@click.pass_context
def root(context: click.Context, flags: list[tuple[str, str]]) -> None:
    """Drive, test and share any terminal program.

    \b
      telex run                   your shell in this terminal, with escapes and pages
      telex shot -o x.png -- top  a picture of a program's screen
      telex serve --socket        terminal sessions for programs in any language
      telex doctor                check this machine
    """
    context.obj = flags


for _name, _line in COMMANDS.items():
    root.add_command(LazyCommand(_name, f"telex.cli.{_name}", _line))
