"""Every maximum, once, with its reason.

The names are plain integers, ready to compare with; `TABLE` holds the same numbers with their unit
and reason, for `telex doctor` and `docs/reference/limits.md`. Over a limit the peer that sent it
gets a clear error, the connection stays usable where the framing allows, and memory stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limit:
    """One row of the table."""

    value: int
    unit: str
    reason: str


TABLE: Final[dict[str, Limit]] = {}


def _limit(name: str, value: int, unit: str, reason: str) -> int:
    TABLE[name] = Limit(value, unit, reason)
    return value


LINE_BYTES: Final = _limit(
    "LINE_BYTES",
    16 * MIB,
    "bytes",
    "One NDJSON line. Far above a full 200x60 snapshot (2.4 MB), far below what hurts; "
    "asyncio's 64 KiB line limit is the cliff other servers fall from.",
)
CONTENT_BYTES: Final = _limit(
    "CONTENT_BYTES",
    16 * MIB,
    "bytes",
    "One Content-Length body: the same message must fit whichever framing carries it.",
)
HEADER_BYTES: Final = _limit(
    "HEADER_BYTES",
    8 * KIB,
    "bytes",
    "One header block. Two short fields are all anyone sends; 8 KiB is what web servers allow.",
)
HEADER_FIELDS: Final = _limit(
    "HEADER_FIELDS",
    32,
    "fields",
    "Fields in one header block, so that a flood of them stays cheap.",
)
CONTROL_STRING_BYTES: Final = _limit(
    "CONTROL_STRING_BYTES",
    1 * MIB,
    "bytes",
    "One claimed OSC or DCS body: tmux's own buffer size, and what we announce as `maxframe`.",
)
SENT_CONTROL_STRING_BYTES: Final = _limit(
    "SENT_CONTROL_STRING_BYTES",
    2 * KIB,
    "bytes",
    "One JSON escape we send until the other side announced more: the smallest OSC buffer of a "
    "terminal in use today.",
)
CHUNK_BYTES: Final = _limit(
    "CHUNK_BYTES",
    3 * KIB,
    "bytes",
    "Payload of one HTTY chunk we send: 4 KiB of base64, about what one PTY read returns.",
)
JSON_DEPTH: Final = _limit(
    "JSON_DEPTH", 64, "levels", "Nesting of one JSON message; deeper is an attack on the decoder."
)
HELD_SECRET_CHARS: Final = _limit(
    "HELD_SECRET_CHARS",
    4 * KIB,
    "characters",
    "Text held back while it may be a secret; longer values are masked without being held.",
)
CALLS_IN_FLIGHT: Final = _limit(
    "CALLS_IN_FLIGHT",
    256,
    "calls",
    "Calls one peer has open, and requests it serves at once; the next waits its turn.",
)
REQUESTS_QUEUED: Final = _limit(
    "REQUESTS_QUEUED",
    1024,
    "requests",
    "Requests read but not yet served. More than any peer of ours can have open, so between two of "
    "them reading never stops; a flooder is read no further.",
)
QUEUED_BYTES: Final = _limit(
    "QUEUED_BYTES",
    32 * MIB,
    "bytes",
    "The same queue, by weight: one largest message may always wait beside another.",
)
OUTBOUND_BYTES: Final = _limit(
    "OUTBOUND_BYTES",
    1 * MIB,
    "bytes",
    "Bytes written but not yet taken by the other side, above which callers wait and requests are "
    "not served: backpressure instead of memory.",
)
STREAM_PARTS: Final = _limit(
    "STREAM_PARTS",
    256,
    "parts",
    "Parts of one stream that its reader has not taken. Past it that stream fails alone; holding "
    "the others up would be worse.",
)
IDS_REMEMBERED: Final = _limit(
    "IDS_REMEMBERED",
    1024,
    "ids",
    "Ended calls whose late replies are still recognised; older ones are counted as unknown.",
)
BATCH_MESSAGES: Final = _limit(
    "BATCH_MESSAGES", 1000, "messages", "Messages in one JSON-RPC batch."
)
SOCKET_PATH_BYTES: Final = _limit(
    "SOCKET_PATH_BYTES",
    103,
    "bytes",
    "A unix socket's path. macOS has room for 104 with the closing NUL, Linux for 108; the smaller "
    "serves both, so that the same environment means the same path everywhere.",
)
CONFIG_FILE_BYTES: Final = _limit(
    "CONFIG_FILE_BYTES",
    1 * MIB,
    "bytes",
    "One configuration file. It is a page; a directory we stand in may hold anything.",
)
CLOSE_SECONDS: Final = _limit(
    "CLOSE_SECONDS",
    5,
    "seconds",
    "How long closing a channel waits for the other side to take what is unsent.",
)
DOOR_SECRETS: Final = _limit(
    "DOOR_SECRETS",
    64,
    "secrets",
    "One-time codes, and cookies, kept at once; the oldest gives way.",
)
CODE_SECONDS: Final = _limit(
    "CODE_SECONDS",
    300,
    "seconds",
    "How long a one-time code waits: time to find the browser, not to be found in a backlog.",
)
REQUEST_SECONDS: Final = _limit(
    "REQUEST_SECONDS", 10, "seconds", "How long a new connection may take to ask for something."
)
FIRST_MESSAGE_SECONDS: Final = _limit(
    "FIRST_MESSAGE_SECONDS", 10, "seconds", "How long a WebSocket may take to show the token."
)
FIRST_MESSAGE_BYTES: Final = _limit(
    "FIRST_MESSAGE_BYTES",
    4 * KIB,
    "bytes",
    "How much it may say before that: a stranger gets no room for a large message.",
)
WEBSOCKET_FRAGMENTS: Final = _limit(
    "WEBSOCKET_FRAGMENTS",
    1024,
    "fragments",
    "Pieces of one WebSocket message. Each costs more than its bytes, and may have none.",
)
TRANSCRIPT_CHARS: Final = _limit(
    "TRANSCRIPT_CHARS",
    128 * KIB,
    "characters",
    "What one session remembers of what was printed, unless its creator says otherwise: the spec's "
    "default.",
)
TRANSCRIPT_MARKERS: Final = _limit(
    "TRANSCRIPT_MARKERS",
    64,
    "labels",
    "Named places in one transcript; the oldest gives way.",
)
TRANSCRIPT_TAIL_CHARS: Final = _limit(
    "TRANSCRIPT_TAIL_CHARS",
    16 * KIB,
    "characters",
    "How much of a transcript a wait looks at and answers with: several screens.",
)
OUTPUT_BYTES: Final = _limit(
    "OUTPUT_BYTES",
    16 * KIB,
    "bytes",
    "Terminal output handed on at once. The kernel gives 4 KiB at a time; a few of them together "
    "cost less to look at, and the program prints on meanwhile.",
)
TURN_BYTES: Final = _limit(
    "TURN_BYTES",
    64 * KIB,
    "bytes",
    "Output of one terminal taken before all others get a turn.",
)
TURN_MILLISECONDS: Final = _limit(
    "TURN_MILLISECONDS",
    2,
    "milliseconds",
    "The same by time, for output that is dear to look at.",
)
INPUT_BYTES_QUEUED: Final = _limit(
    "INPUT_BYTES_QUEUED",
    1 * MIB,
    "bytes",
    "Input that a program has not read. A large paste fits; more is written piece by piece.",
)
URGENT_BYTES_QUEUED: Final = _limit(
    "URGENT_BYTES_QUEUED",
    4 * KIB,
    "bytes",
    "Interrupts and the like that wait before all other input, with room of their own.",
)
WRITE_BYTES: Final = _limit(
    "WRITE_BYTES",
    16 * KIB,
    "bytes",
    "Input offered to the kernel at once: about what it takes, and a turn that stays short.",
)
SCROLLBACK_ROWS: Final = _limit(
    "SCROLLBACK_ROWS", 10_000, "rows", "Rows kept above a screen: what most terminals keep."
)
SCROLLBACK_BYTES: Final = _limit(
    "SCROLLBACK_BYTES",
    24 * MIB,
    "bytes",
    "Memory of one scrollback: 10,000 rows of 240 columns. Wider screens keep fewer rows.",
)
TITLE_CHARS: Final = _limit(
    "TITLE_CHARS", 1024, "characters", "A window title: what a program says of itself in one line."
)
REPLY_BYTES: Final = _limit(
    "REPLY_BYTES",
    4 * KIB,
    "bytes",
    "What a terminal answers to one read. A program that asks so much wants a flood, not answers.",
)
FRAME_CELLS: Final = _limit(
    "FRAME_CELLS",
    65_536,
    "cells",
    "Cells for which the emulator remembers what changed (80 bytes each): some 32 screens that "
    "are being looked at. The others cost 30 us more to look at, and no memory.",
)
MARKS_KEPT: Final = _limit(
    "MARKS_KEPT",
    64,
    "marks",
    "Moments of one session that a wait can point back at. A mark is older than that only in a "
    "script that never looks; for it, all is new.",
)
TYPED_CHARS: Final = _limit(
    "TYPED_CHARS",
    4 * KIB,
    "characters",
    "Of what was typed, kept to tell its echo from the program's own words.",
)
SCREEN_ESCAPES: Final = _limit(
    "SCREEN_ESCAPES",
    256,
    "escapes",
    "Given to a screen at once. As many terminal resets take 3 ms; what is dearer than that is "
    "given in smaller pieces as soon as it is noticed.",
)
MASKED_ABOVE_ROWS: Final = _limit(
    "MASKED_ABOVE_ROWS",
    64,
    "rows",
    "Read above the screen when secrets are looked for on it: a private key has about 50.",
)
SESSIONS: Final = _limit(
    "SESSIONS",
    4096,
    "sessions",
    "In one server. Linux has 4,096 terminals unless told otherwise.",
)
ATTACHED_BYTES: Final = _limit(
    "ATTACHED_BYTES",
    MIB,
    "bytes",
    "Kept for one attachment that has no credit. Beyond it, it gets the screen anew instead.",
)
ATTACHED_PIECE_BYTES: Final = _limit(
    "ATTACHED_PIECE_BYTES",
    64 * KIB,
    "bytes",
    "In one message of an attachment, so that others' answers get through between two.",
)
MATCHER_DEPTH: Final = _limit(
    "MATCHER_DEPTH",
    16,
    "levels",
    "Matchers within matchers. People write two or three; each is a call deeper in every look.",
)
MATCHERS: Final = _limit(
    "MATCHERS",
    256,
    "matchers",
    "Matchers in one wait. All may be looked at for each output, and each pattern takes memory.",
)
PERSON_BYTES: Final = _limit(
    "PERSON_BYTES",
    64 * KIB,
    "bytes",
    "What `telex run` holds for a terminal, the person's or the program's, that does not take it. "
    "Little, so that a Ctrl-C is seen to work, and enough that both sides keep busy.",
)
KEYS_UNREAD_BYTES: Final = _limit(
    "KEYS_UNREAD_BYTES",
    64 * KIB,
    "bytes",
    "Typed while a program reads its terminal's answers, and not asked for by the program yet.",
)
PICTURE_PIXELS: Final = _limit(
    "PICTURE_PIXELS",
    64_000_000,
    "pixels",
    "One PNG: 192 MB while it is drawn. A screen of 300x100 at twice its size has 20 million.",
)
PLAN_ACTIONS: Final = _limit(
    "PLAN_ACTIONS",
    256,
    "actions",
    "In one plan of a plugin's intent. Nobody else can type meanwhile.",
)
INTENT_PARAMS_BYTES: Final = _limit(
    "INTENT_PARAMS_BYTES",
    256 * KIB,
    "bytes",
    "Of JSON, in the params of one intent or wait: a prompt of a thousand pages is a file.",
)
HOST_MARKS: Final = _limit(
    "HOST_MARKS",
    16,
    "marks",
    "That one answer of `classify` may ask for; a transcript keeps 64.",
)
ADAPTERS: Final = _limit(
    "ADAPTERS",
    256,
    "adapters",
    "Not closed, on one server. Each has a worker process for its plugin.",
)
INSPECTED_CHARS: Final = _limit(
    "INSPECTED_CHARS",
    4 * KIB,
    "characters",
    "Of the transcript, in `adapter.inspect`.",
)
UNSEEN_BYTES: Final = _limit(
    "UNSEEN_BYTES",
    64 * MIB,
    "bytes",
    "Printed under `telex run` without a pause and kept for a model of the screen. A sixteenth of "
    "it is shown to the model when there is time, a quarter in any case, a little between two "
    "reads; and all of it is waited for.",
)
ATTRIBUTE_QUESTIONS: Final = _limit(
    "ATTRIBUTE_QUESTIONS",
    64,
    "questions",
    "Asked of the person's terminal (`CSI c`) and not answered yet. More than any program asks.",
)
TOLD_TAIL_ROWS: Final = _limit(
    "TOLD_TAIL_ROWS", 40, "rows", "Of the screen, in the error of a wait that failed."
)
STYLES_KEPT: Final = _limit(
    "STYLES_KEPT",
    4096,
    "styles",
    "Remembered in the shape of the wire. A picture in true colour would fill memory with them.",
)
INPUT_SECONDS: Final = _limit(
    "INPUT_SECONDS",
    20,
    "seconds",
    "How long a long input waits for its program to read, before the rest of it is given up.",
)
CELLS_TOLD: Final = _limit(
    "CELLS_TOLD",
    60_000,
    "cells",
    "Told one by one. Each takes 200 bytes of JSON, so that more would not fit in one message; a "
    "larger screen is told in runs.",
)
OUTPUT_CHARS_TOLD: Final = _limit(
    "OUTPUT_CHARS_TOLD",
    256 * KIB,
    "characters",
    "In one `session.output`. A reader who was away gets several.",
)
MANIFEST_BYTES: Final = _limit(
    "MANIFEST_BYTES",
    16 * KIB,
    "bytes",
    "One `manifest.toml`: it is a page. The standard parser takes 20 s for 64 KiB of `a.a.a.a`.",
)
MANIFEST_ITEMS: Final = _limit(
    "MANIFEST_ITEMS",
    1024,
    "items",
    "In one list or table of a manifest. Each may be a problem, and all problems are told.",
)
PLUGIN_FILES: Final = _limit(
    "PLUGIN_FILES", 256, "files", "Lua files of one plugin. All are read when it is loaded."
)
PLUGIN_SOURCE_BYTES: Final = _limit(
    "PLUGIN_SOURCE_BYTES",
    1 * MIB,
    "bytes",
    "The same by weight: each adapter is given all of them. A large plugin has 100 KiB.",
)
PLUGIN_ENTRIES: Final = _limit(
    "PLUGIN_ENTRIES",
    4096,
    "entries",
    "Files and directories looked at for them, so that a manifest in a home is soon refused.",
)
PLUGIN_DEPTH: Final = _limit(
    "PLUGIN_DEPTH", 8, "levels", "Directories within directories of one plugin."
)
LUA_INSTRUCTIONS: Final = _limit(
    "LUA_INSTRUCTIONS",
    5_000_000,
    "instructions",
    "Of Lua, in one call of a plugin's function: some 40 ms. A classifier takes a few thousand.",
)
LUA_MEMORY_BYTES: Final = _limit(
    "LUA_MEMORY_BYTES",
    32 * MIB,
    "bytes",
    "What one plugin instance keeps and makes: a thousand times what a classifier needs.",
)
LUA_PROCESS_BYTES: Final = _limit(
    "LUA_PROCESS_BYTES",
    256 * MIB,
    "bytes",
    "Address space of its process beyond what it starts with, should the limit above not hold.",
)
LUA_CPU_MS: Final = _limit(
    "LUA_CPU_MS",
    250,
    "milliseconds",
    "Processor time of one call. Pattern matching counts no instructions, and the kernel ends it.",
)
LUA_DEADLINE_MS: Final = _limit(
    "LUA_DEADLINE_MS",
    800,
    "milliseconds",
    "The same by the clock, on a machine that is busy. A caller hears of a stuck plugin within a "
    "second.",
)
LUA_START_MS: Final = _limit(
    "LUA_START_MS",
    10_000,
    "milliseconds",
    "For a plugin's process to be there and its sources to be run, when all start at once.",
)
LUA_ANSWER_DEPTH: Final = _limit(
    "LUA_ANSWER_DEPTH", 32, "levels", "Tables within tables of an answer, and of its arguments."
)
LUA_ANSWER_VALUES: Final = _limit(
    "LUA_ANSWER_VALUES", 20_000, "values", "In one answer of a plugin's function."
)
LUA_ANSWER_BYTES: Final = _limit(
    "LUA_ANSWER_BYTES", MIB, "bytes", "The same by weight: a plan with a large paste fits."
)
LUA_PROBLEM_CHARS: Final = _limit(
    "LUA_PROBLEM_CHARS", 4 * KIB, "characters", "Of an error message of a plugin's own."
)
LUA_RESTING_MS: Final = _limit(
    "LUA_RESTING_MS",
    5_000,
    "milliseconds",
    "How long a plugin that ends each time waits until it is tried again. It begins with 100.",
)
URI_BYTES: Final = _limit(
    "URI_BYTES", 2 * KIB, "bytes", "A link's or a directory's URI: what terminals keep of one."
)
BATCH_COMMANDS: Final = _limit(
    "BATCH_COMMANDS", 1000, "commands", "Terminal commands in one `term:batch`: a full screen's."
)
CLIPBOARD_CHARS: Final = _limit(
    "CLIPBOARD_CHARS",
    64 * KIB,
    "characters",
    "A text for the clipboard. Terminals drop longer OSC 52 without a word.",
)
IMAGE_BYTES: Final = _limit(
    "IMAGE_BYTES", 4 * MIB, "bytes", "A picture for a terminal, sent at once or in parts."
)
FILE_BYTES: Final = _limit(
    "FILE_BYTES", 1024 * MIB, "bytes", "A file between a program and the person, in parts."
)
ESCAPE_REPLIES: Final = _limit(
    "ESCAPE_REPLIES",
    5_000,
    "replies a second",
    "To the program on one terminal, by JSON escapes. One that waits for each answer asks less; "
    "past it new requests are ECBUSY, and then not answered at all.",
)
ESCAPE_REPLY_BYTES: Final = _limit(
    "ESCAPE_REPLY_BYTES",
    16 * MIB,
    "bytes a second",
    "The same by weight. A stream waits for more; a file of 5 MB is there in a second.",
)
ESCAPE_UNREAD_BYTES: Final = _limit(
    "ESCAPE_UNREAD_BYTES",
    64 * KIB,
    "bytes",
    "Replies that a program has not read. Beyond it nothing more is asked successfully: a shell "
    "must not find a million answers, and what a person types must find room.",
)
ESCAPE_TIMEOUT_SECONDS: Final = _limit(
    "ESCAPE_TIMEOUT_SECONDS",
    3_600,
    "seconds",
    "The longest timeout that a request of a JSON escape gets. A stream's begins anew each time.",
)
NEWS_WAITING: Final = _limit(
    "NEWS_WAITING",
    1_024,
    "notices",
    "Of one session, each for itself, that one connection has not been told. More are dropped.",
)
ANSWERS_REMEMBERED: Final = _limit(
    "ANSWERS_REMEMBERED",
    256,
    "answers",
    "Of the person, that hold until a program ends. The oldest gives way, and is asked for again.",
)
QUESTIONS_WAITING: Final = _limit(
    "QUESTIONS_WAITING",
    8,
    "questions",
    "To the person, behind the one that stands. Whoever asks more wants a yes out of weariness.",
)
QUESTION_SECONDS: Final = _limit(
    "QUESTION_SECONDS", 30, "seconds", "How long a question stands. No answer is a no."
)
AUDIT_BYTES: Final = _limit(
    "AUDIT_BYTES",
    MIB,
    "bytes",
    "One file of decisions. It and the one before it are kept: some 10,000 of them.",
)
AUDIT_SUMMARY_CHARS: Final = _limit(
    "AUDIT_SUMMARY_CHARS", 1024, "characters", "Of what was asked, in a line of the audit."
)
PASTED_BYTES: Final = _limit(
    "PASTED_BYTES",
    64 * KIB,
    "bytes",
    "Of what a person pastes, in one event. A longer paste is told in several.",
)
TYPED_SEQUENCE_BYTES: Final = _limit(
    "TYPED_SEQUENCE_BYTES",
    256,
    "bytes",
    "One key or report of a person's terminal. What is longer is passed on as it is.",
)
