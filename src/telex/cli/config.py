"""`telex config`: the settings, their origins, and trust in project files."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from telex.cli.configuration import load_config
from telex.cli.console import say, warn
from telex.config import load, places
from telex.config.layers import Origin, Source, Value, from_file
from telex.config.load import Config, find_project
from telex.config.places import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.redaction import Redactor


# Permission rules as text, for `config trust`, `config show` and `agent remembered`.


def rules_of(content: bytes, where: str) -> list[str]:
    """Return the rules of a config.toml that is valid TOML. Raises `RuleRefused`."""
    from telex.agent.permissions import rule_to_table, rules_from_tables

    table = tomllib.loads(content.decode()).get("permission", {})
    return [
        in_words(rule_to_table(rule)) for rule in rules_from_tables(table.get("rule", []), where)
    ]


def in_words(rule: Mapping[str, Any]) -> str:
    """Return a rule as text, such as `allow shell: command="git push"`."""
    members = [
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in rule.items()
        if name not in ("decision", "tool")
    ]
    tool = "every tool" if rule["tool"] == "*" else rule["tool"]
    return f"{rule['decision']} {tool}: {', '.join(members) or 'any arguments'}"


HELP = """Show the settings and where each comes from.

A setting has the value of the first of these that sets it: a flag (`telex --set KEY=VALUE ...`),
the environment (`TELEX_<SECTION>_<KEY>`, lists with commas), the project's `.telex/config.toml`
once you trusted it, your own `config.toml`, the default. Lists of secrets are the exception: they
are joined.
"""


@click.group(help=HELP)
def command() -> None:
    pass


@command.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@click.pass_context
def show(context: click.Context, as_json: bool) -> None:
    """Show each setting, its value and its origin.

    Of secret values only the number is shown, and a secret in another value is hidden.

    With --json, one object:

    \b
      settings      by key: value (null when hidden), hidden (how many),
                    origins (each with source and where)
      user_file     path, exists
      project_file  path, trust; null where there is none
      permission_rules  each with rule and where
      warnings      the lines that go to stderr without --json
    """
    config = load_config(context)
    if as_json:
        say(json.dumps(_object(config), indent=2))
        return
    for warning in config.warnings:
        warn(warning)
    rows = [
        (one.setting.key, _text(one), ", ".join(map(str, one.origins))) for one in config.values
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for key, value, origin in rows:
        say(f"{key:{widths[0]}}  {value:{widths[1]}}  {origin}")
    for rule, where in _rules(config):
        say(f"{'permission.rule':{widths[0]}}  {rule:{widths[1]}}  {where}")


@command.command()
def path() -> None:
    """Print the path of your config.toml, whether it exists or not."""
    say(str(places.find().config_file))


@command.command()
@click.argument("where", metavar="[PATH]", required=False, type=click.Path(path_type=Path))
def trust(where: Path | None) -> None:
    """Trust a project's .telex/config.toml, with its present content.

    PATH is the file or the project's directory; by default the file that applies here. When the
    file changes, it is not read until you trust it again.
    """
    here = places.find()
    file = find_project(here) if where is None else load.read(_file_of(where), here.trusted)
    if file is None:
        raise click.ClickException(f"there is no {load.NAME} {_said(where)}")
    # Read first: a file that is not valid must not be trusted.
    layer = from_file(file.content, Origin(Source.PROJECT, str(file.path)))
    for warning in layer.warnings:
        warn(warning)
    rules = rules_of(file.content, str(file.path))
    load.trust(file, here.trusted)
    sets = [*layer.given, *(["what the agent may do"] if rules else [])]
    say(f"trusted {file.path}; it sets {', '.join(sets) or 'nothing'}")
    for rule in rules:
        say(f"  {rule}")
    for key, what in (("models", "model"), ("mcp", "MCP server")):
        if key in layer.given:
            for name, table in _shown(layer.given[key].value).items():
                say(f"  {what} {name}: {json.dumps(table, ensure_ascii=False)}")


@command.command()
@click.argument("where", metavar="[PATH]", required=False, type=click.Path(path_type=Path))
def untrust(where: Path | None) -> None:
    """No longer trust a project's .telex/config.toml: it is not read any more."""
    here = places.find()
    file = load.find(Path.cwd()) if where is None else _file_of(where)
    if file is None:
        raise click.ClickException(f"there is no {load.NAME} {_said(where)}")
    was = load.untrust(file, here.trusted)
    say(f"{file.resolve()} is no longer trusted" if was else f"{file.resolve()} was not trusted")


def _rules(config: Config) -> list[tuple[str, str]]:
    """Return the rules in force, each with its file."""
    files = [(config.user_file, read_file(config.user_file))]
    if (found := config.project_file) is not None and found.trust is load.Trust.TRUSTED:
        files.append((found.path, found.content))
    return [
        (rule, str(path))
        for path, content in files
        if content is not None
        for rule in rules_of(content, str(path))
    ]


def _file_of(where: Path) -> Path:
    return where / load.NAME if where.is_dir() else where


def _said(where: Path | None) -> str:
    return "here or in a parent directory of this repository" if where is None else f"at {where}"


def _text(value: Value) -> str:
    if value.setting.secret and value.value:
        return f"({len(value.value)} hidden)"
    return json.dumps(_shown(value.value), ensure_ascii=False)


def _shown(value: Any) -> Any:
    """Return the value of a setting as JSON has it, without secrets: a file should name the
    variables that have them, but people write them down."""
    from telex.redaction import Redactor

    return _redacted(msgspec.to_builtins(value), Redactor())


def _redacted(value: Any, redactor: Redactor) -> Any:
    match value:
        case str():
            return redactor.redact(value)
        case dict():
            return {
                name: _redacted_member(name, inner, redactor)
                for name, inner in _one_line(value, redactor).items()
            }
        case list() | tuple():
            return [_redacted(inner, redactor) for inner in value]
        case _:
            return value


def _redacted_member(name: str, value: Any, redactor: Redactor) -> Any:
    from telex.agent.command_runner import is_secret_variable

    if isinstance(value, str) and is_secret_variable(name.replace("-", "_"), "", redactor):
        return redactor.replacement
    return _redacted(value, redactor)


def _one_line(table: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return the table with `command` and `args` as one redacted line, where the arguments have a
    secret: an argument is one because of the option before it."""
    if not isinstance(args := table.get("args"), list | tuple):
        return table
    line = shlex.join([str(word) for word in (table.get("command", ""), *args)])
    shown = redactor.redact_command(line)
    if shown == line:
        return table
    return {**{name: one for name, one in table.items() if name != "args"}, "command": shown}


def _object(config: Config) -> dict[str, Any]:
    found = config.project_file
    return {
        "settings": {one.setting.key: _setting(one) for one in config.values},
        "user_file": {"path": str(config.user_file), "exists": config.user_file.exists()},
        "project_file": found and {"path": str(found.path), "trust": str(found.trust)},
        "permission_rules": [{"rule": rule, "where": where} for rule, where in _rules(config)],
        "warnings": list(config.warnings),
    }


def _setting(value: Value) -> dict[str, Any]:
    hidden = len(value.value) if value.setting.secret else 0
    return {
        "value": None if hidden else _shown(value.value),
        "hidden": hidden,
        "origins": [{"source": str(one.source), "where": one.where} for one in value.origins],
    }
