"""The automation protocol as data: parameters, results, notifications, error codes, dialect.

The names and numbers are those of the spec; what it does not say is decided in `docs/decisions`.
Fields beyond the spec are additive and have defaults, so that a client of the original never meets
them. Actions and matchers are values of the terminal itself (`terminal.actions`,
`terminal.waits.matchers`) and go over the wire as they are.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import RESERVED, Condition
from telex.terminal.actions import (
    Action,
    Cols,
    Pixels,
    Rows,
    TerminalSize,
)
from telex.terminal.waits.matchers import (
    Matcher,
    Milliseconds,
    Since,
)

NAME: Final = "telex"

TIMED_OUT: Final = -32001
SESSION_CLOSED: Final = -32002
PERMISSION_DENIED: Final = -32004
CANCELLED: Final = -32005

CODES: Final = {
    **RESERVED,
    Condition.CANCELLED: CANCELLED,
    Condition.TIMED_OUT: TIMED_OUT,
    Condition.CLOSING: SESSION_CLOSED,
}
"""How the conditions of a conversation are numbered here."""

DIALECT: Final = JsonRpc(codes=CODES, batches=True, cancel_method="$/cancelRequest")

Word = Annotated[str, Meta(pattern=r"^[^\x00]*$", description="Any text without a NUL.")]
Name = Annotated[str, Meta(pattern=r"^[^\x00=]+$", description="A variable's name.")]
"""What the system can hand to a program; neither can hold all that a JSON string can."""


# What the methods take.

Cells = Literal["full", "runs", "none"]
"""Every cell, as the spec has it; neighbours of one style together; or none."""


class RedactionRules(Struct, frozen=True):
    """Rules added for one read. `enabled` is part of the wire and changes nothing."""

    enabled: bool
    replacement: str
    extra_literals: tuple[str, ...] = ()
    """Texts that are secret, of one character or more; not of blanks alone."""
    extra_regexes: tuple[str, ...] = ()
    """Patterns (RE2) of what is secret."""


class NoParams(Struct, frozen=True):
    """No parameters."""


class ListSessions(Struct, frozen=True):
    """Which sessions."""

    include_adapters: bool = False
    """Those that belong to an adapter too."""


class OfSession(Struct, frozen=True):
    """Which session."""

    session: str


class Create(Struct, frozen=True, kw_only=True):
    """What to start, and on what kind of terminal."""

    program: str
    """A path, or a name that is looked for in PATH."""
    args: tuple[Word, ...] = ()
    cwd: str | None = None
    env: dict[Name, Word | None] = {}
    """Overrides; null removes a variable."""
    rows: Rows = 24
    cols: Cols = 80
    pixel_width: Pixels = 0
    pixel_height: Pixels = 0
    transcript_max_chars: Annotated[int, Meta(ge=1, le=64 * 1024 * 1024)] | None = None
    """How much of what is printed is kept; by default 131,072."""
    raw_transcript_path: str | None = None
    """A file for every byte that the program prints, secrets and all."""
    raw_transcript_append: bool = False
    """Go on with that file; else it must not be there yet."""
    escapes: bool = False
    """Whether the terminal answers JSON escapes. They are told as `session.escape`."""
    pages: bool = False
    """Whether the program may serve pages (HTTY). They are told as `session.page`."""


class Input(Struct, frozen=True):
    """An action for a session."""

    session: str
    action: Action


class Wait(Struct, frozen=True, kw_only=True):
    """What to wait for, and how long."""

    session: str
    matcher: Matcher
    timeout_ms: Milliseconds = 30_000
    since: Since | None = None
    """For every matcher below that does not say its own."""
    wait_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    """A name by which `session.cancel_wait` finds it."""
    cells: Cells = "full"
    redact: bool = True
    redaction: RedactionRules | None = None


class CancelWait(Struct, frozen=True):
    """Which wait."""

    wait_id: str


class ReadScreen(Struct, frozen=True, kw_only=True):
    """Whose screen, and how it is told."""

    session: str
    cells: Cells = "full"
    redact: bool = True
    redaction: RedactionRules | None = None


class ReadTranscript(Struct, frozen=True, kw_only=True):
    """Whose transcript, how it is told, and from where."""

    session: str
    strip: bool = False
    """Without escape sequences."""
    cursor: Annotated[int, Meta(ge=0)] | None = None
    """Only what came after it, as a transcript's answer named it."""
    redact: bool = True
    redaction: RedactionRules | None = None


