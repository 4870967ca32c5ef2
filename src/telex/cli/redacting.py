"""The redactor a command runs with: the default rules and what is configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.redaction import Redactor

if TYPE_CHECKING:
    from telex.config.settings import Settings


def redactor_of(settings: Settings) -> Redactor:
    return Redactor(
        extra_literals=settings.redaction.extra_literals,
        replacement=settings.redaction.replacement,
    )
