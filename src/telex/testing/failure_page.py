"""All failures of a run as one HTML page that loads nothing.

`failure_page.html` has the style and the script; the data of each failure (`failure_report`) is put
into it. The script sets text only as text, so no output of a program becomes part of the page.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from telex.testing import limits
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path


def failure_page(failures: Sequence[str], recordings: Sequence[str] = ()) -> str:
    """Return the page.

    Args:
        failures: The data of each failed test, as `failure_report.encode_failure` returns it.
        recordings: The names of the recordings beside the page, for `remove_former`.
    """
    shown = failures[: limits.PAGE_FAILURES]
    data = {
        "version": __version__,
        "recordings": sorted(recordings)[: limits.PAGE_RECORDINGS],
        "left_out": len(failures) - len(shown),
        "failures": shown,
    }
    page = files("telex.testing").joinpath("failure_page.html").read_text("utf-8")
    return page.replace('"DATA"', json.dumps(data, separators=(",\n", ":")))


def remove_former(page: Path, kept: Collection[str]) -> None:
    """Remove the page of an earlier run and the recordings that it names, except the `kept` ones. A
    file that is not such a page stays, and so does everything beside it."""
    try:
        found = _DATA.search(page.read_text("utf-8", "replace"))
        names = json.loads(found[1])["recordings"] if found else None
    except (FileNotFoundError, ValueError, KeyError):
        return
    if names is not None:
        page.unlink()
        for name in names:
            if name not in kept and name.endswith(".cast") and "/" not in name:
                (page.parent / name).unlink(missing_ok=True)


_DATA: Final = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
