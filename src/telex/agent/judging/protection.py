"""Which commands of a line need the environment of a reader, and which the person's own. Pure.

A shell has one environment for all its commands. `git status` and `rg` only read while theirs says
so (`environment.automatic`): else a hook of the repository, or a `.ignore` file, has them do more.
A command that a rule of the person allows by its words, as `git push`, is to be a whole one:
without its hooks it would be another. Where a line has both kinds, neither environment is right,
and it asks. Used by `judge` and `confirming`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.agent.judging.lasting import runs_nothing
from telex.agent.judging.options import names
from telex.agent.judging.programs import base

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.agent.judging.commands import Piece
    from telex.agent.judging.rules import Rule

_READ_BY_ENVIRONMENT: Final = names("git rg")
"""Readers that only read in the environment of one."""


def is_protected(pieces: Sequence[Piece]) -> bool:
    """Whether the line runs in the environment of a reader: where one of its commands needs it, or
    none is allowed by its words."""
    return any(map(_needs_protection, pieces)) or not any(map(_is_by_words, pieces))


def conflict(pieces: Sequence[Piece]) -> tuple[Piece, Piece] | None:
    """A command that only reads in the environment of a reader, and one that needs the person's."""
    reader = next(filter(_needs_protection, pieces), None)
    whole = next(filter(_needs_whole, pieces), None)
    return (reader, whole) if reader and whole else None


def is_for_words(rule: Rule | None) -> bool:
    """Whether it names commands, or all that a tool does; not what is read and written."""
    return rule is not None and (
        rule.command is not None or rule.text is not None or rule.path is None
    )


def _is_by_words(piece: Piece) -> bool:
    return piece.kind == "command" and is_for_words(piece.verdict.rule)


def _needs_protection(piece: Piece) -> bool:
    is_reader = piece.kind == "command" and not _is_by_words(piece)
    return is_reader and base(piece.argv[0]) in _READ_BY_ENVIRONMENT


def _needs_whole(piece: Piece) -> bool:
    return _is_by_words(piece) and not runs_nothing(piece.argv)
