"""What the facts decide, where real programs cannot be had: no kernel that tells, odd screens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from telex.processes.foreground import Foreground, InputWait
from telex.terminal.cells import Cursor, Row
from telex.terminal.input_state import InputFacts, State, decide
from telex.terminal.line_discipline import LineSettings
from telex.terminal.screen_prompts import numbered_choices, read_shape

COOKED = LineSettings()
HIDDEN = LineSettings(echo=False)
RAW = LineSettings(
    echo=False, canonical=False, signals=False, maps_return=False, formats_output=False
)


def screen(*lines: str) -> dict[str, Any]:
    """The shapes of a screen, with the cursor behind its last line."""
    rows = [Row.of(line, 80) for line in lines]
    cursor = Cursor(len(lines) - 1, len(lines[-1]))
    return {
        "shape": lambda: read_shape(rows, cursor),
        "numbered": lambda: numbered_choices(rows, cursor),
    }


def program(name: str, running: bool = False, **wait: Any) -> Foreground:
    facts = {"timeout": None, "alone": True, "passive": False, "size": 0, "shell": False, **wait}
    waits = (InputWait(1, name, **facts),)
    return Foreground(1, (name,), False, True, waits, None, running=running)


def far(*lines: str, **facts: Any) -> dict[str, Any]:
    """A screen of another machine, at rest."""
    ssh = program("ssh", alone=False)
    return {"foreground": ssh, "line": RAW, "quiet": 1, **screen(*lines), **facts}


UNSEEN = Foreground(1, ("sudo",), False, False, (), None)

DECISIONS: list[tuple[str, State, dict[str, Any]]] = [
    ("a password, where the kernel shows no processes", "password",
     {"foreground": None, "line": HIDDEN, "quiet": 1, **screen("Password: ")}),
    ("a program of another user that hides typing", "password",
     {"foreground": UNSEEN, "line": HIDDEN, "quiet": 1, **screen("[sudo] password for ann: ")}),
    ("hidden typing, and no question", "busy",
     {"foreground": UNSEEN, "line": HIDDEN, "quiet": 1, **screen("working", "")}),
    ("a shell's prompt, where the kernel shows no processes", "shell",
     {"foreground": None, "line": RAW, "quiet": 1, **screen("ann@far:~$ ")}),
    ("the same, on a terminal that is not set for editing a line", "unknown",
     {"foreground": UNSEEN, "line": COOKED, "quiet": 1, **screen("ann@far:~$ ")}),
    ("a password of another user's program that runs", "busy",
     {"foreground": replace(UNSEEN, running=True), "line": HIDDEN, "quiet": 1,
      **screen("Password: ")}),
    ("a password of another user's program that has used the processor since", "busy",
     {"foreground": UNSEEN, "computes": True, "line": HIDDEN, "quiet": 1, **screen("Password: ")}),
    ("hidden typing behind a word with a colon", "unknown",
     {"foreground": UNSEEN, "line": HIDDEN, "quiet": 1, **screen("Unpacking: ")}),
    ("a pager's row of another user's program that reads keys", "pager",
     {"foreground": UNSEEN, "line": RAW, "quiet": 1, "full_screen": True, **screen("a", "(END)")}),
    ("a question, where the kernel shows no processes: any program may print it", "unknown",
     {"foreground": None, "line": COOKED, "quiet": 1, **screen("Continue? [Y/n] ")}),
    ("a word with a colon, where the kernel shows no processes", "unknown",
     {"foreground": None, "line": COOKED, "quiet": 1, **screen("Loading: ")}),
    ("a prompt that has just been printed far away", "unknown",
     {"foreground": program("ssh", alone=False), "line": RAW, "quiet": 0.01, **screen("far$ ")}),
    ("a prompt far away, and a line that was typed and not echoed yet", "unknown",
     {"foreground": program("ssh", alone=False), "line": RAW, "quiet": 1, "answered": False,
      **screen("far$ ")}),
    ("a pager far away", "pager",
     {"foreground": program("ssh", alone=False), "line": RAW, "quiet": 1, "full_screen": True,
      **screen("a", ":")}),
    ("a pager's row far away, among other output", "unknown", far("log", "(END)")),
    ("the password of sudo far away", "password", far("[sudo] password for ann: ")),
    ("the password of ssh far away", "password", far("ann@far's password: ")),
    ("a password in a sentence far away", "unknown", far("Checking the password: ")),
    ("a version of a shell far away", "shell", far("bash-5.2# ")),
    ("an interpreter far away", "shell", far("mysql> ")),
    ("a prompt of brackets far away", "shell", far("[ann@far src]$ ")),
    ("a percentage far away", "unknown", far("Reading package lists... 45% ")),
    ("a bar with a percentage far away", "unknown", far("#####     45.3%")),
    ("a bar far away", "unknown", far("#####")),
    ("a sum far away", "unknown", far("cost: 5$ ")),
    ("a list above the cursor far away", "busy", far("Steps:", "> clone", "  build", "")),
    ("a question mark far away", "unknown", far("Installing package 3 of 9? ")),
    ("a yes or no far away", "line", far("Overwrite it? [y/N] ")),
    ("an editor far away", "editor",
     {"foreground": program("ssh", alone=False), "line": RAW, "quiet": 1, "full_screen": True,
      **screen("text", "~", "~", "~", "-- INSERT --")}),
    ("a marked prompt far away", "shell",
     {"foreground": program("ssh", alone=False), "line": RAW, "status": "prompt", **screen("x: ")}),
    ("a marked command far away", "busy",
     {"foreground": program("ssh", alone=False), "line": RAW, "status": "command", "quiet": 9,
      **screen("far$ ")}),
    ("an agent that says it works, in front of its prompt", "busy",
     {"foreground": program("node"), "line": RAW, "status": "working", "quiet": 9, **screen("> ")}),
    ("an agent that says it is ready, with a network connection", "line",
     {"foreground": program("node", alone=False), "line": RAW, "status": "idle", "quiet": 9,
      **screen("> ")}),
    ("an event loop below a shell that says it runs a command", "unknown",
     {"foreground": program("node", alone=False), "line": RAW, "status": "command", "quiet": 9,
      **screen("fetching", "")}),
    ("the same without a word, at rest", "unknown",
     {"foreground": program("node", alone=False), "line": RAW, "quiet": 9, **screen("> ")}),
    ("a question of a program that waits for a socket, too", "unknown",
     {"foreground": program("node", alone=False), "line": RAW, "quiet": 9,
      **screen("❯ react", "  vue", "Continue? ")}),
    ("a password without echo of a program that waits for a socket, too", "password",
     {"foreground": program("psql", alone=False), "line": HIDDEN, "quiet": 9,
      **screen("Password for ann: ")}),
    ("a program that reads while another process of its group runs", "busy",
     {"foreground": program("python3", running=True), "line": COOKED, **screen("Go on? ")}),
    ("a known program of which a thread runs", "busy",
     {"foreground": program("vim", running=True), "line": RAW, **screen("~", "~", "~")}),
    ("a known program that draws by itself", "busy",
     {"foreground": program("gum", timeout=0.1), "line": RAW, "drawing": 0.1, "quiet": 0.05,
      **screen("| Continue? ")}),
    ("the same, just begun", "unknown",
     {"foreground": program("gum", timeout=0.1), "line": RAW, "quiet": 0.05,
      **screen("| Continue? ")}),
    ("an event loop with a timer, and no question", "unknown",
     {"foreground": program("node", timeout=30.0, passive=True), "line": COOKED, "quiet": 9,
      **screen("Name: x", "creating x", "")}),
    ("an event loop with a timer, behind a word with a colon", "unknown",
     {"foreground": program("node", timeout=60.0, passive=True), "line": RAW, "quiet": 9,
      "bracketed_paste": True, **screen("Fetching packages: ")}),
    ("an event loop with a timer, behind a question", "line",
     {"foreground": program("node", timeout=60.0, passive=True), "line": RAW, "quiet": 9,
      **screen("Project name? ")}),
    ("a question with a time limit", "line",
     {"foreground": program("bash", timeout=50.0), "line": COOKED, **screen("Quick: ")}),
    ("work that looks for a line every two seconds", "unknown",
     {"foreground": program("job", timeout=2.0), "line": COOKED, "quiet": 9,
      **screen("Uploading", "")}),
    ("a prompt that may be redrawn when its time is over", "unknown",
     {"foreground": program("job", timeout=1.6), "line": RAW, "quiet": 1.5,
      **screen("Package 3 of 9> ")}),
    ("a program that computes between looks for a key", "busy",
     {"foreground": program("job", timeout=0.1), "line": RAW, "quiet": 9, "computes": True,
      "full_screen": True, **screen("Stop? ")}),
    ("a shell at its prompt, after a command that left its progress", "shell",
     {"foreground": program("bash", shell=True), "line": RAW, "status": "working",
      **screen("$ ")}),
    ("the same while it draws by itself", "unknown",
     {"foreground": program("node", alone=False), "line": RAW, "quiet": 0.2, "drawing": 0.1,
      **screen("> ")}),
    ("typed input that was not read yet", "busy",
     {"foreground": program("cat"), "line": COOKED, "unread": True, **screen("")}),
    ("a program that counts seconds and looks for a key", "busy",
     {"foreground": program("job", timeout=1.0), "line": RAW, "drawing": 1.0, "quiet": 0.5,
      **screen("12 s elapsed")}),
    ("a display that refreshes itself every other second", "key",
     {"foreground": program("monitor", timeout=2.0), "line": RAW, "drawing": 2.0, "quiet": 0.5,
      "full_screen": True, **screen("load 0.3")}),
    ("a program that wakes ten times a second, and rests", "key",
     {"foreground": program("game", timeout=0.1), "line": RAW, "quiet": 5, "full_screen": True,
      **screen("play")}),
    ("the same among other output", "unknown",
     {"foreground": program("game", timeout=0.1), "line": RAW, "quiet": 5, **screen("play")}),
    ("a game that has just begun", "unknown",
     {"foreground": program("game", timeout=0.1), "line": RAW, "quiet": 0.1, **screen("play")}),
    ("a multiplexer with several windows, at a prompt", "shell",
     {"foreground": program("x"), "behind": "tmux", "line": RAW, "quiet": 1, **screen("$ ")}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "facts"), [one[1:] for one in DECISIONS], ids=[one[0] for one in DECISIONS]
)
def test_facts_decide(state: State, facts: dict[str, Any]) -> None:
    answer = decide(InputFacts(**facts))
    assert answer.state == state, answer.why
    assert answer.why


def test_numbered_choices_are_read_in_columns_too() -> None:
    rows = [Row.of(text, 80) for text in ("1) red    3) blue", "2) green  4) grey", "#? ")]
    found = numbered_choices(rows, Cursor(2, 3))
    assert found is not None
    assert found.choices == ("red", "green", "blue", "grey")
    assert numbered_choices(rows[1:], Cursor(1, 3)) is None
