"""A program that looks and behaves like the terminal UI of Claude Code, as far as adapters need it.

A real program for tests, run on a PTY, with the standard library only. It was written from notes
about that UI and shares no constant with the adapter, so that an error in one is not hidden by the
other. The prompt decides what happens: `in parts` says something first, `slow` works until Esc, `error` fails, `permission` asks
first, `plan` proposes a plan; anything else is answered. `/usage`, `/cost`, `/model`, `/doctor`,
`/clear` and `/exit` are commands. `--login` starts with the login screen.

`FAKE_STEP_MS` is the time between two steps of the spinner. `FAKE_LOG` names a file that gets one
line of JSON for each input: `{"key": "enter"}`, `{"key": "x"}`,
`{"paste": "..."}`.

These simulate real machines: `FAKE_SWALLOW` is how many Enters it ignores while there is a draft,
`FAKE_SLOW_MS` how long it needs to draw typed text, during which an Enter after a paste is lost,
`FAKE_START` a FIFO that must be opened for writing before it reads any input, `FAKE_REDRAW_MS` how
long its screen is blank before each redraw, `FAKE_SUGGESTION` the suggestion in an empty box. Ctrl+U
clears to the beginning of the row, and joins it to the row above.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import selectors
import signal
import socket
import sys
import time
import tty
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

STEP = int(os.environ.get("FAKE_STEP_MS", "50")) / 1000
STEPS_OF_A_TURN = 6
SWALLOWS = int(os.environ.get("FAKE_SWALLOW", "0"))
SLOW = int(os.environ.get("FAKE_SLOW_MS", "0")) / 1000
REDRAW = int(os.environ.get("FAKE_REDRAW_MS", "0")) / 1000
START = os.environ.get("FAKE_START", "")
SUGGESTION = os.environ.get("FAKE_SUGGESTION", "")
ESCAPE_ALONE = 0.02
"""After this time an escape byte is the key, and not the start of a sequence."""
COLLAPSES_AT = 800
"""A longer pasted text is shown as a note with its size."""

NBSP = "\u00a0"
SPINNER = "·✢✳✶✻✽"
RESULT = f"  ⎿{NBSP} "
URL = "https://claude.ai/oauth/authorize?code=true&client_id=fake&state=fake"

PASTED = re.compile(r"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[@-~])")
UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*|O)?\Z")
ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
SEQUENCES = ARROWS | {"Z": "shift_tab", "3~": "delete", "5~": "page_up", "6~": "page_down"}
CONTROLS = {"\r": "enter", "\x1b": "escape", "\x7f": "backspace", "\x08": "backspace", "\t": "tab"}


@dataclass(frozen=True)
class Key:
    name: str


@dataclass(frozen=True)
class Pasted:
    text: str


class Keyboard:
    """Converts bytes of a terminal in raw mode to keys and pasted texts."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    @property
    def undecided(self) -> bool:
        return self._rest == "\x1b"

    def feed(self, data: bytes) -> Iterator[Key | Pasted]:
        self._rest += self._decode(data)
        while self._rest and not UNFINISHED.match(self._rest):
            if self._rest.startswith("\x1b[200~") and not PASTED.match(self._rest):
                return
            yield self._take()

    def settle(self) -> Iterator[Key]:
        """Return the undecided bytes as keys: no further bytes came."""
        if self.undecided:
            self._rest = ""
            yield Key("escape")

    def _take(self) -> Key | Pasted:
        if found := PASTED.match(self._rest):
            self._rest = self._rest[found.end() :]
            return Pasted(found[1].replace("\r\n", "\n").replace("\r", "\n"))
        if found := SEQUENCE.match(self._rest):
            self._rest = self._rest[found.end() :]
            return Key(SEQUENCES.get(found[0][2:], found[0][1:]))
        letter, self._rest = self._rest[0], self._rest[1:]
        if letter in CONTROLS or letter >= " ":
            return Key(CONTROLS.get(letter, letter))
        return Key(f"ctrl_{chr(ord(letter) + 96)}")


