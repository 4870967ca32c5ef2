"""Removal of secrets from text. The package needs the standard library, RE2 and `wire.limits` only;
it has no clock and does no I/O.

Every outlet uses one redactor: `Redactor().redact(text)` for a whole text, `.spans(text)` for the
places of its secrets, and `.stream()` for text that comes in pieces.

A *rule* pairs a *lead*, the text that announces a secret (`password=`, `ghp_`), with a *shape*,
which reads the secret after the lead. The modules, in the order in which to read them:

- `rules` lists the rules for labels; `families` is the table of providers' tokens, and
  `program_options` the table of programs that take a secret as an argument.
- `shapes`, `value_shapes` and `command_shape` hold the shapes. `secret_values` decides whether a
  value is a secret or only mentions one.
- `prefilter` finds leads in a text with RE2. Most text has none and is passed over at that speed.
- `candidate` is one lead that was found, with the state of its shape. `scanner` runs all candidates
  over one visible text.
- `visible` splits a text into visible characters and escape sequences. `stream` joins the scanners'
  decisions and is the public face. `command_lines` finds the operators of a shell's command line.
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
