"""The context that is passed to a plugin: one moment of a session as a table of plain values.

`classify`, intents and predicates get the same table, so a wait can use the facts that decided a
state. The manifest limits the context: without `screen.read` the screen is blank, without
`transcript.read` the transcript is empty. The values are blank and not absent, so that a plugin
which reads them all the same finds nothing, instead of failing.

The context is not redacted: a plugin has to see the URL of a login to report it. The results of a
plugin are redacted (`plugin_permissions`).
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
"""How many rows at the bottom are the status, where full-screen programs have their status bar."""

_FIXTURE_DEFAULTS: Final = {
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
    """Split a screen into its body and its status, the bottom three rows. A screen of six rows or
    fewer is all body: it has no room for a status bar, and its only text would be in the status."""
    rows = screen.split("\n")
    if len(rows) <= 2 * STATUS_ROWS:
        return screen, ""
    return "\n".join(rows[:-STATUS_ROWS]), "\n".join(rows[-STATUS_ROWS:])


def session_context(
    session: PtySession, permissions: frozenset[Permission], now: float
) -> dict[str, Any]:
    """Return the context of a session now, for a plugin with these permissions. A member without a
    value is left out, which Lua reads as nil."""
    context = {
        "sequence": session.sequence,
        "stable_ms": max(0, int((now - session.last_change()) * 1000)),
        "completed_turn_stable_ms": COMPLETED_TURN_STABLE_MS,
        "process_exited": session.exit is not None,
        **_texts("\n".join([row.text for row in session.screen.rows()])),
        **_transcript(session),
        **_terminal(session),
    }
    if session.exit is not None and session.exit.code is not None:
        context["exit_code"] = session.exit.code
    if "screen.read" not in permissions:
        context |= _texts("")
        del context["screen_cursor"]
        context.pop("title", None)
    if "transcript.read" not in permissions:
        context |= {"transcript": "", "markers": {}, "cursor": 0}
    return context


def fixture_context(text: str, expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of a screen from a file, stable long enough for a turn to be complete."""
    context = {**_FIXTURE_DEFAULTS, **_texts(text)}
    if (last_intent := expected.get("last_intent")) is not None:
        context["last_intent"] = last_intent
    return context | dict(expected.get("context", {}))


def _texts(text: str) -> dict[str, Any]:
    screen = text.rstrip("\n")
    body, status = split_status(screen)
    return {"screen": screen, "body_text": body, "status_text": status}


def _transcript(session: PtySession) -> dict[str, Any]:
    transcript = session.transcript
    return {
        "transcript": transcript.tail(limits.TRANSCRIPT_TAIL_CHARS),
        "markers": dict(transcript.markers),
        "cursor": transcript.cursor,
    }


def _terminal(session: PtySession) -> dict[str, Any]:
    screen = session.screen
    cursor, size = screen.cursor, screen.size
    facts = {
        "screen_cursor": {"row": cursor.row, "col": cursor.col, "visible": cursor.visible},
        "size": {"rows": size.rows, "cols": size.cols},
        "alternate_screen": screen.alternate_screen,
        "echo": session.pty.line_settings().echo,
    }
    return facts if screen.title is None else {**facts, "title": screen.title}
