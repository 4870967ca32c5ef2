"""The skill: short, the same in the repository, and true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from telex.automation.verb_commands import VERBS, parse_verb
from telex.cli.root import root
from token_count import count_tokens

ROOT = Path(__file__).parent.parent.parent


def printed(*args: str) -> str:
    done = CliRunner().invoke(root, ["skill", *args])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_skill_in_the_repository_is_the_one_that_is_printed() -> None:
    assert (ROOT / "skills/telex/SKILL.md").read_text() == printed()


def test_the_skill_has_the_members_that_agents_read() -> None:
    _, facts, _ = printed().split("---\n", 2)
    members = dict(line.split(": ", 1) for line in facts.splitlines())
    assert members["name"] == "telex"
    assert len(members["description"]) <= 1024
    assert members["allowed-tools"] == "Bash(telex:*)"


def test_the_skill_costs_few_tokens() -> None:
    assert count_tokens(printed()) <= 250
    assert count_tokens(printed("get", "core")) <= 1800


def commands() -> list[str]:
    text = printed() + printed("get", "core")
    lines = re.findall(r"^    (telex .*)$", text, re.MULTILINE)
    return [
        re.sub(r"\s+#.*|\s<.*", "", line) if " # " in line or " < " in line else line
        for line in lines
    ]


@pytest.mark.parametrize("line", commands())
def test_every_command_in_it_is_one(line: str) -> None:
    _, *words = shlex.split(line)
    if words[0] == "skill":
        return
    parse_verb(words, stdin="see")


def test_every_verb_is_in_the_manual() -> None:
    manual = printed("get", "core")
    assert not [name for name in VERBS if f"telex {name}" not in manual]
