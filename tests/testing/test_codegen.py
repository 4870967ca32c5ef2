"""`telex codegen`: a person works in a program, and the test that comes out passes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import telex
import telex.automation.locators  # an inner run forgets what it imports first
import telex.testing.failure_report
from telex.cli.root import root
from telex.testing.codegen import (
    CodegenLog,
    HiddenText,
    PastedText,
    PressedKey,
    TypedText,
    new_text,
    typed_inputs,
    write_test,
)
from telex.testing.golden_file import from_text

pytest_plugins = ("pytester",)

TODO = Path(__file__).parent.parent.parent / "examples/todo.py"
TELEX = [str(Path(sys.executable).parent / "telex")]


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ("\r\t\x7f\x1b", ["enter", "tab", "backspace", "escape"]),
        ("\x1b[A\x1bOB\x1b[1;5C\x1b[H", ["up", "down", "ctrl_right", "home"]),
        ("\x1b[3~\x1b[6;3~\x1b[24~\x1bOP", ["delete", "alt_page_down", "f12", "f1"]),
        ("\x01\x1d\x00\x1bx\x1b[Z", ["ctrl_a", "ctrl_]", "ctrl_space", "alt_x", "shift_tab"]),
    ],
)
def test_keys_are_named_as_press_names_them(data: str, names: list[str]) -> None:
    assert list(typed_inputs(data)) == [PressedKey(name) for name in names]
    from telex.terminal.keys import parse_key

    for name in names:
        parse_key(name)


def test_text_pastes_and_reports_are_told_apart() -> None:
    data = "añb \x1b[<0;3;4M\x1b[I\x1b[200~two\rlines\x1b[201~\x1b[99~"
    assert list(typed_inputs(data)) == [
        TypedText("añb "),
        PastedText("two\rlines"),
        TypedText("\x1b[99~"),
    ]


def test_a_wait_prefers_words_that_are_new_and_do_not_change() -> None:
    before = from_text("$ ", 6, 40)
    after = from_text("$ make all\nbuilt in 3 s\nAll tests passed\n$ ", 6, 40)
    assert new_text(before, after, "make all") == ("All tests passed", False)
    echoed = from_text("$ echo hello\nhello\n$ ", 6, 40)
    assert new_text(before, echoed, "echo hello") == ("hello", True)
    assert new_text(before, from_text("$ x", 6, 40), "x") == ("", False)


def test_a_log_becomes_a_test() -> None:
    log = CodegenLog()
    prompt = from_text("$", 4, 40)
    for key in "echo hello":
        log.typed(prompt, [TypedText(key)])
    log.typed(prompt, [PressedKey("enter")])
    answered = from_text("$ echo hello\nhello\n$", 4, 40)
    log.mark(answered, "")
    log.mark(answered, "same")
    log.mark(answered, "same")
    log.mark(answered, "")
    log.typed(answered, [HiddenText(False)])
    log.typed(answered, [HiddenText(True)])
    log.typed(answered, [PressedKey("ctrl_d")])
    log.end, log.exit_code = answered, 0
    written = write_test(log, ["bash"], "test_it")
    assert written.source == (
        "import os\n\n\n"
        "def test_it(telex, golden):\n"
        "    term = telex.spawn(['bash'], rows=4, cols=40)\n"
        "    term.wait('$')\n"
        "    mark = term.type('echo hello')\n"
        "    term.press('enter')\n"
        "    term.wait('hello', since=mark)\n"
        "    golden(term)\n"
        "    golden(term, 'same')\n"
        "    golden(term, 'same-2')\n"
        "    golden(term)\n"
        '    term.type(os.environ["SECRET_1"] + "\\n")\n'
        "    term.press('ctrl_d')\n"
        "    assert term.wait_exit() == 0\n"
    )
    assert list(written.goldens) == [
        "test_it.txt",
        "test_it.same.txt",
        "test_it.same-2.txt",
        "test_it.2.txt",
    ]


def codegen(directory: Path, *command: str, env: dict[str, str] | None = None) -> object:
    argv = [*TELEX, "codegen", "-o", "test_made.py", "--", *command]
    return telex.spawn(argv, cwd=directory, env=env or {}, rows=16, cols=70)


def test_a_test_of_a_shell_that_a_person_made_passes(pytester: pytest.Pytester) -> None:
    bash = ["env", "PS1=$ ", "bash", "--norc", "--noprofile"]
    with codegen(pytester.path, *bash) as term:
        term.wait("ctrl_] marks a golden")
        term.wait("$ ")
        for line, answer in (("echo he''llo", "hello"), ("seq 3", "3")):
            for key in line:
                term.type(key)
            term.press("enter")
            term.wait(f"{answer}\n$ ")
        term.press("ctrl_]")
        term.wait("name of this golden:")
        term.type("counted\r")
        term.wait("1 goldens")
        mark = term.type("read -s word\r")
        term.wait("$ read -s word", since=mark)
        term.wait(telex.match.stable(100))
        term.type("hunter2\r")
        term.wait("$ read -s word\n$ ")
        term.type("exit 3\r")
        assert term.wait_exit() == 3
        said = term.transcript()
    assert "wrote test_made.py and 1 golden; run it with: pytest test_made.py" in said
    source = (pytester.path / "test_made.py").read_text()
    assert "hunter2" not in source
    assert "golden(term, 'counted')" in source
    assert "assert term.wait_exit() == 3" in source
    os.environ["SECRET_1"] = "hunter2"
    try:
        pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
    finally:
        del os.environ["SECRET_1"]


def test_a_password_that_is_pasted_without_echo_is_not_written(pytester: pytest.Pytester) -> None:
    ask = "stty -echo; echo Password:; read word; echo thanks"
    with codegen(pytester.path, "sh", "-c", ask) as term:
        term.wait("Password:")
        term.paste("hunter2", bracketed=True)
        term.press("enter")
        term.wait_exit()
    source = (pytester.path / "test_made.py").read_text()
    assert "hunter2" not in source
    assert 'os.environ["SECRET_1"]' in source


def test_a_test_of_a_tui_that_a_person_made_passes(pytester: pytest.Pytester) -> None:
    todo = [sys.executable, str(TODO), "buy milk", "call mum"]
    with codegen(pytester.path, *todo) as term:
        term.wait("0 of 2 done")
        term.press("down")
        term.wait(telex.match.stable(100))
        term.press("space")
        term.wait("1 of 2 done")
        term.type("a")
        term.wait("New item")
        for key in "water":
            term.type(key)
        term.wait("water")
        term.press("enter")
        term.wait("[ ] water")
        term.press("ctrl_]")
        term.wait("name of this golden:")
        term.press("enter")
        term.wait("1 goldens")
        term.press("ctrl_]")
        term.wait("name of this golden:")
        term.press("escape")
        term.type("q")
        assert term.wait_exit() == 0
    source = (pytester.path / "test_made.py").read_text()
    assert "term.press('down')\n    term.find('[ ] call mum', inverse=True).wait()\n" in source
    assert "term.type('a')\n    term.wait('enter adds, escape does not')\n" in source
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    # The same test sees a bug in the program.
    broken = pytester.path / "broken.py"
    broken.write_text(TODO.read_text().replace("COLOR_GREEN", "COLOR_RED"))
    source = source.replace(str(TODO), str(broken)).replace(
        "golden(term)", "golden(term, timeout=1)"
    )
    (pytester.path / "test_made.py").write_text(source)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*dim green → dim red*"])


def test_an_existing_file_and_a_bad_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_made.py").write_text("")
    for file, said in (
        ("test_made.py", "already exists; --force"),
        ("made.py", "use --name test_"),
    ):
        ran = CliRunner().invoke(root, ["codegen", "-o", file, "--", "true"])
        assert ran.exit_code == 2
        assert said in ran.output
