"""All failures of a run as one HTML page that loads nothing.

`failure_page.html` has the style and the script; the data of each failure (`failure_report`) is put
into it. The script sets text only as text, so no output of a program becomes part of the page.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

from telex.testing import limits
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence


def failure_page(failures: Sequence[str]) -> str:
    """Return the page.

    Args:
        failures: The data of each failed test, as `failure_report.encode_failure` returns it.
    """
    shown = failures[: limits.PAGE_FAILURES]
    data = {"version": __version__, "left_out": len(failures) - len(shown), "failures": shown}
    page = files("telex.testing").joinpath("failure_page.html").read_text("utf-8")
    return page.replace('"DATA"', json.dumps(data, separators=(",\n", ":")))