@dataclass
class Dialog:
    """A dialog, which replaces the input box until it is answered."""

    above: list[str]
    labels: list[str]
    footer: str
    answered: Callable[[int], None]
    at: int = 0
    needs_digit: bool = False
    """Enter alone does not accept: the option's number must be typed first."""
    adjust: Callable[[int], None] = lambda _: None
    """Called with -1 or 1 for the left or right arrow."""

    def rows(self) -> list[str]:
        menu = [
            f" {'❯' if n == self.at else ' '} {n + 1}. {label}"
            for n, label in enumerate(self.labels)
        ]
        return [*self.above, *menu, *(["", f" {self.footer}"] if self.footer else [])]

    def press(self, key: str) -> int | None:
        """Return the answer of this key: an option from 0, or -1 for Esc."""
        if key.isdigit() and 0 < int(key) <= len(self.labels):
            self.at, self.needs_digit = int(key) - 1, False
        elif key in ("up", "down"):
            step = 1 if key == "down" else -1
            self.at = max(0, min(len(self.labels) - 1, self.at + step))
        elif key in ("left", "right"):
            self.adjust(1 if key == "right" else -1)
        elif key == "escape":
            return -1
        elif key == "enter" and self.labels and not self.needs_digit:
            return self.at
        return None


@dataclass
class Turn:
    """Work in progress: the spinner's steps, and the function to call at the end."""

    then: Callable[[], None]
    steps: float = STEPS_OF_A_TURN
    taken: int = 0
    since: float = field(default_factory=time.monotonic)

    def row(self) -> str:
        seconds = int(time.monotonic() - self.since)
        glyph = SPINNER[self.taken % len(SPINNER)]
        tokens = 10 * self.taken
        return f"{glyph} Thinking… ({seconds}s · ↑ {tokens} tokens · esc to interrupt)"


@dataclass(frozen=True)
class Rows:
    """A part of the conversation. Ctrl+O expands folded rows."""

    shown: tuple[str, ...]
    folded: tuple[str, ...] = ()

    def told(self, expanded: bool) -> list[str]:
        if not self.folded:
            return list(self.shown)
        note = f"     … +{len(self.folded)} lines (ctrl+o to expand)"
        return [*self.shown, *(self.folded if expanded else [note])]


