"""`telex plugin describe`: a plugin's own description, and its settings here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from telex.cli import completion_candidates
from telex.cli.console import say, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.cli.plugin.plugin_target import Host
    from telex.plugins.client import RunningPlugin
    from telex.plugins.discovery import FoundPlugin
    from telex.plugins.protocol import CommandEntry, ConfigEntry, Task, ToolEntry

HELP = """Show a plugin's commands, tools, values and permissions.

The plugin is started, asked, and ended. Its commands, tasks and tools are shown, its values with
their origins, and the restrictions that the system applies to it.

\b
  telex plugin describe greet
  telex plugin describe greet --json
"""


@click.command(help=HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
@click.argument("name", shell_complete=completion_candidates.plugins)
@click.pass_context
def command(context: click.Context, as_json: bool, name: str) -> None:
    from telex.cli import event_loop
    from telex.cli.plugin import plugin_target

    host, found = plugin_target.host(context), plugin_target.plugin(name)
    about = event_loop.run(_about(host, found))
    if as_json:
        say(json.dumps(about, ensure_ascii=False))
    else:
        for line in _lines(about):
            say(line)


async def _about(host: Host, found: FoundPlugin) -> dict[str, Any]:
    from telex.cli.plugin.plugin_target import Saying, ended
    from telex.plugins import plugin_commands, plugin_tools
    from telex.plugins.client import start
    from telex.plugins.errors import PluginError

    with Saying(host.redactor, host.level) as saying:
        try:
            async with start(found, host.settings(saying.line)) as plugin:
                plugin_commands.check(found.name, plugin.introduced)
                return _Description(host, plugin).whole(
                    await plugin_tools.list_plugin_tools(plugin)
                )
        except PluginError as failure:
            raise ended(failure) from failure


class _Description:
    """Return the description as a JSON object."""

    def __init__(self, host: Host, plugin: RunningPlugin) -> None:
        self._host, self._plugin = host, plugin
        self._name = plugin.name

    def whole(self, its_tools: list[ToolEntry]) -> dict[str, Any]:
        import msgspec

        from telex.plugins.restrictions import restrictions

        said, found = self._plugin.introduced, self._plugin.found
        holds = restrictions(found)
        can = msgspec.structs.asdict(said.capabilities) if said.capabilities else {}
        return {
            "name": self._name,
            "version": said.version,
            "description": said.description,
            "protocol": f"{said.protocol} {said.protocol_version}",
            "capabilities": [name for name, able in can.items() if able],
            "where": str(found.where),
            "executable": str(found.executable),
            "manifest": found.manifest is not None,
            "values": self._values(said.configs or [], ()),
            "commands": list(self._commands(said.commands or [], ())),
            "tasks": [_task(task) for task in said.tasks or []],
            "tools": [msgspec.to_builtins(tool) for tool in its_tools],
            "enforced": holds.enforced(),
            "lacking": holds.lacking(),
        }

    def _commands(
        self, commands: Sequence[CommandEntry], above: tuple[str, ...]
    ) -> Iterator[dict[str, Any]]:
        for one in commands:
            path = (*above, one.name)
            yield {
                "name": " ".join(path),
                "description": one.description,
                "aliases": one.aliases or [],
                "values": self._values(one.configs or [], path),
            }
            yield from self._commands(one.commands or [], path)

    def _values(self, entries: list[ConfigEntry], path: tuple[str, ...]) -> list[dict[str, Any]]:
        from telex.plugins.config_values import flag_name, granted_variables, resolve, variable_name

        sources, given = self._host.sources(), granted_variables(self._plugin.found)
        values = resolve(self._name, entries, sources, command=path, granted=given)
        for line in (*values.problems, *values.hints):
            warn(line)
        return [
            {
                "key": one.entry.key,
                "type": one.entry.type,
                "value": self._unless_secret(one.entry.key, one.value),
                "origin": str(one.origin),
                "description": one.entry.description,
                "flag": flag_name(one.entry),
                "variable": None
                if one.entry.flag_only
                else variable_name((self._name, *path), one.entry),
            }
            for one in values.resolved
        ]

    def _unless_secret(self, key: str, value: object) -> object:
        """Return a value for display; a secret, by its key or its form, is hidden."""
        text = f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        return (
            value if self._host.redactor.redact(text) == text else self._host.redactor.replacement
        )


def _task(task: Task) -> dict[str, Any]:
    from telex.plugins import plugin_manifest

    takes = [
        " or ".join(plugin_manifest.entry_keys(entry))
        for entry in plugin_manifest.declared_entries(task).entries
    ]
    return {"type": task.type, "description": task.description, "takes": takes}


def _lines(about: dict[str, Any]) -> Iterator[str]:
    yield " ".join(filter(None, (about["name"], about["version"])))
    if about["description"]:
        yield f"  {about['description']}"
    can = f", with {', '.join(about['capabilities'])}" if about["capabilities"] else ""
    yield f"  speaks {about['protocol']}{can}"
    yield f"  {about['executable']}"
    yield from _section("Values", [line for one in about["values"] for line in _value(one)])
    yield from _section("Commands", [line for one in about["commands"] for line in _command(one)])
    yield from _section("Tasks", [_titled(one["type"], one) for one in about["tasks"]])
    yield from _section("Tools", [_titled(one["name"], one) for one in about["tools"]])
    yield from _section("What the system sees to", about["enforced"])
    yield from _section("What it does not", about["lacking"])


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)


def _titled(title: str, one: dict[str, Any]) -> str:
    text = " ".join((one.get("description") or "").split())
    takes = f" ({', '.join(one['takes'])})" if one.get("takes") else ""
    return f"{title}{takes}  {text}".rstrip()


def _command(one: dict[str, Any]) -> Iterator[str]:
    yield _titled(one["name"], one)
    yield from (f"  {line}" for value in one["values"] for line in _value(value))


def _value(one: dict[str, Any]) -> Iterator[str]:
    shown = "not set" if one["value"] is None else json.dumps(one["value"], ensure_ascii=False)
    yield f"{one['key']} = {shown} ({one['origin']})"
