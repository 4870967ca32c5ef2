"""bash, zsh and fish themselves, on a terminal, with our script: a word, a tab, and the whole word."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import telex
from telex.adapters.server import AutomationServer
from telex.cli.completion_candidates import ESCAPES, METHODS
from telex.cli.completions import whole_words
from telex.escapes.commands import COMMANDS
from telex.escapes.escape_sessions import EscapeSessions
from telex.htty.session_pages import PagesExtension

if TYPE_CHECKING:
    from collections.abc import Callable

SHELLS = {
    "bash": (("--norc", "--noprofile", "-i"), "source <(telex completions bash)"),
    "zsh": (
        ("-f", "-i"),
        "autoload -U compinit; compinit -D -u; source <(telex completions zsh)",
    ),
    "fish": (
        ("--no-config", "-i", "-C", "function fish_prompt; echo '$ '; end"),
        "source (telex completions fish | psub)",
    ),
}
COMPLETED = [
    ("telex call session.crea", "telex call session.create"),
    ("telex call session.sn", "telex call session.snapshot"),
    ("telex escape prog", "telex escape progress:set"),
    ("telex escape term:repo", "telex escape term:report"),
    ("telex escape progress:", "telex escape progress:set"),
    ("telex adapter try sh", "telex adapter try shell"),
    ("telex adapter try mi", "telex adapter try mine"),
    ("telex doc", "telex doctor"),
    ("telex run -- telex-test-pro", "telex run -- telex-test-program"),
]
"""What is typed before the tab, and what stands there after it."""


def home(directory: Path) -> dict[str, str]:
    """With an adapter of the person's own, and a program."""
    adapter = directory / "home" / "data" / "adapters" / "some-directory"
    adapter.mkdir(parents=True)
    (adapter / "manifest.toml").write_text('name = "mine"\n')
    program = directory / "telex-test-program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    path = f"{Path(sys.executable).parent}:{directory}:{os.environ['PATH']}"
    kept = {"HOME": str(directory), "PATH": path, "LC_ALL": "C.UTF-8", "PS1": "$ "}
    return kept | {"TELEX_HOME": str(directory / "home"), "XDG_RUNTIME_DIR": str(directory)}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_completes_names_of_ours(
    shell: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    args, script = SHELLS[shell]
    argv = [program(shell), *args]
    with telex.spawn(argv, env=home(tmp_path), cwd=tmp_path, cols=120) as term:
        term.wait("$ ", timeout=60)
        mark = term.type(f"{script}; echo re''ady\n")
        term.wait("ready", since=mark, timeout=60)
        for typed, whole in COMPLETED:
            mark = term.type(f"{typed}\t")
            term.wait(whole, since=mark, timeout=60)
            term.type("\x15")  # the line is taken back


@pytest.mark.parametrize(
    ("pieces", "line", "words"),
    [
        (["telex", "escape", "term", ":", "ti"], "telex escape term:ti", ["escape", "term:ti"]),
        (["telex", "escape", "term", ":"], "telex escape term:", ["escape", "term:"]),
        (["telex", "escape", "term", ":", ""], "telex escape term: ", ["escape", "term:", ""]),
        (["telex", "run", "a", ":", "b"], "telex run a : b", ["run", "a", ":", "b"]),
        (["telex", "--set", "a", "=", "b", "c"], "telex --set a=b c", ["--set", "a=b", "c"]),
        (["telex", "escape", "term", ":", "ti"], "", ["escape", "term:ti"]),
        (["telex", "escape", "term:ti"], "", ["escape", "term:ti"]),
        (["telex", "call", ""], "telex call ", ["call", ""]),
    ],
)
def test_pieces_of_bash_become_the_words_that_were_typed(
    pieces: list[str], line: str, words: list[str]
) -> None:
    assert whole_words(pieces, line)[1:] == words


async def test_the_names_that_are_written_down_are_those_of_the_code() -> None:
    server = AutomationServer((), extend=(EscapeSessions, PagesExtension))
    try:
        assert sorted(method.name for method in server.automation.methods) == sorted(METHODS)
    finally:
        await server.close()
    assert sorted(COMMANDS) == sorted(ESCAPES)
