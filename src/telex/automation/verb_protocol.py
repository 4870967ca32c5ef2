"""The method `verb.run` as data: a verb as words, and its answer as text or in parts.

The command line asks for the text that it prints. A client that makes results of its own, such as
the agent, asks for the parts: our words, the text of the program and the facts, each by itself.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from telex.version import __version__

METHOD: Final = "verb.run"


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
