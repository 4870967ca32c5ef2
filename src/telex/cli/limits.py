"""The maximums of `cli`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import limit

PLUGIN_CHECK_SECONDS: Final = limit(
    "PLUGIN_CHECK_SECONDS",
    5,
    "seconds",
    "The plugin's time for each answer in `telex plugin check`.",
)
