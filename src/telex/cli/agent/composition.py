"""Builds a runtime from the command line and the configuration, and serves it."""

from __future__ import annotations

import asyncio
import os
import tomllib
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.agent_context import AgentContext
from telex.agent.content_store import ContentStore
from telex.agent.cores.adapter_core import AdapterCore
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.cores.found_adapters import find_adapters
from telex.agent.cores.model import ModelCore, RunBounds
from telex.agent.cores.scripted import read_script
from telex.agent.images import image_loader
from telex.agent.limits import (
    AGENT_IMAGES_BYTES,
    AGENT_MODEL_STEPS,
    AGENT_UNDO_BYTES,
    MODEL_ATTEMPTS,
)
from telex.agent.model_catalogue import ADAPTER, BUILTIN, ModelCatalogue, ModelChoice
from telex.agent.models.model_keys import KeyFile
from telex.agent.models.model_registry import ModelRegistry, RegisteredModel
from telex.agent.permissions import InvalidRule, Mode, RuleLayer, rules_from_tables
from telex.agent.permissions.confirmation import Confirmer
from telex.agent.permissions.workspace_permissions import RememberedAnswers, WorkspacePermissions
from telex.agent.runtime import AgentRuntime
from telex.agent.sandbox_files import Sandbox
from telex.agent.server import AgentServer
from telex.agent.store import Store
from telex.agent.terminal_server import TerminalServer
from telex.agent.tools.output_cache import OutputCache
from telex.agent.tools.tool_registry import BUILTIN_TOOLS, ToolRegistry
from telex.agent.workspace import Workspace, WorkspacePolicy, Workspaces
from telex.cli.agent.server_connection import connect_server
from telex.cli.configuration import redactor_of
from telex.cli.console import explain, warn
from telex.cli.listeners import (
    Conversations,
    Listeners,
    log_to_stderr,
    serve_until_stopped,
)
from telex.cli.plugin.plugin_target import Host
from telex.config import places
from telex.config.errors import WrongValue
from telex.config.layers import EMPTY
from telex.config.layers import Layer as Flags
from telex.config.load import Trust, load
from telex.config.places import read_file, write_private
from telex.plugins import discovery
from telex.plugins.config_values import sections_of
from telex.plugins.supervisor import PluginSupervisors
from telex.processes.sandbox import asked_kernel, lacking
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.agent.cores import Core
    from telex.agent.mcp_client.mcp_supervisor import ConfiguredServer
    from telex.agent.mcp_client.mcp_tool_source import McpToolSource, McpToolSources
    from telex.agent.tools.plugins import PluginToolSource
    from telex.agent.workspace import Place
    from telex.config.load import Config, ProjectFile
    from telex.config.places import Places
    from telex.config.settings import Settings
    from telex.plugins.discovery import FoundPlugin
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
    max_steps: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    shared: bool = False
    """Whether the server has no directory of its own: without a root, that of the caller counts."""

    @property
    def cwd(self) -> Path:
        """The directory that relative paths start from."""
        return Path(os.path.realpath(self.root or Path.cwd()))

    @property
    def policy(self) -> WorkspacePolicy:
        root = None if self.root is None else self.cwd
        return WorkspacePolicy(Mode(self.mode), root, None if self.shared else self.cwd)

    def load(self) -> Config:
        """Load the configuration for the root, not for the current directory. Prints warnings."""
        config = load(places.find(), directory=self.cwd, flags=self.flags)
        for warning in config.warnings:
            warn(warning)
        return config


@asynccontextmanager
async def served_agent(
    wanted: Wanted, config: Config | None = None, terminals: TerminalServer | None = None
) -> AsyncIterator[AgentServer]:
    """Build a runtime and its server. The end of the block closes both. `terminals` is the server
    of its terminals, by default the one server, which is started when a terminal is needed.

    A mistake in the files of the default workspace raises here. A shared server has no default: it
    opens its store, and reads the configuration of a root, when a connection needs them. `config`
    is that of the default workspace, if it was read already.
    """
    found = places.find()
    store = Store(found.database)
    answers = RememberedAnswers(store)
    terminals = terminals or TerminalServer(connect_server)
    async with AsyncExitStack() as plugins:
        making = _Making(wanted, found, answers, plugins, config)
        workspaces = Workspaces(wanted.policy, answers, making.make)
        server = AgentServer(
            AgentRuntime(
                store,
                workspaces,
                _models(wanted, found, store, config, plugins, terminals),
                diagnostics=wanted.diagnostics,
                terminals=terminals,
            )
        )
        try:
            if not wanted.shared:
                await server.runtime.open_workspace()
            yield server
        finally:
            await server.close()


