"""What a long-running command says about itself: on standard error, without secrets."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from telex.cli.console import printable

if TYPE_CHECKING:
    from telex.redaction import Redactor


class _Plain(logging.Formatter):
    """One message, redacted, and nothing in it that a terminal would obey."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return printable(self._redactor.redact(super().format(record)))


def log_to_stderr(level: str, redactor: Redactor) -> None:
    """From now on, for this process."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain(redactor))
    logger = logging.getLogger("telex")
    logger.setLevel(level.upper())
    logger.addHandler(handler)
