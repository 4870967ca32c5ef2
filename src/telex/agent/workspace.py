"""A workspace: the directory in which an agent works, with its policy and its tools.

One runtime serves many workspaces. A connection gets its workspace at `initialize`, and a run keeps
the one in which it was started, also after a restart of the server (decision 0048).

The mode and the rules protect a person from the agent, not from the client: whoever may connect may
also run commands with `shell.exec`. A client still gets no weaker policy than the server's owner
chose, unless it is a program of that owner (`WorkspacePolicy`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from telex.agent.errors import WorkspaceRefused
from telex.agent.permissions import Mode
from telex.agent.protocol.runs import WorkspaceChoice, WorkspaceInfo
from telex.agent.sandbox_files import find_sandbox, path_text
from telex.processes import proc
from telex.processes.shielded import run_in_thread
from telex.rpc.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from telex.agent.agent_context import AgentContext
    from telex.agent.mcp_client.mcp_tool_source import McpToolSource
    from telex.agent.permissions.confirmation import Confirmer
    from telex.agent.permissions.workspace_permissions import RememberedAnswers
    from telex.agent.tools.tool_registry import ToolRegistry

STRICTEST_FIRST: Final = (Mode.MINIMAL, Mode.TRUSTED, Mode.FULL)


@dataclass(frozen=True, slots=True)
class Place:
    """The settings by which a workspace is found again."""

    root: str
    cwd: str
    """The directory that relative paths start from, in the root."""
    mode: Mode


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Workspace:
    """Everything that depends on the place: the directory, the permissions and the tools."""

    place: Place
    context: AgentContext
    confirmer: Confirmer
    tools: ToolRegistry
    mcp: McpToolSource | None = None
    """The MCP servers, whose tools are in `tools`; None if none is configured."""
    made_of: object = None
    """The configuration that was read. Two workspaces of one place are shared if it is equal."""

    def describe(self) -> WorkspaceInfo:
        return WorkspaceInfo(
            path_text(self.place.root),
            path_text(self.place.cwd),
            self.place.mode.value,
            self.confirmer.permissions.trusted,
        )


@dataclass(frozen=True, slots=True)
class WorkspacePolicy:
    """The options of a server: its default workspace, which also limits foreign clients.

    A program of the server's own user, known by its `identity` on the unix socket, may choose any
    root and any mode, because it could start `telex agent` with them. Any other client may choose
    only a mode as strict as `mode` or stricter, and only a root in the default root, if there is
    one.
    """

    mode: Mode = Mode.MINIMAL
    root: Path | None = None
    """The sandbox root that the owner named."""
    cwd: Path | None = None
    """The directory of the default workspace; None if only the caller's own directory counts."""

    def choose(self, asked: WorkspaceChoice, identity: Identity | None) -> Place:
        """Return the place of a connection. Blocks. Raises `WorkspaceRefused`, `OutsideSandbox`."""
        is_owner = _is_owner(identity)
        mode = self.mode if asked.mode is None else Mode(asked.mode)
        if not is_owner and STRICTEST_FIRST.index(mode) > STRICTEST_FIRST.index(self.mode):
            raise WorkspaceRefused(
                f"workspace.mode: {mode} is weaker than {self.mode}, the mode of this server; "
                f"name {self.mode} or a stricter one, or connect by the server's unix socket"
            )
        default = self._default(None if asked.root is not None else identity)
        if asked.root is None:
            if default is None:
                raise WorkspaceRefused(
                    "this server has no root of its own and does not know your directory; name one "
                    'in `initialize`: "workspace": {"root": "/an/absolute/path"}'
                )
            return Place(*default, mode)
        root = _real_directory(asked.root)
        if not is_owner and default is not None and not Path(root).is_relative_to(default[0]):
            raise WorkspaceRefused(
                f"workspace.root: {root} is outside {default[0]}, the root of this server; "
                "name a directory in it, or connect by the server's unix socket"
            )
        return Place(root, root, mode)

    def _default(self, identity: Identity | None) -> tuple[str, str] | None:
        """Return the root and the cwd of the options, else those of the caller's directory."""
        if self.root is not None:
            root = str(find_sandbox(self.root, self.root).root)
            return root, root
        if self.cwd is not None:
            return str(find_sandbox(self.cwd).root), os.path.realpath(self.cwd)
        if (cwd := _cwd_of(identity)) is None:
            return None
        cwd = _real_directory(cwd)  # it may have been removed
        return str(find_sandbox(Path(cwd)).root), cwd


def _is_owner(identity: Identity | None) -> bool:
    """Whether the client is this program itself, or a process of the same user."""
    match identity:
        case Identity(kind="in_process"):
            return True
        case Identity(kind="process"):
            return identity.uid == os.geteuid()
        case _:
            return False


def _cwd_of(identity: Identity | None) -> str | None:
    """Return the working directory of a process of this user."""
    if identity is None or identity.pid is None or not _is_owner(identity):
        return None
    try:
        return proc.link(identity.pid, "cwd")
    except OSError:  # the process has ended, or there is no /proc
        return None


def _real_directory(root: str) -> str:
    """Return the path without links. Raises `WorkspaceRefused` unless it is a directory."""
    if not os.path.isabs(root):
        raise WorkspaceRefused(f"workspace.root: {root!r} is not an absolute path; name one")
    try:
        real = os.path.realpath(root, strict=True)
    except (OSError, ValueError) as error:  # ValueError: it contains a NUL
        reason = error.strerror if isinstance(error, OSError) else "no path"
        raise WorkspaceRefused(
            f"workspace.root: {root!r}: {reason}; name a directory that exists"
        ) from error
    if not os.path.isdir(real):
        raise WorkspaceRefused(f"workspace.root: {root!r} is not a directory; name one")
    return real


class Workspaces:
    """The workspaces of one runtime. Connections and runs with equal settings share one.

    A workspace lives as long as somebody uses it. Each `initialize` reads the configuration again,
    so that trust and rules count from the next connection on.
    """

    def __init__(
        self,
        policy: WorkspacePolicy,
        answers: RememberedAnswers,
        make: Callable[[Place], Awaitable[Workspace]],
    ) -> None:
        self.policy = policy
        self._answers = answers
        self._make = make
        self._open: WeakValueDictionary[Place, Workspace] = WeakValueDictionary()

    async def choose(self, asked: WorkspaceChoice | None, identity: Identity | None) -> Workspace:
        """Open the workspace of a connection. Raises `WorkspaceRefused`, `OutsideSandbox`,
        `InvalidRule`, and errors of the configuration and of the store."""
        choice = asked or WorkspaceChoice()
        return await self.open(await run_in_thread(lambda _: self.policy.choose(choice, identity)))

    async def reopen(self, place: Place) -> Workspace:
        """Open the workspace of a stored run. Raises `WorkspaceRefused` also where a link is on the
        way to it now: the run was started in another directory."""
        paths = [place.root, place.cwd]
        if await run_in_thread(lambda _: [_real_directory(path) for path in paths]) != paths:
            raise WorkspaceRefused(f"a link is on the way to {place.cwd} now")
        return await self.open(place)

    async def open(self, place: Place) -> Workspace:
        await self._answers.load()
        made = await self._make(place)
        known = self._open.get(place)
        if known is not None and known.made_of == made.made_of:
            return known
        self._open[place] = made
        return made
