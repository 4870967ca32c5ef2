"""What is loaded in a thread beside the rest, and the end of a process that comes meanwhile."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENDING = """
import sys, threading, time
from telex.terminal.background_import import load_module

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == NAME:
            begun.set()
            time.sleep(0.3)
            print("came whole", flush=True)

begun = threading.Event()
sys.meta_path.insert(0, Slow())
threading.Thread(target=load_module, args=("telex.terminal.session",), daemon=True).start()
begun.wait(60)
"""


@pytest.mark.parametrize(
    ("name", "said"), [("re2", "came whole\n"), ("telex.terminal.session", "")]
)
def test_exit_waits_only_for_the_import_of_re2(name: str, said: str) -> None:
    script = ENDING.replace("NAME", repr(name))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
