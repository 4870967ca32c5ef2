"""The skills of one workspace that an agent may use: found by name, loaded, their files read.

A skill of the project counts only if the user trusts the project. A skill is loaded as a text: its
`SKILL.md` without the head, and a list of the files in its folder. Nothing of a skill runs by
loading; the list has the absolute paths of programs, which the model may run with the shell tool.

Every path is resolved link by link and must end in the folder of the skill; a name of a secret, and
a path that a rule restricts, is not read. Skills of the person are outside of the sandbox root, so
their folder is the root of a sandbox of its own.
"""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.agent.excerpts import fitting, lines_of
from telex.agent.limits import AGENT_SKILL_BYTES, AGENT_SKILL_FILES
from telex.agent.permissions.disk import DiskLookup
from telex.agent.permissions.display_text import in_line
from telex.agent.permissions.path_walk import is_below
from telex.agent.permissions.sensitive_names import is_secret
from telex.agent.sandbox_files import (
    FileRefused,
    OutsideSandbox,
    Sandbox,
    WalkedTooFar,
    printable_path,
    read_text,
    sha256_hex,
    walk,
)
from telex.agent.skills import SKILL_FILE, BadSkill, leads_to_secret, split_frontmatter
from telex.processes.shielded import run_in_thread
from telex.rpc.nearest import did_you_mean, nearest_names
from telex.wire.limits import KIB

if TYPE_CHECKING:
    import threading
    from collections.abc import Awaitable, Callable

    from telex.agent.protocol.sessions import Skill, SkillsListResult
    from telex.agent.sandbox_files import SandboxEntry

_CONFIG: Final = ".telex/config.toml"
_VERSION_CHARS: Final = 12


class SkillRefused(Exception):
    """A skill, or a file of one, cannot be loaded; the message is the reason."""


