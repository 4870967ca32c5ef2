"""The environment of a workspace: sandbox, skills, AGENTS.md files, the person's shell, UI context.

Files are read on request, in a thread. Only lists of skills are cached, for a bounded number of
directories, until a reload is requested.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.command_runner import shell_exec
from telex.agent.limits import AGENT_SKILLS_PLACES
from telex.agent.protocol import sessions
from telex.agent.protocol.runs import UiContext
from telex.agent.sandbox_files import directories_down_to, path_text
from telex.agent.skill_library import SkillLibrary, untrusted_project
from telex.agent.skills import agents_files, find_skills
from telex.agent.slash_commands import SlashCommands
from telex.agent.tools.tool import ToolContext
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.agent.content_store import ContentStore
    from telex.agent.sandbox_files import Sandbox
    from telex.agent.tools.output_cache import OutputCache
    from telex.agent.tools.todo import TodoList
    from telex.redaction import Redactor


@dataclass(slots=True)
class AgentContext:
    """The environment of one workspace. `cwd` is inside the sandbox, and no component is a link."""

    sandbox: Sandbox
    cwd: Path
    home: Path
    cache: OutputCache
    versions: ContentStore
    images: ContentStore
    environment: Mapping[str, str]
    redactor: Redactor
    trusted: bool = False
    """Whether the skills and commands of the project count."""
    restricted: Callable[[str], str] = lambda path: ""
    """Returns why a rule forbids to read a path; empty if none does."""
    own_commands: Path | None = None
    """The directory with the commands of the person."""
    _skills: dict[Path, sessions.SkillsListResult] = field(default_factory=dict)
    _own_skills: sessions.SkillsListResult | None = None
    """The skills of the person alone, where the project is not trusted."""

    @property
    def skills(self) -> SkillLibrary:
        """The skills that the agent may use."""
        return SkillLibrary(
            self.sandbox, self.cwd, self._offered, self._why_not_offered, self.restricted
        )

    @property
    def slash_commands(self) -> SlashCommands:
        """The commands and skills that a person calls by `/name`."""
        return SlashCommands(
            self.sandbox.root,
            self.cwd,
            self.own_commands,
            trusted=self.trusted,
            skills=self.skills,
            listed=lambda reload: self.list_skills(None, reload=reload),
            restricted=self.restricted,
        )

    def tool_context(self, todos: TodoList) -> ToolContext:
        return ToolContext(
            self.sandbox,
            self.cwd,
            self.cache,
            self.versions,
            self.environment,
            self.redactor,
            todos,
            skills=self.skills,
        )

    def workspace(self, ui_context: bytes | None) -> str:
        """Return the workspace of a session: the one that the UI context names, else the sandbox
        root."""
        named = None
        if ui_context is not None:
            named = msgspec.json.decode(ui_context, type=UiContext).workspace_root
        return self.resolve_workspace(named or str(self.sandbox.root))

    def resolve_workspace(self, workspace: str) -> str:
        """Return the real path of a workspace, so that two spellings of one directory are equal.

        The result is only a label: nothing is opened by it.
        """
        try:
            place = os.path.realpath(os.path.join(self.cwd, workspace))
        except ValueError:  # it contains a NUL, so it names no directory
            place = workspace
        return path_text(place)

    async def run_shell(self, params: sessions.ShellExecParams) -> sessions.ShellExecResult:
        """Run a command of the person. Raises `BadShellParams`, and errors of the start."""
        return await shell_exec(
            params.command,
            params.timeout_seconds,
            params.cwd,
            sandbox=self.sandbox,
            working_dir=self.cwd,
            environment=self.environment,
            cache=self.cache,
        )

    async def list_skills(self, cwd: str | None, *, reload: bool) -> sessions.SkillsListResult:
        """List the skills for a directory, from the cache unless `reload`. Skills of a project that
        is not trusted are listed with the reason why they are not offered. Raises
        `OutsideSandbox`."""
        place = (
            self.cwd if cwd is None else Path(self.sandbox.root, self.sandbox.place(cwd, self.cwd))
        )
        if not reload and place in self._skills:
            return self._skills[place]
        listed, there = await run_in_thread(lambda _: (self._marked(place), os.path.isdir(place)))
        if there:  # else a UI could fill the cache with names of missing directories
            self._cache_skills(place, listed)
        return listed

    def _marked(self, place: Path) -> sessions.SkillsListResult:
        listed = find_skills(self.sandbox.root, place, self.home)
        if self.trusted or all(skill.scope == "user" for skill in listed.skills):
            return listed
        why = untrusted_project(str(self.sandbox.root))
        skills = [
            msgspec.structs.replace(skill, not_offered=why) if skill.scope == "repo" else skill
            for skill in listed.skills
        ]
        return msgspec.structs.replace(listed, skills=skills)

    async def offered_skills(self, *, reload: bool = False) -> sessions.SkillsListResult:
        """Return the skills that the agent may use, from the cache unless `reload`."""
        return await self._offered(reload)

    async def _offered(self, reload: bool) -> sessions.SkillsListResult:
        """Return the skills that count. Without trust those of the project are not even searched,
        so that many of them cannot crowd out the person's."""
        if self.trusted:
            return await self.list_skills(None, reload=reload)
        if reload or self._own_skills is None:
            find = partial(find_skills, self.sandbox.root, self.cwd, self.home, repo=False)
            self._own_skills = await run_in_thread(lambda _: find())
        return self._own_skills

    async def _why_not_offered(self, name: str) -> str:
        if self.trusted:
            return ""
        skills = (await self.list_skills(None, reload=True)).skills
        return next((skill.not_offered or "" for skill in skills if skill.name == name), "")

    def _cache_skills(self, place: Path, listed: sessions.SkillsListResult) -> None:
        self._skills[place] = listed
        while len(self._skills) > AGENT_SKILLS_PLACES:
            del self._skills[next(iter(self._skills))]

    async def describe_agents_files(self) -> dict[str, Any]:
        files = await run_in_thread(lambda _: agents_files(self.sandbox, self.cwd))
        return {
            "enabled": True,
            "root_dir": str(self.sandbox.root),
            "working_dir": str(self.cwd),
            "covered_dirs": [
                str(path) for path in directories_down_to(self.sandbox.root, self.cwd)
            ],
            "initial_files": [asdict(file) for file in files],
            "loaded_files": [],
        }

    async def inspect(
        self, params: sessions.ContextInspectParams, ui_context: bytes | None
    ) -> sessions.ContextInspectResult:
        agents = skills = None
        if params.include_agents is not False:
            agents = await self.describe_agents_files()
        if params.include_skills is not False:
            skills = {
                "root_dir": str(self.sandbox.root),
                "working_dir": str(self.cwd),
                "catalog": await self.list_skills(None, reload=False),
                "loaded_versions": [],
            }
        return sessions.ContextInspectResult(
            str(self.cwd), str(self.sandbox.root), _inspected_ui(ui_context), agents, skills
        )


def _inspected_ui(ui_context: bytes | None) -> sessions.InspectedUi | None:
    if ui_context is None:
        return None
    context = msgspec.json.decode(ui_context, type=UiContext)
    active = context.active_file.path if context.active_file is not None else None
    return sessions.InspectedUi(context.cwd, context.workspace_root, active)
