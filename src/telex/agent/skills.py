"""Skills (`SKILL.md`) and project instructions (`AGENTS.md`) of the project and the person.

A skill is a directory with a `SKILL.md`, whose YAML head has the name and the description. Skills
are searched in three subdirectories (`SKILL_DIRECTORIES`) of every directory from the root to the
cwd, and of the person's home. An invalid skill is listed as a problem beside the others, never
raised, because the files of a repository are not trusted. Links are followed, those of a project
only inside its root. A skill that is reached by two paths is listed once; a path with the name of a
secret is not read. AGENTS.md files may be in each directory from the root down to the cwd. Their
text is for language models, and is read when it is needed.

Everything blocks; the callers run it in a thread.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from telex.agent.limits import (
    AGENT_FRONTMATTER_BYTES,
    AGENT_SKILLS,
    AGENT_SKILLS_BYTES,
    AGENT_SKILLS_DIRECTORIES,
)
from telex.agent.permissions.disk import DiskLookup
from telex.agent.permissions.path_walk import is_below, path_spellings
from telex.agent.permissions.sensitive_names import is_secret
from telex.agent.protocol.sessions import Skill, SkillProblem, SkillsListResult
from telex.agent.sandbox_files import OutsideSandbox, directories_down_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent.sandbox_files import Sandbox


SKILL_DIRECTORIES: Final = (".agents/skills", ".claude/skills", ".opencode/skills")
SKILL_FILE: Final = "SKILL.md"
SECRET: Final = "its name is that of a secret, or it is a link to one"
Scope = Literal["repo", "user"]

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME_CHARS: Final = 64
_DESCRIPTION_CHARS: Final = 1024
_BRACKETS: Final = 200
"""More are refused: the parser's time grows with the square of nested brackets, to seconds."""
_HINT: Final = re.compile(r"^(argument-hint:)[ \t]*(\[[^\r\n]*?)[ \t]*\r?$", re.MULTILINE)
"""People write `argument-hint: [file] [line]`, which is not YAML."""
_HEAD: Final = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class BadSkill(ValueError):
    """An invalid `SKILL.md`; the message is the reason."""


def find_skills(root: Path, cwd: Path, home: Path, *, repo: bool = True) -> SkillsListResult:
    """Return the skills of the project, the outermost directory first, then the person's; without
    `repo` only the person's."""
    scan = _SkillScan()
    own = Path(os.path.realpath(home))
    for directory in directories_down_to(root, cwd) if repo else ():
        if directory == own:  # a project in the home directory has no skills of its own there
            continue
        scan.scan_below(directory, "repo", within=str(root))
    scan.scan_below(home, "user", within=None)
    return scan.result()


def read_frontmatter(content: str, directory: str) -> tuple[str, str]:
    """Return name and description. Raises `BadSkill`. Pure."""
    values, _ = split_frontmatter(content)
    if values is None:
        raise BadSkill("missing YAML frontmatter")
    if not values:
        raise BadSkill("the frontmatter has no name and no description")
    return _name(values.get("name"), directory), _description(values.get("description"))