def untrusted_project(root: str) -> str:
    """Return why the skills and commands of a project are not used, and what to run."""
    path = shlex.quote(root)
    missing = not os.path.lexists(os.path.join(root, _CONFIG))
    file = shlex.quote(os.path.join(root, _CONFIG))
    first = f"mkdir -p {shlex.quote(os.path.join(root, '.telex'))} && touch {file} && "
    return (
        "the project is not trusted; check its skills and commands, then run: "
        f"{first if missing else ''}telex config trust {path}"
    )


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill as a text for a conversation."""

    head: str
    """The first line: the name, the version and the file. A changed skill has another version."""
    text: str


@dataclass(frozen=True, slots=True)
class _Folder:
    """The folder of a skill: a sandbox, and the place of the folder in it."""

    base: Sandbox
    place: str
    name: str

    @property
    def path(self) -> str:
        return os.path.normpath(self.base.root / self.place)

    def find(self, file: str) -> str:
        """Return the place of a file in the sandbox. Raises `SkillRefused`."""
        try:
            place = self.base.place(os.path.join(self.path, file), self.base.root)
        except OutsideSandbox as error:
            raise SkillRefused(self._leads_out(file)) from error
        if not is_below(os.path.normpath(self.base.root / place), self.path):
            raise SkillRefused(self._leads_out(file))
        if leads_to_secret(os.path.join(self.path, file), self.path, DiskLookup()):
            raise SkillRefused(f"{in_line(file)} is not read: it has the name of a secret")
        return place

    def _leads_out(self, file: str) -> str:
        folder = in_line(self.path)
        return f"{in_line(file)} is not in the folder of the skill {self.name}, {folder}"

    def listing(self, unwanted: threading.Event) -> list[str]:
        """Return a line for each file, without secrets and links that lead out."""
        rows: list[str] = []
        try:
            for entry in walk(self.base, self.place, unwanted, skip=_is_secret_entry):
                if entry.path == SKILL_FILE or (row := self._row(entry)) is None:
                    continue
                if len(rows) == AGENT_SKILL_FILES:
                    return [*rows, f"[the first {AGENT_SKILL_FILES} files; there are more]"]
                rows.append(row)
        except WalkedTooFar as limit:
            rows.append(f"[{limit}]")
        except (OSError, OutsideSandbox):  # it was removed meanwhile, or replaced by a link
            return []
        return rows

    def _row(self, entry: SandboxEntry) -> str | None:
        if entry.is_directory:
            return None
        place = os.path.normpath(os.path.join(self.place, entry.path))
        try:  # the walk followed no link, so only a link has another place
            with self.base.opened(self.find(entry.path) if entry.is_link else place) as descriptor:
                status = os.fstat(descriptor)
        except (SkillRefused, OSError, OutsideSandbox):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        shown = f"- {printable_path(entry.path)}"
        if status.st_mode & 0o111:
            return f"{shown} (program: {printable_path(os.path.join(self.path, entry.path))})"
        return shown


def _is_secret_entry(entry: SandboxEntry) -> bool:
    return is_secret(f"/{entry.path}")


class SkillLibrary:
    """The skills that one workspace offers."""

    def __init__(
        self,
        sandbox: Sandbox,
        cwd: Path,
        offered: Callable[[bool], Awaitable[SkillsListResult]],
        why_not_offered: Callable[[str], Awaitable[str]],
        restricted: Callable[[str], str],
    ) -> None:
        """
        Args:
            offered: Returns the skills that the agent may use; with True they are searched again.
            why_not_offered: Returns why a skill with that name is not used, empty if there is none.
            restricted: Returns why a rule forbids to read a path, empty if none does. Blocks.
        """
        self._sandbox = sandbox
        self._cwd = cwd
        self._offered = offered
        self._why_not_offered = why_not_offered
        self._restricted = restricted

    async def offered(self) -> list[Skill]:
        """Search the skills again, and return those that the agent may use."""
        return (await self._offered(True)).skills

    async def offers(self, name: str) -> bool:
        """Return whether a skill has the name."""
        wanted, _ = await self._search(name)
        return bool(wanted)

    async def _search(self, name: str) -> tuple[list[Skill], list[Skill]]:
        """Return the skills with a path or a name, and all skills."""
        skills = (await self._offered(False)).skills
        if not (wanted := await self._named(name, skills)):  # it may be new
            skills = await self.offered()
            wanted = await self._named(name, skills)
        return wanted, skills

    async def find(self, name: str) -> Skill:
        """Return the skill with a path or a name. Raises `SkillRefused` for an unknown name, and
        for one that several skills have."""
        wanted, skills = await self._search(name)
        if len(wanted) == 1:
            return wanted[0]
        if wanted:
            paths = ", ".join(in_line(skill.path) for skill in wanted)
            raise SkillRefused(f"{len(wanted)} skills are named {name}; give a path: {paths}")
        if why := await self._why_not_offered(name):
            raise SkillRefused(f"the skill {in_line(name)} is not used: {why}")
        hint = did_you_mean(nearest_names(name, [skill.name for skill in skills]))
        raise SkillRefused(f"there is no skill {in_line(name)}. {hint}".rstrip())

    async def _named(self, name: str, skills: list[Skill]) -> list[Skill]:
        if "/" in name:
            return await run_in_thread(lambda _: self._at(name, skills))
        return [skill for skill in skills if skill.name == name]

    def _at(self, name: str, skills: list[Skill]) -> list[Skill]:
        """Return the skill with this path, or in this folder."""
        disk = DiskLookup()
        try:
            given = disk.real(os.path.join(self._cwd, name))
        except ValueError:
            return []
        return [
            skill for skill in skills if given in (disk.real(skill.path), disk.real(skill.dir))
        ][:1]

    async def load(self, skill: Skill, by: str = "") -> LoadedSkill:
        """Return the text of a skill. `by` says who asked for it. Raises `SkillRefused`."""
        return await run_in_thread(lambda unwanted: self._load(skill, by, unwanted))

    def _load(self, skill: Skill, by: str, unwanted: threading.Event) -> LoadedSkill:
        content = self._main_file(skill)
        whole = content.decode("utf-8", "replace")
        try:
            values, body = split_frontmatter(whole)
        except BadSkill as problem:
            raise SkillRefused(f"{in_line(skill.path)}: {problem}") from problem
        if values is None or values.get("name") != skill.name:
            raise SkillRefused(f"{in_line(skill.path)} is no skill {skill.name} any more")
        before = whole.count("\n", 0, len(whole) - len(body.lstrip()))
        folder = self._folder(skill)
        version = sha256_hex(content)[:_VERSION_CHARS]
        head = f"[skill {skill.name}, version {version}, from {in_line(skill.path)}]"
        parts = [f"{head}\n{by}".rstrip(), _cut(body.strip(), before)]
        if files := folder.listing(unwanted):
            parts.append(
                f"[its files, in {in_line(folder.path)}: read one with skill_load and `file`; run "
                "a program with shell, by its absolute path]\n" + "\n".join(fitting(files))
            )
        return LoadedSkill(head, "\n\n".join(parts))

    def _main_file(self, skill: Skill) -> bytes:
        """Read the `SKILL.md`. That of a project may be a link inside the root, that of the person
        a link to anywhere."""
        within = str(self._sandbox.root) if skill.scope == "repo" else None
        disk = DiskLookup()
        way = disk.resolve(skill.path)
        if way.unknown or leads_to_secret(skill.path, within, disk):
            raise SkillRefused(f"{in_line(skill.path)} is not read: it may lead to a secret")
        self._check_rules(way.end)
        if skill.scope == "repo":
            sandbox = self._sandbox
        else:
            sandbox = Sandbox(Path(os.path.dirname(way.end)))
        content = _text_of(sandbox, skill.path if within else way.end)
        if len(content) > AGENT_SKILL_BYTES:
            most = AGENT_SKILL_BYTES // KIB
            raise SkillRefused(f"{in_line(skill.path)} is larger than {most} KiB")
        return content

    async def read_file(self, skill: Skill, file: str) -> tuple[str, bytes]:
        """Return the path and the content of a text file of a skill. Raises `SkillRefused`."""
        return await run_in_thread(lambda _: self._read_file(skill, file))

    def _read_file(self, skill: Skill, file: str) -> tuple[str, bytes]:
        folder = self._folder(skill)
        path = os.path.normpath(folder.base.root / folder.find(file))
        self._check_rules(path)
        if os.path.isdir(path):
            raise SkillRefused(f"{in_line(file)} is a directory; load the skill to see its files")
        return path, _text_of(folder.base, path)

    def _folder(self, skill: Skill) -> _Folder:
        try:
            if skill.scope == "repo":
                place = self._sandbox.place(skill.dir, self._sandbox.root)
                return _Folder(self._sandbox, place, skill.name)
        except OutsideSandbox as error:
            raise SkillRefused(str(error)) from error
        way = DiskLookup().resolve(skill.dir)
        if way.unknown:
            raise SkillRefused(f"cannot resolve {in_line(skill.dir)}: {way.unknown}")
        return _Folder(Sandbox(Path(way.end)), os.curdir, skill.name)

    def _check_rules(self, path: str) -> None:
        if why := self._restricted(path):
            raise SkillRefused(f"{in_line(path)} is not read: {why}")


def _text_of(sandbox: Sandbox, path: str) -> bytes:
    try:
        return read_text(sandbox, sandbox.place(path, sandbox.root))
    except (FileRefused, OutsideSandbox) as error:
        raise SkillRefused(str(error)) from error
    except OSError as error:
        raise SkillRefused(f"{in_line(path)}: {error.strerror}") from error


def _cut(body: str, before: int) -> str:
    """Return the text below the head, or as many of its lines as fit into one result. `before` is
    the number of lines of the file before the text."""
    lines = lines_of(body)
    shown = list(fitting(lines))
    if len(shown) == len(lines):
        return "\n".join(shown)
    rest, after = len(lines) - len(shown), before + len(shown)
    note = f"[cut: {rest} more lines; read on with skill_load, file SKILL.md and offset {after}]"
    return "\n".join([*shown, note])
