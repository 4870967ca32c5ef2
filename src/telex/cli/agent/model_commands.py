"""`telex agent models|login|logout`: the language models of the agent, and their keys."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from telex.cli.console import say, warn

if TYPE_CHECKING:
    from telex.agent.cores.found_adapters import FoundAdapter
    from telex.agent.models.model_registry import Findings, FoundModel, ModelRegistry
    from telex.cli.agent.composition import Wanted

MODELS_HELP = """List the language models that were found, and why.

\b
Models are found in this order:
  1. the tables [models.NAME] of config.toml
  2. OpenAI, Anthropic and OpenRouter, where OPENAI_API_KEY, ANTHROPIC_API_KEY or
     OPENROUTER_API_KEY is set, or a key was stored by `telex agent login`
  3. without tables of your own: Ollama, llama.cpp, vLLM and LM Studio on this machine,
     if they answer

The agent uses `agent.model` of the configuration, else the first. `agent.model` may also be the
name of an adapter of another agent's TUI, such as claude-code, whose program is installed.

\b
With --json, one object:
  models   each with name, provider, dialect, base_url, model, why, key (where it comes from),
           context_window; default is true for the one that the agent uses
  adapters each with name, program (null if it is not installed), why, and default as above
  missing  each with provider and why
"""

LOGIN_HELP = """Store the key of a provider or model in a file that only you can read.

NAME is a preset (openai, anthropic, openrouter) or the name of a table [models.NAME]. The key is
read from standard input, and not shown; it is never an argument, which others could see.

\b
  telex agent login anthropic
  pass show openai | telex agent login openai
"""


@click.command(help=MODELS_HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a list.")
@click.pass_obj
def models_command(wanted: Wanted, as_json: bool) -> None:
    from telex.agent.cores.found_adapters import find_adapters
    from telex.agent.models.model_registry import ModelRegistry
    from telex.cli.event_loop import run
    from telex.config import places

    settings = wanted.load().settings
    registry = ModelRegistry(settings.models, places.find().keys)
    adapters = find_adapters(places.find(), os.environ.get("PATH"))
    run(_print_models(registry, adapters, settings.agent.model, as_json))


async def _print_models(
    registry: ModelRegistry, adapters: list[FoundAdapter], wanted: str, as_json: bool
) -> None:
    try:
        found = await registry.find()
    finally:
        await registry.aclose()
    installed = [one for one in adapters if one.path is not None]
    names = [one.name for one in found.models]
    if wanted not in names:
        names += [one.manifest.name for one in installed if one.manifest.name == wanted]
    used = wanted if wanted in names else next(iter(names if not wanted else ()), None)
    if wanted and wanted not in names:
        warn(f"agent.model is {wanted}, and there is no such model")
    if as_json:
        say(json.dumps(_object(found, adapters, used), indent=2))
        return
    for one in found.models:
        mark = "*" if one.name == used else " "
        key = f"key from {one.key_origin}" if one.key_origin else _without_key(one)
        say(f"{mark} {one.name}  {one.model}  ({one.dialect}, {one.base_url}, {key})")
        say(f"      {one.why}")
    if not found.models:
        say("No model was found. The agent can execute plain commands only.")
    for tui in installed:
        mark = "*" if tui.manifest.name == used else " "
        say(f"{mark} {tui.manifest.name}  (adapter, {tui.path})")
        say(f"      {tui.why}")
    for missing in found.missing:
        say(f"  {missing.provider}: {missing.why}")
    for tui in adapters:
        if tui.path is None:
            say(f"  {tui.manifest.name}: {tui.why}")
    if not found.models:
        say("Set a key, start a local server, or see docs/tutorial/use-a-language-model.md")


def _without_key(one: FoundModel) -> str:
    source = one.section.key
    if source is not None and source.env:
        return f"no key: {source.env} is not set"
    needs = one.preset is not None and one.preset.key_env and not one.section.base_url
    return f"no key: telex agent login {one.name}" if needs else "no key"


def _object(found: Findings, adapters: list[FoundAdapter], used: str | None) -> dict[str, Any]:
    return {
        "models": [
            {
                "name": one.name,
                "default": one.name == used,
                "provider": one.provider,
                "dialect": one.dialect,
                "base_url": one.base_url,
                "model": one.model,
                "why": one.why,
                "key": one.key_origin,
                "context_window": one.details.context_window,
            }
            for one in found.models
        ],
        "adapters": [
            {
                "name": one.manifest.name,
                "default": one.manifest.name == used,
                "program": one.path,
                "why": one.why,
            }
            for one in adapters
        ],
        "missing": [{"provider": one.provider, "why": one.why} for one in found.missing],
    }


@click.command(help=LOGIN_HELP)
@click.argument("name")
@click.pass_obj
def login_command(wanted: Wanted, name: str) -> None:
    from telex.agent.models.model_keys import BadKey, KeyFile, server_of
    from telex.agent.models.model_registry import base_url_of, presets
    from telex.config import places
    from telex.rpc.nearest import did_you_mean, nearest_names

    tables = wanted.load().settings.models
    known = {*tables, *presets()}
    if name not in known:
        hint = did_you_mean(nearest_names(name, known)) or f"Known are {', '.join(sorted(known))}."
        raise click.UsageError(f"there is no provider or model {name}. {hint}")
    base_url = base_url_of(name, tables.get(name), os.environ)
    if not base_url:
        raise click.UsageError(f"models.{name}: base_url is missing")
    if sys.stdin.isatty():
        asked = f"The key of {name}, for {server_of(base_url)}"
        key = click.prompt(asked, hide_input=True, err=True)
    else:
        key = sys.stdin.readline()
    path = places.find().keys
    try:
        KeyFile(path).store(name, key, base_url)
    except BadKey as error:
        raise click.ClickException(str(error)) from None
    say(f"stored the key of {name} in {path}; only {server_of(base_url)} gets it")


@click.command()
@click.argument("name", required=False)
def logout_command(name: str | None) -> None:
    """Forget the stored key of NAME, or all stored keys."""
    from telex.agent.models.model_keys import KeyFile
    from telex.config import places

    removed = KeyFile(places.find().keys).remove(name)
    if not removed:
        raise click.ClickException(f"no key of {name} is stored" if name else "no key is stored")
    say(f"forgot the key of {', '.join(removed)}")
