"""`/name arguments` at the beginning of an input: a command of the workspace, else a skill.

The input stays as the person typed it. The loaded text becomes the last part of the same message,
so that nothing can come between the two: no steering, no compaction, no restart. A path such as
`/etc/hosts`, and the name of anything in `/`, is a text like any other.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from telex.agent.conversation import message_text
from telex.agent.cores.builtin import without_shell_results
from telex.agent.limits import AGENT_FILLED_CHARS
from telex.agent.messages import TextPart, UserMessage
from telex.agent.permissions.display_text import in_line
from telex.agent.prompt_commands import (
    NAME,
    FoundCommands,
    PromptCommand,
    find_own_commands,
    find_project_commands,
    joined,
    with_arguments,
)
from telex.agent.protocol.extensions import CommandsListResult, OfferedCommand
from telex.agent.sandbox_files import path_text
from telex.agent.skill_library import SkillRefused, untrusted_project
from telex.agent.skills import SKILL_FILE
from telex.processes.shielded import run_in_thread
from telex.rpc.nearest import did_you_mean, nearest_names

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from telex.agent.protocol.sessions import SkillsListResult
    from telex.agent.skill_library import SkillLibrary

_CALL: Final = re.compile(rf"/({NAME})(?:\s+(.*))?", re.DOTALL)
Kind = Literal["command", "skill"]


class UnknownCommand(Exception):
    """The input begins with `/name`, and nothing can be loaded; the message says what to do."""


@dataclass(frozen=True, slots=True)
class LoadedInput:
    """The text that an input loaded."""

    kind: Kind
    text: str
    """The part that is added to the message of the input."""
    model: str = ""
    """The model that the command names."""

    def added_to(self, message: UserMessage) -> UserMessage:
        return UserMessage((*message.parts, TextPart(f"\n{self.text}")))


def effective_text(message: UserMessage, loaded: str) -> str:
    """Return the text that a core without a conversation acts on: of a command its prompt, else the
    whole message. `loaded` is the kind that the input loaded, empty for none. Pure."""
    last = message.parts[-1] if message.parts else None
    if loaded == "command" and isinstance(last, TextPart):
        return last.text.partition("\n\n")[2]
    return message_text(message)


class SlashCommands:
    """The commands and skills of one workspace that a person can call by name."""

    def __init__(
        self,
        root: Path,
        cwd: Path,
        own: Path | None,
        *,
        trusted: bool,
        skills: SkillLibrary,
        listed: Callable[[bool], Awaitable[SkillsListResult]],
        restricted: Callable[[str], str],
    ) -> None:
        """
        Args:
            own: The directory with the commands of the person.
            listed: Returns all skills, also those that are not offered.
            restricted: Returns why a rule forbids to read a path, empty if none does. Blocks.
        """
        self._root = root
        self._cwd = cwd
        self._own = own
        self._trusted = trusted
        self._skills = skills
        self._listed = listed
        self._restricted = restricted

    async def load(self, text: str) -> LoadedInput | None:
        """Return what an input loads; None for an input that is a text. Raises
        `UnknownCommand`."""
        called = _CALL.fullmatch(without_shell_results(text).lstrip("\r\n"))
        if called is None:
            return None
        name, arguments = called[1], called[2] or ""
        commands = await self._commands()
        if (command := commands.named(name)) is not None:
            return await self._prompt(command, arguments)
        if await self._skills.offers(name):
            return await self._skill(name)
        if await run_in_thread(lambda _: os.path.lexists(f"/{name}")):
            return None
        raise UnknownCommand(await self._unknown(name, commands))

    async def _prompt(self, command: PromptCommand, arguments: str) -> LoadedInput:
        if why := await run_in_thread(lambda _: self._restricted(command.path)):
            raise UnknownCommand(f"/{command.name} is not read: {why}")
        path = in_line(command.path)
        head = f"[the input calls the command {command.name}, from {path}; this is its prompt]"
        if command.prompt.count("$") * len(arguments) > AGENT_FILLED_CHARS:
            raise UnknownCommand(f"the arguments are too long for all their places in {path}")
        prompt = with_arguments(command.prompt, arguments)
        return LoadedInput("command", f"{head}\n\n{prompt}", command.model)

    async def _skill(self, name: str) -> LoadedInput:
        try:
            skill = await self._skills.find(name)
            loaded = await self._skills.load(skill, f"[the input calls it by /{name}]")
        except SkillRefused as refused:
            raise UnknownCommand(f"/{name} cannot be loaded: {refused}") from refused
        return LoadedInput("skill", loaded.text)

    async def _unknown(self, name: str, commands: FoundCommands) -> str:
        listed = await self._listed(True)
        for problem in [*commands.errors, *listed.errors]:
            if _name_of(problem.path) == name.rpartition(":")[2]:
                return f"/{name} cannot be used: {problem.path}: {problem.message}"
        for skill in listed.skills:
            if skill.name == name and skill.not_offered is not None:
                return f"/{name} is a skill that is not used: {skill.not_offered}"
        if any(one.name == name for one in await self._unused(commands)):
            why = untrusted_project(str(self._root))
            return f"/{name} is a command that is not used: {why}"
        known = {one.name for one in commands.commands}
        known |= {skill.name for skill in await self._skills.offered()}
        hint = did_you_mean(tuple(f"/{near}" for near in nearest_names(name, known)))
        return (
            f"there is no command or skill /{name}. {hint or 'See: telex agent skills.'} "
            "To send it as a text, begin it with a space."
        )

    async def describe(self) -> CommandsListResult:
        """Return everything that can be called by name, and why something is not offered."""
        usable = await self._commands()
        offered, listed = await self._skills.offered(), await self._listed(True)
        unused = [skill for skill in listed.skills if skill.not_offered is not None]
        found = [_offered(one) for one in usable.commands]
        why = untrusted_project(str(self._root))
        found += [_offered(one, why) for one in await self._unused(usable)]
        names = {one.name: one.path for one in found if one.not_offered is None}
        count = Counter(skill.name for skill in offered)
        for skill in [*offered, *unused]:
            reason = skill.not_offered
            if reason is None and skill.name in names:
                reason = f"a command has its name: {in_line(names[skill.name])}"
            elif reason is None and count[skill.name] > 1:
                reason = "several skills have its name, so only the model can load it, by its path"
            source: Literal["project", "user"] = "project" if skill.scope == "repo" else "user"
            one = OfferedCommand(
                skill.name, skill.description, "", "skill", source, path_text(skill.path), reason
            )
            found.append(one)
        errors = [*usable.errors, *listed.errors]
        cut = usable.truncated or listed.truncated
        return CommandsListResult(found, errors, cut)

    async def untrusted_warning(self) -> str:
        """Return what a project that is not trusted has and the agent does not use; empty if that
        is nothing."""
        if self._trusted:
            return ""
        skills = [one for one in (await self._listed(False)).skills if one.scope == "repo"]
        commands = await self._unused(await self._commands())
        if not skills and not commands:
            return ""
        has = f"{_count(skills, 'skill')} and {_count(commands, 'command')}"
        return f"{self._root}: {has} are not used: {untrusted_project(str(self._root))}"

    async def _commands(self) -> FoundCommands:
        """Return the commands that count, the nearest first."""
        own = self._own
        found = await self._project() if self._trusted else FoundCommands()
        if own is None:
            return joined(found)
        return joined(found, await run_in_thread(lambda _: find_own_commands(own)))

    async def _unused(self, usable: FoundCommands) -> list[PromptCommand]:
        """Return the commands of a project that is not trusted. Those of the person are not among
        them, where the project is the person's own directory."""
        if self._trusted:
            return []
        paths = {one.path for one in usable.commands}
        return [one for one in (await self._project()).commands if one.path not in paths]

    async def _project(self) -> FoundCommands:
        return await run_in_thread(lambda _: find_project_commands(self._root, self._cwd))


def _count(found: Sequence[object], noun: str) -> str:
    return f"1 {noun}" if len(found) == 1 else f"{len(found) or 'no'} {noun}s"


def _name_of(path: str) -> str:
    """Return the name that a file would have, were it valid."""
    if os.path.basename(path) == SKILL_FILE:
        return os.path.basename(os.path.dirname(path))
    return os.path.basename(path).removesuffix(".md")


def _offered(command: PromptCommand, why: str | None = None) -> OfferedCommand:
    if why is None and command.hidden_by:
        why = f"a nearer command has its name: {in_line(command.hidden_by)}"
    return OfferedCommand(
        command.name,
        command.description,
        command.argument_hint,
        "command",
        command.source,
        path_text(command.path),
        why,
    )
