"""Secrets out of text, in MB/s, beside a redactor that runs one `re.sub` per rule.

The naive one works on whole texts only, is blinded by a colour code and lets a cut secret through;
it is here because it is what most programs do.
"""

from __future__ import annotations

import random
import re
import sysconfig
from collections.abc import Callable
from pathlib import Path

import telex
from benchmarks import streams
from benchmarks.figures import Row, rate
from telex.redaction import MARKER, Redactor
from telex.redaction.rules import RULES
from telex.redaction.shapes import Token

FEED = 4096
PEER = "one re.sub per rule"


def run() -> list[Row]:
    rows = []
    for name, text, target in [
        ("plain log", streams.plain(streams.MEGABYTE).decode(), ">= 100"),
        ("ANSI-heavy", streams.ansi(streams.MEGABYTE).decode(), ""),
        ("dense secrets", _secrets(streams.MEGABYTE), ""),
        ("Python source", _source(streams.MEGABYTE), ""),
        ("standard library", _standard_library(streams.MEGABYTE), ""),
    ]:
        naive = _megabytes(_naive, text, runs=1)
        whole = _megabytes(Redactor().redact, text)
        stream = _megabytes(_stream, text)
        rows.append(Row(f"redact, {name}, whole text", whole, "MB/s", naive, PEER))
        rows.append(Row(f"redact, {name}, 4 KiB feeds", stream, "MB/s", naive, PEER, target))
    return rows


def _megabytes(redact: Callable[[str], str], text: str, runs: int = 5) -> float:
    def work() -> float:
        redact(text)
        return len(text) / 1e6

    return rate(work, runs)


def _stream(text: str) -> str:
    stream = Redactor().stream()
    feeds = (text[at : at + FEED] for at in range(0, len(text), FEED))
    return "".join(map(stream.feed, feeds)) + stream.finish()


def _secrets(size: int) -> str:
    """A secret in every line."""
    rng = random.Random(4)
    lines: list[str] = []
    for _ in range(size // 270):
        key = "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789", k=32))
        lines += [
            f"export API_TOKEN={key}\n",
            f'{{"user": "me", "password": "{key}"}}\n',
            f"> Authorization: Bearer {key}\n",
            f"using key {'sk'}-{key} for this\n",
            f"connecting to postgres://app:{key}@db.example.org/main\n",
        ]
    return "".join(lines)


def _source(size: int) -> str:
    """Python files of telex: labels everywhere, and next to no secrets."""
    package = Path(telex.__file__).parent
    files = (path.read_text("utf-8") for path in sorted(package.rglob("*.py")))
    return "".join(files)[:size]


def _standard_library(size: int) -> str:
    """Python files of others: fewer labels than in telex, which writes about secrets."""
    folder = Path(sysconfig.get_path("stdlib"))
    files = (path.read_text("utf-8") for path in sorted(folder.glob("*.py")))
    return "".join(files)[:size]


_LABEL = r"(?:api[ _-]?key|token|secret|passw(?:or)?d|passphrase|private[ _-]?key)"
NAIVE = [
    re.compile(r"(?i)(authorization\s*[:=]\s*(?:bearer|basic)\s+)[^\s,'\"\]}]+"),
    re.compile(rf"(?i)({_LABEL}[\"']?\s*[:=]\s*[\"']?)[^\s,'\"\]}}]+"),
    re.compile(r"(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END)", re.DOTALL),
    re.compile(r"()\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*"),
    *(
        re.compile(rf"()\b(?:{rule.pattern})[{rule.shape.rest}]{{{rule.shape.least},}}")
        for rule in RULES
        if rule.prefixes and isinstance(rule.shape, Token)
    ),
]


def _naive(text: str) -> str:
    for pattern in NAIVE:
        text = pattern.sub(rf"\1{MARKER}", text)
    return text
