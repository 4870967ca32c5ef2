"""The maximums of the pytest plugin, each with its reason."""

from __future__ import annotations

from typing import Final

TRACE_STEPS: Final = 1000
"""steps: Kept of one terminal, for a test that types in a loop."""
FAILURE_BYTES: Final = 12_000
"""bytes: Of one failed test in the HTML page, compressed: a page with 20 of them stays below 300
KB."""
FAILURE_FRAMES: Final = 240
"""frames: Of one terminal in the HTML page; a slider has no finer steps."""
PAGE_FAILURES: Final = 200
"""tests: In one HTML page; it says how many are left out."""
REPLAYED_BYTES: Final = 16 * 1024 * 1024
"""bytes: Of a recording, replayed for the HTML page."""
COMMAND_CHARS: Final = 400
"""characters: Of a command or the name of a test in a report."""
SEARCHED_CHARS: Final = 256 * 1024
"""characters: Of the output of a failed test, searched for secrets of which a screen shows a
part."""
PAGE_RECORDINGS: Final = 400
"""files: Named in the HTML page; the next run removes them with it."""
