"""Shell text is parsed as a shell parses it, or refused."""

from __future__ import annotations

import os
import random
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.agent.limits import AGENT_COMMAND_CHARS, AGENT_COMMAND_DEPTH
from telex.agent.permissions import ShellScript, UnparsedShell, parse_shell
from telex.agent.permissions.shell_parser import Direction, ListOperator, Pipeline, SimpleCommand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def read(text: str) -> ShellScript:
    script = parse_shell(text)
    assert isinstance(script, ShellScript), script
    return script


def argvs(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in read(text).commands()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a ''", [["a", ""]]),
        ("a 'b'\"c\"d", [["a", "bcd"]]),
        (r'a "\$ \` \" \\ \n"', [["a", '$ ` " \\ \\n']]),
        (r"a '\n'", [["a", "\\n"]]),
        ('a "b\\\nc"', [["a", "bc"]]),
        ("a \\\n b", [["a", "b"]]),
        ("a|b||c&&d;e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a # b\nc", [["a"], ["c"]]),
        ("a b#c", [["a", "b#c"]]),
        ("a $(b $(c) d) e", [["c"], ["b", "", "d"], ["a", "", "e"]]),
        ('a "x$(b ")")y"', [["b", ")"], ["a", "xy"]]),
        ("a 2>&1 b", [["a", "b"]]),
        ("a HEAD~1 b~", [["a", "HEAD~1", "b~"]]),
        ("\n\n a \n\n", [["a"]]),
        ("a;", [["a"]]),
    ],
)
def test_parsed_words_equal_the_arguments_that_the_program_gets(
    text: str, words: list[list[str]]
) -> None:
    assert argvs(text) == words


def test_operators_join_pipelines() -> None:
    joints = [pipeline.joint for pipeline in read("a && b || c | d ; e\nf").pipelines]
    assert joints == [
        ListOperator.START,
        ListOperator.AND,
        ListOperator.OR,
        ListOperator.THEN,
        ListOperator.THEN,
    ]


def test_redirects_have_their_direction_and_their_target() -> None:
    (command,) = read("a <in >out 2>> 'e r r' x").commands()
    found = [(redirect.direction, redirect.target.text) for redirect in command.redirects]
    assert found == [(Direction.READ, "in"), (Direction.WRITE, "out"), (Direction.APPEND, "e r r")]
    assert [word.text for word in command.words] == ["a", "x"]


def test_a_number_is_a_descriptor_only_right_before_a_redirect() -> None:
    (command,) = read("a 2 >b c2>d '2'>e").commands()
    assert [word.text for word in command.words] == ["a", "2", "c2", "2"]
    assert isinstance(parse_shell("a 12>b"), UnparsedShell)


def test_refused_syntax_is_named_with_its_position() -> None:
    assert parse_shell("ls; echo $HOME") == UnparsedShell("a variable or an expansion", 9)
    assert parse_shell("ls & x") == UnparsedShell("a command in the background", 3)


def test_a_very_long_or_very_deep_text_is_not_parsed() -> None:
    assert isinstance(parse_shell("ls " + "x" * AGENT_COMMAND_CHARS), UnparsedShell)
    assert isinstance(
        parse_shell("echo " * 3 + "$(echo " * AGENT_COMMAND_DEPTH + ")" * AGENT_COMMAND_DEPTH),
        ShellScript,
    )
    deep = AGENT_COMMAND_DEPTH + 1
    assert isinstance(parse_shell("$(echo " * deep + ")" * deep), UnparsedShell)
    assert isinstance(parse_shell("$(" * 30000), UnparsedShell)


PIECES = [
    "a",
    "b1",
    "2",
    " ",
    " ",
    "\t",
    "\n",
    "'",
    '"',
    "\\",
    "$",
    "#",
    "*",
    "?",
    "~",
    "/",
    "=",
    ";",
    "|",
    "||",
    "&&",
]
PIECES += [
    "&",
    ">",
    "<",
    ">>",
    "(",
    ")",
    "$(a",
    ")",
    "{",
    "}",
    "[",
    "!",
    "`",
    "é",
    ":",
    "-",
    "^",
    "%",
    "1>&2",
    "if",
    "a=b",
]
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)


def many_texts(count: int) -> list[str]:
    """Return texts like those of `texts`, but tens of thousands in a second; one shell runs all."""
    chance = random.Random(count)
    return ["".join(chance.choices(PIECES, k=chance.randint(1, 12))) for _ in range(count)]


@given(texts | st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    assert isinstance(parse_shell(text), ShellScript | UnparsedShell)


def simple(text: str) -> list[str] | None:
    """Return the words of a text that is one command of plain words; None for any other text."""
    match parse_shell(text):
        case ShellScript(
            pipelines=(Pipeline(commands=(SimpleCommand(words=words, redirects=()),)),)
        ):
            if words and all(word.is_plain for word in words):
                return [word.text for word in words]
    return None


@pytest.mark.counted
@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_real_shell_finds_the_same_words(
    shell: str, program: Callable[[str], str], counted: Callable[[int, int], int], tmp_path: Path
) -> None:
    """Each text is passed to `printf`, so that nothing else runs."""
    candidates = (text.lstrip(" \t\n") for text in many_texts(counted(20_000, 1_000_000)))
    found = [(text, argv) for text in candidates if text[:1] != "#" and (argv := simple(text))]
    assert len(found) > 500
    lines = [f"printf '%s\\0' {text}\nprintf '\\1\\0'\n" for text, _ in found]
    (tmp_path / "script").write_text("".join(lines))
    said = run(program(shell), "script", cwd=tmp_path).split("\1\0")[:-1]
    assert [one.split("\0")[:-1] for one in said] == [argv for _, argv in found]


@pytest.mark.counted
def test_a_real_shell_accepts_every_parsed_text(
    program: Callable[[str], str], counted: Callable[[int, int], int], tmp_path: Path
) -> None:
    texts = many_texts(counted(20_000, 1_000_000))
    understood = [text for text in texts if isinstance(parse_shell(text), ShellScript)]
    assert len(understood) > 500
    (tmp_path / "script").write_text("".join(f"{text}\n\n" for text in understood))
    assert run(program("bash"), "-n", "script", cwd=tmp_path) == ""


def run(*argv: str, cwd: Path) -> str:
    """Return the output, including error messages."""
    env = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    done = subprocess.run(argv, stdout=-1, stderr=-2, cwd=cwd, env=env, timeout=60, check=False)
    return done.stdout.decode()


@pytest.mark.parametrize(
    "text",
    [
        "echo a | cat",
        "echo a; echo b",
        "echo $(echo a b) c",
        "echo a && echo b || echo c",
        "echo a # b\necho c",
        'echo "$(echo "a  b")"',
        "echo x \\\n y",
        "false || echo x",
        "echo a 2>&1 | cat",
        "echo '$(id)' \"\\$(id)\"",
    ],
)
def test_the_parsed_commands_are_those_that_run(
    text: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    """`bash -x` prints each simple command that it runs; the parser must have found it too."""
    done = subprocess.run(
        [program("bash"), "-xc", text],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    ran = [line.lstrip("+ ").split(" ")[0] for line in done.stderr.splitlines()]
    assert set(ran) <= {argv[0] for argv in argvs(text)}
    assert done.returncode == 0
