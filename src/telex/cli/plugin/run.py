"""`telex plugin run`: run a command of a plugin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from telex.cli import completion_candidates
from telex.cli.console import say, warn
from telex.plugins import protocol as spec

if TYPE_CHECKING:
    from telex.cli.plugin.plugin_options import Parsed
    from telex.cli.plugin.plugin_target import Host
    from telex.plugins.config_values import Sources
    from telex.plugins.discovery import FoundPlugin
    from telex.plugins.errors import PluginError
    from telex.plugins.plugin_commands import ChosenCommand
    from telex.plugins.protocol import ConfigEntry, Introduced, KeyValue

HELP = """Run a command of a plugin.

`telex plugin run NAME --help` shows the plugin's commands, and --help after a COMMAND its options.
A value comes from the first of these that has it: a flag, the environment (`TELEX_<NAME>_<KEY>`,
and `TELEX_<NAME>_<COMMAND>_<KEY>` for a command), `[plugins.NAME]` in your config.toml, the
plugin's default. The plugin's log is on stderr, its result on stdout. Ctrl-C cancels the command.

The exit code is 0 if the command succeeded, 1 if it failed, 2 for a usage error, and 3 if the
plugin does not exist, is not trusted, or does not start.

\b
  telex plugin run greet hello --name Ann
  telex plugin run --tool counter add '{"a": 1, "b": 2}'
"""
_CALLED_WRONGLY = (spec.INVALID_COMMAND, spec.NOT_RUNNABLE, spec.INVALID_CONFIG)


@click.command(help=HELP, context_settings={"allow_interspersed_args": False})
@click.option("--tool", is_flag=True, help="Call a tool; its arguments are one JSON object.")
@click.argument("name", shell_complete=completion_candidates.plugins)
@click.argument("words", metavar="COMMAND [ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, tool: bool, name: str, words: tuple[str, ...]) -> int:
    from telex.cli import event_loop
    from telex.cli.plugin import plugin_target

    host, found = plugin_target.host(context), plugin_target.plugin(name)
    running = _Running(context, host, found, list(words))
    work = _call_tool(host, found, list(words)) if tool else running.run()
    if text := event_loop.run(work):
        say(text)
    return 0


class _Running:
    """One command line, parsed once the plugin has described its commands."""

    def __init__(
        self, context: click.Context, host: Host, found: FoundPlugin, words: list[str]
    ) -> None:
        self._context, self._host, self._found, self._words = context, host, found, words
        self._parsed: Parsed | None = None

    async def run(self) -> str | None:
        """Run the command and return its text. Raises click exceptions."""
        from telex.cli.plugin.plugin_target import Saying
        from telex.plugins import plugin_commands
        from telex.plugins.client import start
        from telex.plugins.errors import PluginError

        host, name = self._host, self._found.name
        with Saying(host.redactor, host.level) as saying:
            settings = host.settings(saying.line, self._plugin_values)
            try:
                async with start(self._found, settings) as plugin:
                    chosen = self._chosen(plugin.introduced)
                    return await plugin_commands.run(
                        plugin, chosen, lambda progress: saying.progress(name, progress)
                    )
            except PluginError as failure:
                raise self._ended(failure) from failure

    def _plugin_values(self, found: FoundPlugin, introduced: Introduced) -> list[KeyValue]:
        """Return the configuration when the starting plugin asks for it. The command line is parsed
        here, as the commands are known now."""
        parsed = self._parse(introduced)
        sources = self._host.sources(parsed.plugin_flags)
        return self._values(introduced.configs or [], sources, ())

    def _parse(self, introduced: Introduced) -> Parsed:
        from telex.cli.plugin.plugin_options import parse
        from telex.plugins import plugin_commands

        if self._parsed is None:
            name, manifest = self._found.name, self._found.manifest
            plugin_commands.check(name, introduced)
            about = (manifest.help or manifest.doc) if manifest else None
            self._parsed = parse(self._context, name, about, introduced, self._words)
        return self._parsed

    def _chosen(self, introduced: Introduced) -> ChosenCommand:
        from telex.plugins.plugin_commands import ChosenCommand

        parsed = self._parse(introduced)
        sources = self._host.sources(parsed.flags)
        config = self._values(parsed.command.configs or [], sources, parsed.path)
        ours = introduced.protocol == spec.PROTOCOL_B
        plugin_config = self._plugin_values(self._found, introduced) if ours else ()
        return ChosenCommand(parsed.path, parsed.args, tuple(config), tuple(plugin_config))

    def _values(
        self, entries: list[ConfigEntry], sources: Sources, path: tuple[str, ...]
    ) -> list[KeyValue]:
        from telex.plugins.config_values import granted_variables, resolve

        given = granted_variables(self._found)
        values = resolve(self._found.name, entries, sources, command=path, granted=given)
        for hint in values.hints:
            warn(hint)
        if values.problems:
            raise click.UsageError("; ".join(values.problems), self._innermost)
        return values.key_values()

    @property
    def _innermost(self) -> click.Context:
        return self._parsed.context if self._parsed else self._context

    def _ended(self, failure: PluginError) -> click.ClickException:
        from telex.cli.plugin.plugin_target import ended

        if failure.code in _CALLED_WRONGLY:
            return click.UsageError(ended(failure).format_message(), self._innermost)
        return ended(failure)


async def _call_tool(host: Host, found: FoundPlugin, words: list[str]) -> str:
    """Return the tool's result as text."""
    from telex.cli.plugin.plugin_target import Saying
    from telex.plugins.plugin_commands import content_text
    from telex.plugins.plugin_tools import list_tools
    from telex.plugins.supervisor import PluginSupervisors

    tool, arguments = _tool_and_arguments(words)
    with Saying(host.redactor, host.level) as saying:
        async with PluginSupervisors([found], host.settings(saying.line)) as supervisors:
            there = await list_tools(supervisors)
            for problem in there.problems:
                warn(problem)
            result = await there.call(
                f"{found.name}.{tool}",
                arguments,
                timeout=None,
                on_progress=lambda progress: saying.progress(found.name, progress),
            )
    if result.is_error:
        raise click.ClickException(content_text(result.content))
    return content_text(result.content)


def _tool_and_arguments(words: list[str]) -> tuple[str, dict[str, Any]]:
    tool, text, *more = [*words, "{}"] if len(words) == 1 else [*words, "", ""]
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict) or any(more):
        raise click.UsageError("--tool needs the tool's name and its arguments as one JSON object")
    return tool, arguments
