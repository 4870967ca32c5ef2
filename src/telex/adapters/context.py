"""What a plugin is shown: one moment of a session as a table of plain values.

The same for `classify`, for intents and for predicates, so that what decided a state can decide a
wait. A plugin sees no more than its manifest says: without `screen.read` the screen is blank to it,
without `transcript.read` nothing was ever printed. Blank and not absent: a plugin that looks all
the same finds nothing, instead of failing.

It is not redacted: a plugin has to see a login's URL to tell it. Its answers are redacted
(`plugin_permissions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from telex.adapters.protocol import COMPLETED_TURN_STABLE_MS
from telex.terminal import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.adapters.protocol import Permission
    from telex.terminal.session import PtySession

STATUS_ROWS: Final = 3
"""The bottom rows, where full-screen programs keep their status bar."""

_OF_A_FIXTURE: Final = {
    "transcript": "",
    "sequence": 1,
    "stable_ms": COMPLETED_TURN_STABLE_MS,
    "completed_turn_stable_ms": COMPLETED_TURN_STABLE_MS,
    "markers": {},
    "cursor": 0,
    "size": {"rows": 24, "cols": 80},
    "alternate_screen": False,
    "process_exited": False,
}


def split_status(screen: str) -> tuple[str, str]:
    """A screen's body, and its status: the bottom three rows. Six rows or fewer are all body: so
    small a screen has no room for a status bar, and its only words would be in it."""
    rows = screen.split("\n")
    if len(rows) <= 2 * STATUS_ROWS:
        return screen, ""
    return "\n".join(rows[:-STATUS_ROWS]), "\n".join(rows[-STATUS_ROWS:])


def session_context(
    session: PtySession, permissions: frozenset[Permission], now: float
) -> dict[str, Any]:
    """This moment of a session, as a plugin with these permissions sees it. What has no value is
    left out: Lua reads it as nil."""
    seen = {
        "sequence": session.sequence,
        "stable_ms": max(0, int((now - session.last_change()) * 1000)),
        "completed_turn_stable_ms": COMPLETED_TURN_STABLE_MS,
        "process_exited": session.exit is not None,
        **_texts("\n".join([row.text for row in session.screen.rows()])),
        **_printed(session),
        **_looks(session),
    }
    if session.exit is not None and session.exit.code is not None:
        seen["exit_code"] = session.exit.code
    if "screen.read" not in permissions:
        seen |= _texts("")
        del seen["screen_cursor"]
        seen.pop("title", None)
    if "transcript.read" not in permissions:
        seen |= {"transcript": "", "markers": {}, "cursor": 0}
    return seen


def fixture_context(text: str, expected: Mapping[str, Any]) -> dict[str, Any]:
    """A screen kept in a file, as if it had stood still long enough for a turn to be over."""
    seen = {**_OF_A_FIXTURE, **_texts(text)}
    if (last_intent := expected.get("last_intent")) is not None:
        seen["last_intent"] = last_intent
    return seen | dict(expected.get("context", {}))


def _texts(text: str) -> dict[str, Any]:
    screen = text.rstrip("\n")
    body, status = split_status(screen)
    return {"screen": screen, "body_text": body, "status_text": status}


def _printed(session: PtySession) -> dict[str, Any]:
    transcript = session.transcript
    return {
        "transcript": transcript.tail(limits.TRANSCRIPT_TAIL_CHARS),
        "markers": dict(transcript.markers),
        "cursor": transcript.cursor,
    }


def _looks(session: PtySession) -> dict[str, Any]:
    screen = session.screen
    cursor, size = screen.cursor, screen.size
    seen = {
        "screen_cursor": {"row": cursor.row, "col": cursor.col, "visible": cursor.visible},
        "size": {"rows": size.rows, "cols": size.cols},
        "alternate_screen": screen.alternate_screen,
        "echo": session.pty.line_settings().echo,
    }
    return seen if screen.title is None else {**seen, "title": screen.title}
