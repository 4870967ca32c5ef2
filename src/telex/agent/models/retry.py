"""When a failed call of a model is tried again, and how long to wait before. Pure.

The waits double and have jitter: 0.5 to 1 s, 1 to 2 s, 2 to 4 s and so on. A provider's own
`Retry-After` wins over them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from telex.agent.limits import MODEL_ATTEMPTS, MODEL_RETRY_AFTER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.agent.models.errors import ModelFailure

_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The bounds of the attempts of one call."""

    attempts: int = MODEL_ATTEMPTS
    first_seconds: float = 1.0
    """The longest wait after the first attempt."""
    most_seconds: float = 30.0
    """The longest wait of our own; a provider may ask for more."""

    def wait_after(
        self, attempt: int, failure: ModelFailure, random: Callable[[], float]
    ) -> float | None:
        """Return how long to wait after a failed attempt; None if there is no other attempt.

        Args:
            attempt: The number of the attempt that failed, from 1.
            random: Returns a number from 0 to 1, as `random.random`.
        """
        if not failure.retryable or attempt >= self.attempts:
            return None
        if failure.retry_after is not None:
            if failure.retry_after > MODEL_RETRY_AFTER_SECONDS:
                return None
            # Never earlier; the jitter keeps many clients from coming back at the same moment.
            return (
                failure.retry_after + random() * min(self.first_seconds, failure.retry_after) / 10
            )
        longest = min(self.first_seconds * 2.0 ** (attempt - 1), self.most_seconds)
        return longest * (0.5 + random() / 2)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that a provider asks to wait: a number, milliseconds, or a date.

    Args:
        now: The time of day in seconds since 1970.
    """
    if (found := headers.get("retry-after-ms", "").strip()) and _SECONDS.fullmatch(found):
        return float(found) / 1000
    found = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(found):
        return float(found)
    try:
        date = parsedate_to_datetime(found)
    except (ValueError, OverflowError):  # a year of twenty digits
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.fromtimestamp(now, UTC)).total_seconds())
