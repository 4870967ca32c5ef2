"""Commands: prompts with arguments that a person keeps in files, and calls by `/name`.

    .telex/commands/fix.md of the project      /fix
    .telex/commands/git/tidy.md                /git:tidy
    commands/fix.md of the configuration       /fix, unless the project has one

A file is a prompt, after an optional YAML head with `description`, `argument-hint` and `model`. In
the prompt `$ARGUMENTS` stands for everything after the name, and `$1` to `$9` for its words.
Nothing in a file is executed, and it grants no permission. The files of a project are not trusted:
they are bounded, a link leads only to a file in the root, and a file with the name of a secret is
not read.

Everything but `with_arguments` blocks; the callers run it in a thread.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from telex.agent.limits import AGENT_PROMPT_BYTES, AGENT_PROMPT_FILES
from telex.agent.permissions.disk import DiskLookup
from telex.agent.protocol.sessions import SkillProblem
from telex.agent.sandbox_files import (
    FileRefused,
    OutsideSandbox,
    Sandbox,
    WalkedTooFar,
    directories_down_to,
    path_text,
    read_text,
    walk,
)
from telex.agent.skills import SECRET, BadSkill, leads_to_secret, split_frontmatter
from telex.wire.limits import KIB

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS_DIRECTORY: Final = ".telex/commands"
Source = Literal["project", "user"]
NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?::[A-Za-z0-9][A-Za-z0-9_-]{0,63})*"
_NAMED: Final = re.compile(NAME)
_SHOWN_CHARS: Final = 200
"""Characters of a description or a hint in a list."""


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """A command that a person calls by `/name`."""

    name: str
    prompt: str
    path: str
    source: Source
    description: str = ""
    argument_hint: str = ""
    model: str = ""
    """The model of the run, if it is not the current one."""
    hidden_by: str = ""
    """The path of a command with the same name that is nearer."""


@dataclass(frozen=True, slots=True)
class FoundCommands:
    """The commands of a workspace: of those with one name the first counts."""

    commands: list[PromptCommand] = field(default_factory=list)
    errors: list[SkillProblem] = field(default_factory=list)
    truncated: bool = False

    def named(self, name: str) -> PromptCommand | None:
        return next((one for one in self.commands if one.name == name and not one.hidden_by), None)


def find_project_commands(root: Path, cwd: Path) -> FoundCommands:
    """Return the commands of the project, those of the nearest directory first."""
    scan = _CommandScan("project", str(root), links_lead_out=False)
    sandbox = Sandbox(root)
    for directory in reversed(directories_down_to(root, cwd)):
        try:
            place = sandbox.place(str(directory / COMMANDS_DIRECTORY), root)
        except OutsideSandbox:  # a link that leads out
            continue
        scan.scan(sandbox, place)
    return scan.found()


def find_own_commands(directory: Path) -> FoundCommands:
    """Return the commands of the person, whose links may lead anywhere."""
    way = DiskLookup().resolve(os.path.abspath(directory))
    scan = _CommandScan("user", way.end, links_lead_out=True)
    if not way.unknown:
        scan.scan(Sandbox(type(directory)(way.end)), os.curdir)
    return scan.found()


def joined(*found: FoundCommands) -> FoundCommands:
    """Return the commands of several sources, the nearest first. A file that two of them contain
    counts once. Pure."""
    first: dict[str, PromptCommand] = {}
    paths: set[str] = set()
    commands: list[PromptCommand] = []
    for command in (command for one in found for command in one.commands):
        if command.path in paths:
            continue
        paths.add(command.path)
        nearer = first.setdefault(command.name, command)
        hidden = "" if nearer is command else nearer.path
        commands.append(replace(command, hidden_by=hidden))
    errors = [error for one in found for error in one.errors]
    return FoundCommands(commands, errors, any(one.truncated for one in found))


class _CommandScan:
    """One search for commands."""

    def __init__(self, source: Source, top: str, *, links_lead_out: bool) -> None:
        """The names of `top` and above count for no secret: the configuration of telex is one, and
        its commands are not."""
        self._source: Source = source
        self._top = top
        self._links_lead_out = links_lead_out
        self._found = FoundCommands()
        self._cut = False
        self._disk = DiskLookup()

    def found(self) -> FoundCommands:
        found = self._found
        return FoundCommands(found.commands, found.errors, self._cut)

    def scan(self, sandbox: Sandbox, place: str) -> None:
        try:
            for entry in walk(sandbox, place, threading.Event()):
                if entry.is_directory or not entry.path.endswith(".md"):
                    continue
                if len(self._found.commands) + len(self._found.errors) >= AGENT_PROMPT_FILES:
                    self._cut = True
                    return
                self._add(sandbox, os.path.normpath(os.path.join(place, entry.path)), entry.path)
        except WalkedTooFar:
            self._cut = True
        except (OSError, OutsideSandbox):  # there is no such directory
            return

    def _add(self, sandbox: Sandbox, place: str, below: str) -> None:
        path = str(sandbox.root / place)
        name = below.removesuffix(".md").replace("/", ":")
        try:
            if _NAMED.fullmatch(name) is None:
                raise BadSkill("invalid name: use letters, digits, - and _")
            command = _read(name, self._content(sandbox, path), path, self._source)
        except (BadSkill, FileRefused, OutsideSandbox) as problem:
            self._found.errors.append(SkillProblem(path_text(path), str(problem)))
        except OSError as error:
            self._found.errors.append(
                SkillProblem(path_text(path), f"cannot read it: {error.strerror}")
            )
        else:
            self._found.commands.append(command)

    def _content(self, sandbox: Sandbox, path: str) -> str:
        if leads_to_secret(path, self._top, self._disk):
            raise BadSkill(SECRET)
        if self._links_lead_out:
            real = type(sandbox.root)(self._disk.real(path))
            sandbox, path = Sandbox(real.parent), str(real)
        content = read_text(sandbox, sandbox.place(path, sandbox.root))
        if len(content) > AGENT_PROMPT_BYTES:
            raise BadSkill(f"it is larger than {AGENT_PROMPT_BYTES // KIB} KiB")
        return content.decode("utf-8", "replace")


def _read(name: str, content: str, path: str, source: Source) -> PromptCommand:
    values, prompt = split_frontmatter(content)
    values = values or {}
    prompt = prompt.strip()
    if not prompt:
        raise BadSkill("the prompt is empty")
    said = _text(values.get("description")) or prompt.partition("\n")[0].lstrip("# ")
    return PromptCommand(
        name,
        prompt,
        path,
        source,
        _short(said),
        _short(_text(values.get("argument-hint"))),
        _text(values.get("model")),
    )


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


_WORDS: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(?!\S)|\'([^\']*)\'(?!\S)|(\S+)', re.DOTALL)
_PLACES: Final = re.compile(r"(\\?)\$(ARGUMENTS\b|[1-9](?![0-9]))")


def with_arguments(prompt: str, arguments: str) -> str:
    """Return the prompt with the arguments in it; after it where it has no place for them. A
    backslash keeps `\\$1` as it is. An argument is inserted once, and not searched for places.
    Pure."""
    arguments = arguments.strip()
    words = split_words(arguments)
    used = False

    def value(found: re.Match[str]) -> str:
        nonlocal used
        if found[1]:
            return found[0][1:]
        used = True
        if found[2] == "ARGUMENTS":
            return arguments
        number = int(found[2])
        return words[number - 1] if number <= len(words) else ""

    filled = _PLACES.sub(value, prompt)
    return filled if used or not arguments else f"{filled}\n\nArguments: {arguments}"


def split_words(arguments: str) -> list[str]:
    """Split arguments at white space. Quotes around a whole word keep its spaces; an apostrophe in
    a word is an apostrophe. Pure."""
    return [
        found[3]
        if found[3] is not None
        else found[2]
        if found[2] is not None
        else re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL)
        for found in _WORDS.finditer(arguments)
    ]
