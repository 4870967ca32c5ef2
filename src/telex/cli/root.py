"""`telex` itself: its options, and the table of its commands."""

from __future__ import annotations

import importlib
from typing import Any

import click

from telex.version import __version__


class LazyCommand(click.Command):
    """Stands in a group for a command whose file is imported when it runs, not when it is listed.

    It knows its name and its line of help, which is all that help, completion and suggestions need.
    click enters a command through `make_context`, and what that returns names the real command as
    its own, so nothing behind it ever meets the stand-in.
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
"""Set by the scripts of `telex completions` when a shell asks what could come next."""

COMMANDS = {
    "adapter": "Make, try and test adapters: what a program's screen means.",
    "agent": "Serve an agent to any UI, by JSON-RPC.",
    "attach": "Show a running session in this terminal, and type into it.",
    "call": "Ask a running server one thing.",
    "completions": "Print the completion script of a shell.",
    "config": "Show what is configured, and where it comes from.",
    "detect": "Say whether this terminal speaks JSON escapes, and which.",
    "doctor": "Say what telex finds here, what is missing, and how to get it.",
    "escape": "Tell this terminal something, or ask it, by a JSON escape.",
    "htty": "Serve web pages through a terminal, and test their way.",
    "plugin": "Use, make and check plugins: programs in any language.",
    "record": "Run a program in this terminal and record what it shows.",
    "replay": "Play a recording in this terminal.",
    "run": "Run a program in this terminal, as if telex were not there.",
    "serve": "Serve terminal sessions to programs, by JSON-RPC.",
    "shot": "Run a program and take a picture of its screen.",
}
"""Each is `command` in the file of its name; its line stands here too, so that listing is cheap."""


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
    """Any terminal program, with an answer back.

    \b
      telex run -- bash      a shell in a terminal that answers, and shows pages
      telex serve --socket   sessions for programs in any language
      telex doctor           what is there, and what is missing
    """
    context.obj = flags


for _name, _line in COMMANDS.items():
    root.add_command(LazyCommand(_name, f"telex.cli.{_name}", _line))
