"""Labelled situations: real programs, brought to a moment, with the input state of that moment.

The labels are in tests/terminal/situations/*.toml, each with:

    name      what the situation is
    run       the program with its arguments, or `sh` commands; `{python}`, `{home}` (a directory
              with files, keys and a repository), `{sshd}`, `{postgres}` and `{unique}` are replaced
    env       changes to its environment
    steps     how to get there: ["wait", TEXT], ["type", TEXT], ["press", KEY], ["signal", NAME],
              ["exit", ""]
    state     the label; `also` has other answers that a careful reader would give
    prompt, choices, selected   the evidence that must be found, where it is given
    sample    whether `make test` runs it
    optional  whether the program may end instead: it asks on some machines only

For `make bench ARGS=input_state` and tests/terminal/test_input_state_situations.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from telex.terminal.actions import Key, Text
from telex.terminal.input_state import WAITING, InputState, State
from telex.terminal.pty import Program
from telex.terminal.session import PtySession
from telex.terminal.waits.engine import ProgramGone
from telex.terminal.waits.matchers import ContainsText

PLACE: Final = Path(__file__).parent.parent / "tests" / "terminal" / "situations"
LABELS: Final = ("busy", "full_screen", "prompts", "shells_and_repls", "further")
STEP_SECONDS: Final = 30.0
ANSWER_SECONDS: Final = 10.0
"""How long a situation may take until its answer is right; a wrong answer is the one after it."""
HOLD_SECONDS: Final = 0.5
"""How long the answer must then stay right."""
_POSTGRES: Final = max(
    Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql")
)
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Situation:
    """A program, the way to a moment of it, and the input state of that moment."""

    name: str
    run: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    state: State
    env: Mapping[str, str] = field(default_factory=dict)
    also: tuple[State, ...] = ()
    prompt: str | None = None
    choices: tuple[str, ...] = ()
    selected: int | None = None
    sample: bool = False
    optional: bool = False
    type_first: str = ""

    @property
    def needs(self) -> str | None:
        """The program that is missing here, if one is."""
        words = " ".join(self.run)
        for name in ("{sshd}", "{postgres}"):
            if name in words and not _service(name).exists():
                return name.strip("{}")
        if "setpriv" in self.run and os.geteuid():
            return "root, for setpriv"
        programs = [word for word in self.run[:1] if "{" not in word]
        programs += [name for name in ("fzf", "dialog", "sudo", "less") if name in words.split()]
        return next((name for name in programs if shutil.which(name) is None), None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answers in one situation."""

    situation: Situation
    answer: InputState
    """The answer at the end."""
    false_alarms: tuple[InputState, ...]
    """Waiting states of a program that was busy."""
    ended: bool = False

    @property
    def right(self) -> bool:
        return self.answer.state in (self.situation.state, *self.situation.also)

    @property
    def evident(self) -> bool:
        """Whether the evidence that the label demands was found."""
        wanted, found = self.situation, self.answer
        return (
            (wanted.prompt is None or wanted.prompt == found.prompt)
            and (not wanted.choices or wanted.choices == found.choices)
            and (wanted.selected is None or wanted.selected == found.selected)
        )


def load() -> list[Situation]:
    """Return all labelled situations."""
    files = [tomllib.loads((PLACE / f"{name}.toml").read_text()) for name in LABELS]
    return [_situation(entry) for file in files for entry in file["situation"]]


def _situation(entry: dict[str, Any]) -> Situation:
    names = ("run", "also", "choices")
    lists: dict[str, Any] = {name: tuple(entry[name]) for name in names if name in entry}
    steps = tuple((str(kind), str(text)) for kind, text in entry["steps"])
    return Situation(**{**entry, **lists, "steps": steps})


def _service(name: str) -> Path:
    return Path("/usr/sbin/sshd") if name == "{sshd}" else _POSTGRES / "initdb"


