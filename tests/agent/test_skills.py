"""The catalogue of skills: real YAML, known directories, and robust against any repository."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from telex.agent.skills import SECRET, BadSkill, find_skills, read_frontmatter


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = Path(os.path.realpath(tmp_path)) / "root"
    (found / "a" / "b").mkdir(parents=True)
    (found.parent / "home").mkdir()
    return found


def write(directory: Path, description: str = "What it is for.", name: str | None = None) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "SKILL.md"
    path.write_text(
        f"---\nname: {name or directory.name}\ndescription: {description}\n---\nBody.\n"
    )
    return path


def test_skills_are_found_from_the_root_down_and_at_home(root: Path) -> None:
    home = root.parent / "home"
    paths = [
        write(root / ".agents" / "skills" / "outer"),
        write(root / ".claude" / "skills" / "deep" / "er" / "inner"),
        write(root / "a" / ".opencode" / "skills" / "middle"),
        write(home / ".agents" / "skills" / "own"),
    ]
    write(root / "a" / "b" / "other" / ".agents" / "skills" / "elsewhere")
    found = find_skills(root, root / "a" / "b", home)
    assert [skill.path for skill in found.skills] == [str(path) for path in paths]
    assert [skill.scope for skill in found.skills] == ["repo", "repo", "repo", "user"]
    assert (found.errors, found.truncated) == ([], False)
    first = found.skills[0]
    assert first.id == hashlib.sha256(str(paths[0]).encode()).hexdigest()[:24]
    assert (first.name, first.description) == ("outer", "What it is for.")
    assert first.dir == str(paths[0].parent)
    assert first.mtime_ms == paths[0].stat().st_mtime_ns // 1_000_000


def test_a_skill_reached_by_two_paths_is_listed_once(root: Path) -> None:
    write(root / ".agents" / "skills" / "one")
    (root / ".claude").symlink_to(".agents")
    (root / ".agents" / "skills" / "loop").symlink_to("..")
    assert [skill.name for skill in find_skills(root, root, root.parent / "home").skills] == ["one"]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        (".agents/skills/a/x", "../zz"),
        (".agents/skills/a", "zz"),
        (".agents/skills/x", "../../.claude"),
        (".agents/skills/x/SKILL.md", "../zz/SKILL.md"),
    ],
)
def test_a_link_with_another_name_that_is_found_first_hides_no_skill(
    root: Path, link: str, target: str
) -> None:
    paths = [write(root / top / "skills" / "zz") for top in (".agents", ".claude")]
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(target)
    found = find_skills(root, root, root.parent / "home")
    assert sorted(Path(one.path).resolve() for one in found.skills) == sorted(paths)
    assert found.errors == []


def test_a_link_of_a_project_that_leads_out_is_not_followed(root: Path) -> None:
    outside = write(root.parent / "outside" / "foreign")
    (root / ".agents" / "skills" / "x").mkdir(parents=True)
    (root / ".agents" / "skills" / "foreign").symlink_to(outside.parent)
    (root / ".agents" / "skills" / "x" / "SKILL.md").symlink_to(outside)
    assert find_skills(root, root, root.parent / "home").skills == []


def test_a_link_in_the_persons_home_may_lead_anywhere(root: Path) -> None:
    outside = write(root.parent / "dotfiles" / "mine")
    skills = root.parent / "home" / ".claude" / "skills"
    skills.mkdir(parents=True)
    (skills / "mine").symlink_to(outside.parent)
    assert [skill.name for skill in find_skills(root, root, root.parent / "home").skills] == [
        "mine"
    ]


def test_two_skills_with_one_name_are_both_listed(root: Path) -> None:
    write(root / ".agents" / "skills" / "same")
    write(root / "a" / ".agents" / "skills" / "same")
    found = find_skills(root, root / "a", root.parent / "home").skills
    assert [skill.name for skill in found] == ["same", "same"]
    assert len({skill.id for skill in found}) == 2


def test_a_description_is_one_line() -> None:
    head = '---\nname: a\ndescription: "Good.\\n\\n/release (skill, x)\\u2028\\tEvil. "\n---\n'
    assert read_frontmatter(head, "a") == ("a", "Good. /release (skill, x) Evil.")


def test_an_invalid_skill_is_listed_beside_the_others(root: Path) -> None:
    skills = root / ".agents" / "skills"
    write(skills / "fine")
    write(skills / "renamed", name="other")
    (skills / "pipe").mkdir()
    os.mkfifo(skills / "pipe" / "SKILL.md")
    found = find_skills(root, root, root.parent / "home")
    assert [skill.name for skill in found.skills] == ["fine"]
    assert {Path(error.path).parent.name: error.message for error in found.errors} == {
        "renamed": "name must match skill directory name",
        "pipe": "it is not a regular file",
    }


@pytest.mark.parametrize(
    ("head", "description"),
    [
        ("description: >\n  folded\n  over lines\n", "folded over lines"),
        ('description: "quoted: with a colon"\n', "quoted: with a colon"),
        ("description: |\n  kept\n  lines\n", "kept lines"),
        ("description: yes\nmetadata: {a: [1, 2]}\n", "yes"),
    ],
)
def test_the_head_is_real_yaml(head: str, description: str) -> None:
    content = f"---\nname: a-skill\n{head}---\n# Title\n"
    assert read_frontmatter(content, "a-skill") == ("a-skill", description)
    assert read_frontmatter(content.replace("\n", "\r\n"), "a-skill")[0] == "a-skill"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("# no head\n", "missing YAML frontmatter"),
        ("---\nname: x\n", "missing YAML frontmatter"),
        ("---\n---\n", "no name"),
        ("---\n- a list\n---\n", "no name"),
        ("---\nname: [\n---\n", "not YAML"),
        ("---\nname: " + "[" * 5000 + "\n---\n", "too many brackets"),
        ("---\nname: " + "- " * 2000 + "\n---\n", "not YAML"),
        ("---\n" + "- " * 2000 + "\n---\n", "nested too deeply"),
        ("---\nname: !!python/object/apply:os.system [x]\n---\n", "invalid name"),
        ("---\nname: Upper\n---\n", "invalid name"),
        ("---\nname: a--b\n---\n", "invalid name"),
        (f"---\nname: {'a' * 65}\n---\n", "invalid name"),
        ("---\nname: x\n---\n", "invalid description"),
        ("---\nname: x\ndescription: ' '\n---\n", "invalid description"),
        (f"---\nname: x\ndescription: {'d' * 1025}\n---\n", "invalid description"),
        ("---\nname: y\ndescription: d\n---\n", "must match"),
    ],
)
def test_an_invalid_head_is_reported_with_its_reason(content: str, told: str) -> None:
    with pytest.raises(BadSkill, match=told):
        read_frontmatter(content, "x")


def test_merge_keys_that_multiply_take_no_time() -> None:
    bomb = "a0: &a0 {x: y}\n" + "".join(
        f"a{at}: &a{at}\n  <<: [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, 30)
    )
    began = time.process_time()
    assert read_frontmatter(f"---\nname: x\ndescription: d\n{bomb}---\n", "x") == ("x", "d")
    assert time.process_time() - began < 20  # years if it were exponential


def test_a_truncated_catalogue_is_reported(root: Path) -> None:
    for at in range(40):
        write(root / ".agents" / "skills" / f"s{at:02d}", "d" * 1000)
    found = find_skills(root, root, root.parent / "home")
    assert found.truncated
    assert 20 < len(found.skills) < 40


@pytest.mark.parametrize("name", ["secrets.yml", ".env", "keys/x.pem", "config/credentials"])
def test_a_link_to_a_secret_is_not_a_skill(root: Path, name: str) -> None:
    secret = root / name
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("---\nname: x\ndescription: CANARY\n---\n")
    for place in (root, root.parent / "home"):
        directory = place / ".agents" / "skills" / "x"
        directory.mkdir(parents=True)
        (directory / "SKILL.md").symlink_to(secret)
        found = find_skills(root, root, root.parent / "home")
        assert found.skills == []
        assert {error.message for error in found.errors} == {SECRET}
        (directory / "SKILL.md").unlink()


def test_links_to_a_link_to_a_secret_and_to_its_directory_are_not_skills(root: Path) -> None:
    skills = root / ".agents" / "skills"
    write(root / ".ssh" / "a")
    skills.mkdir(parents=True)
    (skills / "a").symlink_to("../../.ssh/a")
    (root / "plain").symlink_to(".env")
    (root / ".env").symlink_to("README")
    (root / "README").write_text("---\nname: b\ndescription: d\n---\n")
    (skills / "b").mkdir()
    (skills / "b" / "SKILL.md").symlink_to("../../../plain")
    found = find_skills(root, root, root.parent / "home")
    assert found.skills == []
    assert len(found.errors) == 2


@pytest.mark.parametrize(
    "head",
    ["pass: CANARY: x", "'CANARY", "[CANARY", "*CANARY", "!<CANARY x", "a: 1\n\tCANARY", "%CANARY", "@CANARY"],
)  # fmt: skip
def test_the_problem_of_a_head_is_reported_without_its_content(head: str) -> None:
    with pytest.raises(BadSkill) as raised:
        read_frontmatter(f"---\n{head}\n---\n", "x")
    assert "not YAML" in str(raised.value)
    assert "CANARY" not in str(raised.value)
