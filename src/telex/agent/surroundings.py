"""Where a runtime works: its sandbox, what tools are given, AGENTS.md files, skills, the UI.

Everything about files is looked at when it is asked for, in a thread; only the lists of skills are
kept, of so many directories, until somebody wants one new.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.agents_files import agents_files
from telex.agent.sandbox import OutsideSandbox, downward
from telex.agent.shell_exec import shell_exec
from telex.agent.skills import catalogue
from telex.agent.tools.tool import ToolContext
from telex.agent.uninterrupted import in_thread
from telex.protocols.agent_ui import sessions
from telex.protocols.agent_ui.running import UiContext
from telex.wire.limits import AGENT_SKILLS_PLACES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.agent.output_cache import OutputCache
    from telex.agent.sandbox import Sandbox
    from telex.agent.tools.todo import Todos
    from telex.redaction import Redactor


@dataclass(slots=True)
class Surroundings:
    """One for each runtime. `cwd` lies inside the sandbox and has no links."""

    sandbox: Sandbox
    cwd: Path
    home: Path
    cache: OutputCache
    environment: Mapping[str, str]
    redactor: Redactor
    _skills: dict[Path, sessions.SkillsListResult] = field(default_factory=dict)

    def for_tools(self, todos: Todos) -> ToolContext:
        return ToolContext(
            self.sandbox, self.cwd, self.cache, self.environment, self.redactor, todos
        )

    def workspace(self, ui_context: bytes | None) -> str:
        """What a session is listed under: what the UI named, else the sandbox root."""
        named = None
        if ui_context is not None:
            named = msgspec.json.decode(ui_context, type=UiContext).workspace_root
        return self.resolved(named or str(self.sandbox.root))

    def resolved(self, workspace: str) -> str:
        """Two spellings of one directory are one workspace. A label only: nothing is opened."""
        try:
            place = os.path.realpath(os.path.join(self.cwd, workspace))
        except ValueError:  # a NUL in it: no directory has such a name
            place = workspace
        return place.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    async def exec(self, params: sessions.ShellExecParams) -> sessions.ShellExecResult:
        """Raises `BadShellParams` and what starting a program raises."""
        ran = await shell_exec(
            params.command,
            params.timeout_seconds,
            params.cwd,
            sandbox=self.sandbox,
            working_dir=self.cwd,
            environment=self.environment,
            cache=self.cache,
        )
        return msgspec.convert(asdict(ran), sessions.ShellExecResult)

    async def skills(self, cwd: str | None, *, reload: bool) -> sessions.SkillsListResult:
        """Raises `OutsideSandbox`."""
        place = self.cwd if cwd is None else Path(self.sandbox.root, self._place(cwd))
        if not reload and place in self._skills:
            return self._skills[place]
        found, there = await in_thread(
            lambda _: (catalogue(self.sandbox.root, place, self.home), os.path.isdir(place))
        )
        listed = msgspec.convert(asdict(found), sessions.SkillsListResult)
        if there:  # a UI may name any place, and names of what is not there have no bound
            self._keep(place, listed)
        return listed

    def _keep(self, place: Path, listed: sessions.SkillsListResult) -> None:
        self._skills[place] = listed
        while len(self._skills) > AGENT_SKILLS_PLACES:
            del self._skills[next(iter(self._skills))]

    def _place(self, cwd: str) -> str:
        return self.sandbox.place(cwd, self.cwd)

    async def agents(self) -> dict[str, Any]:
        files = await in_thread(lambda _: agents_files(self.sandbox, self.cwd))
        return {
            "enabled": True,
            "root_dir": str(self.sandbox.root),
            "working_dir": str(self.cwd),
            "covered_dirs": [str(one) for one in downward(self.sandbox.root, self.cwd)],
            "initial_files": [asdict(file) for file in files],
            "loaded_files": [],
        }

    async def inspected(
        self, params: sessions.ContextInspectParams, ui_context: bytes | None
    ) -> sessions.ContextInspectResult:
        agents = skills = None
        if params.include_agents is not False:
            agents = await self.agents()
        if params.include_skills is not False:
            skills = {
                "root_dir": str(self.sandbox.root),
                "working_dir": str(self.cwd),
                "catalog": await self.skills(None, reload=False),
                "loaded_versions": [],
            }
        return sessions.ContextInspectResult(
            str(self.cwd), str(self.sandbox.root), _seen(ui_context), agents, skills
        )


def _seen(ui_context: bytes | None) -> sessions.InspectedUi | None:
    if ui_context is None:
        return None
    told = msgspec.json.decode(ui_context, type=UiContext)
    active = told.active_file.path if told.active_file is not None else None
    return sessions.InspectedUi(told.cwd, told.workspace_root, active)


__all__ = ["OutsideSandbox", "Surroundings"]
