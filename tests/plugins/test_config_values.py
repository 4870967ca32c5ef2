"""Values of a plugin's configuration: their sources, types and problems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.config import load as config_load
from telex.config.layers import Origin, Source
from telex.config.load import load
from telex.config.places import Places
from telex.plugins.config_values import (
    BadValues,
    ConfigSection,
    Sources,
    Values,
    flag_name,
    resolve,
    sections_of,
    variable_name,
)
from telex.plugins.protocol import ConfigEntry, Flag, KeyValue

if TYPE_CHECKING:
    from telex.plugins.protocol import ValueType

USER = Origin(Source.USER, "config.toml")
CWD, HOME = Path("/work/here"), "/home/me"


def resolved(
    entry: ConfigEntry,
    *,
    file: Any = None,
    env: dict[str, str] | None = None,
    flags: list[str] | None = None,
) -> Values:
    section = ConfigSection({} if file is None else {"my-tool": {entry.key: file}}, USER)
    environ = {"HOME": HOME, **(env or {})}
    given_flags = {entry.key: flags} if flags else {}
    return resolve("my-tool", [entry], Sources([section], environ, given_flags, CWD))


def value_of(values: Values) -> Any:
    [one] = values.key_values()
    return one.value


def test_a_flag_beats_the_variable_which_beats_the_file_which_beats_the_default() -> None:
    entry = ConfigEntry("dry-run.level", value=1, type="int")
    name = "TELEX_MY_TOOL_DRY_RUN_LEVEL"
    assert variable_name(["my-tool"], entry) == name

    def outcome(**given: Any) -> tuple[Any, Origin]:
        values = resolved(entry, **given)
        return value_of(values), values.resolved[0].origin

    assert outcome() == (1, Origin(Source.DEFAULT))
    assert outcome(file=2) == (2, USER)
    assert outcome(file=2, env={name: "3"}) == (3, Origin(Source.ENVIRONMENT, name))
    by_flag = outcome(file=2, env={name: "3"}, flags=["4"])
    assert by_flag == (4, Origin(Source.FLAG, "--dry-run.level"))


@pytest.mark.parametrize(
    ("kind", "file", "text", "value"),
    [
        ("bool", True, "Yes", True),
        ("bool", False, "0", False),
        ("int", -3, "-3", -3),
        ("string", "a,b", "a,b", "a,b"),
        ("path", "x/../y", "x/../y", "/work/here/x/../y"),
        ("path", "~/x", "~/x", "/home/me/x"),
        ("path", "~", "~", "/home/me"),
        ("path", "/abs", "/abs", "/abs"),
        ("boolList", [True, False], "on,off", [True, False]),
        ("intList", [1, 2], "1, 2", [1, 2]),
        ("stringList", ["a", "b"], "a,b", ["a", "b"]),
        ("stringList", ["a,b"], '["a,b"]', ["a,b"]),
        ("pathList", ["~/x", "y"], "~/x,y", ["/home/me/x", "/work/here/y"]),
    ],
)
def test_each_type_is_read_from_a_file_a_variable_and_a_flag(
    kind: ValueType, file: Any, text: str, value: Any
) -> None:
    entry = ConfigEntry("key", type=kind)
    assert value_of(resolved(entry, file=file)) == value
    assert value_of(resolved(entry, env={"TELEX_MY_TOOL_KEY": text})) == value
    assert value_of(resolved(entry, flags=[text])) == value


def test_a_flag_of_a_list_may_be_repeated_and_of_another_the_last_one_counts() -> None:
    many = resolved(ConfigEntry("key", type="intList"), flags=["1,2", "3"])
    assert value_of(many) == [1, 2, 3]
    assert value_of(resolved(ConfigEntry("key", type="int"), flags=["1", "2"])) == 2


@pytest.mark.parametrize(
    ("kind", "file", "wanted"),
    [
        ("bool", "yes", 'true or false; it is "yes"'),
        ("bool", 1, "true or false; it is 1"),
        ("int", True, "a whole number of 64 bits; it is true"),
        ("int", 1.5, "a whole number of 64 bits; it is 1.5"),
        ("int", 2**63, f"a whole number of 64 bits; it is {2**63}"),
        ("string", ["x"], "text; it is a list"),
        ("path", "", 'a path; it is ""'),
        ("intList", 5, "a list, each a whole number of 64 bits; it is 5"),
        ("intList", [1, "x"], 'a list, each a whole number of 64 bits; one is "x"'),
        ("pathList", ["a", ""], 'a list, each a path; one is ""'),
    ],
)
def test_a_wrong_value_is_reported_with_key_origin_and_expected_type(
    kind: ValueType, file: Any, wanted: str
) -> None:
    values = resolved(ConfigEntry("key", type=kind), file=file)
    assert values.problems == (f"config.toml: my-tool.key must be {wanted}",)
    with pytest.raises(BadValues, match=r"my-tool\.key must be"):
        values.key_values()


@pytest.mark.parametrize(
    ("kind", "text"), [("bool", "maybe"), ("int", "1_000"), ("int", "0x10"), ("intList", "1,x")]
)
def test_a_variable_or_flag_of_the_wrong_type_is_reported(kind: ValueType, text: str) -> None:
    entry = ConfigEntry("key", type=kind, flag=Flag(name="the-key"))
    by_variable = resolved(entry, env={"TELEX_MY_TOOL_KEY": text}).problems[0]
    assert by_variable.startswith("TELEX_MY_TOOL_KEY: my-tool.key must be ")
    assert resolved(entry, flags=[text]).problems[0].startswith("--the-key: my-tool.key must be ")


def test_all_wrong_values_are_reported_at_once() -> None:
    entries = [ConfigEntry("a", type="int"), ConfigEntry("b"), ConfigEntry("c", "x", "bool")]
    section = ConfigSection({"it": {"a": "x", "b": 1}}, USER)
    problems = resolve("it", entries, Sources([section])).problems
    assert [problem.partition(" must")[0] for problem in problems] == [
        "config.toml: it.a",
        "config.toml: it.b",
        "the default of it: it.c",
    ]


def test_an_overridden_wrong_value_is_not_reported() -> None:
    assert value_of(resolved(ConfigEntry("key", type="int"), file="x", flags=["1"])) == 1


def test_values_without_a_source_are_left_out_and_an_empty_variable_counts_as_unset() -> None:
    assert resolved(ConfigEntry("key"), env={"TELEX_MY_TOOL_KEY": ""}).key_values() == []
    assert resolved(ConfigEntry("key", value="")).key_values() == [KeyValue("key", "", "string")]


def test_an_env_override_replaces_the_default_variable() -> None:
    entry = ConfigEntry("key", env_override="TELEX_MY_TOOL_OTHER")
    env = {"TELEX_MY_TOOL_OTHER": "this", "TELEX_MY_TOOL_KEY": "that"}
    assert value_of(resolved(entry, env=env)) == "this"


@pytest.mark.parametrize("name", ["SOME_SECRET", "TELEX_TOKEN", "TELEX_MY_TOOLS_KEY"])
def test_a_plugin_reads_only_its_own_and_granted_variables(name: str) -> None:
    entries = [ConfigEntry("key", env_override=name)]
    sources = Sources(environ={name: "secret"})
    values = resolve("my-tool", entries, sources)
    assert values.key_values() == []
    [hint] = values.hints
    assert hint.startswith(f"{name} is not passed to my-tool")
    assert hint.endswith("set TELEX_MY_TOOL_KEY")
    asked = resolve("my-tool", entries, sources, granted=[name])
    assert bool(asked.key_values()) is (name != "TELEX_TOKEN")
    usual = Sources(environ={name: "secret", "TELEX_MY_TOOL_KEY": "that"})
    assert value_of(resolve("my-tool", entries, usual)) == "that"


def test_a_flag_only_entry_ignores_other_sources_with_a_hint() -> None:
    entry = ConfigEntry("key", flag_only=True)
    values = resolved(entry, file="x", env={"TELEX_MY_TOOL_KEY": "y"})
    assert values.key_values() == []
    assert [hint.partition(" has no effect")[0] for hint in values.hints] == [
        "config.toml: my-tool.key",
        "TELEX_MY_TOOL_KEY",
    ]
    assert value_of(resolved(entry, file="x", flags=["z"])) == "z"


def test_the_values_of_a_command_are_one_level_deeper() -> None:
    entry = ConfigEntry("key")
    section = ConfigSection({"it": {"key": "no", "deploy": {"key": "from the file"}}}, USER)
    by_file = resolve("it", [entry], Sources([section]), ["deploy"])
    assert by_file.key_values() == [KeyValue("key", "from the file", "string")]
    environ = {"TELEX_IT_DEPLOY_KEY": "from the variable"}
    by_variable = resolve("it", [entry], Sources([section], environ), ["deploy"])
    assert by_variable.key_values() == [KeyValue("key", "from the variable", "string")]


def test_an_unknown_key_is_a_hint_with_the_nearest_name() -> None:
    section = ConfigSection({"it": {"verbos": 1, "xyz": 2, "a-command": {}}}, USER)
    hints = resolve("it", [ConfigEntry("verbose")], Sources([section])).hints
    assert hints == (
        "config.toml: it.verbos is not known; did you mean verbose?",
        "config.toml: it.xyz is not known",
    )


def test_a_flag_is_called_as_it_says_or_as_its_key() -> None:
    assert flag_name(ConfigEntry("key")) == "--key"
    assert flag_name(ConfigEntry("key", flag=Flag(shorthand="k"))) == "--key"
    assert flag_name(ConfigEntry("key", flag=Flag(name="other"))) == "--other"


def test_sections_come_from_the_users_file_and_from_a_trusted_projects(tmp_path: Path) -> None:
    places = Places(*(tmp_path / name for name in ("config", "data", "state", "run")))
    places.config.mkdir()
    places.config_file.write_text('[plugins.it]\nkey = "user"\n')
    file = tmp_path / "project" / config_load.NAME
    file.parent.mkdir(parents=True)
    file.write_text('[plugins.it]\nkey = "project"\n')

    def value() -> Any:
        config = load(places, {}, tmp_path / "project")
        return value_of(resolve("it", [ConfigEntry("key")], Sources(sections_of(config))))

    assert value() == "user"
    seen = config_load.read(file, places.trusted)
    assert seen
    config_load.trust(seen, places.trusted)
    assert value() == "project"


def test_a_plugins_section_that_is_no_table_is_reported_with_its_file(tmp_path: Path) -> None:
    places = Places(*(tmp_path / name for name in ("config", "data", "state", "run")))
    places.config.mkdir()
    places.config_file.write_text("plugins = 3\n")
    with pytest.raises(BadValues, match=r"config\.toml: plugins must be a table; it is 3"):
        sections_of(load(places, {}, tmp_path))


@given(st.sampled_from(["bool", "int", "string", "path", "boolList", "intList"]), st.text())
def test_no_text_breaks_the_reading(kind: ValueType, text: str) -> None:
    values = resolved(ConfigEntry("key", type=kind), flags=[text])
    assert values.problems or len(values.key_values()) == 1