class ReadScrollback(Struct, frozen=True, kw_only=True):
    """Which rows of those that scrolled away; 0 is the oldest kept, -1 the newest."""

    session: str
    start: int = -1000
    count: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    cells: Cells = "none"
    redact: bool = True
    redaction: RedactionRules | None = None


class ResizeTo(Struct, frozen=True, kw_only=True):
    """Whose terminal gets which size."""

    session: str
    rows: Rows
    cols: Cols
    pixel_width: Pixels = 0
    pixel_height: Pixels = 0


class SetNotifications(Struct, frozen=True):
    """Whether to tell what happens, and of which sessions: of all, if neither list names any."""

    enabled: bool
    adapters: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


class Record(Struct, frozen=True, kw_only=True):
    """Where to write what happens from now on; without a path, to stop."""

    session: str
    path: str | None = None
    format: Literal[2, 3] = 2
    """Of asciicast."""
    input: bool = False
    """Also what is typed, except where the terminal does not echo it."""
    redact: bool = True


class Attach(Struct, frozen=True, kw_only=True):
    """Whose bytes to follow."""

    session: str
    credit: Annotated[int, Meta(ge=1, le=16 * 1024 * 1024)] = 256 * 1024
    """Bytes that may be sent before more is granted."""
    binary: bool = False
    """As binary frames, where the connection has them."""
    redact: bool = True


class Credit(Struct, frozen=True):
    """How much more an attachment may send."""

    attachment: str
    bytes: Annotated[int, Meta(ge=1, le=16 * 1024 * 1024)]


class Detach(Struct, frozen=True):
    """Which attachment to end."""

    attachment: str


class EscapeReply(Struct, frozen=True, kw_only=True):
    """An answer to a command that the program on a session asked of its terminal."""

    session: str
    resid: Annotated[str, Meta(min_length=1, max_length=64)]
    """The `rpcid` of the command."""
    data: Raw | UnsetType = UNSET
    data64: str | UnsetType = UNSET
    """Bytes, in base64; in place of `data`."""
    error: str | UnsetType = UNSET
    """Why there is no answer, as `ECDENIED: in words`."""
    cont: bool = False
    """More of the same answer follows."""


class Lease(Struct, frozen=True, kw_only=True):
    """Who alone may type into a session; to give it back, `release`."""

    session: str
    holder: Annotated[str, Meta(min_length=1, max_length=128)]
    release: bool = False
    take_over: bool = False
    """Although somebody else has it."""


# What they answer.


class Capabilities(Struct, frozen=True):
    """What this server is and does."""

    name: str
    version: str
    framing: tuple[str, ...]
    methods: tuple[str, ...]
    notifications: tuple[str, ...]


class Notifications(Struct, frozen=True, omit_defaults=True):
    """The subscription as it is now."""

    enabled: bool
    adapters: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


class Created(Struct, frozen=True):
    """The new session's id."""

    session: str


class SessionList(Struct, frozen=True):
    """Every session that was not closed, in numeric order."""

    sessions: tuple[str, ...]


class Sent(Struct, frozen=True):
    """The action was performed."""

    sent: bool
    mark: str
    """For `since`: the moment before the action."""
    sequence: int


class CursorState(Struct, frozen=True):
    """Where the cursor stands, counted from 0."""

    row: int
    col: int
    visible: bool


class CellStyle(Struct, frozen=True):
    """How a cell is drawn. A colour is `default`, `idx:N` or `rgb:R:G:B`."""

    foreground: str
    background: str
    bold: bool
    dim: bool
    italic: bool
    underline: bool
    inverse: bool


class ScreenCell(Struct, frozen=True):
    """One cell of the grid."""

    row: int
    col: int
    text: str
    wide: bool
    wide_continuation: bool
    style: CellStyle


class ScreenRun(Struct, frozen=True):
    """Neighbouring cells of one style."""

    row: int
    col: int
    width: int
    text: str
    style: CellStyle