@dataclass(frozen=True, slots=True)
class _Read:
    """The configuration of one directory. Workspaces with an equal one are shared."""

    config: Config
    layers: list[RuleLayer]
    plugins: list[FoundPlugin]
    warnings: list[str]


class _Making:
    """Makes the workspaces of one server."""

    def __init__(
        self,
        wanted: Wanted,
        found: Places,
        answers: RememberedAnswers,
        plugins: AsyncExitStack,
        config: Config | None,
    ) -> None:
        self._wanted = wanted
        self._found = found
        self._answers = answers
        self._plugins = plugins
        self._config = config
        """The configuration of the default workspace, which is made first."""
        self._plugin_tools: list[tuple[_Read, PluginToolSource]] = []
        self._mcp: McpToolSources | None = None
        self._warned = set(() if config is None else config.warnings)

    async def make(self, place: Place) -> Workspace:
        """Raises `InvalidRule`, `OutsideSandbox` and `ConfigError`."""
        first, self._config = self._config, None
        read = await run_in_thread(lambda _: self._read(place, first))
        for warning in read.warnings:
            self._warn_once(warning)
        warn_about_confinement(self._found.state / NOT_HELD, place.mode)
        redactor, home, found = redactor_of(read.config.settings), Path.home(), self._found
        permissions = WorkspacePermissions(
            place.root,
            str(home),
            self._answers,
            place.mode,
            read.layers,
            trusted=_trusted(read.config.project_file) is not None,
            own=[str(own) for own in (found.config, found.data, found.state, found.runtime)],
        )
        context = AgentContext(
            Sandbox(Path(place.root)),
            Path(place.cwd),
            home,
            OutputCache(found.state / "tool-output", redactor),
            ContentStore(found.state / "file-versions", AGENT_UNDO_BYTES),
            _images(found),
            os.environ,
            redactor,
            permissions.trusted,
            permissions.read_restriction,
            found.config / "commands",
        )
        if unused := await context.slash_commands.untrusted_warning():
            self._warn_once(unused)
        mcp = self._mcp_servers(read, place)
        tools = ToolRegistry(BUILTIN_TOOLS, *self._plugins_of(read), *filter(None, (mcp,)))
        return Workspace(place, context, Confirmer(permissions), tools, mcp, read)

    def _warn_once(self, warning: str) -> None:
        if warning not in self._warned:
            self._warned.add(warning)
            warn(warning)

    def _read(self, place: Place, config: Config | None) -> _Read:
        config = config or load(self._found, directory=Path(place.cwd), flags=self._wanted.flags)
        layers = _layers(config.user_file, _trusted(config.project_file))
        plugins, warnings = configured_plugins(config, self._found, Path(place.cwd))
        return _Read(config, layers, plugins, [*config.warnings, *warnings])

    def _plugins_of(self, read: _Read) -> list[PluginToolSource]:
        """The tools of the configured plugins, which start when they are used."""
        if not read.config.settings.agent.plugins:
            return []
        for known, tools in self._plugin_tools:
            if known == read:
                return [tools]
        from telex.agent.tools.plugins import PluginToolSource

        supervisors = supervised(read.plugins, read.config)
        self._plugins.push_async_callback(supervisors.close)
        self._plugin_tools.append((read, PluginToolSource(supervisors)))
        return [self._plugin_tools[-1][1]]

    def _mcp_servers(self, read: _Read, place: Place) -> McpToolSource | None:
        """The configured MCP servers, which start when they are used."""
        settings = read.config.settings
        if not settings.mcp:
            return None
        from telex.agent.mcp_client.mcp_supervisor import McpSite
        from telex.agent.mcp_client.mcp_tool_source import McpToolSources

        if self._mcp is None:
            self._mcp = McpToolSources()
            self._plugins.push_async_callback(self._mcp.close)
        servers = mcp_servers(read.config)
        found = self._found
        site = McpSite(
            place.root, os.environ, redactor_of(settings), found.mcp_logs, found.mcp_tokens
        )
        key = msgspec.json.encode((place.root, settings.redaction, [*map(astuple, servers)]))
        return self._mcp.open(key, servers, site)


