"""Questions show exactly what will run."""

from __future__ import annotations

import ast
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.agent import permissions
from telex.agent.permissions import digest, escaped, in_line, in_quotes, marked_off

if TYPE_CHECKING:
    from collections.abc import Iterator


def unshown(text: str) -> str:
    """Undo the escapes. The line breaks after escaped new lines are only for readability."""
    return re.sub(
        r"\\u\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), text.replace("\n", "")
    )


@given(st.text())
def test_escaping_is_complete_and_unambiguous(text: str) -> None:
    assert unshown(escaped(text)) == text


@given(st.text())
def test_escaped_text_has_no_control_or_bidirectional_characters(text: str) -> None:
    for char in escaped(text).replace("\n", ""):
        assert unicodedata.category(char)[0] not in "CMZ" or char == " "
        assert unicodedata.bidirectional(char) not in ("R", "AL", "AN")


@given(st.text(st.characters() | st.sampled_from('\n\r"| \u2028\x85')))
def test_foreign_text_is_one_line_or_behind_a_mark(text: str) -> None:
    assert unshown(in_line(text)) == unshown(in_quotes(text)[1:-1]) == text
    assert len(in_line(text).splitlines()) <= 1
    assert in_quotes(text).count('"') == 2
    lines = marked_off(text).splitlines()
    assert all(line.startswith("| ") for line in lines)
    assert "\n".join(line[2:] for line in lines) == escaped(text)


@given(st.binary())
def test_bytes_that_are_not_utf8_are_shown_as_bytes(raw: bytes) -> None:
    text = re.sub(
        r"\\x\{([0-9a-f]+)\}", lambda found: chr(0xDC00 + int(found[1], 16)), escaped(raw)
    )
    assert unshown(text).encode("utf-8", "surrogateescape") == raw


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ("ls -la 'a b'", "ls -la 'a b'"),
        ("ls\nrm x", "ls\\u{a}\nrm x"),
        ("ls\n\n\n\nrm x\n", "ls\\u{a}\\u{a}\\u{a}\\u{a}\nrm x\\u{a}"),
        ("a\tb\r", "a\\u{9}b\\u{d}"),
        ("\x1b[2J\x07\x9b", "\\u{1b}[2J\\u{7}\\u{9b}"),
        ("x\u202egpj", "x\\u{202e}gpj"),
        ("a\u200bb\u2060c\ufeff", "a\\u{200b}b\\u{2060}c\\u{feff}"),
        ("\U000e0041\U000e007f", "\\u{e0041}\\u{e007f}"),
        ("a\ufe0f\U000e0100", "a\\u{fe0f}\\u{e0100}"),
        ("cp \u05d0 \u05d1", "cp \\u{5d0} \\u{5d1}"),
        ("cp \u0627 1 \u0661", "cp \\u{627} 1 \\u{661}"),
        ("rm\U0001d159x", "rm\\u{1d159}x"),
        ("e\u0301", "e\\u{301}"),
        ("\u3164\u2800\u115f", "\\u{3164}\\u{2800}\\u{115f}"),
        ("a\u00a0b\u3000", "a\\u{a0}b\\u{3000}"),
        ("сat x", "\\u{441}at x"),
        ("раураl", "\\u{440}\\u{430}\\u{443}\\u{440}\\u{430}l"),
        ("сор", "\\u{441}\\u{43e}\\u{440}"),
        ("привет", "привет"),
        ("echo жизнь", "echo жизнь"),
        ("日本語.txt", "日本語.txt"),
        ("café", "café"),
        ("ｒm", "\\u{ff52}m"),
        ("a；b", "a\\u{ff1b}b"),
        ("a∕b", "a\\u{2215}b"),
        ("a‐b", "a\\u{2010}b"),
        ("\\u{202e}", "\\u{5c}u{202e}"),
        ("\\x{1}", "\\u{5c}x{1}"),
        ("a\\b", "a\\b"),
        ("ls" + " " * 9 + "; rm x", "ls" + "\\u{20}" * 9 + "; rm x"),
        ("ls  ", "ls\\u{20}\\u{20}"),
        ("if a\n    b", "if a\\u{a}\n    b"),
        ("\ud800", "\\u{d800}"),
    ],
)
def test_characters_that_are_not_clearly_visible_are_escaped(command: str, seen: str) -> None:
    assert escaped(command) == seen


