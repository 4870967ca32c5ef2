"""Rules decide in order, guards without a rule, and all problems of a policy are reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import Struct

from telex.escapes.commands import COMMANDS
from telex.escapes.policy import (
    BadPolicy,
    Policy,
    PolicyProblem,
    PolicyVerdict,
    RequestOrigin,
    origin_of,
)
from telex.escapes.protocol import EscapeCommand, Guard

LOCAL, REMOTE = RequestOrigin("local", "vim"), RequestOrigin("remote", "ssh")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "escape-policy.md"


class Nothing(Struct):
    pass


def command(name: str, guard: Guard = Guard.FREE) -> EscapeCommand:
    return EscapeCommand(name, "For a test.", Nothing, None, guard=guard)


def decided(policy: Policy, name: str, origin: RequestOrigin, guard: Guard = Guard.PERSON) -> str:
    return policy.decide(command(name, guard), origin).verdict.value


@pytest.mark.parametrize(
    ("guard", "origin", "verdict"),
    [
        (Guard.FREE, LOCAL, "allow"),
        (Guard.FREE, REMOTE, "allow"),
        (Guard.REMOTE, LOCAL, "allow"),
        (Guard.REMOTE, REMOTE, "ask"),
        (Guard.PERSON, LOCAL, "ask"),
        (Guard.PERSON, REMOTE, "ask"),
    ],
)
def test_without_a_rule_the_guard_decides(
    guard: Guard, origin: RequestOrigin, verdict: str
) -> None:
    assert decided(Policy(), "clip:read", origin, guard) == verdict


def test_the_first_matching_escape_rule_decides() -> None:
    policy = Policy.parse("""
[[rule]]
command = "clip:write"
decision = "allow"
[[rule]]
command = "clip:*"
origin = "remote"
decision = "deny"
[[rule]]
command = "*"
decision = "ask"
""")
    assert decided(policy, "clip:write", REMOTE) == "allow"
    assert decided(policy, "clip:read", REMOTE) == "deny"
    assert decided(policy, "clip:read", LOCAL) == "ask"
    assert policy.decide(command("clip:read"), REMOTE).by == "rule 2"


@pytest.mark.parametrize(
    ("glob", "name", "fits"),
    [
        ("*", "term:bell", True),
        ("term*", "term:bell", True),
        ("*read", "clip:primary:read", True),
        ("clip:*", "clip:", True),
        ("clip:*", "clipper:read", False),
        ("clip.read", "clip:read", False),
        ("clip:read", "clip:read2", False),
        ("Clip:read", "clip:read", False),
    ],
)
def test_a_star_matches_anything_and_nothing_else_is_special(
    glob: str, name: str, fits: bool
) -> None:
    policy = Policy.parse(f'[[rule]]\ncommand = "{glob}"\ndecision = "deny"\n')
    assert (decided(policy, name, LOCAL) == "deny") is fits


def test_every_problem_is_named_with_its_field_and_line() -> None:
    text = """\
colour = "red"

[[rule]] # the first
command = "clip[rw]"
origin = "moon"
decision = "allow"

[[rule]]
comand = "clip:*"
decision = ["deny"]
"""
    with pytest.raises(BadPolicy) as caught:
        Policy.parse(text, "p.toml")
    assert [(one.field, one.line) for one in caught.value.problems] == [
        ("colour", 1),
        ("rule[1].command", 4),
        ("rule[1].origin", 5),
        ("rule[2].command", 8),
        ("rule[2].comand", 9),
        ("rule[2].decision", 10),
    ]
    told = str(caught.value)
    assert told.startswith("p.toml cannot be used: line 1: `colour`: is not known")
    assert "line 5: `rule[1].origin`: must be one of local, remote, *" in told


def test_an_uncertain_line_number_is_not_reported() -> None:
    text = '''note = """
[[rule]]
"""
[[rule]]
command = "x"
decision = "no"
'''
    with pytest.raises(BadPolicy) as caught:
        Policy.parse(text)
    assert [(one.field, one.line) for one in caught.value.problems] == [
        ("note", 1),
        ("rule[1].decision", None),
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[[rule]\n", "not TOML"),
        ("\n[rule]\ncommand = 'x'\n", "line 2: `rule`: must be written as [[rule]], in two pairs"),
        ("rule = 3", "two pairs of brackets"),
        ("a = " + "[" * 5000, "not TOML"),
        ("[[rule]]", "`rule[1].command`: is missing"),
        ("[[rule]]\ncommand = ''\ndecision = 'deny'", "such as"),
        ("[[rule]]\ncommand = 1\ndecision = true", "must be one of allow, ask, deny"),
    ],
)
def test_an_invalid_policy_is_refused(text: str, part: str) -> None:
    with pytest.raises(BadPolicy, match=re.escape(part)):
        Policy.parse(text)


@pytest.mark.parametrize(
    ("names", "origin"),
    [
        (["vim"], RequestOrigin("local", "vim")),
        (["/usr/bin/ssh"], RequestOrigin("remote", "ssh")),
        (["sudo", "ssh"], RequestOrigin("remote", "ssh")),
        (["bash", "mosh-client"], RequestOrigin("remote", "mosh-client")),
        (["docker"], RequestOrigin("remote", "docker")),
        (["kubectl"], RequestOrigin("remote", "kubectl")),
        (["tmux"], RequestOrigin("remote", "tmux")),
        ([], RequestOrigin("remote", None)),
    ],
)
def test_the_origin_is_where_the_program_in_the_foreground_is(
    names: list[str], origin: RequestOrigin
) -> None:
    assert origin_of(*names) == origin


def test_a_problem_has_its_place_and_its_reason() -> None:
    assert (
        str(PolicyProblem("rule[1].origin", "is wrong", 3)) == "line 3: `rule[1].origin`: is wrong"
    )
    assert str(PolicyProblem("", "this is not TOML")) == "this is not TOML"


def test_the_policy_on_the_page_decides_as_the_page_says() -> None:
    text = PAGE.read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    policy = Policy.parse(example)
    rows = re.findall(r"^\| `([a-z]+:[a-z]+)` \| (local|remote) \| (\w+) \|", text, re.MULTILINE)
    assert len(rows) >= 5
    for name, kind, verdict in rows:
        origin = LOCAL if kind == "local" else REMOTE
        assert policy.decide(COMMANDS[name], origin).verdict.value == verdict, (name, kind)


def test_the_page_names_every_command_that_is_guarded() -> None:
    text = PAGE.read_text()
    for guard in (Guard.REMOTE, Guard.PERSON):
        (line,) = re.findall(rf"^\| {guard.value} \|.*$", text, re.MULTILINE)
        named = set(re.findall(r"`([a-z]+:[a-z]+)`", line))
        assert named == {c.name for c in COMMANDS.values() if c.guard is guard}
    for verdict in PolicyVerdict:
        assert f"`{verdict.value}`" in text
