"""Builds a runtime from the command line and the configuration, and serves it."""

from __future__ import annotations

import os
import tomllib
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telex.agent.agent_context import AgentContext
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.cores.scripted import read_script
from telex.agent.permissions import InvalidRule, Mode, RuleLayer, rules_from_tables
from telex.agent.permissions.workspace_permissions import WorkspacePermissions
from telex.agent.runtime import AgentRuntime
from telex.agent.sandbox_files import find_sandbox
from telex.agent.server import AgentServer
from telex.agent.store import Store
from telex.agent.tools.output_cache import OutputCache
from telex.agent.tools.tool_registry import BUILTIN_TOOLS, ToolRegistry
from telex.cli.configuration import redactor_of
from telex.cli.console import explain, warn
from telex.cli.listeners import log_to_stderr, serve_until_stopped
from telex.cli.plugin.plugin_target import Host
from telex.config import places
from telex.config.layers import EMPTY
from telex.config.layers import Layer as Flags
from telex.config.load import Trust, load
from telex.config.places import read_file, write_private
from telex.plugins import discovery
from telex.plugins.config_values import sections_of
from telex.plugins.supervisor import PluginSupervisors
from telex.processes.sandbox import asked_kernel, lacking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.agent.cores import Core
    from telex.cli.listeners import Listeners
    from telex.config.load import Config, ProjectFile
    from telex.config.places import Places
    from telex.processes.sandbox import Kernel


NOT_HELD = "sandbox-is-missing"
"""The file with the last warning about the sandbox, so that it is printed once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command line."""

    flags: Flags = EMPTY
    root: Path | None = None
    mode: str = "minimal"
    script: Path | None = None
    diagnostics: bool = False

    @property
    def cwd(self) -> Path:
        """The directory that relative paths start from."""
        return Path(os.path.realpath(self.root or Path.cwd()))

    def load(self) -> Config:
        """Load the configuration for the root, not for the current directory. Prints warnings."""
        config = load(places.find(), directory=self.cwd, flags=self.flags)
        for warning in config.warnings:
            warn(warning)
        return config


@asynccontextmanager
async def served_agent(wanted: Wanted, config: Config) -> AsyncIterator[AgentServer]:
    """Build a runtime and its server. The end of the block closes both."""
    found = places.find()
    async with _tools(config, found) as tools:
        store = await Store.open(found.database)
        try:
            server = AgentServer(await _runtime(wanted, config, found, store, tools))
        except BaseException:
            await store.close()
            raise
        try:
            yield server
        finally:
            await server.close()


@asynccontextmanager
async def _tools(config: Config, found: Places) -> AsyncIterator[ToolRegistry]:
    """The built-in tools, and those of the configured plugins, which start when they are used."""
    if not config.settings.agent.plugins:
        yield ToolRegistry(BUILTIN_TOOLS)
        return
    from telex.agent.tools.plugins import PluginToolSource

    async with plugin_supervisors(config, found) as supervisors:
        yield ToolRegistry(BUILTIN_TOOLS, PluginToolSource(supervisors).named)


async def _runtime(
    wanted: Wanted, config: Config, found: Places, store: Store, tools: ToolRegistry
) -> AgentRuntime:
    sandbox = find_sandbox(wanted.cwd, wanted.root)
    warn_about_confinement(found.state / NOT_HELD, Mode(wanted.mode))
    redactor = redactor_of(config.settings)
    surroundings = AgentContext(
        sandbox,
        wanted.cwd,
        Path.home(),
        OutputCache(found.state / "tool-output", redactor),
        os.environ,
        redactor,
    )
    project = _trusted(config.project_file)
    permissions = WorkspacePermissions(
        str(sandbox.root),
        str(Path.home()),
        Mode(wanted.mode),
        _layers(config.user_file, project),
        trusted=project is not None,
        own=[str(place) for place in (found.config, found.data, found.state, found.runtime)],
    )
    await permissions.load(store)
    return AgentRuntime(
        store, surroundings, permissions, tools, _cores(wanted), diagnostics=wanted.diagnostics
    )


def warn_about_confinement(seen: Path, mode: Mode, kernel: Kernel | None = None) -> None:
    """Warn about a missing kernel sandbox at the first run, and again when the reason changes. Mode
    `full` uses no sandbox, so it needs no warning."""
    kernel = kernel or asked_kernel()
    if kernel.is_whole or mode is Mode.FULL:
        return
    text = "; ".join(lacking(kernel))
    if read_file(seen) == text.encode():
        return
    warn(
        f"the kernel's sandbox is missing: {text}. What the agent runs without a question is "
        "judged by its text, and nothing stops what that misses (telex doctor)"
    )
    write_private(seen, text.encode())


def _cores(wanted: Wanted) -> dict[str, Core]:
    cores: list[Core] = [BuiltinCore()]
    if wanted.script is not None:
        cores.insert(0, read_script(wanted.script))
    return {core.name: core for core in cores}


def _trusted(project: ProjectFile | None) -> ProjectFile | None:
    return project if project is not None and project.trust is Trust.TRUSTED else None


def _layers(user_file: Path, project: ProjectFile | None) -> list[RuleLayer]:
    """The rules of the user, and those of a trusted project."""
    layers = []
    if (content := read_file(user_file)) is not None:
        layers.append(_layer("user", content, user_file))
    if project is not None:
        layers.append(_layer("project", project.content, project.path))
    return layers


def _layer(name: str, content: bytes, path: Path) -> RuleLayer:
    """Raises `InvalidRule`."""
    try:
        table: dict[str, Any] = tomllib.loads(content.decode()).get("permission", {})
    except (tomllib.TOMLDecodeError, UnicodeError) as error:
        raise InvalidRule(f"{path}: {error}") from error
    return RuleLayer(name, rules_from_tables(table.get("rule", []), str(path)))


# The plugins whose tools the agent has, as the configuration names them.


def plugin_supervisors(config: Config, places: Places) -> PluginSupervisors:
    """The supervisors of the configured plugins, which the caller closes. No plugin is started yet.
    A plugin that is missing or not allowed is left out, with a warning."""
    there = {one.name: one for one in discovery.find(places, os.environ, Path.cwd()).found}
    used = []
    for name in dict.fromkeys(config.settings.agent.plugins):
        if (found := there.get(name)) is None:
            warn(f"agent.plugins: there is no plugin {name}; see: telex plugin list")
        elif found.refusal is not None:
            warn(f"agent.plugins: {name} is not run: {found.refusal}")
        else:
            used.append(found)
    host = Host(redactor_of(config.settings), config.settings.logging.level, sections_of(config))
    return PluginSupervisors(used, host.settings(explain))


# An agent behind its listeners.


async def serve_agent(wanted: Wanted, listeners: Listeners) -> None:
    """End the runs before the listeners close, so that every client receives how they ended."""
    config = wanted.load()
    log_to_stderr(config.settings.logging.level, redactor_of(config.settings))
    async with served_agent(wanted, config) as server:
        await serve_until_stopped("agent", server.converse, listeners, stopping=server.close)