def test_a_very_long_command_is_shown_whole() -> None:
    command = "echo " + "x" * 100_000 + "; rm -rf y"
    assert escaped(command) == command


def test_a_digest_depends_on_all_parts_and_their_boundaries() -> None:
    assert digest("shell", "/a", "ls") == digest("shell", b"/a", "ls")
    others = [
        ("shell", "/a", "ls "),
        ("shell", "/al", "s"),
        ("shell", "/a"),
        ("shell", "/b", "ls"),
        ("shell/a", "ls"),
    ]
    assert len({digest(*parts) for parts in [("shell", "/a", "ls"), *others]}) == 6


UNQUOTED = {
    "git_inspector: name",  # a constant name of a git file
    "git_inspector: verdict.why",
    "git_inspector: why",  # a sentence, quoted where it is created
    "git_repository: resolved.unknown",
    "judge: allowed",  # quoted, in one line with `reader`
    "judge: name",  # of an argument of a built-in tool
    "judge: reader",
    "judge: rule.decision",
    "judge: unparsed.at",
    "judge: unparsed.why",
    "path_policy: resolved.unknown",
    "path_policy: rule.decision",
    "path_policy: self.mode",
    "path_walk: error.strerror or error.errno",
    "repeatable: ' '.join(words)",  # from a list
    "repeatable: tool",  # a built-in tool
    "shell_commands: argv[0]",  # a program of readers.toml
    "shell_commands: program",  # the same
    "shell_commands: rule.decision",
    "shell_commands: setting",  # quoted where it is found
    "shell_commands: used.refused",
    "shell_parser: operator",
    "shell_parser: ord(char)",
    "shell_parser: self._peek()",  # one of a few operators
    "shell_parser: two",  # the same
    "shell_parser: word.text",  # a reserved word
    "terminal_confirmation: adapter",  # the whole line is marked off
    "terminal_confirmation: in_sentence(wanted_input(facts.input))",
    "terminal_confirmation: one.name",  # the server allows letters, digits, '.', '_' and '-'
}
"""The expressions in reasons that need no quotes: constants of telex, or whole reasons."""
NO_REASONS = {
    *("tool_rules", "read_only_programs", "display_text", "question_text"),
    *("bound_files", "confinement", "confirmation", "workspace_permissions"),
}
"""Modules whose messages are about the user's settings or telex's own files, not about a request,
and modules that do not belong to the judge."""


def unquoted(module: Path) -> Iterator[str]:
    """Yield the expressions in the f-strings of a module that are not quoted."""
    tree = ast.parse(module.read_text())
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        quoted = {
            ast.unparse(target)
            for one in ast.walk(function)
            if isinstance(one, ast.Assign) and "in_quotes(" in ast.unparse(one.value)
            for target in one.targets
        }
        for text in (one for one in ast.walk(function) if isinstance(one, ast.JoinedStr)):
            if not any(
                isinstance(one, ast.Constant) and " " in str(one.value) for one in text.values
            ):
                continue
            for one in (one.value for one in text.values if isinstance(one, ast.FormattedValue)):
                written = ast.unparse(one)
                if not written.startswith("in_quotes(") and written not in quoted:
                    yield written


def test_reasons_quote_all_foreign_text() -> None:
    found = {
        f"{module.stem}: {each}"
        for module in Path(permissions.__file__).parent.glob("*.py")
        if module.stem not in NO_REASONS
        for each in unquoted(module)
    }
    assert found == UNQUOTED