class Fake:
    """The UI: the contents of the screen, and the effect of each key."""

    def __init__(self, login: bool) -> None:
        self.ended: int | None = None
        self.model, self.effort = "Opus 4.6", 1
        self.said: list[Rows] = []
        self.draft, self.queued = "", list[str]()
        self.pasted_lines = 0
        self.swallows = SWALLOWS
        self.pasted_just_now = False
        self.welcome = True
        self.expanded = self.leaving = False
        self.login = login
        self.turn: Turn | None = None
        self.dialog: Dialog | None = None
        if not login:
            self._ask_for_trust()

    # Input.

    def take(self, event: Key | Pasted) -> None:
        if event == Key("ctrl_c"):
            self._interrupted()
            return
        self.leaving = False
        match event:
            case Key("ctrl_o"):
                self.expanded = not self.expanded
            case Key(name) if self.dialog:
                self._answer(self.dialog, self.dialog.press(name))
            case Pasted() if self.dialog:
                pass
            case Key("enter") if self.draft and (self.swallows or self.pasted_just_now):
                self.swallows -= bool(self.swallows)
            case Key("enter"):
                self._entered()
            case Key("ctrl_u"):
                self._clear_row()
            case Key("escape"):
                self._escaped()
            case Key("backspace"):
                self.draft = self.draft[:-1]
            case Key("ctrl_j"):
                self.draft += "\n"
            case Key(name) if len(name) == 1:
                self.draft += name
            case Pasted(text):
                self.draft += text
                self.pasted_lines = text.count("\n") if len(text) > COLLAPSES_AT else 0
                self.pasted_just_now = SLOW > 0

    def _clear_row(self) -> None:
        if self.pasted_lines:
            self.draft, self.pasted_lines = "", 0
            return
        rows = wrapped(self.draft, size()[1] - 2)
        last = rows[-1]
        self.draft = self.draft[: len(self.draft) - max(1, len(last))] if self.draft else ""

    def _interrupted(self) -> None:
        if self.leaving:
            self.ended = 0
        self._escaped()
        self.draft, self.leaving = "", True

    def _escaped(self) -> None:
        if self.turn:
            self.turn = None
            self._say(RESULT + "Interrupted by user", "")
            self._next()

    def _entered(self) -> None:
        text, self.draft, self.pasted_lines = self.draft.strip(), "", 0
        if self.login:
            if text:
                self.login = False
                self._ask_for_trust()
        elif not text:
            self.welcome = False
        elif text == "/exit":
            self.ended = 0
        elif self.turn:
            self.queued.append(text)
        else:
            self._submit(text)

    # Turns.

    def step(self) -> None:
        """Called by the timer: advance the spinner, and complete the work."""
        if self.turn:
            self.turn.taken += 1
            if self.turn.taken >= self.turn.steps:
                turn, self.turn = self.turn, None
                turn.then()

    def _say(self, *rows: str, folded: tuple[str, ...] = ()) -> None:
        self.said.append(Rows(rows, folded))

    def _submit(self, text: str) -> None:
        first, *more = text.split("\n")
        self._say(f"❯ {first}", *(f"  {row}" for row in more))
        if text.startswith("/"):
            self._command(text)
            return
        self._say("")
        if "in parts" in text:
            self._say("⏺ First this.", "")
            self._say("⏺ Then that.", "")
        if "slow" in text:
            self.turn = Turn(lambda: None, steps=float("inf"))
        elif "error" in text:
            self.turn = Turn(self._fail)
        elif "permission" in text:
            self.turn = Turn(self._ask_for_permission)
        elif "plan" in text:
            self.turn = Turn(self._ask_for_approval)
        else:
            self.turn = Turn(lambda: self._complete(f"You said {len(text)} characters: {first}"))

    def _fail(self) -> None:
        self._say(RESULT + "API Error: 529 Overloaded. Please try again in 30 seconds.", "")
        self._next()

    def _complete(self, answer: str) -> None:
        self._say(f"⏺ {answer}", "", "✻ Worked for 1s", "")
        self._next()

    def _next(self) -> None:
        if self.queued:
            self._submit(self.queued.pop(0))

    # Dialogs and panels.

    def _answer(self, dialog: Dialog, choice: int | None) -> None:
        if choice is not None:
            self.dialog = None
            dialog.answered(choice)

    def _ask_for_trust(self) -> None:
        def answered(choice: int) -> None:
            if choice != 0:
                self.ended = 1

        above = [" Accessing workspace:", "", f" {os.getcwd()}", ""]
        above += [" Quick safety check: Is this a project you created or one you trust?", ""]
        labels = ["Yes, I trust this folder", "No, exit"]
        footer = "Enter to confirm · Esc to cancel"
        self.dialog = Dialog(above, labels, footer, answered, needs_digit=True)

    def _ask_for_permission(self) -> None:
        def answered(choice: int) -> None:
            if choice in (-1, 2):
                self._say(RESULT + "Interrupted · What should Claude do instead?", "")
                self._next()
            else:
                self._say(RESULT + "alpha", folded=("     beta", "     gamma"))
                self._say("")
                self.turn = Turn(lambda: self._complete("Three files."))

        self._say("⏺ Bash(ls beds)")
        above = [" Bash command", "", "   ls beds", "   List the beds", ""]
        above += [" Do you want to proceed?"]
        labels = ["Yes", "Yes, and don't ask again for ls commands in this directory"]
        labels += ["No, and tell Claude what to do differently (esc)"]
        self.dialog = Dialog(above, labels, "Esc to cancel · Tab to amend", answered)

    def _ask_for_approval(self) -> None:
        def answered(choice: int) -> None:
            if choice in (-1, 2):
                self._say(RESULT + "User rejected Claude's plan", "")
                self._next()
            else:
                self._say("⏺ User approved Claude's plan", "")
                self.turn = Turn(lambda: self._complete("Done as planned."))

        dashes = "╌" * size()[1]
        above = [" Ready to code?", "", " Here is Claude's plan:", dashes]
        above += [" 1. Dig", " 2. Sow", dashes, "", " Would you like to go on?", ""]
        labels = ["Yes, and use auto mode", "Yes, and manually approve edits", "No, keep planning"]
        self.dialog = Dialog(above, labels, "ctrl-g to edit in editor", answered)

    def _command(self, text: str) -> None:
        match text.split()[0]:
            case "/usage":
                self._panel(*USAGE)
            case "/doctor":
                self._panel(*DOCTOR)
            case "/model":
                self._pick_model()
            case "/cost":
                self._say(RESULT + COST[0], *COST[1:], "")
            case "/clear":
                self.said, self.welcome = [], False
            case _:
                self._say(f"{RESULT}Unknown slash command: {text[1:]}", "")

    def _panel(self, *rows: str) -> None:
        def closed(_: int) -> None:
            self._say(RESULT + "Dialog dismissed", "")

        self.dialog = Dialog(list(rows), [], "Esc to cancel", closed)

    def _pick_model(self) -> None:
        names = ["Opus 4.6", "Sonnet 4.5", "Haiku 4.5"]

        def answered(choice: int) -> None:
            if choice >= 0:
                self.model = names[choice]
            self._say(f"{RESULT}{'Set' if choice >= 0 else 'Kept'} model to {self.model}", "")

        def adjust(step: int) -> None:
            self.effort = max(0, min(2, self.effort + step))
            show()

        def show() -> None:
            above[-2] = f" {('Low', 'Medium', 'High')[self.effort]} effort"

        above = [" Select model", " Switch between Claude models.", "", "", ""]
        show()
        labels = ["Default (recommended)  Opus 4.6", "Sonnet  Sonnet 4.5", "Haiku  Haiku 4.5"]
        footer = "Enter confirm · Esc exit · ← → to adjust effort"
        self.dialog = Dialog(above, labels, footer, answered, adjust=adjust)

    # The screen.

    def rows(self, cols: int) -> list[str]:
        if self.login:
            return [*LOGIN, f" Paste code here if prompted > {'*' * len(self.draft)}"]
        above = [row for rows in self.said for row in rows.told(self.expanded)]
        if self.dialog:
            return [*above, "─" * cols, *self.dialog.rows()]
        if self.welcome and not self.said:
            above = [" Welcome back Ann!   Claude Code v2.1.150", "", " Tips for getting started"]
            above += [" Run /init to create a CLAUDE.md file", ""]
        return [*above, *([self.turn.row(), ""] if self.turn else []), *self._box(cols)]

    def _box(self, cols: int) -> list[str]:
        shown = self.draft
        if self.pasted_lines:
            shown = f"[Pasted text #1 +{self.pasted_lines} lines]"
        first, *more = wrapped(shown, cols - 2)
        status = "Press Ctrl-C again to exit" if self.leaving else f"[{self.model}] ~/garden"
        edge = "─" * cols
        box = [f"❯{NBSP}{first or SUGGESTION}", *(f"  {row}" for row in more)]
        return [edge, *box, edge, f"  {status}"]

    def cursor(self, shown: list[str]) -> tuple[int, int] | None:
        """Return row and column, from 1: behind the draft, also if there is a suggestion."""
        at = [n for n, row in enumerate(shown, 1) if row.startswith("❯" + NBSP)]
        if not at or self.dialog:
            return None
        text = self.draft
        if self.pasted_lines:
            text = f"[Pasted text #1 +{self.pasted_lines} lines]"
        rows = wrapped(text, size()[1] - 2)
        return at[-1] + len(rows) - 1, len(rows[-1]) + 3


