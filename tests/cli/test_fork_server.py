"""Each command, started anew and forked: both print the same and exit with the same code."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telex.__main__ import VERBS
from telex.cli.root import COMMANDS

if TYPE_CHECKING:
    from fork_server import ForkServer

RECORDINGS = Path(__file__).parents[2] / "examples/recordings"
EXAMPLES = {
    "adapter": "list",
    "agent": "exec list",
    "attach": "s1",
    "call": "session.list",
    "codegen": "-- true",
    "completions": "bash",
    "config": "show",
    "detect": "",
    "diff": f"{RECORDINGS}/passed.cast {RECORDINGS}/failed.cast",
    "doctor": "",
    "escape": "term:bell",
    "frame": f"{RECORDINGS}/failed.cast --at end",
    "htty": "check -- true",
    "mcp": "--help",  # it starts a server, as a verb does
    "plugin": "new greet",
    "record": "demo.cast -- echo shown",
    "replay": "missing.cast",
    "run": "-- sh -c 'pwd; cat; echo out; echo err >&2; exit 3'",
    "serve": "",
    "server": "status",
    "shot": "-- echo drawn",
    "skill": "",
    "when": f"{RECORDINGS}/failed.cast e",
}


def test_every_command_has_an_example() -> None:
    assert EXAMPLES.keys() == COMMANDS.keys() - VERBS  # a verb starts a server: see tests/server


@pytest.mark.parametrize("command", EXAMPLES)
def test_a_forked_command_behaves_as_a_newly_started_command(
    command: str, environ: dict[str, str], tmp_path: Path, fork_server: ForkServer
) -> None:
    def run(forked: bool) -> tuple[int, str, str]:
        fork_server.enabled = forked
        directory = tmp_path / "work"
        directory.mkdir()
        ran = subprocess.run(
            [sys.executable, "-m", "telex", command, *shlex.split(EXAMPLES[command])],
            env=environ,
            cwd=directory,
            capture_output=True,
            text=True,
            input="typed\n",
            timeout=60,
            check=False,
            start_new_session=True,  # without the terminal of whoever runs the tests
        )
        for made in tmp_path.iterdir():
            shutil.rmtree(made)
        # The doctor counts the terminals in use, which other programs change meanwhile. A longer
        # number may move the line break.
        printed = re.sub(r"\d+ of", "N of", " ".join(ran.stdout.split()))
        return ran.returncode, printed, ran.stderr

    assert run(forked=True) == run(forked=False)
