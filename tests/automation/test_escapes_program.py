"""Both sides of JSON escapes at once: a program with `telex.escapes`, on the terminal of a session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from automating import Serving

PROGRAM = r"""
from telex import escapes
with escapes.connect() as term:
    term.title("both sides")
    term.go(3, 5)
    term.style(color="#aaaaaa", bold=True)
    place = term.report("cursor")
    term.write(f"at {place.row},{place.col} by {term.via}")
    term.reset_style()
    term.go(5, 1)
    term.write(f"{term.supports('term:title')} {term.supports('x:nonsense')} {term.maxframe > 100_000}")
    term.go(6, 1)
    term.write("typed " + term.typed().decode())
print("\nover", flush=True)
print("done", input())
"""


async def test_a_program_detects_styles_asks_and_gives_the_terminal_back(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start(sys.executable, "-c", PROGRAM, escapes=True)
        await client.shows(session, "at 3,5 by terminal")
        found = await client.shows(session, "True False True")
        assert found["snapshot"]["title"] == "both sides"
        await client.call("session.input", session=session, action={"type": "text", "value": "k"})
        await client.shows(session, "typed k")
        await client.shows(session, "over")
        action = {"type": "text", "value": "echoed\n"}
        await client.call("session.input", session=session, action=action)
        found = await client.shows(session, "done echoed")
        shown = found["snapshot"]["plain_text"]
        assert shown.count("echoed") == 2, "what is typed after the block is echoed again"


async def test_detect_reports_that_a_session_without_escapes_does_not_support_them(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start(sys.executable, "-m", "telex", "detect", escapes=False)
        await client.shows(session, "does not speak JSON escapes")