def wrapped(text: str, cols: int) -> list[str]:
    return [row[at : at + cols] for row in text.split("\n") for at in range(0, len(row) or 1, cols)]


LOGIN = (" Welcome to Claude Code", "", " Use the url below to sign in:", "", URL, "")
USAGE = (
    " Settings  Status   Config   Usage   Stats  (←/→ or tab to cycle)",
    *("", " Current session", " ███████             14% used", " Resets 4pm"),
    *("", " Current week (all models)", " █████████████       27% used", " Resets Friday"),
)
DOCTOR = (" Claude Code health", "", " └ Currently running: fake (2.1.150)", " └ Search: OK")
COST = (
    *("Total cost:            $0.42", "     Total duration (API):  4s"),
    *("     Total duration (wall): 9s", "     Usage:                 12 input, 34 output"),
)


def size() -> tuple[int, int]:
    """Rows and columns."""
    cols, rows = os.get_terminal_size(1)
    return rows, cols


def draw(fake: Fake) -> None:
    """Draw all rows, each at its place. The terminal cuts rows that are too long."""
    rows, cols = size()
    shown = fake.rows(cols)[-rows:]
    placed = "".join(f"\x1b[{n};1H\x1b[K{row}" for n, row in enumerate(shown, 1))
    at = fake.cursor(shown)
    rest = f"\x1b[{len(shown) + 1};1H\x1b[J" if len(shown) < rows else ""
    cursor = f"\x1b[{at[0]};{at[1]}H\x1b[?25h" if at else "\x1b[?25l"
    if REDRAW:
        write("\x1b[2J")
        time.sleep(REDRAW)
    write(f"\x1b[?7l\x1b[?25l{placed}{rest}{cursor}")
    fake.pasted_just_now = False