def split_frontmatter(content: str) -> tuple[dict[str, object] | None, str]:
    """Return the members of the YAML head, None where there is no head, and the text below it.
    Raises `BadSkill`. Pure."""
    import yaml  # imported here: it takes 20 ms, needed only where there are skills

    head = _HEAD.match(content[:AGENT_FRONTMATTER_BYTES])
    if head is None:
        return None, content
    if head[0].count("[") + head[0].count("{") > _BRACKETS:
        raise BadSkill("the frontmatter has too many brackets")
    written = _HINT.sub(lambda found: f"{found[1]} {json.dumps(found[2])}", head[1] or "")
    try:
        # Not `safe_load`, which takes minutes for a few lines of merge keys. BaseLoader supports
        # only strings, lists and maps, which is enough for a name and a description.
        values = yaml.load(written, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadSkill(f"the frontmatter is not YAML{_where(error)}") from None
    return values if isinstance(values, dict) else {}, content[head.end() :]


def _where(error: Exception) -> str:
    """Return the position of the error without the parser's message: that quotes the content, and
    the file may be a secret."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return ": it is nested too deeply" if isinstance(error, RecursionError) else ""
    return f", at line {mark.line + 2}, column {mark.column + 1}"  # after the first `---`


def _name(value: object, directory: str) -> str:
    if not (isinstance(value, str) and len(value) <= _NAME_CHARS and _NAME.fullmatch(value)):
        raise BadSkill("invalid name: 1 to 64 of a-z and 0-9, with single hyphens between them")
    if value != directory:
        raise BadSkill("name must match skill directory name")
    return value


def _description(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""  # one line in every list
    if not 1 <= len(text) <= _DESCRIPTION_CHARS:
        raise BadSkill("invalid description: 1 to 1024 characters")
    return text


def leads_to_secret(path: str, within: str | None, disk: DiskLookup) -> bool:
    """Check every spelling of the path, also those through links. Inside the root only the part
    below the root counts: the checkout itself may be in a directory with a secret's name."""
    top = (within or "").rstrip("/")
    names = path_spellings(path, disk.resolve(path))
    return any(is_secret(name.removeprefix(top) if is_below(name, top) else name) for name in names)


@dataclass(slots=True)
class _SkillScan:
    """One scan of all skill directories: the skills and problems found so far."""

    skills: list[Skill] = field(default_factory=list)
    accepted: set[str] = field(default_factory=set)
    """The real paths of the skills."""
    errors: dict[str, SkillProblem] = field(default_factory=dict)
    """By real path. A file that is no skill by one path may be one by another, as its folder has
    another name there."""
    seen: set[tuple[str, str]] = field(default_factory=set)
    """The searched directories: the real path, and the name by which the search came to it."""
    left: int = AGENT_SKILLS_DIRECTORIES
    disk: DiskLookup = field(default_factory=DiskLookup)
    cut: bool = False

    def scan_below(self, directory: Path, scope: Scope, within: str | None) -> None:
        for place in SKILL_DIRECTORIES:
            for path, real in self._skill_files(str(directory / place), within):
                if leads_to_secret(path, within, self.disk):
                    self.errors.setdefault(real, SkillProblem(path, SECRET))
                else:
                    self._add(path, real, scope)

    def _skill_files(self, top: str, within: str | None) -> Iterator[tuple[str, str]]:
        """Return each `SKILL.md` that is not a skill yet, with its real path."""
        waiting = [top]
        while waiting:
            path = waiting.pop()
            way = self.disk.resolve(path)
            real = way.end
            if way.unknown or not _is_inside(real, within):
                continue
            if os.path.basename(path) == SKILL_FILE and not os.path.isdir(real):
                if real not in self.accepted:
                    yield path, real
            elif (place := (real, os.path.basename(path))) not in self.seen:
                self.seen.add(place)
                waiting += self._entries(path)

    def _entries(self, directory: str) -> list[str]:
        """Return the `SKILL.md` and the subdirectories, also those that are links, in reverse order
        for the stack of the caller."""
        self.left -= 1
        if self.left < 0:
            self.cut = True
            return []
        try:
            with os.scandir(directory) as found:
                names = [
                    entry.name
                    for entry in found  # an unprintable name is not a valid skill name
                    if entry.name == SKILL_FILE or (entry.name.isprintable() and _is_dir(entry))
                ]
        except OSError:  # missing or not readable
            return []
        return [os.path.join(directory, name) for name in sorted(names, reverse=True)]

    def _add(self, path: str, real: str, scope: Scope) -> None:
        try:
            self.skills.append(_read_skill(path, scope))
        except BadSkill as problem:
            self.errors.setdefault(real, SkillProblem(path, str(problem)))
        except OSError as error:
            unreadable = SkillProblem(path, f"cannot read it: {error.strerror}")
            self.errors.setdefault(real, unreadable)
        else:
            self.accepted.add(real)

    def result(self) -> SkillsListResult:
        kept, size = [], 0
        for skill in self.skills[:AGENT_SKILLS]:
            size += sum(len(text.encode()) for text in (skill.name, skill.description))
            size += len(os.fsencode(skill.path))
            if size > AGENT_SKILLS_BYTES:
                break
            kept.append(skill)
        found = [one for real, one in self.errors.items() if real not in self.accepted]
        errors = found[:AGENT_SKILLS]
        cut = self.cut or len(kept) < len(self.skills) or len(errors) < len(found)
        return SkillsListResult(kept, errors, cut)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """Return whether the entry is a directory, or a link to one; a link to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_inside(real: str, within: str | None) -> bool:
    return within is None or os.path.commonpath((real, within)) == within


def _read_skill(path: str, scope: Scope) -> Skill:
    real = DiskLookup().real(path)
    # O_NOFOLLOW: it may have been replaced by a link since. O_NONBLOCK: it may be a named pipe.
    descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadSkill("it is not a regular file")
        content = file.read(AGENT_FRONTMATTER_BYTES).decode("utf-8", "replace")
    directory = os.path.dirname(path)
    name, description = read_frontmatter(content, os.path.basename(directory))
    id = hashlib.sha256(os.fsencode(real)).hexdigest()[:24]
    return Skill(id, name, description, path, directory, scope, status.st_mtime_ns // 1_000_000)


AGENTS_FILE: Final = "AGENTS.md"


@dataclass(frozen=True, slots=True)
class AgentsFile:
    """An AGENTS.md file, as `context.inspect` lists it."""

    path: str
    mtime_ms: int
    size_bytes: int


def agents_files(sandbox: Sandbox, cwd: Path) -> tuple[AgentsFile, ...]:
    """Return the AGENTS.md files, the outermost directory first: the nearest file takes precedence.
    A link is followed inside the root; a link that leads out is ignored."""
    found = (
        _agents_file(sandbox, directory / AGENTS_FILE)
        for directory in directories_down_to(sandbox.root, cwd)
    )
    return tuple(file for file in found if file is not None)


def _agents_file(sandbox: Sandbox, path: Path) -> AgentsFile | None:
    try:
        with sandbox.opened(sandbox.place(str(path), sandbox.root)) as descriptor:
            status = os.fstat(descriptor)
    except (OSError, OutsideSandbox):  # missing, not readable, or a link that leads out
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return AgentsFile(str(path), status.st_mtime_ns // 1_000_000, status.st_size)
