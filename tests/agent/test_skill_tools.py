"""Skills as a model uses them: offered by name, loaded on demand, with the files of their folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent.model_agents import Answer, Conversation, a_model
from agent.ui_side import ALL, an_agent
from telex.agent.conversation import message_text
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.instructions import build_instructions
from telex.agent.messages import ToolResultMessage, decode_message
from telex.agent.permissions import RuleLayer, rules_from_tables
from telex.agent.skill_library import SkillRefused
from telex.agent.skills import find_skills

if TYPE_CHECKING:
    from agent.ui_side import Agent

CANARY = "CANARY-7f3a"


def write(root: Path, name: str = "release", body: str = "Tag it.", **files: str) -> Path:
    """A skill with files, below `.agents/skills`."""
    folder = root / ".agents" / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {name}\ndescription: How to {name}.\n---\n"
    (folder / "SKILL.md").write_text(f"{head}{body}\n")
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return folder


def home_of(agent: Agent) -> Path:
    return agent.root.parent / "home"


async def loaded(agent: Agent, name: str = "release", **more: object) -> tuple[bool, str]:
    """Whether the tool succeeded, and its text, by `tool.call` of a UI that cannot be asked."""
    ui = await agent.connect()
    result = await ui.call("tool.call", {"name": "skill_load", "arguments": {"name": name, **more}})
    value = result["result"]
    return result["ok"], value if isinstance(value, str) else value["text"]


async def test_a_skill_is_loaded_with_its_text_and_the_list_of_its_files(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        folder = write(
            agent.root, **{"reference.md": "Rows.", "scripts/tag.sh": "#!/bin/sh\n", ".env": CANARY}
        )
        (folder / "scripts" / "tag.sh").chmod(0o755)
        ok, text = await loaded(agent)
        assert ok
        head, _, body, _, files, *listed = text.split("\n")
        assert head.startswith("[skill release, version ")
        assert head.endswith(f", from {folder}/SKILL.md]")
        assert body == "Tag it."
        assert str(folder) in files
        script = folder / "scripts" / "tag.sh"
        assert listed == ["- reference.md", f"- scripts/tag.sh (program: {script})"]
        assert "description" not in text


async def test_a_file_of_a_skill_is_read_page_by_page(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        lines = "\n".join(f"line {n}" for n in range(100))
        folder = write(agent.root, **{"docs/all.md": lines})
        ok, text = await loaded(agent, file="docs/all.md", offset=10, limit=2)
        assert ok
        assert text.startswith("   11  line 10\n   12  line 11\n[lines 11 to 12 of 100")
        assert (await loaded(agent, file=str(folder / "docs" / "all.md"), limit=1))[0]
        assert (await loaded(agent, file="docs/../docs/./all.md", limit=1))[0]
        assert (await loaded(agent, file="all.md"))[0] is False
        assert "is a directory" in (await loaded(agent, file="docs"))[1]


async def test_a_skill_of_the_person_is_read_outside_the_root_without_a_question(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        elsewhere = write(tmp_path / "dotfiles", "mine", "My way.", **{"a.md": "A."})
        skills = home_of(agent) / ".claude" / "skills"
        skills.mkdir(parents=True)
        (skills / "mine").symlink_to(elsewhere)
        assert "My way." in (await loaded(agent, "mine"))[1]
        assert "A." in (await loaded(agent, "mine", file="a.md"))[1]
        assert (await loaded(agent, "mine", file="../other.md"))[0] is False


OUTSIDE = "is not in the folder of the skill"
REFUSED = {
    "../../../notes.md": OUTSIDE,
    "../../../../work/notes.md": OUTSIDE,
    "/etc/hostname": OUTSIDE,
    "out.md": OUTSIDE,
    "far/a.md": OUTSIDE,
    "self/../../../../notes.md": OUTSIDE,
    "loop.md": OUTSIDE,
    "proc/environ": OUTSIDE,
    "a\0b": OUTSIDE,
    "\ud800": OUTSIDE,
    ".env": "it has the name of a secret",
    "plain.md": "it has the name of a secret",
    "keys/id_rsa": "it has the name of a secret",
    "secrets/token": "it has the name of a secret",
    "pipe": "neither a file nor a directory",
    "data.bin": "is a binary file of 4 bytes",
    "huge.txt": "is larger than 10 MiB",
    "missing.md": "No such file",
}


@pytest.mark.parametrize("scope", ["repo", "user"])
async def test_only_plain_texts_in_the_folder_of_a_skill_are_read(
    tmp_path: Path, scope: str
) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        home, far = home_of(agent), tmp_path / "far"
        far.mkdir()
        for place in (agent.root / "notes.md", home / "notes.md", far / "a.md"):
            place.write_text(CANARY)
        secrets = {".env": CANARY, "keys/id_rsa": CANARY, "secrets/token": CANARY}
        folder = write(agent.root if scope == "repo" else home, **secrets)
        links = {"out.md": "../../../notes.md", "far": str(far), "loop.md": "loop.md"}
        links |= {"self": ".", "proc": "/proc/self", "plain.md": ".env"}
        for name, target in links.items():
            (folder / name).symlink_to(target)
        os.mkfifo(folder / "pipe")
        (folder / "data.bin").write_bytes(b"\0\1\2\3")
        with open(folder / "huge.txt", "wb") as huge:
            huge.truncate(11 << 20)
        library = (await agent.workspace()).context.skills
        skill = await library.find("release")
        for file, told in REFUSED.items():
            with pytest.raises(SkillRefused) as refused:
                await library.read_file(skill, file)
            assert told in str(refused.value), file
            assert CANARY not in str(refused.value)
        ok, text = await loaded(agent)
        assert ok
        assert text.count("\n- ") == 2
        assert {"- data.bin", "- huge.txt"} <= set(text.split("\n"))


async def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        folder = write(agent.root, **{"docs/a.md": "Inside."})
        (folder / "short.md").symlink_to("docs/a.md")
        assert "Inside." in (await loaded(agent, file="short.md"))[1]
        assert "- short.md" in (await loaded(agent))[1]


async def test_a_folder_that_becomes_a_link_after_the_search_is_not_entered(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        folder = write(agent.root)
        assert (await loaded(agent))[0]
        outside = write(tmp_path / "outside", body=CANARY, **{"a.md": CANARY})
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        folder.symlink_to(outside)
        for more in ({}, {"file": "a.md"}):
            ok, text = await loaded(agent, **more)
            assert not ok
            assert CANARY not in text


async def test_a_rule_that_restricts_reading_also_covers_skills(tmp_path: Path) -> None:
    table = {"tool": "read", "path": "**/internal/**", "decision": "deny"}
    layers = [RuleLayer("user", rules_from_tables([table], "a test"))]
    async with an_agent(tmp_path, trusted=True, layers=layers) as agent:
        write(agent.root, **{"internal/a.md": CANARY})
        ok, text = await loaded(agent, file="internal/a.md")
        assert (ok, CANARY in text) == (False, False)
        assert "a rule says deny" in text
    table = {"tool": "skill_load", "decision": "deny"}
    layers = [RuleLayer("user", rules_from_tables([table], "a test"))]
    async with an_agent(tmp_path, trusted=True, layers=layers) as agent:
        assert "Permission denied" in (await loaded(agent))[1]
    table = {"tool": "skill_load", "decision": "ask"}
    layers = [RuleLayer("user", rules_from_tables([table], "a test"))]
    async with an_agent(tmp_path, trusted=True, layers=layers) as agent:
        ui = await agent.connect(**ALL)
        asked = ui.send("tool.call", {"name": "skill_load", "arguments": {"name": "release"}})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        assert (await ui.reply(asked))["ok"]
    table = {"tool": "read", "decision": "ask"}
    layers = [RuleLayer("user", rules_from_tables([table], "a test"))]
    async with an_agent(tmp_path, trusted=True, layers=layers) as agent:
        assert "a rule says ask" in (await loaded(agent))[1]


async def test_a_name_finds_one_skill_and_a_path_one_of_several(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        ours = write(agent.root, body="Ours.")
        mine = write(home_of(agent), body="Mine.")
        ok, text = await loaded(agent)
        assert not ok
        assert "2 skills are named release" in text
        assert str(ours / "SKILL.md") in text
        assert str(mine / "SKILL.md") in text
        assert "Mine." in (await loaded(agent, str(mine)))[1]
        assert "Ours." in (await loaded(agent, ".agents/skills/release/SKILL.md"))[1]
        assert "Did you mean release?" in (await loaded(agent, "relaese"))[1]
        assert "there is no skill" in (await loaded(agent, "/etc"))[1]
        text = await build_instructions(await agent.workspace(), None)
        assert f"(path: {mine}/SKILL.md)" in text


async def test_skills_of_a_project_count_only_after_trust(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        folder = write(agent.root, body=CANARY)
        write(home_of(agent), "mine")
        for target in ("release", str(folder)):
            ok, text = await loaded(agent, target)
            assert (ok, CANARY in text) == (False, False)
        ok, text = await loaded(agent)
        root = agent.root
        told = f"touch {root}/.telex/config.toml && telex config trust {root}"
        assert text.endswith(told)
        instructions = await build_instructions(await agent.workspace(), None)
        assert "- mine: How to mine." in instructions
        assert "release" not in instructions
        ui = await agent.connect()
        listed = (await ui.call("skills.list"))["skills"]
        assert [(one["name"], "not_offered" in one) for one in listed] == [
            *(("release", True), ("mine", False))
        ]


async def test_many_skills_of_an_untrusted_project_hide_none_of_the_person(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        for number in range(201):
            write(agent.root, f"s{number}")
        write(home_of(agent), "mine")
        assert (await loaded(agent, "mine"))[0]
        assert await (await agent.workspace()).context.slash_commands.load("/mine") is not None


async def test_a_long_text_is_cut_and_can_be_read_on(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        body = "\n\n" + "\n".join(f"{n} " + "x" * 90 for n in range(2000)) + "\n\n\n"
        write(agent.root, body=body)
        ok, text = await loaded(agent)
        assert ok
        assert len(text.encode()) < 70 * 1024
        last = next(line for line in reversed(text.split("\n")) if line.endswith("xx"))
        offset = int(text.rpartition("offset ")[2].partition("]")[0])
        ok, text = await loaded(agent, file="SKILL.md", offset=offset, limit=1)
        assert text.split()[1] == str(int(last.split()[0]) + 1)
        write(agent.root, body="x" * 600_000)
        assert "is larger than 512 KiB" in (await loaded(agent))[1]


async def test_a_list_of_files_is_bounded(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        write(agent.root, **{f"f{n:03d}.md": "" for n in range(210)})
        text = (await loaded(agent))[1]
        assert text.count("\n- f") == 200
        assert "the first 200 files; there are more" in text


@pytest.mark.parametrize(
    "content",
    ["", "no head", "---\nname: other\ndescription: d\n---\n", "---\nname: [\n---\n", "\0\0"],
)
async def test_a_skill_that_is_none_any_more_is_not_loaded(tmp_path: Path, content: str) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        folder = write(agent.root)
        assert (await loaded(agent))[0]
        (folder / "SKILL.md").write_text(content)
        assert (await loaded(agent))[0] is False


# In a run.


async def test_a_model_is_offered_skills_loads_one_and_runs_its_script_after_a_question(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    def decide(said: Conversation) -> Answer:
        match said.results:
            case []:
                return Answer("", [("skill_load", {"name": "release"})])
            case [text]:
                script = text.partition("(program: ")[2].partition(")")[0]
                return Answer("", [("shell", {"command": script})])
        return Answer(said.results[-1])

    async with (
        a_model(decide) as (choice, server),
        an_agent(tmp_path, choice, trusted=True) as agent,
    ):
        folder = write(agent.root, **{"tag.sh": "#!/bin/sh\necho tagged > tag\necho done\n"})
        (folder / "tag.sh").chmod(0o755)
        ui = await agent.connect(**ALL)
        run = await ui.start("release it")
        question = await ui.until("ui.confirm.request")
        assert not (agent.root / "tag").exists()
        asked.append(question["params"]["message"])
        ui.answer(question, {"ok": True})
        assert await ui.until_ended(run) == "completed"
        assert (agent.root / "tag").read_text() == "tagged\n"
        assert str(folder / "tag.sh") in asked[0]
        first = server.requests[0]
        assert "- release: How to release." in json.dumps(first["messages"][0])
        assert "skill_load" in [tool["function"]["name"] for tool in first["tools"]]


async def test_each_run_is_offered_the_skills_that_are_there_then(tmp_path: Path) -> None:
    def decide(said: Conversation) -> Answer:
        return Answer(", ".join(said.tools))

    async with a_model(decide) as (choice, server), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect()
        for number in range(2):
            run = await ui.start("hello")
            await ui.until_ended(run)
            assert ("skill_load" in ui.final(run)) == bool(number)
            write(home_of(agent), "mine")
        assert "How to mine." in json.dumps(server.requests[-1]["messages"][0])


async def test_the_tool_is_not_offered_where_there_are_no_skills(tmp_path: Path) -> None:
    def decide(said: Conversation) -> Answer:
        return Answer(", ".join(said.tools))

    async with a_model(decide) as (choice, _), an_agent(tmp_path, choice) as agent:
        write(agent.root)
        ui = await agent.connect()
        run = await ui.start("hello")
        await ui.until_ended(run)
        assert "skill_load" not in ui.final(run)
        assert "read" in ui.final(run)


def steps(*calls: dict[str, Any]) -> ScriptedCore:
    return ScriptedCore("s", [ScriptStep(tool="skill_load", arguments=call) for call in calls])


async def results(agent: Agent, run: str) -> list[str]:
    stored = await agent.runtime.store.run_messages(run)
    messages = [decode_message(one.message) for one in stored]
    return [message_text(one) for one in messages if isinstance(one, ToolResultMessage)]


async def test_an_unchanged_skill_is_not_repeated_and_a_changed_one_is(tmp_path: Path) -> None:
    again = {"name": "release"}
    async with an_agent(tmp_path, steps(again, again), trusted=True) as agent:
        folder = write(agent.root)
        ui = await agent.connect()
        for body, told in (
            (None, ["Tag it.", "already"]),
            ("Tag twice.", ["Tag twice.", "already"]),
        ):
            if body is not None:
                write(agent.root, body=body)
            run = await ui.start("go")
            assert await ui.until_ended(run) == "completed"
            found = await results(agent, run)
            assert [part in text for part, text in zip(told, found, strict=True)] == [True, True]
        assert folder.exists()
    async with an_agent(tmp_path, steps(again), trusted=True) as agent:  # after a restart
        ui = await agent.connect()
        [session] = (await ui.call("session.list"))["sessions"]
        run = await ui.start("go", session_id=session["session_id"])
        await ui.until_ended(run)
        assert "already" in (await results(agent, run))[0]
        other = await ui.start("go", new_session=True)
        await ui.until_ended(other)
        assert "Tag twice." in (await results(agent, other))[0]


async def test_a_skill_is_loaded_again_after_a_compaction_removed_its_text(tmp_path: Path) -> None:
    def decide(said: Conversation) -> Answer:
        if "Write a summary" in said.said[-1] or not said.tools:
            return Answer("They loaded a skill.")
        return (
            Answer("", [("skill_load", {"name": "release"})]) if not said.results else Answer("ok")
        )

    async with a_model(decide) as (choice, _), an_agent(tmp_path, choice, trusted=True) as agent:
        write(agent.root)
        ui = await agent.connect()
        first = await ui.start("one")
        await ui.until_ended(first)
        second = await ui.start("two", force_compaction=True)
        await ui.until_ended(second)
        assert ["Tag it." in text for text in await results(agent, second)] == [True]


def test_the_catalogue_of_the_person_has_no_skill_of_the_project(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    write(root)
    write(home, "mine")
    assert [one.name for one in find_skills(root, root, home, repo=False).skills] == ["mine"]