def write(text: str) -> None:
    left = memoryview(text.encode())
    while left:
        left = left[os.write(1, left) :]


def record(event: Key | Pasted) -> None:
    if name := os.environ.get("FAKE_LOG"):
        told = {"key": event.name} if isinstance(event, Key) else {"paste": event.text}
        with open(name, "a", encoding="utf-8") as log:
            log.write(json.dumps(told, ensure_ascii=False) + "\n")


def typed(keyboard: Keyboard) -> Iterator[Key | Pasted] | None:
    """Return the input of the terminal; empty if the terminal is closed."""
    try:
        data = os.read(0, 65536)
    except OSError:
        return None
    return keyboard.feed(data) if data else None


def take_all(fake: Fake, events: Iterable[Key | Pasted]) -> None:
    for event in events:
        record(event)
        fake.take(event)


def patience(fake: Fake, keyboard: Keyboard, due: float) -> float | None:
    if keyboard.undecided:
        return ESCAPE_ALONE
    return max(0.0, due - time.monotonic()) if fake.turn else None


def run(fake: Fake) -> int:
    keyboard = Keyboard()
    resized, signalled = socket.socketpair()
    for end in (resized, signalled):
        end.setblocking(False)
    signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGWINCH, lambda *_: None)
    waiting = selectors.DefaultSelector()
    waiting.register(0, selectors.EVENT_READ)
    waiting.register(resized, selectors.EVENT_READ)
    due = 0.0
    while fake.ended is None:
        draw(fake)
        ready = [key.fd for key, _ in waiting.select(patience(fake, keyboard, due))]
        if resized.fileno() in ready:
            resized.recv(4096)
        events = typed(keyboard) if 0 in ready else keyboard.settle() if not ready else ()
        if events is None:
            return 0
        take_all(fake, events)
        if fake.pasted_just_now:
            time.sleep(SLOW)
            if waiting.select(0):
                take_all(fake, typed(keyboard) or ())
        if time.monotonic() >= due:
            fake.step()
            due = time.monotonic() + STEP
    draw(fake)
    return fake.ended


def main() -> int:
    if START:
        open(START).close()
    tty.setraw(0)
    os.write(1, b"\x1b[2J\x1b[?2004h")
    code = run(Fake(login="--login" in sys.argv[1:]))
    os.write(1, b"\x1b[?2004l\x1b[?7h\x1b[?25h\r\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
