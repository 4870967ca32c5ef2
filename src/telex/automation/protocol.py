"""The automation protocol as data: parameters, results, notifications, error codes, dialect.

The names and numbers are those of the spec; what it does not say is decided in `docs/decisions`.
Fields beyond the spec are additive and have defaults, so that a client of the original never sees
them. Actions and matchers are values of the terminal itself (`terminal.actions`,
`terminal.waits.matchers`) and go over the wire as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import RESERVED, Condition
from telex.rpc.identity import Identity
from telex.terminal.actions import (
    Action,
    Cols,
    InputKind,
    Pixels,
    Rows,
    TerminalSize,
)
from telex.terminal.cells import UnderlineStyle
from telex.terminal.input_state import InputState
from telex.terminal.waits.matchers import (
    Matcher,
    Milliseconds,
    Since,
)

if TYPE_CHECKING:
    from pathlib import Path

    from telex.automation.screenshot import ThemeName

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
"""The error code of each condition."""

DIALECT: Final = JsonRpc(codes=CODES, batches=True, cancel_method="$/cancelRequest")

Word = Annotated[str, Meta(pattern=r"^[^\x00]*$", description="Any text without a NUL.")]
Name = Annotated[str, Meta(pattern=r"^[^\x00=]+$", description="A variable's name.")]
"""The system cannot pass every JSON string to a program: a NUL ends an argument or a variable."""


# Parameters. Defaults are not sent: a server that does not know a member would refuse it.

Cells = Literal["full", "runs", "none"]
"""Every cell, as in the spec; runs of neighbouring cells with one style; or none."""


class RedactionRules(Struct, frozen=True, omit_defaults=True):
    """Rules added for one read. `enabled` is part of the wire and changes nothing."""

    enabled: bool
    replacement: str
    extra_literals: tuple[str, ...] = ()
    """Texts that are secret, of one character or more; not of blanks alone."""
    extra_regexes: tuple[str, ...] = ()
    """Patterns (RE2) of what is secret."""


class NoParams(Struct, frozen=True, omit_defaults=True):
    """The parameters of a method that takes none."""


class ListSessions(Struct, frozen=True, omit_defaults=True):
    """The filter of `session.list`."""

    include_adapters: bool = False
    """Also sessions that belong to an adapter."""


class OfSession(Struct, frozen=True, omit_defaults=True):
    """The id of a session."""

    session: str


class Create(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program to start, and its terminal."""

    program: str
    """A path, or a name that is looked up in PATH."""
    args: tuple[Word, ...] = ()
    cwd: str | None = None
    env: dict[Name, Word | None] = {}
    """Overrides; null removes a variable."""
    rows: Rows = 24
    cols: Cols = 80
    pixel_width: Pixels = 0
    pixel_height: Pixels = 0
    transcript_max_chars: Annotated[int, Meta(ge=1, le=64 * 1024 * 1024)] | None = None
    """How many printed characters are kept; by default 131,072."""
    raw_transcript_path: str | None = None
    """A file for every byte that the program prints, not redacted."""
    raw_transcript_append: bool = False
    """Append to that file; otherwise it must not exist."""
    escapes: bool = False
    """Whether the terminal answers JSON escapes. They are sent as `session.escape`."""
    pages: bool = False
    """Whether the program may serve pages (HTTY). They are sent as `session.page`."""


class Input(Struct, frozen=True, omit_defaults=True):
    """An action for a session."""

    session: str
    action: Action


