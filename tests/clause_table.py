"""The clause tables: what each spec asks, in our words, and the test that shows it.

`conformance/<folder>/clauses.toml` is one spec, clause by clause, in the spec's own order. A clause
names the tests that fail when the behaviour goes away, or says what we do instead (`differs`), or
which part of telex will own it (`deferred`). Used by `conformance/test_clause_tables.py`, which
holds tables and tests to each other, and by `scripts/render_reference.py`, which prints them.
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFORMANCE = Path(__file__).parent / "conformance"
SPECS = ("pty_automation", "json_escapes", "htty", "plugin_v0", "agent_ui")
"""The folders, in the order in which people meet the specs."""

_ID = re.compile(r"[a-z0-9_]+(\.[a-z0-9_-]+){2}")


class Status(Enum):
    SHOWN = "shown"
    DIFFERS = "differs"
    DEFERRED = "deferred"


class Clause(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing a spec asks."""

    id: str
    section: str
    """The spec's heading it stands under."""
    text: str
    """One sentence in our words."""
    test: str | list[str] = ""
    differs: str = ""
    """What we do instead, and why."""
    deferred: str = ""
    """Which part of telex will own it."""

    @property
    def tests(self) -> list[str]:
        """`tests/<file>.py::<function>`, perhaps with the id of a parameter in brackets."""
        if isinstance(self.test, list):
            return self.test
        return [self.test] if self.test else []

    @property
    def status(self) -> Status:
        if self.differs:
            return Status.DIFFERS
        return Status.DEFERRED if self.deferred else Status.SHOWN

    def mistakes(self) -> Iterator[str]:
        """What is wrong with the entry itself, as sentences."""
        if not _ID.fullmatch(self.id):
            yield f"{self.id}: an id is <folder>.<topic>.<clause>, in small letters"
        if not self.section.strip():
            yield f"{self.id}: say under which heading of the spec it stands"
        if not self.text.endswith("."):
            yield f"{self.id}: the text is a sentence and ends with a full stop"
        said = ["".join(self.tests), self.differs.strip(), self.deferred.strip()]
        if sum(map(bool, said)) != 1:
            yield f"{self.id}: give one of test, differs (with a reason) and deferred (to whom)"


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """One spec."""

    title: str
    edition: str
    """Which spec this is, whose, and which edition of it."""
    background: str
    """What else the spec says: the parts that ask nothing of an implementation."""
    clause: list[Clause]

    def count(self, status: Status) -> int:
        return sum(clause.status is status for clause in self.clause)

    def sections(self) -> dict[str, list[Clause]]:
        """The clauses under their headings, in the spec's order."""
        found: dict[str, list[Clause]] = {}
        for clause in self.clause:
            found.setdefault(clause.section, []).append(clause)
        return found


def path(folder: str) -> Path:
    return CONFORMANCE / folder / "clauses.toml"


def load(folder: str) -> Table:
    """Raises msgspec.ValidationError, with the place, for anything that is no table."""
    return msgspec.toml.decode(path(folder).read_bytes(), type=Table)


def mistakes(folder: str, table: Table) -> Iterator[str]:
    """What is wrong with a table, as sentences; whether its tests exist is another question."""
    seen: set[str] = set()
    for clause in table.clause:
        yield from clause.mistakes()
        if clause.id in seen:
            yield f"{clause.id}: this id is given twice"
        seen.add(clause.id)
        if not clause.id.startswith(f"{folder}."):
            yield f"{clause.id}: an id in {folder}/clauses.toml begins with {folder}."
