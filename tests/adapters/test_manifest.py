"""Manifests: valid ones, and all problems at once, each by its field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from telex.adapters.manifest import WHOLE, BadManifest, check, parse
from telex.adapters.protocol import PERMISSIONS, CoreIntents, DefaultTarget, Manifest
from telex.config.limits import MANIFEST_ITEMS

LEAST: dict[str, Any] = {"name": "demo", "kind": "adapter", "version": "1.0"}
RUNS: dict[str, Any] = {**LEAST, "runtime": "lua", "entrypoint": "main.lua"}


def problems(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(BadManifest) as raised:
        check(document)
    found = raised.value.problems
    assert len({problem.field for problem in found}) == len(found), "a field was named twice"
    assert all(str(problem) in str(raised.value) for problem in found)
    return {problem.field: problem.problem for problem in found}


def test_a_whole_manifest_is_read_as_it_was_written() -> None:
    manifest = parse(
        """
        name = "claude-code"
        kind = "adapter"
        version = "0.1.0"
        runtime = "lua"
        entrypoint = "lib/main.lua"
        permissions = ["session.spawn", "screen.read"]
        [default_target]
        program = "claude"
        args = ["--verbose", ""]
        rows = 40
        cols = 120
        [default_target.env]
        EDITOR = "vi"
        [default_target.required_env]
        TERM = "xterm-256color"
        """
    )
    assert manifest == Manifest(
        name="claude-code",
        kind="adapter",
        version="0.1.0",
        runtime="lua",
        entrypoint="lib/main.lua",
        permissions=("session.spawn", "screen.read"),
        default_target=DefaultTarget(
            program="claude",
            args=("--verbose", ""),
            rows=40,
            cols=120,
            env={"EDITOR": "vi"},
            required_env={"TERM": "xterm-256color"},
        ),
    )


def test_a_minimal_manifest_has_no_permissions_and_no_entrypoint() -> None:
    manifest = check(LEAST)
    assert (manifest.permissions, manifest.runtime, manifest.entrypoint) == ((), None, None)
    assert manifest.default_target is None


def test_null_means_absent() -> None:
    absent = dict.fromkeys(["runtime", "entrypoint", "permissions", "default_target"])
    assert check({**LEAST, **absent}) == check(LEAST)
    target = {"program": "sh", **dict.fromkeys(["args", "rows", "cols", "env", "required_env"])}
    manifest = check({**LEAST, "default_target": target})
    assert manifest.default_target == DefaultTarget(program="sh")


@pytest.mark.parametrize("kind", ["adapter", "macro", "matcher"])
def test_each_kind_is_accepted(kind: str) -> None:
    assert check({**LEAST, "kind": kind}).kind == kind


def test_every_permission_there_is_can_be_declared() -> None:
    assert check({**LEAST, "permissions": list(PERMISSIONS)}).permissions == PERMISSIONS


CORE = {
    "prompt": "say",
    "prompt_param": "text",
    "interrupt": "stop",
    "ready": ["idle"],
    "said": "said",
}


def test_the_core_of_a_manifest_names_functions_and_metadata() -> None:
    assert check(LEAST).core is UNSET
    core = check({**LEAST, "core": CORE}).core
    assert core == CoreIntents(
        prompt="say", prompt_param="text", interrupt="stop", ready=("idle",), said="said"
    )
    bad = {"prompt": "say it", "interrupt": 4, "answer": "reply", "command": "do", "ready": [1]}
    assert sorted(problems({**LEAST, "core": bad})) == [
        "core.answer_param",
        "core.command_param",
        "core.interrupt",
        "core.prompt",
        "core.prompt_param",
        "core.ready[0]",
        "core.said",
    ]


def test_unknown_keys_are_ignored() -> None:
    target = {"program": "sh", "colour": "red"}
    assert check({**LEAST, "author": "me", "default_target": target}).name == "demo"


def test_every_problem_is_named_at_once() -> None:
    found = problems(
        {
            "name": "",
            "kind": "plugin",
            "runtime": "wasm",
            "entrypoint": "../main.lua",
            "permissions": ["screen.read", "screen.read", "screen.write", 4],
            "default_target": {
                "args": ["ok", 1, "a\0b"],
                "rows": 0,
                "cols": True,
                "env": {"A": 1, "B=C": "", "": "x"},
                "required_env": ["TERM"],
            },
        }
    )
    assert list(found) == [
        "name",
        "kind",
        "version",
        "runtime",
        "entrypoint",
        "permissions[1]",
        "permissions[2]",
        "permissions[3]",
        "default_target.program",
        "default_target.args[1]",
        "default_target.args[2]",
        "default_target.rows",
        "default_target.cols",
        'default_target.env."B=C"',
        'default_target.env.""',
        "default_target.env.A",
        "default_target.required_env",
    ]
    assert found["version"] == "is missing"
    assert found["permissions[1]"] == "screen.read is already at permissions[0]; remove one"
    assert found["permissions[2]"] == (
        '"screen.write" is not a permission; there are session.spawn, session.kill, '
        "session.resize, screen.read, transcript.read, input.write, matcher.wait"
    )
    assert found["default_target.rows"] == "must be a whole number from 1 to 1000; it is 0"
    assert found["default_target.required_env"] == "must be a table; it is a list"


def test_the_message_names_the_fields_and_their_problems() -> None:
    with pytest.raises(BadManifest) as raised:
        check({"name": "demo", "kind": "adapter"})
    assert str(raised.value) == "the manifest cannot be used: `version`: is missing"


@pytest.mark.parametrize("field", ["name", "kind", "version"])
@pytest.mark.parametrize("value", [None, 1, [], {}, True, "", "   "])
def test_required_fields_must_be_text(field: str, value: object) -> None:
    assert list(problems({**LEAST, field: value})) == [field]
    without = {key: value for key, value in LEAST.items() if key != field}
    assert problems(without) == {field: "is missing"}


@pytest.mark.parametrize("name", ["a", "claude-code", "python_repl.2", "9", "x" * 64])
def test_valid_names_are_accepted(name: str) -> None:
    assert check({**LEAST, "name": name}).name == name


@pytest.mark.parametrize(
    "name", ["-a", ".a", "_a", "a b", "a/b", "a\n", "é", "x" * 65, "a\0", "\x1b[31m"]
)
def test_invalid_names_are_problems(name: str) -> None:
    found = problems({**LEAST, "name": name})
    assert "letters, digits" in found["name"]
    assert found["name"].isprintable()


@pytest.mark.parametrize("version", ["1\x1b[2J", "1\n2", "9" * 65])
def test_a_version_can_be_shown_on_one_line(version: str) -> None:
    assert list(problems({**LEAST, "version": version})) == ["version"]


def test_a_runtime_needs_an_entrypoint_and_the_reverse() -> None:
    assert "name the Lua file" in problems({**LEAST, "runtime": "lua"})["entrypoint"]
    assert 'runtime = "lua"' in problems({**LEAST, "entrypoint": "main.lua"})["runtime"]


def test_wasm_is_reserved_and_other_runtimes_are_unknown() -> None:
    assert "reserved" in problems({**RUNS, "runtime": "wasm"})["runtime"]
    assert problems({**RUNS, "runtime": "python"}) == {
        "runtime": 'must be "lua"; it is "python"',
    }
    assert list(problems({**RUNS, "runtime": 5})) == ["runtime"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("main.lua", "main.lua"),
        ("./main.lua", "main.lua"),
        ("lib//x/./main.lua", "lib/x/main.lua"),
        ("plugin", "plugin"),
        ("...lua", "...lua"),
        ("a..b/c.lua", "a..b/c.lua"),
        ("häuptling.lua", "häuptling.lua"),
    ],
)
def test_the_path_of_an_entrypoint_is_normalized(written: str, meant: str) -> None:
    assert check({**RUNS, "entrypoint": written}).entrypoint == meant


@pytest.mark.parametrize(
    ("entrypoint", "why"),
    [
        ("", "empty"),
        (".", "directory"),
        ("./", "directory"),
        ("lib/", "directory"),
        ("lib/.", "directory"),
        ("/main.lua", "absolute"),
        ("//main.lua", "absolute"),
        ("..", "without .."),
        ("../main.lua", "without .."),
        ("lib/../../main.lua", "without .."),
        ("lib/../main.lua", "without .."),
        ("lib/..", "without .."),
        ("..\\main.lua", "backslash"),
        ("lib\\main.lua", "backslash"),
        ("C:\\main.lua", "backslash"),
        ("main.lua\0", "control character"),
        ("a\nb.lua", "control character"),
        ("lib/" * 64, "at most 255"),
        (7, "must be text"),
        (["main.lua"], "must be text"),
    ],
)
def test_an_entrypoint_outside_of_the_directory_is_a_problem(entrypoint: Any, why: str) -> None:
    found = problems({**RUNS, "entrypoint": entrypoint})
    assert list(found) == ["entrypoint"]
    assert why in found["entrypoint"]


@pytest.mark.parametrize("size", [0, -1, 1001, 24.0, 24.5, "24", True, [], 10**30])
@pytest.mark.parametrize("field", ["rows", "cols"])
def test_sizes_are_whole_numbers_in_their_range(field: str, size: object) -> None:
    found = problems({**LEAST, "default_target": {"program": "sh", field: size}})
    assert "whole number from 1 to 1000" in found[f"default_target.{field}"]


@pytest.mark.parametrize("program", ["", "a\0b", None, 3])
def test_a_default_target_names_a_program(program: object) -> None:
    document = {**LEAST, "default_target": {"program": program}}
    assert list(problems(document)) == ["default_target.program"]


@pytest.mark.parametrize("field", ["permissions", "default_target"])
@pytest.mark.parametrize("value", ["screen.read", 1, True])
def test_lists_and_tables_are_what_they_should_be(field: str, value: object) -> None:
    assert list(problems({**LEAST, field: value})) == [field]


def test_arguments_and_variables_are_never_quoted_in_problems() -> None:
    target = {"program": "sh", "args": ["hunter2\0"], "env": {"TOKEN": "hunter2\0", "N": 4711}}
    with pytest.raises(BadManifest) as raised:
        check({**LEAST, "default_target": target})
    assert "hunter2" not in str(raised.value)
    assert "4711" not in str(raised.value)


def test_unusual_keys_are_escaped_in_problems() -> None:
    target = {"program": "sh", "env": {"A[\x1b[2J]=": "", "\n": 1}}
    with pytest.raises(BadManifest) as raised:
        check({**LEAST, "default_target": target})
    assert str(raised.value).isprintable()


def test_a_flood_of_items_is_one_problem() -> None:
    many = ["nonsense"] * (MANIFEST_ITEMS + 1)
    assert list(problems({**LEAST, "permissions": many})) == ["permissions"]
    env = {f"V{n}": n for n in range(MANIFEST_ITEMS + 1)}
    found = problems({**LEAST, "default_target": {"program": "sh", "env": env}})
    assert list(found) == ["default_target.env"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "line 1, column 8"),
        ('name = "a"\nkind ! "b"', "line 2, column 6"),
        ('name = "a"\nname = "b"', "line 2"),
        ("a = " + "[" * 20_000, "not TOML"),
        ("a = " + "9" * 5_000, "not TOML"),
    ],
)
def test_invalid_toml_is_reported_with_its_position(text: str, told: str) -> None:
    with pytest.raises(BadManifest) as raised:
        parse(text)
    [problem] = raised.value.problems
    assert problem.field == WHOLE
    assert told in problem.problem


def test_a_number_too_large_to_format_is_a_problem() -> None:
    written = f'name = "a"\nkind = "macro"\nversion = "1"\ndefault_target.rows = 0x{"f" * 9000}'
    with pytest.raises(BadManifest, match=r"`default_target.rows`: .*; it is a large number"):
        parse(written)


def test_a_date_is_not_a_valid_version() -> None:
    with pytest.raises(BadManifest, match="`version`: must be text; it is a date or a time"):
        parse('name = "a"\nkind = "macro"\nversion = 2024-01-01')


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
fields = st.sampled_from([*RUNS, "permissions", "default_target", "other"])
target_fields = st.sampled_from(["program", "args", "rows", "cols", "env", "required_env"])
targets = st.dictionaries(target_fields, json)


@given(st.dictionaries(fields, json | targets))
def test_any_value_is_a_manifest_or_a_list_of_problems(document: dict[str, Any]) -> None:
    try:
        check({**RUNS, **document})
    except BadManifest as error:
        refused = error
    else:
        return
    assert refused.problems
    assert str(refused).isprintable()