class Workspace:
    """A directory with what the programs work on."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._postgres: Path | None = None
        home.chmod(0o711)  # PostgreSQL runs as another user
        (home / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 201)))
        (home / "notes.txt").write_text("milk\neggs\n")
        (home / "slow_rc").write_text("echo loading; sleep 60\n")
        (home / "Makefile").write_text("all:\n\t@echo compiling one\n\t@sleep 60\n")
        (home / "page.1").write_text(
            ".TH PAGE 1\n.SH NAME\npage\n" + "".join(f".PP\nword {n}\n" for n in range(60))
        )
        (home / "gnupg").mkdir(mode=0o700)
        self._repository()

    def _keys(self) -> None:
        for name, phrase in (("open_key", ""), ("locked_key", "secret"), ("host_key", "")):
            made = ("ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", self.home / name)
            subprocess.run(made, check=True)
        keys = [(self.home / f"{name}_key.pub").read_text() for name in ("open", "locked")]
        (self.home / "authorized_keys").write_text("".join(keys))
        (self.home / "sshd_config").write_text(
            f"HostKey {self.home}/host_key\nAuthorizedKeysFile {self.home}/authorized_keys\n"
            "StrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nUsePAM no\n"
            "PrintMotd no\nPrintLastLog no\nLogLevel ERROR\n"
        )

    def _repository(self) -> None:
        def git(*words: str) -> None:
            names = ("-c", "user.name=Ann", "-c", "user.email=ann@example.test")
            subprocess.run(("git", "-C", self.repository, *names, *words), check=True)

        self.repository = self.home / "repository"
        self.repository.mkdir()
        git("init", "-q")
        for number in range(6):
            (self.repository / "file.txt").write_text("".join(f"{number}\n" for _ in range(9)))
            git("add", ".")
            git("commit", "-qm", f"Write version {number}")
        (self.repository / "file.txt").write_text("changed\n")

    @property
    def postgres(self) -> Path:
        """The directory of the socket of a PostgreSQL server, which is started now if needed."""
        if self._postgres is None:
            place = self.home / "pg"
            place.mkdir()
            self._control(place, _POSTGRES / "initdb", "-U", "ann", "-A", "trust", "--no-sync",
                          f"{place}/data")  # fmt: skip
            self._pg_ctl(place, "start")
            self._postgres = place
        return self._postgres

    def _pg_ctl(self, place: Path, *words: str) -> None:
        options = f"-c listen_addresses= -c fsync=off -k {place}"
        data = ("-D", f"{place}/data", "-l", f"{place}/log", "-w", "-o", options)
        self._control(place, _POSTGRES / "pg_ctl", *data, *words)

    def _control(self, place: Path, *words: str | Path) -> None:
        who: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            shutil.chown(place, "postgres", "postgres")
            who = {"user": "postgres", "group": "postgres", "extra_groups": []}
        subprocess.run(words, cwd=place, check=True, capture_output=True, **who)

    def close(self) -> None:
        if self._postgres is not None:
            self._pg_ctl(self._postgres, "-m", "immediate", "stop")

    def program(self, situation: Situation) -> Program:
        """Return the program of a situation, in the repository."""
        number = next(_numbers)
        values = {
            "python": sys.executable,
            "home": str(self.home),
            "unique": f"telex-{os.getpid()}-{number}",
            "sshd": f"/usr/sbin/sshd -i -f {self.home}/sshd_config",
            "postgres": "",
        }
        if "{postgres}" in situation.run:
            values["postgres"] = str(self.postgres)
        if "_key" in "".join(situation.run) and not (self.home / "host_key").exists():
            self._keys()
        argv = []
        for word in situation.run:
            for name, value in values.items():
                word = word.replace(f"{{{name}}}", value)
            argv.append(word)
        if situation.type_first:
            asked = situation.type_first.replace("\n", "\\n")
            argv = ["bash", "-c", f"printf '{asked}' | \"$@\"", "bash", *argv]
        env: dict[str, str | None] = {
            "HOME": str(self.home),
            "PS1": "$ ",
            "LESS": None,
            "PAGER": None,
            "LC_ALL": "C.UTF-8",
            "PYTHONSTARTUP": None,
            "SCREENDIR": None,
            "TMPDIR": str(self.home),
            "TMUX_TMPDIR": str(self.home),
            "GIT_AUTHOR_NAME": "Ann",
            "GIT_AUTHOR_EMAIL": "ann@example.test",
            "GIT_COMMITTER_NAME": "Ann",
            "GIT_COMMITTER_EMAIL": "ann@example.test",
            **situation.env,
        }
        return Program(tuple(argv), cwd=str(self.repository), env=env)


@contextlib.contextmanager
def workspace(home: Path) -> Iterator[Workspace]:
    """Make a workspace in a directory, with a short path for sockets, and stop its services."""
    made = Workspace(home)
    try:
        yield made
    finally:
        made.close()


async def observe(situation: Situation, made: Workspace, hold: float = HOLD_SECONDS) -> Outcome:
    """Bring a program to its situation, and note every answer from then on."""
    async with PtySession(made.program(situation)) as session:
        try:
            for kind, text in situation.steps:
                await _step(session, kind, text)
        except ProgramGone:
            if situation.optional:
                return Outcome(situation, session.input_state(), (), ended=True)
            raise
        return await _answers(situation, session, hold)


async def observe_all(
    situations: Sequence[Situation], made: Workspace, hold: float = HOLD_SECONDS, at_once: int = 8
) -> list[Outcome]:
    """Observe situations, some at once."""
    turns = asyncio.Semaphore(at_once)

    async def one(situation: Situation) -> Outcome:
        async with turns:
            return await observe(situation, made, hold)

    return await asyncio.gather(*map(one, situations))


async def _step(session: PtySession, kind: str, text: str) -> None:
    match kind:
        case "wait":
            await session.wait(ContainsText(text), STEP_SECONDS)
        case "type":
            await session.act(Text(text))
        case "press":
            await session.act(Key(text))
        case "signal":
            group = session.pty.foreground() or session.pty.child.pid
            os.killpg(group, signal.SIGSTOP if text == "stop" else signal.SIGKILL)
        case "exit":
            await session.ended()
        case _:
            raise ValueError(f"{kind} is no step")


async def _answers(situation: Situation, session: PtySession, hold: float) -> Outcome:
    """Ask until the answer is right, and for a while longer. A right `busy` proves nothing while a
    program is about to ask, so busy programs are watched as long as all others."""
    loop = asyncio.get_running_loop()
    wanted = (situation.state, *situation.also)
    false_alarms: list[InputState] = []
    deadline, right_since = loop.time() + ANSWER_SECONDS, None
    while True:
        answer = session.input_state()
        now = loop.time()
        if answer.state in WAITING and not WAITING & set(wanted):
            false_alarms.append(answer)
        if answer.state not in wanted:
            right_since = None
        elif right_since is None:
            right_since = now
        if now >= deadline or (right_since is not None and now >= right_since + hold):
            return Outcome(situation, answer, tuple(false_alarms))
        await asyncio.sleep(0.01)  # samples the answers, and waits for nothing
