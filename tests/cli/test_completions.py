"""`telex completions`: the scripts, and bash really completing with its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telex.cli.root import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]


COMPLETING = """
source <(telex completions bash)
declare -F _telex_completion >/dev/null || exit 9
complete -p telex | grep -q -- '-F _telex_completion' || exit 8
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_telex_completion telex
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["telex", "doc"], ["doctor"]),
        (["telex", ""], sorted(COMMANDS)),
        (["telex", "config", "tr"], ["trust"]),
        (["telex", "diff", "--"], ["--ignore", "--pause", "--all", "--json", "--raw", "--help"]),
        (["telex", "doctor", "--j"], ["--json"]),
        (["telex", "completions", ""], ["bash", "zsh", "fish"]),
        (["telex", "--set", "trace=rpc", "conf"], ["config"]),
    ],
)
def test_bash_completes_with_our_script(
    words: list[str], offered: list[str], environ: dict[str, str], program: Callable[[str], str]
) -> None:
    installed = str(Path(sys.executable).parent)
    done = subprocess.run(
        [program("bash"), "--norc", "-c", COMPLETING, "bash", *words],
        env=environ | {"PATH": f"{installed}:{environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, offered, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_asks_telex_itself(telex: Run, shell: str) -> None:
    ran = telex("completions", shell)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"_TELEX_COMPLETE={shell}_complete" in ran.stdout


def test_the_help_says_where_each_script_goes(telex: Run) -> None:
    said = telex("completions", "--help").stdout
    for shell in ("bash", "zsh", "fish"):
        assert f"telex completions {shell} > " in said


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["telex", ""], "doctor"),
        (["telex", "call", "session."], "session.create"),
        (["telex", "escape", "prog"], "progress:set"),
        (["telex", "adapter", "try", "sh"], "shell"),
    ],
)
def test_completion_loads_no_module_that_only_commands_need(words: list[str], offered: str) -> None:
    script = (
        "import sys; from telex.cli import main; main();"
        "heavy = ('telex.rpc', 'telex.terminal', 'telex.adapters', 'msgspec', 'asyncio');"
        "print(sorted(m for m in sys.modules if m.startswith(heavy)))"
    )
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"_TELEX_COMPLETE": "zsh_complete", **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert offered in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "[]"
