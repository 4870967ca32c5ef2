"""A yes covers the files that will run, with their content at the time of the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.limits import AGENT_GLOB_NAMES, AGENT_TEXT_NAMES
from telex.agent.permissions import DiskLookup, Judge, Mode, PermissionRequest
from telex.agent.permissions.bound_files import find_bound_files
from telex.agent.permissions.question_text import link_notes
from telex.agent.sandbox_files import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

    from telex.agent.permissions.bound_files import BoundFiles

EVIL = "touch evil\n"
CHANGED: list[tuple[str, dict[str, str], dict[str, str]]] = [
    # A pattern: its matches, and their content.
    ("sh run3*", {"run3.sh": "touch fine"}, {"run3.sh": EVIL}),
    ("sh run3*", {"run3.sh": "touch fine"}, {"run3": EVIL}),
    ("sh run3*", {}, {"run3.sh": EVIL}),
    ("sh ./run?.sh", {"run3.sh": "touch fine"}, {"run3.sh": EVIL}),
    ("cd d && sh run3*", {"d/run3": "touch fine"}, {"d/run3": EVIL}),
    # A module: itself, a package, a parent package, one that is found before the real one.
    ("python3 -m modx", {"modx.py": "print(1)"}, {"modx.py": "print(2)"}),
    ("python3 -m modx", {"modx/__main__.py": "print(1)"}, {"modx/__main__.py": "print(2)"}),
    ("python3 -m modx", {"modx/__main__.py": "print(1)"}, {"modx/__init__.py": "print(2)"}),
    ("python3 -mmodx", {"modx.py": "print(1)"}, {"modx.py": "print(2)"}),
    ("python3 -Im modx", {"modx.py": "print(1)"}, {"modx.py": "print(2)"}),
    ("python3 -m a.b.c", {"a/b/c.py": "print(1)"}, {"a/b/c.py": "print(2)"}),
    ("python3 -m a.b.c", {"a/b/c.py": "print(1)"}, {"a/__init__.py": "print(2)"}),
    ("python3 -m a.b.c", {"a/b/c.py": "print(1)"}, {"a/b/c/__main__.py": "print(2)"}),
    ("python3 -m modx", {"modx.py": "print(1)"}, {"__pycache__/modx.cpython-311.pyc": "x"}),
    ("python3 -m http.server", {}, {"http.py": "print(2)"}),
    ("env A=1 python3.11 -m modx", {"modx.py": "print(1)"}, {"modx.py": "print(2)"}),
    ("sh -c 'python3 -m modx'", {"modx.py": "print(1)"}, {"modx.py": "print(2)"}),
    ("X=1 python3 -m modx", {"modx.py": "print(1)"}, {"modx.py": "print(2)"}),
    # A directory, an archive, a name to which a suffix is added.
    ("python3 tool", {"tool/__main__.py": "print(1)"}, {"tool/__main__.py": "print(2)"}),
    ("python3 tool.zip", {"tool.zip": "PK1"}, {"tool.zip": "PK2"}),
    ("node tool", {"tool.js": "1"}, {"tool.js": "2"}),
    ("node tool", {"tool/index.js": "1"}, {"tool/index.js": "2"}),
    ("node tool", {"tool/package.json": "{}"}, {"tool/package.json": '{"main": "evil"}'}),
    ("node .", {"index.js": "1"}, {"index.js": "2"}),
    ("perl tool.pl", {"tool.pl": "1"}, {"tool.pl": "2"}),
    ("ruby tool.rb", {"tool.rb": "1"}, {"tool.rb": "2"}),
    # Shell builtins that run a file, and nested texts.
    ("bash -c ./x", {"x": "touch fine"}, {"x": EVIL}),
    ("bash -c 'true; sh x'", {"x": "touch fine"}, {"x": EVIL}),
    (". ./x", {"x": "touch fine"}, {"x": EVIL}),
    ("source x", {"x": "touch fine"}, {"x": EVIL}),
    ("nice -n 1 ./x", {"x": "touch fine"}, {"x": EVIL}),
    ("xargs -a x sh", {"x": "y"}, {"x": "z"}),
    # Texts that cannot be parsed.
    ("X=1 sh x", {"x": "touch fine"}, {"x": EVIL}),
    ("(sh x)", {"x": "touch fine"}, {"x": EVIL}),
    ("sh x &", {"x": "touch fine"}, {"x": EVIL}),
    ('sh "$PWD/x"', {"x": "touch fine"}, {"x": EVIL}),
    ("for f in run3*; do sh $f; done", {"run3": "touch fine"}, {"run31": EVIL}),
    ("if true; then cd d; sh x; fi", {"d/x": "touch fine"}, {"d/x": EVIL}),
    # Files that tools search for.
    ("make", {"Makefile": "all:\n\ttouch fine"}, {"Makefile": "all:\n\ttouch evil"}),
    ("make", {"Makefile": "all:\n\ttouch fine"}, {"GNUmakefile": "all:\n\ttouch evil"}),
    ("make -C d", {"d/Makefile": "all:\n\ttouch fine"}, {"d/Makefile": "all:\n\ttouch evil"}),
    ("make -f d/own.mk", {"d/own.mk": "all:\n\ttouch fine"}, {"d/own.mk": "all:\n\ttouch evil"}),
    ("(make all)", {"Makefile": "all:\n\ttouch fine"}, {"Makefile": "all:\n\ttouch evil"}),
    ("npm run x", {"package.json": "{}"}, {"package.json": '{"scripts": {}}'}),
    ("cd d && npm test", {"package.json": "{}", "d/a": ""}, {"package.json": '{"x": 1}'}),
    ("npx tool", {"node_modules/.bin/tool": "1"}, {"node_modules/.bin/tool": "2"}),
    ("cargo run", {"Cargo.toml": ""}, {"build.rs": "fn main() {}"}),
    ("pytest", {"pyproject.toml": ""}, {"conftest.py": "print(2)"}),
    ("just x", {"justfile": "x:"}, {"justfile": "x: y"}),
    ("git commit -m x", {".git/config": ""}, {".git/config": "[core]\nfsmonitor = ./x"}),
    ("git commit -m x", {".git/config": ""}, {".git/hooks/pre-commit": EVIL}),
    ("git diff", {".git/config": "[diff]\nexternal = ./x", "x": "1"}, {"x": "2"}),
    # Ways to run in another directory.
    *(
        (command, {"d/x": "touch fine"}, {"d/x": EVIL})
        for command in (
            "cd -P d && ./x",
            "cd -- d && ./x",
            "cd -L d && sh x",
            "pushd d && ./x",
            "builtin cd d && ./x",
            "command cd d && ./x",
            "sh -c 'cd d && ./x'",
            "sh -c 'cd -P d; sh x'",
            "(cd -P d && ./x)",
            "env -C d ./x",
            "env -Cd ./x",
            "env --chdir=d sh x",
            "sudo -D d ./x",
            "find d -execdir ./x ';'",
            "git -C d bisect run ./x",
            "git -c 'alias.y=!cd d && ./x' y",
            "git -c alias.y='!d/x' y",
            "sh d/$(echo x)",
        )
    ),
    # Values joined to options.
    ("gcc @x", {"x": "-o a"}, {"x": "-o b"}),
    ("curl -d @x http://localhost", {"x": "1"}, {"x": "2"}),
    ("sed -nfx.sed y", {"x.sed": "p"}, {"x.sed": "e"}),
    ("tar xzfa.tgz", {"a.tgz": "1"}, {"a.tgz": "2"}),
    ("make -Cd", {"d/Makefile": "all:"}, {"d/Makefile": "all: evil"}),
    ("node -r./hook main.js", {"hook.js": "1"}, {"hook.js": "2"}),
    ("ruby -r./hook -e 1", {"hook.rb": "1"}, {"hook.rb": "2"}),
    ("ruby -Id -rhook -e 1", {"d/hook.rb": "1"}, {"d/hook.rb": "2"}),
    ("perl -Id -MA::B -e 1", {"d/A/B.pm": "1"}, {"d/A/B.pm": "2"}),
    # Other files that are loaded.
    ("pytest d/test_x.py", {"d/test_x.py": ""}, {"d/conftest.py": "print(2)"}),
    ("pytest d/e/test_x.py::test_y", {"d/test_x.py": ""}, {"d/conftest.py": "print(2)"}),
    ("git -c core.hooksPath=d commit", {"d/pre-commit": "1"}, {"d/pre-commit": EVIL}),
    ("PYTHONPATH=d python3 -m modx", {"d/modx.py": "1"}, {"d/modx.py": "2"}),
    ("env PYTHONPATH=d:e python3 -m modx", {"d/modx.py": "1"}, {"d/modx.py": "2"}),
    ("python3 -m unittest d.test_x", {"d/test_x.py": "1"}, {"d/test_x.py": "2"}),
    ("python3 -c 'from d import modx'", {"d/modx.py": "1"}, {"d/modx.py": "2"}),
    ("uvicorn d.app:app", {"d/app.py": "1"}, {"d/app.py": "2"}),
    ("cargo build --manifest-path d/Cargo.toml", {"d/Cargo.toml": ""}, {"d/build.rs": "1"}),
]


def written(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


def bound_in(root: Path, command: str) -> BoundFiles:
    judge = Judge([], Mode.MINIMAL, str(root), "/home/me", DiskLookup())
    judged = judge.judge(PermissionRequest("shell", {"command": command}, str(root)))
    return find_bound_files(judged, judge.paths, Sandbox(root), root, command)


@pytest.mark.parametrize(
    ("command", "files", "change"), CHANGED, ids=[f"{c} {[*d]}" for c, _, d in CHANGED]
)
def test_a_file_that_will_run_is_bound(
    tmp_path: Path, command: str, files: dict[str, str], change: dict[str, str]
) -> None:
    written(tmp_path, files)
    before = bound_in(tmp_path, command)
    assert bound_in(tmp_path, command) == before
    written(tmp_path, change)
    assert bound_in(tmp_path, command) != before


async def asked(ui: Any) -> tuple[str, Any]:
    run = await ui.start("go")
    return run, await ui.until("ui.confirm.request")


@pytest.mark.parametrize(
    ("command", "files", "change"),
    [one for one in CHANGED if one[0] in ("sh run3*", "X=1 sh x", "make")]
    + [("python3 -m modx", {"modx.py": "open('fine', 'w')"}, {"modx.py": "open('evil', 'w')"})],
)
async def test_a_file_changed_after_the_question_does_not_run(
    tmp_path: Path, command: str, files: dict[str, str], change: dict[str, str]
) -> None:
    call = ScriptStep(tool="shell", arguments={"command": command})
    async with an_agent(tmp_path, ScriptedCore("s", [call, ScriptStep(final="{last}")])) as agent:
        written(agent.root, files)
        ui = await agent.connect(**ALL)
        run, question = await asked(ui)
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert (agent.root / "fine").exists() is bool(files)
        run, question = await asked(ui)
        written(agent.root, change)
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert "since the question; nothing was run" in ui.final(run)
        assert not (agent.root / "evil").exists()


def test_a_change_of_an_unrelated_file_does_not_matter(tmp_path: Path) -> None:
    for command in ("sh run.sh", "python3 -m modx", "make", "X=1 sh run.sh", "npm test"):
        before = bound_in(tmp_path, command)
        written(tmp_path, {f"log-{command.split()[0]}": "x", "other/file.py": command})
        assert bound_in(tmp_path, command) == before, command


@pytest.mark.parametrize(
    "command",
    [
        "sh d/$(echo x)",
        "sh d/[[:alpha:]]",
        "X=$(cat y); sh $X",
        "(cd $X; sh x)",
        "find d -name x -exec sh {} ';'",
        "find d -execdir ./x ';'",
        "ls d | xargs sh",
        "run-parts d",
        "cd - && sh x",
        "cd && sh x",
    ],
)
def test_a_question_says_that_not_all_files_are_known(tmp_path: Path, command: str) -> None:
    written(tmp_path, {"d/x": "touch fine"})
    notes = link_notes(bound_in(tmp_path, command))
    assert any(note.startswith("Not all files that will run are known, because ") for note in notes)


@pytest.mark.parametrize("command", ["sh x", "cd d && ./x", "make -C d", "git -C d push", "rm x"])
def test_a_question_has_no_note_if_all_files_are_known(tmp_path: Path, command: str) -> None:
    written(tmp_path, {"d/x": "touch fine"})
    assert not link_notes(bound_in(tmp_path, command))


def test_a_question_names_a_pattern_with_too_many_matches(tmp_path: Path) -> None:
    assert link_notes(bound_in(tmp_path, "sh run*")) == []
    for number in range(AGENT_GLOB_NAMES + 1):
        (tmp_path / f"run{number}").touch()
    many = bound_in(tmp_path, "sh run*")
    assert many.is_complete
    (notes,) = link_notes(many)
    assert notes.startswith(f'The pattern "{tmp_path}/run*" matches too many files')


PADDED = {
    "words": "sh " + " ".join(f"-a{n}=b{n}" for n in range(40)) + "; sh x",
    "names of a text": "(true " + " ".join(f"a{n}" for n in range(AGENT_TEXT_NAMES)) + "; sh x)",
    "directories": "; ".join(f"cd a{n}" for n in range(8)) + "; sh x",
    "directories of a text": "(" + "; ".join(f"cd a{n}" for n in range(99)) + "; sh x)",
}


@pytest.mark.parametrize("padding", PADDED)
async def test_a_command_with_too_many_files_to_bind_is_refused(
    tmp_path: Path, padding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.permissions.bound_files.AGENT_BOUND_PATHS", 100)
    call = ScriptStep(tool="shell", arguments={"command": PADDED[padding]})
    async with an_agent(tmp_path, ScriptedCore("s", [call, ScriptStep(final="{last}")])) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until_ended(run)
        assert "more files than an answer can cover" in ui.final(run)


def test_many_changes_between_few_directories_are_bound(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    there = " && ".join(f"cd {name} && make && cd .." for name in ("a", "b", "c"))
    before = bound_in(tmp_path, there)
    assert before.is_complete
    written(tmp_path, {"c/Makefile": EVIL})
    assert bound_in(tmp_path, there) != before


def test_a_cd_to_the_same_directory_adds_no_directory(tmp_path: Path) -> None:
    written(tmp_path, {"x": "touch fine"})
    before = bound_in(tmp_path, "cd .; " * 20 + "sh x")
    assert before.is_complete
    written(tmp_path, {"x": EVIL})
    assert bound_in(tmp_path, "cd .; " * 20 + "sh x") != before
