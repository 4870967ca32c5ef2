"""Secrets out of text. Standard library, RE2 and `wire.limits` only; no clock, no I/O.

One redactor for every outlet: `Redactor().redact(text)` for a whole text, `.spans(text)` for where
its secrets are, `.stream()` for text that comes in pieces. What counts as a secret is in `rules`,
in the table of `families` and in `commands`; how each kind reads on is in `shapes`, and whether a
value is one or only mentions one is in `values`. A `Candidate` keeps the place of one, a `Lane` is
one visible text with its candidates, and `stream` puts the lanes together again. `shell` finds the
operators of a command line. `rules` is the file to read first.
"""

from __future__ import annotations

from telex.redaction.stream import (
    MARKER,
    LiteralRefused,
    Redactor,
    RegexesNeedWholeText,
    RegexRefused,
    RuleRefused,
    StreamEnded,
    StreamRedactor,
)

__all__ = [
    "MARKER",
    "LiteralRefused",
    "Redactor",
    "RegexRefused",
    "RegexesNeedWholeText",
    "RuleRefused",
    "StreamEnded",
    "StreamRedactor",
]