class ScreenSnapshot(Struct, frozen=True, kw_only=True):
    """The visible screen."""

    size: TerminalSize
    cursor: CursorState
    sequence: int
    plain_text: str
    """The rows joined by newlines, without blanks at their ends and blank rows at the end."""
    cells: tuple[ScreenCell, ...]
    """Row by row, each of them; none if `runs` or `none` were asked for."""
    alternate_screen: bool
    application_cursor: bool
    application_keypad: bool
    title: str | None
    runs: tuple[ScreenRun, ...] | UnsetType = UNSET


class Matched(Struct, frozen=True, kw_only=True):
    """What a wait found."""

    matched: bool
    sequence: int
    elapsed_ms: int
    snapshot: ScreenSnapshot
    transcript_tail: str
    """The last 16,384 characters that were printed."""
    evidence: dict[str, Any]
    """Which branch matched, and what."""
    wait_id: str | UnsetType = UNSET


class WaitCancellation(Struct, frozen=True):
    """Whether there was such a wait."""

    cancelled: bool
    wait_id: str
    session: str | UnsetType = UNSET


class TranscriptText(Struct, frozen=True):
    """What was printed."""

    text: str
    cursor: int
    dropped: bool
    """Whether some of what was asked for is no longer kept."""


class Scrollback(Struct, frozen=True):
    """Rows that scrolled away, oldest first."""

    total: int
    """How many rows are kept."""
    start: int
    lines: tuple[str, ...]
    wrapped: tuple[bool, ...]
    """Which of them go on in the next."""
    cells: tuple[ScreenCell, ...] | UnsetType = UNSET
    runs: tuple[ScreenRun, ...] | UnsetType = UNSET


class Resized(Struct, frozen=True):
    resized: bool


class Killed(Struct, frozen=True):
    killed: bool


class Closed(Struct, frozen=True):
    closed: bool


class Recorded(Struct, frozen=True):
    """Whether the session is being recorded now, and where."""

    recording: bool
    path: str | None


class Attached(Struct, frozen=True):
    """An attachment: its bytes follow as `session.bytes`, or as binary frames."""

    attachment: str
    size: TerminalSize
    sequence: int
    binary: bool


class Granted(Struct, frozen=True):
    credit: int


class Detached(Struct, frozen=True):
    detached: bool


class EscapeReplied(Struct, frozen=True):
    """Whether it was the answer: not if another came first, or the time was up."""

    accepted: bool


class Leased(Struct, frozen=True):
    """Who alone may type; null if everybody may."""

    holder: str | None


# What a server tells unasked.


class SessionChanged(Struct, frozen=True):
    """The screen advanced."""

    session: str
    sequence: int


class SessionOutput(Struct, frozen=True, omit_defaults=True):
    """What was printed since the last one."""

    session: str
    sequence: int
    output: str
    dropped: bool = False
    """Whether some of it is missing."""


class SessionExited(Struct, frozen=True):
    """The program ended. Once."""

    session: str
    sequence: int
    exit_code: int | None
    signal: int | None


class RecordingFailed(Struct, frozen=True):
    """A file of the session can take nothing more: the disk is full, or the file was removed. What
    came before is in it. The program goes on."""

    session: str
    sequence: int
    kind: Literal["recording", "raw_transcript"]
    """Of `session.record`, or of `raw_transcript_path`."""
    path: str
    reason: str
    """As the system says it."""
    errno: int | None


class SessionBytes(Struct, frozen=True, omit_defaults=True):
    """Bytes of an attachment."""

    attachment: str
    sequence: int
    data64: str
    reset: bool = False
    """Forget what was shown: these bytes draw the screen anew."""
    more: bool = False
    """More is there already: the screen, if these draw it, is not whole yet."""


class SessionEscape(Struct, frozen=True, omit_defaults=True):
    """The program on a session sent its terminal a packet, by JSON escapes."""

    session: str
    sequence: int
    packet: Raw
    dropped: bool = False
    """Whether some before it were not told."""


NOTIFICATIONS: Final = (
    "session.changed",
    "session.output",
    "session.exited",
    "session.recording_failed",
)
