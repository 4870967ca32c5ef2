"""Secrets out of text. Standard library, RE2 and `wire.limits` only; no clock, no I/O.

One redactor for every outlet: `Redactor().redact(text)` for a whole text, `.spans(text)` for where
its secrets are, `.stream()` for text that comes in pieces. What counts as a secret is in `rules`,
in the table of `families` and in `program_options`; how each kind reads on is in `shapes`, and
`secret_values` decides whether a value is a secret or only mentions one. A `Candidate` keeps the
place of one, a `Lane` is one visible text with its candidates, and `stream` joins the lanes again.
`command_lines` finds the operators of a command line. `rules` is the file to read first.
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
