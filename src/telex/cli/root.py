"""`telex` itself: its options, and the table of its commands."""

from __future__ import annotations

import importlib
import os
from typing import Any

import click

from telex.__main__ import VERBS, asks_for_help
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

GROUPS = {
    "Drive programs": {
        "open": "Start a program on a new terminal, in your directory and with your environment.",
        "see": "Show the screen as text.",
        "type": "Type text, exactly as given: no Enter is added.",
        "press": "Press keys.",
        "wait": "Wait until a text stands on the screen, or for another condition.",
        "do": "Run several verbs in one call.",
        "list": "List the sessions: program, size, state, idle time, until when each is held.",
        "close": "End the programs of sessions, and the sessions.",
        "click": "Click a text on the screen, or a cell.",
        "paste": "Paste text, marked as pasted if the program asks for that (bracketed paste).",
        "resize": "Change the size of the terminal.",
        "signal": "Send a signal to the foreground program: INT, TERM, HUP, QUIT, KILL, USR1 or 2.",
    },
    "Your terminal": {
        "run": "Run a program in this terminal, as if telex were not there.",
        "attach": "Show a running session in this terminal, and type into it.",
        "shot": "Run a program and take a picture of its screen.",
        "record": "Run a program in this terminal and record what it shows.",
        "replay": "Play a recording in this terminal.",
        "when": "Show when a text stood on the screen of a recording.",
        "frame": "Show the screen of a recording at one time.",
        "diff": "Show where the screens of two recordings differ.",
        "codegen": "Run a program, and write a pytest test of what you do in it.",
        "escape": "Send a JSON escape to this terminal.",
        "detect": "Show whether this terminal supports JSON escapes.",
    },
    "Serve": {
        "serve": "Serve terminal sessions to programs, by JSON-RPC.",
        "server": "Look at the server that the verbs use, and stop it.",
        "mcp": "Serve terminal programs to an MCP client, on standard input and output.",
        "call": "Send one request to a running server.",
        "htty": "Serve web pages through a terminal, and test the connection.",
    },
    "Extend": {
        "adapter": "Make, try and test adapters, which know a program's states.",
        "plugin": "Use, make and check plugins: programs in any language.",
    },
    "Agent": {
        "agent": "Serve an agent to any UI, by JSON-RPC.",
        "skill": "Print the skill that teaches an agent to use telex.",
    },
    "About telex": {
        "doctor": "Check what telex needs on this machine.",
        "config": "Show the settings and where each comes from.",
        "completions": "Print the completion script of a shell.",
    },
}
"""The commands in the order of `telex --help`: `command` in the file of that name, if `FILES` has
no other. The line of help is repeated here, so that `telex --help` imports none of them."""

FILES = {
    "attach": "call",
    "detect": "escape",
    "diff": "recordings",
    "frame": "recordings",
    "replay": "record",
    "when": "recordings",
}
"""Commands that share a file with another command; each is `NAME_command` there."""

COMMANDS = {name: line for commands in GROUPS.values() for name, line in commands.items()}
"""Every command, with its line of help."""


class VerbCommand(LazyCommand):
    """A placeholder for a verb, which the server parses and runs. Help, completion and the
    reference load its options (`server.verb_commands`)."""

    def __init__(self, name: str, short_help: str) -> None:
        super().__init__(name, "telex.automation.verb_commands", short_help)

    def load(self) -> click.Command:
        from telex.cli import completion_candidates

        command: click.Command = importlib.import_module(self._module).VERBS[self.name]
        for parameter in command.params:
            if parameter.name in ("session", "names"):
                parameter._custom_shell_complete = completion_candidates.sessions
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if extra.get("resilient_parsing") or asks_for_help(args):
            return super().make_context(info_name, args, parent, **extra)
        context = click.Context(self, parent, info_name, **extra)
        context.args = list(args)
        return context

    def invoke(self, ctx: click.Context) -> int:
        from telex.server.verb_client import run

        return run([str(self.name), *ctx.args])


class RootGroup(click.Group):
    """`telex` itself. Its help lists the commands in groups, the most used ones first."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=14)


def _pair(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in given]
    if bare := [key for key, equals, _ in pairs if not equals]:
        raise click.BadParameter(f"{bare[0]!r} has no '='; write KEY=VALUE")
    return [(key, value) for key, _, value in pairs]


@click.group(cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
      telex open -- python3 -q    start a program in a terminal of its own
      telex type "6 * 7" --enter  type into it
      telex see                   print its screen
      telex run                   your shell in this terminal, with escapes and pages
      telex doctor                check this machine
    """
    from telex.config.runtime_directory import find_runtime_directory
    from telex.processes.leftovers import end_leftovers

    context.obj = flags
    end_leftovers(find_runtime_directory(os.environ))


def _lazy_command(name: str, line: str) -> LazyCommand:
    if name in VERBS:
        return VerbCommand(name, line)
    if file := FILES.get(name):
        return LazyCommand(name, f"telex.cli.{file}", line, f"{name}_command")
    return LazyCommand(name, f"telex.cli.{name}", line)


for _name, _line in COMMANDS.items():
    root.add_command(_lazy_command(_name, _line))