def mcp_servers(config: Config) -> list[ConfiguredServer]:
    """The MCP servers of the configuration, each with the file that has it."""
    from telex.agent.mcp_client.mcp_supervisor import ConfiguredServer

    project = _trusted(config.project_file)
    own = {} if project is None else tomllib.loads(project.content.decode()).get("mcp", {})
    return [
        ConfiguredServer(name, section, "project" if name in own else "global")
        for name, section in config.settings.mcp.items()
    ]


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


def _models(
    wanted: Wanted,
    found: Places,
    store: Store,
    config: Config | None,
    closing: AsyncExitStack,
    terminals: TerminalServer,
) -> ModelCatalogue:
    """The script, the language models, the builtin core and the TUIs of other agents. The models
    are looked for when the first run begins."""
    script = None if wanted.script is None else read_script(wanted.script)
    settings = (config or load(found, directory=wanted.cwd, flags=wanted.flags)).settings

    async def discover() -> list[ModelChoice]:
        builtin: list[Core] = [BuiltinCore()] if script is None else [script, BuiltinCore()]
        choices = [ModelChoice(BUILTIN, core) for core in builtin]
        adapters = await run_in_thread(lambda _: find_adapters(found, os.environ.get("PATH")))
        tuis = [
            ModelChoice(ADAPTER, AdapterCore(one.manifest, terminals))
            for one in adapters
            if one.path is not None
        ]
        name = settings.agent.model
        if script is not None or name == BUILTIN:
            return [*choices, *tuis]
        if name and name not in settings.models:
            for one in adapters:
                if one.manifest.name == name and one.path is None:
                    raise WrongValue(f"agent.model: {name} cannot be used: {one.why}")
            if chosen := [tui for tui in tuis if tui.name == name]:
                others = [tui for tui in tuis if tui.name != name]
                return [*chosen, *choices, *others]
        return [*await _language_models(wanted, found, settings, closing), *choices, *tuis]

    return ModelCatalogue(store, discover, lambda: KeyFile(found.keys).remove())


async def _language_models(
    wanted: Wanted, found: Places, settings: Settings, closing: AsyncExitStack
) -> list[ModelChoice]:
    """Find the models; the default first. Raises `ConfigError`."""
    registry = ModelRegistry(settings.models, found.keys, load_image=image_loader(_images(found)))
    closing.push_async_callback(registry.aclose)
    models = list((await registry.find()).models)
    if name := settings.agent.model:
        models.sort(key=lambda model: model.name != name)
        if not models or models[0].name != name:
            raise WrongValue(f"agent.model: there is no model {name}; see: telex agent models")
    bounds = RunBounds(wanted.max_steps or AGENT_MODEL_STEPS, wanted.max_tokens, wanted.max_cost)
    return [
        ModelChoice(
            model.provider,
            ModelCore(
                RegisteredModel(registry, model),
                model.provider,
                model.cost_usd,
                bounds=bounds,
                attempts=MODEL_ATTEMPTS,
            ),
        )
        for model in models
    ]


def _images(found: Places) -> ContentStore:
    return ContentStore(found.state / "images", AGENT_IMAGES_BYTES)


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


def configured_plugins(
    config: Config, places: Places, directory: Path
) -> tuple[list[FoundPlugin], list[str]]:
    """Find the configured plugins. A plugin that is missing or not allowed is left out, with a
    warning."""
    if not config.settings.agent.plugins:
        return [], []
    there = {one.name: one for one in discovery.find(places, os.environ, directory).found}
    used, warnings = [], []
    for name in dict.fromkeys(config.settings.agent.plugins):
        if (found := there.get(name)) is None:
            warnings.append(f"agent.plugins: there is no plugin {name}; see: telex plugin list")
        elif found.refusal is not None:
            warnings.append(f"agent.plugins: {name} is not run: {found.refusal}")
        else:
            used.append(found)
    return used, warnings


def supervised(plugins: list[FoundPlugin], config: Config) -> PluginSupervisors:
    """The supervisors of plugins, which the caller closes. No plugin is started yet."""
    host = Host(redactor_of(config.settings), config.settings.logging.level, sections_of(config))
    return PluginSupervisors(plugins, host.settings(explain))


# An agent on standard input and output.


async def serve_agent(wanted: Wanted) -> None:
    """Serve standard input and output. The runs end before the channel closes, so that the client
    receives how they ended."""
    config = wanted.load()
    log_to_stderr(config.settings.logging.level, redactor_of(config.settings))
    async with served_agent(wanted, config) as server:
        conversations = Conversations(server.converse)
        await serve_until_stopped(
            conversations, Listeners(), asyncio.Event(), stopping=server.close
        )