class Wait(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A matcher and how long to wait for it."""

    session: str
    matcher: Matcher
    timeout_ms: Milliseconds = 30_000
    since: Since | None = None
    """For every matcher in it without a `since`."""
    wait_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    """An id for `session.cancel_wait`."""
    cells: Cells = "full"
    redact: bool = True
    redaction: RedactionRules | None = None


class CancelWait(Struct, frozen=True, omit_defaults=True):
    """The wait to cancel."""

    wait_id: str


class ReadScreen(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Read the screen of a session: with which cells, redacted or not."""

    session: str
    cells: Cells = "full"
    redact: bool = True
    redaction: RedactionRules | None = None


class ReadProperties(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Read the properties of a session, redacted or not."""

    session: str
    redact: bool = True
    redaction: RedactionRules | None = None


class ReadTranscript(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Read the transcript of a session from a cursor on, redacted or not."""

    session: str
    strip: bool = False
    """Without escape sequences."""
    cursor: Annotated[int, Meta(ge=0)] | None = None
    """Only text after this cursor, which an earlier answer returned."""
    redact: bool = True
    redaction: RedactionRules | None = None


class ReadScrollback(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows of the scrollback; 0 is the oldest kept, -1 the newest."""

    session: str
    start: int = -1000
    count: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    cells: Cells = "none"
    redact: bool = True
    redaction: RedactionRules | None = None


class ReadInputs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of the log of inputs to read."""

    session: str
    since: Annotated[int, Meta(ge=0)] | None = None
    """Only inputs after the one with this number; otherwise the last ones."""
    limit: Annotated[int, Meta(ge=1, le=1024)] = 100
    """How many at most."""


class ResizeTo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The new size of a session's terminal."""

    session: str
    rows: Rows
    cols: Cols
    pixel_width: Pixels = 0
    pixel_height: Pixels = 0


class SetNotifications(Struct, frozen=True, omit_defaults=True):
    """Whether to send notifications, and of which sessions: of all, if both lists are empty."""

    enabled: bool
    adapters: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The file to record to; without a path, stop."""

    session: str
    path: str | None = None
    format: Literal[2, 3] = 2
    """The version of asciicast."""
    input: bool = False
    """Also record typed text, except while the terminal does not echo it."""
    redact: bool = True


class Attach(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The session whose output to follow."""

    session: str
    credit: Annotated[int, Meta(ge=1, le=16 * 1024 * 1024)] = 256 * 1024
    """Bytes that may be sent before more credit is granted."""
    binary: bool = False
    """Send binary frames, where the connection has them."""
    redact: bool = True


class Credit(Struct, frozen=True, omit_defaults=True):
    """More credit for an attachment."""

    attachment: str
    bytes: Annotated[int, Meta(ge=1, le=16 * 1024 * 1024)]


class Detach(Struct, frozen=True, omit_defaults=True):
    """The attachment to end."""

    attachment: str


class EscapeReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a command that a session's program sent to its terminal."""

    session: str
    resid: Annotated[str, Meta(min_length=1, max_length=64)]
    """The `rpcid` of the command."""
    data: Raw | UnsetType = UNSET
    data64: str | UnsetType = UNSET
    """Bytes in base64, instead of `data`."""
    error: str | UnsetType = UNSET
    """The reason for no answer, as `ECDENIED: in words`."""
    cont: bool = False
    """More of the same answer follows."""


class Lease(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Take the exclusive right to type into a session, or `release` it."""

    session: str
    holder: Annotated[str, Meta(min_length=1, max_length=128)]
    release: bool = False
    take_over: bool = False
    """Even if another connection holds it."""


# Results.


class Capabilities(Struct, frozen=True):
    """The name, version, methods and notifications of this server."""

    name: str
    version: str
    framing: tuple[str, ...]
    methods: tuple[str, ...]
    notifications: tuple[str, ...]
    strict_params: bool = False
    """Whether parameters with unknown members are refused."""


class Notifications(Struct, frozen=True, omit_defaults=True):
    """The subscription in force."""

    enabled: bool
    adapters: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


class Created(Struct, frozen=True):
    """The new session's id."""

    session: str


class SessionList(Struct, frozen=True, omit_defaults=True):
    """The ids of the open sessions, in numeric order."""

    sessions: tuple[str, ...]
    names: dict[str, str] = {}
    """The names of sessions that have one, by id: `telex open` gives them."""


class Sent(Struct, frozen=True):
    """The action was performed."""

    sent: bool
    mark: str
    """For `since`: the moment before the action."""
    sequence: int


class CursorState(Struct, frozen=True):
    """The position of the cursor, counted from 0."""

    row: int
    col: int
    visible: bool


class CellStyle(Struct, frozen=True, omit_defaults=True):
    """How a cell is drawn. A colour is `default`, `idx:N` or `rgb:R:G:B`."""

    foreground: str
    background: str
    bold: bool
    dim: bool
    italic: bool
    underline: bool
    inverse: bool
    strikethrough: bool = False
    blink: bool = False
    invisible: bool = False
    underline_style: UnderlineStyle = "single"
    underline_color: str = "default"
    """The default is the foreground."""


class ScreenCell(Struct, frozen=True):
    """One cell of the grid."""

    row: int
    col: int
    text: str
    wide: bool
    wide_continuation: bool
    style: CellStyle


class ScreenRun(Struct, frozen=True):
    """Neighbouring cells with one style."""

    row: int
    col: int
    width: int
    text: str
    style: CellStyle
    widths: tuple[int, ...] | UnsetType = UNSET
    """The cells of each character of the text, where they are not all 1."""


class ScreenSnapshot(Struct, frozen=True, kw_only=True):
    """The visible screen."""

    size: TerminalSize
    cursor: CursorState
    sequence: int
    plain_text: str
    """The rows joined by newlines, without blanks at their ends and blank rows at the end."""
    cells: tuple[ScreenCell, ...]
    """Every cell, row by row; empty if `runs` or `none` was asked for."""
    alternate_screen: bool
    application_cursor: bool
    application_keypad: bool
    title: str | None
    runs: tuple[ScreenRun, ...] | UnsetType = UNSET
    wrapped: tuple[int, ...] | UnsetType = UNSET
    """With `runs`: the rows whose line continues in the next row."""
    input_state: InputState | UnsetType = UNSET
    """What the program waits for, in the answer of `session.snapshot`."""

    def save(
        self,
        path: str | Path,
        *,
        region: tuple[int, int, int, int] | None = None,
        theme: ThemeName = "dark",
        cursor: bool = True,
        scale: int = 2,
    ) -> Path:
        """Draw the screen to a file. Its suffix selects the kind of picture: .png, .svg, .html,
        .ansi (text with colours) or .txt.

        Args:
            path: The file. It is replaced if it exists.
            region: Draw only this part: its top row, leftmost column, height and width.
            theme: "dark" or "light".
            cursor: Draw the cursor.
            scale: The pixels of a PNG; at 2, a cell is 18 wide and 36 high.

        Returns:
            The path of the file.

        Raises:
            ValueError: The suffix or the theme is unknown, the region is not within the screen, a
                PNG would be too large, or the snapshot has no cells.

        Example:
            term.snapshot().save("screen.svg", region=(0, 0, 2, 40), theme="light")
        """
        from telex.automation.screenshot import save_picture

        return save_picture(self, path, region=region, theme=theme, cursor=cursor, scale=scale)

    def __repr__(self) -> str:
        """Return its facts without its text: a repr gets into logs, and the text may be secret."""
        rows, cols = self.size.rows, self.size.cols
        return f"<ScreenSnapshot {cols}x{rows}, sequence {self.sequence}>"


class ScreenLink(Struct, frozen=True):
    """A link on the screen (OSC 8), or its part in one row."""

    row: int
    col: int
    width: int
    text: str
    uri: str

    def __repr__(self) -> str:
        """Return its place without its text, as that of a snapshot."""
        return f"<ScreenLink row {self.row}, columns {self.col}-{self.col + self.width - 1}>"


class ScreenPalette(Struct, frozen=True):
    """The colours in force, each as `#rrggbb`."""

    foreground: str
    background: str
    cursor: str
    colours: tuple[str, ...]
    """The 256 colours of the palette."""


class Properties(Struct, frozen=True):
    """The state of a terminal that is not in its cells."""

    title: str | None
    bells: int
    """How often the program rang the bell."""
    clipboard: str | None
    """The text that the program last copied (OSC 52); null if it copied none, and empty if it
    cleared the clipboard."""
    links: tuple[ScreenLink, ...]
    palette: ScreenPalette
    clipboard_cut: bool = False
    """Whether the program copied more than 1 MiB, of which `clipboard` has the beginning."""

    def __repr__(self) -> str:
        """Return its facts without text, as that of a snapshot."""
        return f"<Properties {self.bells} bells, {len(self.links)} links>"


class Matched(Struct, frozen=True, kw_only=True):
    """The result of a wait that matched."""

    matched: bool
    sequence: int
    elapsed_ms: int
    snapshot: ScreenSnapshot
    transcript_tail: str
    """The last 16,384 characters that were printed."""
    evidence: dict[str, Any]
    """What matched: the kind of matcher, the text or capture (and `groups` by number and name, if
    the pattern has several or named ones), and the branch of `any`."""
    wait_id: str | UnsetType = UNSET

    def __repr__(self) -> str:
        """Return its facts without text of the screen, as that of a snapshot."""
        kind, after = self.evidence.get("kind"), self.elapsed_ms
        return f"<Matched {kind} after {after} ms, sequence {self.sequence}>"


class WaitCancellation(Struct, frozen=True):
    """Whether such a wait was pending."""

    cancelled: bool
    wait_id: str
    session: str | UnsetType = UNSET


class TranscriptText(Struct, frozen=True):
    """A part of the printed text."""

    text: str
    cursor: int
    dropped: bool
    """Whether some of the text asked for is no longer kept."""


class Scrollback(Struct, frozen=True):
    """Rows of the scrollback, oldest first."""

    total: int
    """How many rows are kept."""
    start: int
    lines: tuple[str, ...]
    wrapped: tuple[bool, ...]
    """For each row, whether it continues in the next one."""
    cells: tuple[ScreenCell, ...] | UnsetType = UNSET
    runs: tuple[ScreenRun, ...] | UnsetType = UNSET


class Resized(Struct, frozen=True):
    resized: bool


class Killed(Struct, frozen=True):
    killed: bool


class Closed(Struct, frozen=True):
    closed: bool


class Recorded(Struct, frozen=True):
    """Whether the session is being recorded, and to which file."""

    recording: bool
    path: str | None


class Attached(Struct, frozen=True):
    """The id of an attachment. Its bytes follow as `session.bytes`, or as binary frames."""

    attachment: str
    size: TerminalSize
    sequence: int
    binary: bool


class Granted(Struct, frozen=True):
    credit: int


class Detached(Struct, frozen=True):
    detached: bool


class EscapeReplied(Struct, frozen=True):
    """Whether the answer was accepted: not if another came first, or after the deadline."""

    accepted: bool


class Leased(Struct, frozen=True):
    """The holder of the lease; null if there is none."""

    holder: str | None
    who: Identity | UnsetType = UNSET
    """The connection of the holder."""


class SessionInput(Struct, frozen=True):
    """One input to a session."""

    number: int
    """The inputs of a session are counted from 1."""
    sequence: int
    at: float
    """When it was sent, in seconds since 1970 (UTC)."""
    who: Identity
    """The connection that sent it, as the server knows it."""
    kind: InputKind
    """An `intent` is that of an adapter; the keys that it presses follow."""
    text: str
    """The characters, without secrets and without what the terminal did not show; or the name of
    the key, the signal, the new size."""


class Inputs(Struct, frozen=True):
    """Inputs to a session, in their order."""

    inputs: tuple[SessionInput, ...]
    dropped: bool
    """Whether older inputs, or some after `since`, are no longer kept."""


class SessionAttached(Struct, frozen=True):
    """One reader of a session's output."""

    attachment: str
    who: Identity
    """The connection that reads, as the server knows it."""


class Attachments(Struct, frozen=True):
    """The attachments of a session, in the order of their creation."""

    attachments: tuple[SessionAttached, ...]


# Notifications.


class SessionChanged(Struct, frozen=True):
    """The screen changed."""

    session: str
    sequence: int


class SessionOutput(Struct, frozen=True, omit_defaults=True):
    """Text printed since the notification before."""

    session: str
    sequence: int
    output: str
    dropped: bool = False
    """Whether some text before it is missing."""


class SessionInputState(Struct, frozen=True):
    """The program waits for something else than before, or has begun to work. Not in the original
    protocol."""

    session: str
    sequence: int
    input_state: InputState


class SessionExited(Struct, frozen=True):
    """The program ended. Sent once."""

    session: str
    sequence: int
    exit_code: int | None
    signal: int | None


class RecordingFailed(Struct, frozen=True):
    """A file of the session can no longer be written: the disk is full, or the file was removed.
    Earlier output is in it. The program continues."""

    session: str
    sequence: int
    kind: Literal["recording", "raw_transcript"]
    """The file of `session.record`, or of `raw_transcript_path`."""
    path: str
    reason: str
    """The message of the operating system."""
    errno: int | None


class SessionBytes(Struct, frozen=True, omit_defaults=True):
    """A piece of output for an attachment."""

    attachment: str
    sequence: int
    data64: str
    reset: bool = False
    """The reader must clear its screen: these bytes draw the whole screen."""
    more: bool = False
    """More bytes follow at once: a screen that is being drawn is not complete yet."""


class SessionEscape(Struct, frozen=True, omit_defaults=True):
    """A packet that the session's program sent to its terminal, by JSON escapes."""

    session: str
    sequence: int
    packet: Raw
    dropped: bool = False
    """Whether packets before it were dropped."""


NOTIFICATIONS: Final = (
    "session.changed",
    "session.output",
    "session.input_state",
    "session.exited",
    "session.recording_failed",
)
