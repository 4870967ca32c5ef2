"""`telex adapter`: new, test, try and record, as a person who writes a plugin uses them."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from passthrough.person import BASH, TELEX, at_terminal
from passthrough.test_panel_view import shown, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

KEY = "\x1d"
SECRET = "ghp_" + "aB3" * 12
BUILTINS = ("claude-code", "less", "python-repl", "shell")


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def recorded(directory: Path) -> dict[str, dict[str, Any]]:
    """What `record` wrote, by name."""
    return tomllib.loads((directory / "recorded.toml").read_text())


@pytest.fixture
def mine(telex: Run, work: Path) -> Path:
    """What `new` writes."""
    assert telex("adapter", "new", "mine").returncode == 0
    return work / "mine"


def adapter(home: Path, *args: str) -> tuple[tuple[str, ...], dict[str, str]]:
    return (*TELEX, "adapter", *args), {"TELEX_HOME": str(home)}


# list


def test_list_prints_each_adapter_with_its_origin_and_its_permissions(telex: Run) -> None:
    ran = telex("adapter", "list")
    assert ran.returncode == 0
    lines = ran.stdout.splitlines()
    assert [line.split()[0] for line in lines[::2]] == list(BUILTINS)
    assert all(line.endswith("  ok  comes with telex") for line in lines[::2])
    assert all("session.spawn" in line.split("may:")[1] for line in lines[1::2])
    assert "adapters; `telex adapter new` writes one" in ran.stderr
    listed = json.loads(telex("adapter", "list", "--json").stdout)["adapters"]
    shell = next(one for one in listed if one["name"] == "shell")
    assert shell == {
        "name": "shell",
        "version": "1.0.0",
        "state": "ok",
        "where": None,
        "builtin": True,
        "permissions": shell["permissions"],
        "program": "bash",
        "problem": None,
    }
    assert "input.write" in shell["permissions"]


def test_list_includes_user_adapters_and_reports_the_defect_of_unusable_adapters(
    telex: Run, environ: dict[str, str], mine: Path
) -> None:
    adapters = Path(environ["TELEX_HOME"]) / "data" / "adapters"
    for name in ("mine", "twice", "shell2", "broken", "writable"):
        shutil.copytree(mine, adapters / name)
    changed(adapters / "shell2" / "manifest.toml", 'name = "mine"', 'name = "shell"')
    (adapters / "broken" / "manifest.toml").write_text("name = 3\n")
    (adapters / "writable" / "main.lua").chmod(0o666)
    (adapters / "empty").mkdir()
    ran = telex("adapter", "list", "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    told = json.loads(ran.stdout)
    own = {Path(one["where"]).name: one for one in told["adapters"] if not one["builtin"]}
    assert told["directory"] == str(adapters)
    assert {name: one["state"] for name, one in own.items()} == {
        "broken": "cannot be used",
        "empty": "cannot be used",
        "mine": "ok",
        "shell2": "cannot be used",
        "twice": "cannot be used",
        "writable": "cannot be used",
    }
    assert "is already called mine" in own["twice"]["problem"]
    assert "a builtin plugin is called shell" in own["shell2"]["problem"]
    assert own["broken"]["name"] == "broken", "by its directory, where the manifest says none"
    assert own["mine"]["permissions"]
    shown = telex("adapter", "list").stdout
    assert sum(" cannot be used " in line for line in shown.splitlines()) == 5
    assert own["twice"]["problem"] in shown


# new


def test_a_new_adapter_passes_its_test_at_once(telex: Run, work: Path) -> None:
    ran = telex("adapter", "new", "mine")
    assert ran.returncode == 0
    assert "wrote mine/main.lua" in ran.stdout
    assert "telex adapter try ./mine -- bash" in ran.stdout
    ran = telex("adapter", "test", "./mine")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "mine 0.1.0\n  ok    ready\nmine: 1 passed, 0 failed\n"
    for file in ("manifest.toml", "main.lua", "README.md"):
        assert "@NAME@" not in (work / "mine" / file).read_text()


def test_new_replaces_nothing_and_takes_no_name_that_could_not_be_used(
    telex: Run, work: Path
) -> None:
    (work / "mine").mkdir()
    ran = telex("adapter", "new", "mine")
    assert (ran.returncode, list((work / "mine").iterdir())) == (1, [])
    assert "mine exists already" in ran.stderr
    assert telex("adapter", "new", "mine", "--dir", "deep/er").returncode == 0
    assert (work / "deep/er/mine/main.lua").exists()
    for name, why in (("../x", "letters"), ("a b", "letters"), ("shell", "built-in adapter")):
        ran = telex("adapter", "new", name)
        assert (ran.returncode, why in ran.stderr) == (2, True)


# test


def test_a_wrong_expectation_fails_and_says_which_field(
    telex: Run, on_terminal: Run, mine: Path
) -> None:
    fixtures = mine / "fixtures" / "screens.toml"
    changed(fixtures, 'rule = "prompt"', 'rule = "colour"')
    changed(fixtures, 'prompt = "$"', 'prompt = "%"')
    ran = telex("adapter", "test", "mine")
    assert ran.returncode == 1
    assert ran.stdout == (
        "mine 0.1.0\n"
        "  FAIL  ready\n"
        '        rule             wanted "colour"\n'
        '                         got    "prompt"\n'
        '        metadata.prompt  wanted "%"\n'
        '                         got    "$"\n'
        "mine: 0 passed, 1 failed\n"
    )
    assert '\x1b[31m"prompt"\x1b[0m' in on_terminal("adapter", "test", "mine").stdout
    assert "\x1b" not in on_terminal("adapter", "test", "mine", NO_COLOR="1").stdout


def test_verbose_prints_the_classification_with_its_evidence(telex: Run, mine: Path) -> None:
    ran = telex("adapter", "test", "-v", str(mine))
    assert "ready 0.9 by prompt: the last line ends like a prompt" in ran.stdout


def test_cases_that_cannot_be_used_and_no_fixtures_at_all_are_failures(
    telex: Run, mine: Path
) -> None:
    (mine / "fixtures" / "more.toml").write_text('[half]\nstate = "ready"\n')
    ran = telex("adapter", "test", "mine")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "  FAIL  more.toml: half cannot be used: it has no `screen`" in ran.stdout
    for file in (mine / "fixtures").iterdir():
        file.unlink()
    ran = telex("adapter", "test", "mine")
    assert ran.returncode == 1
    assert "there are no fixtures in mine/fixtures" in ran.stdout


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("error('not today')", "not today"),
        ("while true do end", ""),
        ("return { state = 5, confidence = 1 }", "$.state"),
        ("return print", ""),
    ],
)
def test_an_error_in_a_plugin_is_reported_with_its_function(
    telex: Run, mine: Path, broken: str, told: str
) -> None:
    changed(
        mine / "main.lua",
        "function plugin.classify(ctx)\n",
        f"function plugin.classify(ctx)\n  do {broken} end\n",
    )
    ran = telex("adapter", "test", "mine")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "  FAIL  ready\n        classify: " in ran.stdout
    assert told in ran.stdout
    assert "Traceback" not in ran.stdout


def test_a_plugin_that_cannot_be_loaded_is_reported_and_the_next_plugin_is_tested(
    telex: Run, work: Path, mine: Path
) -> None:
    telex("adapter", "new", "other")
    changed(work / "other" / "manifest.toml", '"screen.read"', '"screen.raed"')
    ran = telex("adapter", "test", "./other", "./mine")
    assert ran.returncode == 1
    assert "  FAIL  ./other: " in ran.stdout
    assert "screen.raed" in ran.stdout
    assert "mine: 1 passed, 0 failed" in ran.stdout
    (mine / "main.lua").write_text("return {")
    ran = telex("adapter", "test", "./mine")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "main.lua" in ran.stdout


def test_an_unknown_adapter_name_is_a_usage_error_that_lists_the_adapters(telex: Run) -> None:
    ran = telex("adapter", "test", "nope")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert all(name in ran.stderr for name in BUILTINS)
    assert telex("adapter", "test", "./nope").returncode == 2
    assert telex("adapter", "test").returncode == 2


@pytest.mark.parametrize("name", BUILTINS)
def test_the_plugins_that_come_with_telex_pass_their_tests(telex: Run, name: str) -> None:
    ran = telex("adapter", "test", name)
    assert ran.returncode == 0, ran.stdout


def test_an_installed_plugin_is_found_by_its_name(telex: Run, tmp_path: Path) -> None:
    telex("adapter", "new", "mine", "--dir", str(tmp_path / "home" / "data" / "adapters"))
    assert telex("adapter", "test", "mine").returncode == 0


# try


async def test_the_state_stands_below_the_program_and_follows_it(
    mine: Path, tmp_path: Path
) -> None:
    argv, env = adapter(tmp_path, "try", str(mine), "--", *BASH)
    async with at_terminal(*argv, **env) as person:
        await until(
            person, "mine · ready 0.90 · rule prompt", '{"prompt": "$"}', " ms · ctrl_] quits"
        )
        person.type("stty size; read -p 'Sure? [y/n] '\r")
        now = await until(person, "mine · question 0.90", "offers yes and no")
        assert "20 80" in now
        person.type("n\r")
        await until(person, "mine · ready")
        person.type("exit 6\r")
        assert await person.leaves() == 6
        assert person.restored()


async def test_a_screen_is_looked_at_again_when_it_has_stood_still(
    mine: Path, tmp_path: Path
) -> None:
    argv, env = adapter(tmp_path, "try", str(mine), "--", "sh", "-c", "echo working; sleep 20")
    async with at_terminal(*argv, **env) as person:
        await until(person, "mine · unknown 0.00")
        assert "busy 0.60" in person.seen.decode(), "the first look, which stands for 300 ms"
        person.type(KEY)
        assert await person.leaves() == 128 + 1


async def test_the_key_ends_the_program_and_the_manifest_names_one(
    mine: Path, tmp_path: Path
) -> None:
    argv, env = adapter(tmp_path, "try", str(mine), "--key", "ctrl_g")
    async with at_terminal(*argv, **env) as person:
        await until(person, "mine · ready", "ctrl_g quits")
        person.type("\x07never typed")
        assert await person.leaves() == 128 + 1
        assert person.restored()
        assert not any(shown(person)), "the terminal shows what it showed before"
        assert not person.others()


@pytest.mark.parametrize("broken", ["while true do end", "error('not today')"])
async def test_an_error_in_a_plugin_is_shown_in_red_and_the_program_continues(
    mine: Path, tmp_path: Path, broken: str
) -> None:
    changed(
        mine / "main.lua",
        "function plugin.classify(ctx)\n",
        f"function plugin.classify(ctx)\n  do {broken} end\n",
    )
    argv, env = adapter(tmp_path, "try", str(mine), "--", *BASH)
    async with at_terminal(*argv, **env) as person:
        await until(person, "mine · plugin_error", "classify: ")
        await person.sees("\x1b[97;41m")
        person.type("echo $((6*7))\r")
        await until(person, "\n42")
        person.type("exit 3\r")
        assert await person.leaves() == 3
        assert not person.others()


def test_without_a_terminal_there_is_nothing_to_try(telex: Run, mine: Path) -> None:
    for what in ("try", "record"):
        ran = telex("adapter", what, str(mine), "--", "true")
        assert (ran.returncode, ran.stdout) == (3, "")
        assert "run this in a terminal" in ran.stderr


def test_try_requires_a_command_when_the_manifest_has_no_default_target(
    telex: Run, mine: Path
) -> None:
    changed(
        mine / "manifest.toml",
        '[default_target]\nprogram = "bash"\nargs = ["--norc", "--noprofile"]\n',
        "",
    )
    ran = telex("adapter", "try", str(mine))
    assert ran.returncode == 2
    assert "name a program: -- COMMAND" in ran.stderr


# record


async def test_a_screen_is_kept_without_its_secrets_and_passes_the_test(
    telex: Run, mine: Path, tmp_path: Path
) -> None:
    argv, env = adapter(tmp_path, "record", str(mine), "--", *BASH)
    async with at_terminal(*argv, **env) as person:
        await until(person, "0 saved · now ready", "ctrl_] saves this screen")
        person.type(f"echo {SECRET}\r")
        await until(person, f"\n{SECRET}")
        await until(person, "· now ready")
        person.type(KEY)
        await until(person, "save as:", "enter saves as 001")
        person.type("\r")
        await until(person, "1 saved", "saved 001 as ready")
        person.type(KEY)
        person.type("tokenx\x7f!\r")
        await until(person, "2 saved", "saved token as ready")
        person.type(f"{KEY}no\x1b")
        await until(person, "2 saved · now ready")
        person.type("exit\r")
        assert await person.leaves() == 0
        assert person.restored()
        await person.sees("001, token")
    for name in ("001", "token"):
        kept = recorded(mine / "fixtures")[name]
        assert SECRET not in kept["screen"]
        assert SECRET[5:25] not in kept["screen"]
        assert "$ echo " in kept["screen"]
        assert (kept["state"], kept["rule"]) == ("ready", "prompt")
        assert kept["context"]["size"] == {"rows": 22, "cols": 80}
    ran = telex("adapter", "test", "mine")
    assert (ran.returncode, "3 passed, 0 failed" in ran.stdout) == (0, True), ran.stdout


async def test_a_transcript_that_decided_the_state_is_kept_too_without_its_secrets(
    telex: Run, mine: Path, tmp_path: Path
) -> None:
    changed(mine / "manifest.toml", '"screen.read",', '"screen.read", "transcript.read",')
    magic = "if ctx.transcript:find('xyzzy') then return { state = 'magic', confidence = 1 } end"
    changed(
        mine / "main.lua",
        "function plugin.classify(ctx)\n",
        f"function plugin.classify(ctx)\n{magic}\n",
    )
    argv, env = adapter(tmp_path, "record", str(mine), "--", *BASH)
    async with at_terminal(*argv, **env) as person:
        await until(person, "now ready")
        person.type(f"echo xyzzy {SECRET}; clear\r")
        await until(person, "now magic")
        person.type(f"{KEY}\r")
        await until(person, "saved 001 as magic")
        person.type("exit\r")
        assert await person.leaves() == 0
    kept = recorded(mine / "fixtures")["001"]
    assert "xyzzy" in kept["context"]["transcript"]
    assert SECRET not in str(kept)
    assert telex("adapter", "test", "mine").returncode == 0


async def test_a_fixture_is_never_replaced(mine: Path, tmp_path: Path) -> None:
    before = (mine / "fixtures" / "screens.toml").read_text()
    argv, env = adapter(tmp_path, "record", str(mine), "--", *BASH)
    async with at_terminal(*argv, **env) as person:
        await until(person, "now ready")
        person.type(f"{KEY}ready\r")
        await until(person, "not saved: screens.toml already has a ready")
        person.type("exit\r")
        assert await person.leaves() == 0
    assert (mine / "fixtures" / "screens.toml").read_text() == before
    assert not (mine / "fixtures" / "recorded.toml").exists()


async def test_screens_are_kept_before_there_is_a_plugin(tmp_path: Path) -> None:
    argv, env = adapter(tmp_path, "record", str(tmp_path / "later"), "--", *BASH)
    async with at_terminal(*argv, **env) as person:
        await until(person, "$", "0 saved")
        person.type(f"{KEY}\rexit\r")
        assert await person.leaves() == 0
    kept = recorded(tmp_path / "later" / "fixtures")["001"]
    assert kept["state"] == "unknown"
    assert "edit" in kept["note"]


async def test_a_screen_is_kept_though_the_program_ends_before_the_plugin_has_spoken(
    mine: Path, tmp_path: Path
) -> None:
    first = "function plugin.classify(ctx)\n"
    changed(mine / "main.lua", first, f"{first}  while true do end\n")
    argv, env = adapter(tmp_path, "record", str(mine), "--", *BASH)
    async with at_terminal(*argv, **env) as person:
        await until(person, "$", "0 saved")
        person.type(f"{KEY}last\rexit\r")
        assert await person.leaves() == 0
        assert not person.others()
    kept = recorded(mine / "fixtures")["last"]
    assert (kept["screen"], kept["state"]) == ("$\n", "unknown")


async def test_the_recorded_screen_is_from_the_moment_of_the_key_press(
    mine: Path, tmp_path: Path
) -> None:
    script = "echo early; read x; echo late; read x"
    argv, env = adapter(
        tmp_path, "record", str(mine), "--into", str(tmp_path / "here"), "--", "sh", "-c", script
    )
    async with at_terminal(*argv, **env) as person:
        await until(person, "early")
        person.type(f"{KEY}a")
        await until(person, "save as: a")
        person.type("\x7fb\r\r")
        await until(person, "late", "saved b as")
        person.type("\r")
        assert await person.leaves() == 0
    assert recorded(tmp_path / "here")["b"]["screen"] == "early\n"
