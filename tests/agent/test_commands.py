"""`/name` at the beginning of an input: commands with arguments, skills, and texts that are none."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from agent.model_agents import Answer, Conversation, a_model
from agent.test_skill_tools import CANARY, home_of, loaded
from agent.test_skill_tools import write as write_skill
from agent.ui_side import ALL, Refused, an_agent
from telex.agent.conversation import message_text
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.messages import TextPart, UserMessage, decode_message
from telex.agent.model_catalogue import ModelChoice
from telex.agent.permissions import RuleLayer, rules_from_tables
from telex.agent.prompt_commands import with_arguments
from telex.agent.slash_commands import UnknownCommand

if TYPE_CHECKING:
    from pathlib import Path

    from agent.ui_side import Agent
    from telex.agent.slash_commands import LoadedInput

RETURNING = {**ALL, "supports_run_attach": True}
ECHO = ScriptedCore("echo", [ScriptStep(final="{input}")])


def write(root: Path, name: str = "fix", prompt: str = "Fix $1.", head: str = "") -> Path:
    """A command of a project."""
    path = root / ".telex" / "commands" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{head}\n---\n{prompt}\n" if head else prompt)
    return path


def write_own(agent: Agent, name: str = "fix", prompt: str = "Mine.") -> Path:
    path = home_of(agent) / ".config" / "telex" / "commands" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(prompt)
    return path


async def load(agent: Agent, text: str) -> LoadedInput | None:
    return await (await agent.workspace()).context.slash_commands.load(text)


async def refused(agent: Agent, text: str) -> str:
    with pytest.raises(UnknownCommand) as told:
        await load(agent, text)
    return str(told.value)


@pytest.mark.parametrize(
    ("prompt", "arguments", "filled"),
    [
        ("Fix $1.", "12", "Fix 12."),
        ("Fix $1 in $2.", '"a b" c', "Fix a b in c."),
        ("$1|$2|$3", "'a b' \"c \\\" d\" don't", "a b|c \" d|don't"),
        ("$1|$2", '"half open', '"half|open'),
        ("$1|$2", 'a"b c"d', 'a"b|c"d'),
        ("$1|$2|$9", "one", "one||"),
        ("All: $ARGUMENTS.", ' a  "b" ', 'All: a  "b".'),
        ("$ARGUMENTS and $1", "$1 $ARGUMENTS", "$1 $ARGUMENTS and $1"),
        ("costs $100, $10 and $HOME", "x", "costs $100, $10 and $HOME\n\nArguments: x"),
        ("keep \\$1 and \\$ARGUMENTS, fill $1", "x", "keep $1 and $ARGUMENTS, fill x"),
        ("No place.", "a\nb", "No place.\n\nArguments: a\nb"),
        ("No place.", "", "No place."),
        ("!`touch x` and @a.md stay texts", "", "!`touch x` and @a.md stay texts"),
        ("$1", "天気 x", "天気"),
    ],
)
def test_arguments_are_filled_in_once(prompt: str, arguments: str, filled: str) -> None:
    assert with_arguments(prompt, arguments) == filled


async def test_a_command_becomes_a_part_of_the_input_that_stays_as_it_was_typed(
    tmp_path: Path,
) -> None:
    def decide(said: Conversation) -> Answer:
        return Answer(said.said[-1])

    async with a_model(decide) as (choice, _), an_agent(tmp_path, choice, trusted=True) as agent:
        path = write(agent.root, head="description: Fixes an issue.\nargument-hint: [issue] [how]")
        ui = await agent.connect()
        started = await ui.call("run.start", {"input": {"type": "text", "text": "/fix 12"}})
        run = started["run_id"]
        assert await ui.until_ended(run) == "completed"
        head = f"[the input calls the command fix, from {path}; this is its prompt]"
        assert ui.final(run).split("\n") == ["/fix 12", "", head, "", "Fix 12."]
        [session] = (await ui.call("session.list"))["sessions"]
        assert session["last_user_message"] == "/fix 12"
        await ui.call("session.history", {"session_id": started["session_id"]})
        assert ui.events(run)[-2]["event"] == {"type": "hidden_user_message", "content": "/fix 12"}
        [listed] = (await ui.call("commands.list"))["commands"]
        assert listed == {
            "name": "fix",
            "description": "Fixes an issue.",
            "argument_hint": "[issue] [how]",
            "kind": "command",
            "source": "project",
            "path": str(path),
        }


async def test_cores_without_a_conversation_act_on_the_prompt(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        write(agent.root, "note", "todo $ARGUMENTS\ntodo rest")
        write_skill(agent.root)
        ui = await agent.connect()
        run = await ui.start("/note water the plants")
        await ui.until_ended(run)
        assert "1. [ ] water the plants\n2. [ ] rest" in ui.final(run)
        run = await ui.start("/release now")
        await ui.until_ended(run)
        assert ui.final(run).startswith("The skill is in the conversation now.")


async def test_a_skill_that_the_input_loaded_is_not_loaded_again(tmp_path: Path) -> None:
    core = ScriptedCore("s", [ScriptStep(tool="skill_load", arguments={"name": "release"})])
    async with an_agent(tmp_path, core, trusted=True) as agent:
        write_skill(agent.root)
        ui = await agent.connect()
        run = await ui.start("/release 1.2")
        await ui.until_ended(run)
        assert "already" in ui.final(run)
        [stored, *_] = await agent.runtime.store.run_messages(run)
        message = decode_message(stored.message)
        assert isinstance(message, UserMessage)
        typed, text = (part.text for part in message.parts if isinstance(part, TextPart))
        assert typed == "/release 1.2"
        assert re.match(r"\n\[skill release, version [0-9a-f]{12}, from ", text)
        assert "[the input calls it by /release]\n\nTag it." in text


async def test_what_an_input_called_survives_a_restart_and_a_change_of_its_file(
    tmp_path: Path,
) -> None:
    core = ScriptedCore("s", [ScriptStep(prompt="Go on?"), ScriptStep(final="{input}")])
    async with an_agent(tmp_path, core, trusted=True) as agent:
        path = write(agent.root, prompt="Fix $1.\n\nThen rest.")
        ui = await agent.connect(**RETURNING)
        run = await ui.start("/fix 12")
        await ui.until("ui.prompt.request")
        await ui.leave()
        path.unlink()
    async with an_agent(tmp_path, core) as agent:  # not trusted any more either
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        back.answer(await back.until("ui.prompt.request"), {"value": "yes"})
        assert await back.until_ended(run) == "completed"
        assert back.final(run) == "Fix 12.\n\nThen rest."
        [stored, *_] = await agent.runtime.store.run_messages(run)
        assert "Then rest." in message_text(decode_message(stored.message))


async def test_only_a_name_after_a_slash_calls_something(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        write(agent.root, prompt="Fix: $ARGUMENTS")
        write(agent.root, "etc", "A command wins over a directory.")
        for text in (
            *("/etc/hosts is broken", "/", "/ fix", "//fix", " /fix", "x /fix 1", "fix", ""),
            *("/fix.md is wrong", "/*fix*/", "/-fix", "/tmp is full", "/fix/it", "/fix: 1"),
        ):
            assert await load(agent, text) is None, text
        for text in ("/fix 12", "/fix\n12", "/fix  12 ", "\n/fix 12"):
            found = await load(agent, text)
            assert found is not None
            assert found.text.endswith("\n\nFix: 12"), text
        shell = '<shell_result>\n{"id": "1", "stdout": "/x"}\n</shell_result>\n'
        assert (await load(agent, f"{shell}/fix 12")) is not None
        assert (await load(agent, f"{shell}look")) is None
        assert (await load(agent, "/etc now")) is not None


async def test_an_unknown_name_is_refused_with_the_nearest_and_nothing_is_stored(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path, ECHO, trusted=True) as agent:
        write(agent.root)
        write_skill(agent.root)
        ui = await agent.connect()
        with pytest.raises(Refused) as told:
            await ui.start("/fixx 12")
        assert told.value.code == -32602
        assert "there is no command or skill /fixx. Did you mean /fix?" in told.value.message
        assert "begin it with a space" in told.value.message
        assert (await ui.call("session.list"))["sessions"] == []
        assert "Did you mean /release?" in await refused(agent, "/relese")
        run = await ui.start(" /fixx 12")
        await ui.until_ended(run)
        assert ui.final(run) == " /fixx 12"


async def test_the_nearest_command_wins_and_a_command_wins_over_a_skill(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        ours = write(agent.root, prompt="Ours.")
        write_own(agent)
        write_own(agent, "git/tidy", "Tidy up.")
        write(agent.root, "release", "The command.")
        write_skill(agent.root)
        write_skill(home_of(agent), "twice")
        write_skill(agent.root, "twice")
        for text, ends in (("/fix", "Ours."), ("/git:tidy", "up."), ("/release", "command.")):
            found = await load(agent, text)
            assert found is not None
            assert found.text.endswith(ends)
        assert "2 skills are named twice" in await refused(agent, "/twice")
        assert "Tag it." in (await loaded(agent, "release"))[1]
        described = await (await agent.workspace()).context.slash_commands.describe()
        reasons = [(one.name, one.source, one.not_offered or "") for one in described.commands]
        assert [(name, source, bool(why)) for name, source, why in reasons] == [
            *(("fix", "project", False), ("release", "project", False), ("fix", "user", True)),
            *(("git:tidy", "user", False), ("release", "project", True)),
            *(("twice", "project", True), ("twice", "user", True)),
        ]
        assert reasons[2][2] == f"a nearer command has its name: {ours}"
        assert reasons[4][2].startswith("a command has its name: ")


async def test_commands_of_a_project_count_only_after_trust(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        write(agent.root, prompt=CANARY)
        write_skill(agent.root, body=CANARY)
        write_own(agent, "own")
        for text in ("/fix", "/release"):
            told = await refused(agent, text)
            assert "the project is not trusted" in told
            assert f"telex config trust {agent.root}" in told
        assert (await load(agent, "/own")) is not None
        commands = (await agent.workspace()).context.slash_commands
        offered = {one.name: one.not_offered for one in (await commands.describe()).commands}
        assert [name for name, why in offered.items() if why is None] == ["own"]
        assert set(offered) == {"own", "fix", "release"}
        warning = await commands.untrusted_warning()
        assert f"{agent.root}: 1 skill and 1 command are not used" in warning
        write_own(agent, "fix", "Mine.")
        found = await load(agent, "/fix")
        assert found is not None
        assert found.text.endswith("Mine.")
    async with an_agent(tmp_path, trusted=True) as agent:
        assert await (await agent.workspace()).context.slash_commands.untrusted_warning() == ""


async def test_an_invalid_file_is_no_command_and_the_reason_is_told(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        directory = write(agent.root).parent
        secret = agent.root / ".env"
        secret.write_text(CANARY)
        (tmp_path / "outside.md").write_text(CANARY)
        write(agent.root, "yaml", "x", head=f"description: [{CANARY}")
        write(agent.root, "bomb", "x", head="description: " + "[" * 5000)
        write(agent.root, "deep", "x", head="- " * 2000)
        write(agent.root, "empty", "")
        write(agent.root, "big", "x" * 70_000)
        write(agent.root, "two words", "x")
        (directory / "data.md").write_bytes(b"\0\1")
        (directory / "env.md").symlink_to("../../.env")
        (directory / "out.md").symlink_to("../../../outside.md")
        (directory / "loop.md").symlink_to("loop.md")
        os.mkfifo(directory / "pipe.md")
        (directory / "linked.md").symlink_to("fix.md")
        write(agent.root, "object", "x", head="description: !!python/object/apply:os.system [x]")
        described = await (await agent.workspace()).context.slash_commands.describe()
        assert [one.name for one in described.commands] == ["fix", "linked", "object"]
        told = {os.path.basename(one.path): one.message for one in described.errors}
        for name, reason in {
            "yaml.md": "not YAML",
            "bomb.md": "too many brackets",
            "deep.md": "nested too deeply",
            "empty.md": "the prompt is empty",
            "big.md": "larger than 64 KiB",
            "two words.md": "invalid name",
            "data.md": "is a binary file",
            "env.md": "name is that of a secret",
            "out.md": "outside the sandbox root",
            "loop.md": "",
            "pipe.md": "neither a file nor a directory",
        }.items():
            assert reason in told.pop(name), name
        assert told == {}
        assert CANARY not in str(described)
        assert "the prompt is empty" in await refused(agent, "/empty")
        (write_skill(agent.root, "broken") / "SKILL.md").write_text("no head")
        assert "missing YAML frontmatter" in await refused(agent, "/broken")


async def test_a_rule_that_restricts_reading_also_covers_commands(tmp_path: Path) -> None:
    table = {"tool": "read", "path": ".telex/**", "decision": "deny"}
    layers = [RuleLayer("user", rules_from_tables([table], "a test"))]
    async with an_agent(tmp_path, trusted=True, layers=layers) as agent:
        write(agent.root)
        assert "a rule says deny" in await refused(agent, "/fix 1")


async def test_arguments_that_would_multiply_are_refused(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        write(agent.root, prompt="$ARGUMENTS " * 1000)
        assert "the arguments are too long" in await refused(agent, f"/fix {'x' * 10_000}")
        assert await load(agent, "/fix short") is not None


async def test_a_list_of_commands_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.prompt_commands.AGENT_PROMPT_FILES", 3)
    async with an_agent(tmp_path, trusted=True) as agent:
        for name in "abcd":
            write(agent.root, name)
        described = await (await agent.workspace()).context.slash_commands.describe()
        assert (len(described.commands), described.truncated) == (3, True)


async def test_a_command_may_name_the_model_of_its_run(tmp_path: Path) -> None:
    first = ScriptedCore("first", [ScriptStep(final="first: {input}")])
    second = ScriptedCore("second", [ScriptStep(final="second: {input}")])
    choices = [ModelChoice("here", core) for core in (first, second)]
    async with an_agent(tmp_path, *choices, trusted=True) as agent:
        write(agent.root, prompt="Fix it.", head="model: second")
        write(agent.root, "lost", "Fix it.", head="model: third")
        ui = await agent.connect()
        finals = []
        for text in ("/fix", "hello"):
            run = await ui.start(text)
            await ui.until_ended(run)
            finals.append(ui.final(run))
        assert finals == ["second: Fix it.", "first: hello"]
        assert (
            "third"
            in (await ui.refusal("run.start", {"input": {"type": "text", "text": "/lost"}})).message
        )


async def test_the_directory_of_the_person_is_no_project_that_needs_trust(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        workspace = await agent.workspace()
        context = workspace.context
        context.own_commands = agent.root / ".telex" / "commands"
        context.home = agent.root
        write(agent.root)
        write_skill(agent.root)
        assert (await load(agent, "/fix")) is not None
        assert (await load(agent, "/release")) is not None
        described = await context.slash_commands.describe()
        assert [one.not_offered for one in described.commands] == [None, None]
        assert await context.slash_commands.untrusted_warning() == ""


async def test_a_link_of_the_person_may_lead_anywhere_but_to_a_secret(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        directory = write_own(agent).parent
        (tmp_path / "dots.md").write_text("From elsewhere.")
        (directory.parent / "keys.md").write_text(CANARY)
        (directory / "dots.md").symlink_to(tmp_path / "dots.md")
        (directory / "keys.md").symlink_to("../keys.md")
        found = await load(agent, "/dots")
        assert found is not None
        assert found.text.endswith("From elsewhere.")
        assert "name is that of a secret" in await refused(agent, "/keys")
