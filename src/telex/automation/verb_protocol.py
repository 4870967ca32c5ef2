"""The methods about verbs as data: a verb as words, and its answer as text or in parts.

The command line asks for the text that it prints. A client that makes results of its own, such as
the agent, asks for the parts: our words, the text of the program and the facts, each by itself.

A client that judges before it types reads `TypingFacts` (`verb.facts`) and sends what must still
hold with its verb (`ExpectedFacts`). The server checks that directly before each input, so that
nothing can change between the judgement and the input.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from telex.terminal.input_state import InputState
from telex.version import __version__

METHOD: Final = "verb.run"
FACTS: Final = "verb.facts"
LEASE_END: Final = "verb.lease_end"


class OfTerminal(Struct, frozen=True):
    """A session, by its name or its id."""

    session: str


class TypingFacts(Struct, frozen=True, kw_only=True):
    """The reader of the next input of a session, and the line before it. Secrets are masked."""

    name: str
    id: str
    program: str
    """The command line of the session's program."""
    exited: bool
    input: InputState
    row: str
    """The row of the cursor, with the rows that its line was wrapped from and into."""
    inputs: int
    """The number of the last input, whoever typed it."""
    group: int | None
    """The foreground process group."""
    root: int
    """The process of the session's program, which is also its group."""
    executable: str
    """The file that the leader of the foreground group runs; empty where the kernel does not
    tell."""
    arguments: str
    """The command line of that leader, masked and as one line."""
    cwd: str
    """The directory of that process; empty where the kernel does not tell."""
    bracketed_paste: bool
    holder: str | None
    """Who holds the lease of the session, if another connection does."""


class ExpectedFacts(Struct, frozen=True, omit_defaults=True):
    """The facts that must hold directly before an input is written. Otherwise it is refused, with
    the word of the difference in `data["changed"]`: inputs, program, password or state."""

    inputs: int
    group: int | None = None
    """The foreground process group; None for any."""
    states: tuple[str, ...] = ()
    """The input states of which one must hold before the first input of the verb. Without them any
    but a password's."""


class RunVerb(Struct, frozen=True):
    """One verb: its command line, and what it needs of the caller's process."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}
    """The whole environment if the verb may open a session, else TELEX_SESSION."""
    stdin: str | None = None
    version: str = __version__
    """The version of the caller."""
    parts: bool = False
    """Whether the answer has `answer` or `failure` instead of the printed text."""
    expected: ExpectedFacts | None = None


class VerbParts(Struct, frozen=True, omit_defaults=True):
    """The answer of a verb: words of ours, and text of the program in `screen` and `title`."""

    line: str = ""
    screen: str = ""
    facts: dict[str, Any] = {}
    title: str = ""
    note: str = ""
    """A sentence of ours about the screen, for the line above it."""


class VerbFailure(Struct, frozen=True, omit_defaults=True):
    """The failure of a verb: a sentence and reasons in words of ours, text of the program in
    `screen`, and data for programs."""

    code: int
    """The exit code."""
    sentence: str
    reasons: str = ""
    screen: str = ""
    data: Any = None


class VerbOutput(Struct, frozen=True, omit_defaults=True):
    """The text that the caller prints, and its exit code; or the parts."""

    code: int
    stdout: str
    stderr: str
    again: bool = False
    """Whether this server ends now, and the caller should start another and call that."""
    answer: VerbParts | None = None
    failure: VerbFailure | None = None
