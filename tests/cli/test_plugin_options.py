"""A plugin's entries as options: types, pairs, shorthands, whose flag it is, and the words of help."""

from __future__ import annotations

import re

import click
import pytest

from telex.cli.plugin.plugin_options import Parsed, parse
from telex.plugins.protocol import CommandEntry, ConfigEntry, Flag, Introduced

ENTRIES = [
    ConfigEntry("name", "world", description="whom to greet", flag=Flag(shorthand="n")),
    ConfigEntry("loud", False, "bool", flag=Flag(shorthand="l")),
    ConfigEntry("tags", type="stringList", flag=Flag("tag")),
    ConfigEntry("count", 3, "int"),
]
HELLO = CommandEntry(
    "hello", "hello WHO", "Say hello.", "Says it\n  on two lines.", configs=ENTRIES
)
ADD = CommandEntry("add", configs=[ConfigEntry("force", False, "bool")], aliases=["a"])
REMOTE = CommandEntry("remote", configs=[ConfigEntry("deep", False, "bool")], commands=[ADD])
OWN = [ConfigEntry("level", 0, "int"), ConfigEntry("name", description="the plugin's")]


def parsed(*words: str, protocol: str = "rpp", own: list[ConfigEntry] = OWN) -> Parsed:
    introduced = Introduced(protocol, 0, "it", configs=own, commands=[HELLO, REMOTE])
    group = click.Context(click.Group("plugin"), info_name="telex plugin")
    context = click.Context(click.Command("run"), parent=group, info_name="run")
    return parse(context, "it", "About it.", introduced, list(words))


def helped(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(click.exceptions.Exit) as caught:
        parsed(*words, "--help")
    assert caught.value.exit_code == 0
    return capsys.readouterr().out


def test_every_type_of_value_is_taken_as_it_was_written() -> None:
    said = parsed("hello", "-n", "Ann", "--loud", "--tag", "a,b", "--tag=c", "--count", "x", "who")
    assert said.path == ("hello",)
    assert said.args == ("who",)
    assert said.flags == {"name": ["Ann"], "loud": ["true"], "tags": ["a,b", "c"], "count": ["x"]}
    assert said.plugin_flags == {}


@pytest.mark.parametrize(
    ("words", "value"), [(["--no-loud"], "false"), (["-l"], "true"), (["-l", "--no-loud"], "false")]
)
def test_a_bool_has_a_flag_for_yes_and_one_for_no(words: list[str], value: str) -> None:
    assert parsed("hello", *words).flags == {"loud": [value]}


def test_the_plugins_flags_stand_anywhere_and_the_commands_own_go_before_them() -> None:
    said = parsed("--level", "2", "--name", "its", "hello", "--name", "ours", "--level", "3")
    assert said.flags == {"name": ["ours"]}
    assert said.plugin_flags == {"level": ["2", "3"], "name": ["its"]}


def test_nested_commands_are_found_by_name_and_alias() -> None:
    for word in ("add", "a"):
        said = parsed("remote", word, "--force", "x", "--", "--level")
        assert said.path == ("remote", "add")
        assert said.flags == {"force": ["true"]}
        assert said.args == ("x", "--level")
    assert parsed("remote", "--deep").path == ("remote",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["helo"], "there is no command helo; did you mean hello?"),
        (["remote", "x"], "there is no command x"),
        (["remote", "--deep", "add"], "add does not take the flags of remote itself"),
        (["hello", "--nam"], "No such option '--nam'."),
        (["hello", "--name"], "Option '--name' requires an argument."),
    ],
)
def test_an_invalid_command_line_is_a_usage_error(words: list[str], message: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        parsed(*words)
    assert message in caught.value.format_message()


def test_generation_b_has_no_place_for_arguments() -> None:
    with pytest.raises(click.UsageError, match="hello takes no arguments"):
        parsed("hello", "x", protocol="reginald")


def test_without_a_command_there_is_help() -> None:
    with pytest.raises(click.exceptions.NoArgsIsHelpError) as caught:
        parsed("--level", "3")
    text = caught.value.format_message()
    assert text.startswith("Usage: telex plugin run it [OPTIONS] COMMAND [ARGS]...\n\n  About it.")
    assert "hello   Say hello." in text


def test_help_has_the_plugins_words_and_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    text = helped(capsys, "hello")
    assert text.startswith("Usage: telex plugin run it hello WHO\n")
    assert "\n  Says it\n    on two lines.\n" in text
    assert "-n, --name TEXT" in text
    assert "whom to greet  [default: world]" in text
    assert "-l, --loud / --no-loud" in text
    assert "--tag TEXT,…" in text
    assert re.search(r"--level NUMBER +\[default: 0\]", text)
    assert "the plugin's" not in text
    assert "add (also: a)" not in text
    assert "(also: a)" in helped(capsys, "remote")


def test_nothing_in_help_is_obeyed_by_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b]0;x\x07\x9b1m"
    command = CommandEntry(
        "c", bad, bad, bad, bad, configs=[ConfigEntry("k", bad, description=bad)]
    )
    introduced = Introduced("rpp", 0, "it", description=bad, commands=[command])
    context = click.Context(click.Command("run"), info_name="run")
    for words in (["--help"], ["c", "--help"]):
        with pytest.raises(click.exceptions.Exit):
            parse(context, "it", bad, introduced, words)
    assert capsys.readouterr().out.replace("\n", "").isprintable()


def test_names_that_meet_are_each_used_once() -> None:
    own = [
        ConfigEntry("a", False, "bool"),
        ConfigEntry("no-a", False, "bool"),
        ConfigEntry("b", flag=Flag("a", "h")),
        ConfigEntry("help"),
    ]
    said = parsed("--no-a", "-h", "x", "--help", "y", "hello", own=own)
    assert said.plugin_flags == {"no-a": ["true"], "b": ["x"], "help": ["y"]}
