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
    256 * KIB,
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
MISSPELT_NAME_CHARS: Final = _limit(
    "MISSPELT_NAME_CHARS",
    64,
    "characters",
    "An unknown method for which the nearest names are looked up: twice the longest method's name, "
    "and under a millisecond of work.",
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
LIGHT_BYTES: Final = _limit(
    "LIGHT_BYTES",
    64 * KIB,
    "bytes",
    "Output of one terminal that is taken as it comes. One that prints more, and goes on with more "
    "than four times as much in a second, waits its turn behind the others that do.",
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
SCROLLBACKS_BYTES: Final = _limit(
    "SCROLLBACKS_BYTES",
    28 * MIB,
    "bytes",
    "Memory of all scrollbacks in one process. When they need more, the longest become shorter.",
)
SCROLLBACK_LEAST_BYTES: Final = _limit(
    "SCROLLBACK_LEAST_BYTES",
    256 * KIB,
    "bytes",
    "What each may keep, however many there are.",
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
    256 * KIB,
    "bytes",
    "Kept for all attachments of a connection that have no credit, each its share. Beyond it, one "
    "gets the screen anew instead.",
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
PLAN_STEPS: Final = _limit(
    "PLAN_STEPS",
    32,
    "plans",
    "That one intent may lead to, each by the `next` of the one before. Enough to clear a long "
    "draft, paste and press Enter a few times; a plugin that goes on for ever is stopped.",
)
PLAN_STEP_SECONDS: Final = _limit(
    "PLAN_STEP_SECONDS",
    30,
    "seconds",
    "That a plan waits for its `next`. On a slow machine too, what was typed is drawn by then.",
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
    64 * KIB,
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
LUA_FILES: Final = _limit(
    "LUA_FILES", 256, "files", "Lua files of one plugin. All are read when it is loaded."
)
LUA_SOURCE_BYTES: Final = _limit(
    "LUA_SOURCE_BYTES",
    1 * MIB,
    "bytes",
    "The same by weight: each adapter is given all of them. A large plugin has 100 KiB.",
)
LUA_ENTRIES: Final = _limit(
    "LUA_ENTRIES",
    4096,
    "entries",
    "Files and directories looked at for them, so that a manifest in a home is soon refused.",
)
LUA_DEPTH: Final = _limit("LUA_DEPTH", 8, "levels", "Directories within directories of one plugin.")
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
FILE_FAILURES: Final = _limit(
    "FILE_FAILURES",
    16,
    "failures",
    "Recordings and raw transcripts of one session that failed, told to who subscribes later.",
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
QUESTIONS_REFUSED: Final = _limit(
    "QUESTIONS_REFUSED",
    3,
    "questions",
    "Of one program in a row, that the person did not answer with yes. Then it is no, unasked, "
    "until they allow it to ask: whoever asks on wants a yes out of weariness.",
)
QUESTIONS_REFUSED_A_MINUTE: Final = _limit(
    "QUESTIONS_REFUSED_A_MINUTE",
    9,
    "questions",
    "Of all programs on a terminal. One that becomes another for each question is stopped by this.",
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

# Pages.

HTTY_READ_BYTES: Final = _limit(
    "HTTY_READ_BYTES",
    128 * KIB,
    "bytes",
    "Read of a page's connection in one turn: enough to be fast, little enough that keys and text "
    "have their turn.",
)
HTTY_UNSENT_BYTES: Final = _limit(
    "HTTY_UNSENT_BYTES",
    64 * KIB,
    "bytes",
    "Of a page's connection that may wait to be written: text and keys stand in the same queue.",
)
HTTY_UNREAD_BYTES: Final = _limit(
    "HTTY_UNREAD_BYTES",
    1 * MIB,
    "bytes",
    "Of a page's connection that came and nobody took. HTTP/2 takes what its windows allow at "
    "once, so that only a flood comes here; beyond it the terminal is not read.",
)
HTTY_CHUNK_BYTES: Final = _limit(
    "HTTY_CHUNK_BYTES",
    12 * KIB,
    "bytes",
    "Payload of one chunk that a program prints: in four of `CHUNK_BYTES` it took a fifth longer. "
    "What is typed, or goes through a multiplexer, keeps to those.",
)
HTTY_PAGES: Final = _limit(
    "HTTY_PAGES", 64, "pages", "On one terminal, one for each command; then old ones are forgotten."
)
HTTY_BEHIND_BYTES: Final = _limit(
    "HTTY_BEHIND_BYTES",
    24 * MIB,
    "bytes",
    "Of a page's connection, come by the terminal and not looked at yet. The windows allow less; "
    "who sends more is broken off.",
)
HTTY_PING_SECONDS: Final = _limit(
    "HTTY_PING_SECONDS",
    1,
    "seconds",
    "Between two PINGs to a page's program on another machine, whose end is not seen here, while "
    "something is said to it; and how long one waits for its answer before nothing more is said.",
)
HTTY_PONG_SECONDS: Final = _limit(
    "HTTY_PONG_SECONDS",
    10,
    "seconds",
    "For the answer to one. Then the page is taken for gone, and nothing more is typed there.",
)
HTTY_CLOSE_SECONDS: Final = _limit(
    "HTTY_CLOSE_SECONDS",
    5,
    "seconds",
    "For exchanges under way to end after GOAWAY.",
)
HTTY_BRIDGE_COMMANDS: Final = _limit(
    "HTTY_BRIDGE_COMMANDS",
    64,
    "commands",
    "That `telex htty bridge` runs at once. Each is a program on a terminal; a tool that opens "
    "more connections wants to know that they are refused.",
)
HTTY_STREAM_WINDOW: Final = _limit(
    "HTTY_STREAM_WINDOW",
    1 * MIB,
    "bytes",
    "Of one body that its reader has not taken. HTTP/2's own 64 KiB make 1.3 MB/s of a 50 ms link.",
)
HTTY_CONNECTION_WINDOW: Final = _limit(
    "HTTY_CONNECTION_WINDOW",
    16 * MIB,
    "bytes",
    "The same of all bodies of a page together.",
)
HTTY_STREAMS: Final = _limit(
    "HTTY_STREAMS",
    128,
    "streams",
    "Exchanges of one page at a time. A client of ours queues; the next of another's is refused.",
)
HTTY_FRAME_BYTES: Final = _limit(
    "HTTY_FRAME_BYTES",
    64 * KIB,
    "bytes",
    "One HTTP/2 frame, theirs or ours. A longer one is refused by its header, before its body.",
)
HTTY_HEADER_BYTES: Final = _limit(
    "HTTY_HEADER_BYTES",
    32 * KIB,
    "bytes",
    "Of all header fields of a request or response: twice what web servers allow.",
)
HTTY_BACKLOG_BYTES: Final = _limit(
    "HTTY_BACKLOG_BYTES",
    256 * KIB,
    "bytes",
    "That we owe a peer who does not read. Bodies wait at a quarter of it, so that only what the "
    "peer provoked (acknowledgements) comes near; beyond it nothing of the peer's is read.",
)
HTTY_BUDGET_SECONDS: Final = _limit(
    "HTTY_BUDGET_SECONDS", 10, "seconds", "In which a spent budget of the following is full again."
)
HTTY_RESETS: Final = _limit(
    "HTTY_RESETS",
    1_000,
    "resets",
    "Of streams, theirs or provoked. Leaving a page with a hundred pictures is a hundred of them.",
)
HTTY_PINGS: Final = _limit("HTTY_PINGS", 200, "pings", "Of the peer, and each is answered.")
HTTY_SETTINGS: Final = _limit(
    "HTTY_SETTINGS", 50, "frames", "SETTINGS of the peer. One is usual, and each is answered."
)
HTTY_SETTINGS_ENTRIES: Final = _limit(
    "HTTY_SETTINGS_ENTRIES",
    64,
    "settings",
    "Of different kinds that a peer may name. There are eight; the library remembers all it hears.",
)
HTTY_EMPTY_FRAMES: Final = _limit(
    "HTTY_EMPTY_FRAMES", 1_000, "frames", "DATA without a byte or an end, and responses before one."
)
HTTY_UNKNOWN_FRAMES: Final = _limit(
    "HTTY_UNKNOWN_FRAMES", 1_000, "frames", "Priorities and extensions, which are not heeded."
)
HTTY_WINDOW_UPDATES: Final = _limit(
    "HTTY_WINDOW_UPDATES",
    100_000,
    "frames",
    "WINDOW_UPDATE of the peer: two for each of our frames at twice the speed of a terminal.",
)
HTTY_STALL_SECONDS: Final = _limit(
    "HTTY_STALL_SECONDS",
    120,
    "seconds",
    "That a server waits for a body's next byte, or for room to send one.",
)
HTTY_HEADER_SECONDS: Final = _limit(
    "HTTY_HEADER_SECONDS",
    10,
    "seconds",
    "That header fields may take from first frame to last: nothing else can come between.",
)
HTTY_WAITING_REQUESTS: Final = _limit(
    "HTTY_WAITING_REQUESTS",
    2_000,
    "requests",
    "Of a page that wait for the program to have room for them. A browser opens six connections "
    "to a page; more than this is a flood, and is told to come back.",
)
HTTY_WAITING_SECONDS: Final = _limit(
    "HTTY_WAITING_SECONDS", 30, "seconds", "That such a request waits before it is told so."
)
HTTY_ANSWER_SECONDS: Final = _limit(
    "HTTY_ANSWER_SECONDS",
    120,
    "seconds",
    "For a program to begin its answer, since it last took a piece of the request. Web servers "
    "give one minute; an answer that has begun may take for ever.",
)
HTTY_UNREAD_SECONDS: Final = _limit(
    "HTTY_UNREAD_SECONDS",
    300,
    "seconds",
    "That a browser may leave an answer unread. A paused video does; it asks again for the rest.",
)
HTTY_SLOW_READERS: Final = _limit(
    "HTTY_SLOW_READERS",
    8,
    "answers",
    "Of a page that may be left unread for so long. Each holds a stream's window of the "
    "connection's, and half of that is for those who read.",
)
HTTY_SLOW_READER_SECONDS: Final = _limit(
    "HTTY_SLOW_READER_SECONDS", 5, "seconds", "That any further answer may be left unread."
)
HTTY_RETURN_SECONDS: Final = _limit(
    "HTTY_RETURN_SECONDS",
    25,
    "seconds",
    "That a page without a program waits in one request for the next program.",
)
HTTY_REFUSAL_BYTES: Final = _limit(
    "HTTY_REFUSAL_BYTES",
    64 * KIB,
    "bytes",
    "Of a program's answer to a WebSocket that it does not take. Browsers show none of it.",
)
HTTY_MESSAGE_BYTES: Final = _limit(
    "HTTY_MESSAGE_BYTES",
    16 * MIB,
    "bytes",
    "One WebSocket message of a page, which is held whole. As much as uvicorn takes.",
)
HTTY_GRACE_SECONDS: Final = _limit(
    "HTTY_GRACE_SECONDS",
    2,
    "seconds",
    "For an app's requests to end by themselves when their page is over, before they are "
    "cancelled; and for the app to shut down.",
)
HTTY_NAMES_LISTED: Final = _limit(
    "HTTY_NAMES_LISTED",
    10_000,
    "names",
    "On the page that lists a directory. More is no page to read.",
)
HTTY_UPSTREAM_SECONDS: Final = _limit(
    "HTTY_UPSTREAM_SECONDS",
    60,
    "seconds",
    "For the server behind `--to` to begin its answer, once it has the whole request.",
)
HTTY_REQUESTS_RUNNING: Final = _limit(
    "HTTY_REQUESTS_RUNNING",
    256,
    "requests",
    "Of one page in an app at once. Streams are limited by HTTP/2; work for those that were reset "
    "is not.",
)

# Plugins (executables over stdio; `telex.plugins`).

PLUGIN_HANDSHAKE_SECONDS: Final = _limit(
    "PLUGIN_HANDSHAKE_SECONDS",
    5,
    "seconds",
    "For a plugin to start and say what it is. The protocol's first host waited as long.",
)
PLUGIN_INITIALIZE_SECONDS: Final = _limit(
    "PLUGIN_INITIALIZE_SECONDS", 5, "seconds", "For a plugin to take its configuration."
)
PLUGIN_CALL_SECONDS: Final = _limit(
    "PLUGIN_CALL_SECONDS",
    60,
    "seconds",
    "For a plugin to answer, where the caller names no time of its own.",
)
PLUGIN_SHUTDOWN_SECONDS: Final = _limit(
    "PLUGIN_SHUTDOWN_SECONDS", 5, "seconds", "For a plugin to answer `shutdown`."
)
PLUGIN_EXIT_SECONDS: Final = _limit(
    "PLUGIN_EXIT_SECONDS", 2, "seconds", "For a plugin to end by itself once it was told `exit`."
)
PLUGIN_STDIN_SECONDS: Final = _limit(
    "PLUGIN_STDIN_SECONDS",
    1,
    "seconds",
    "For a plugin to end once its standard input is closed, and for what it said before its end "
    "to be read.",
)
PLUGIN_TERM_SECONDS: Final = _limit(
    "PLUGIN_TERM_SECONDS",
    3,
    "seconds",
    "For a plugin's whole tree to end by SIGTERM. What is left is killed: 11 seconds in all.",
)
PLUGIN_PROTOCOL_ERRORS: Final = _limit(
    "PLUGIN_PROTOCOL_ERRORS",
    5,
    "messages",
    "That are no messages, of one plugin within PLUGIN_WINDOW_SECONDS; the fifth ends it.",
)
PLUGIN_FAILURES: Final = _limit(
    "PLUGIN_FAILURES",
    5,
    "failures",
    "Of one plugin within PLUGIN_WINDOW_SECONDS, before it is left alone for the rest of them.",
)
PLUGIN_WINDOW_SECONDS: Final = _limit(
    "PLUGIN_WINDOW_SECONDS",
    180,
    "seconds",
    "How long a failure counts. A count that never decays would disable a plugin after days.",
)
PLUGIN_BACKOFF_MILLISECONDS: Final = _limit(
    "PLUGIN_BACKOFF_MILLISECONDS",
    500,
    "milliseconds",
    "Before a plugin that failed is started again; twice as long each further time.",
)
PLUGIN_BACKOFF_SECONDS: Final = _limit(
    "PLUGIN_BACKOFF_SECONDS", 30, "seconds", "The longest such wait."
)
PLUGIN_IDLE_SECONDS: Final = _limit(
    "PLUGIN_IDLE_SECONDS",
    300,
    "seconds",
    "That a plugin runs on without being asked anything. The next call starts it again.",
)
PLUGIN_STDERR_LINE_CHARS: Final = _limit(
    "PLUGIN_STDERR_LINE_CHARS",
    64 * KIB,
    "characters",
    "Of a line on a plugin's standard error; the rest of it is dropped, and said to be.",
)
PLUGIN_MANIFEST_BYTES: Final = _limit(
    "PLUGIN_MANIFEST_BYTES",
    256 * KIB,
    "bytes",
    "One `manifest.json` of an executable: its commands with their manuals, and no more.",
)
PLUGIN_DIRECTORY_ENTRIES: Final = _limit(
    "PLUGIN_DIRECTORY_ENTRIES",
    4096,
    "entries",
    "Of one plugin directory, and of all that a project's is trusted with.",
)
PLUGIN_TRUSTED_BYTES: Final = _limit(
    "PLUGIN_TRUSTED_BYTES",
    256 * MIB,
    "bytes",
    "Of a project's plugins, which are all read to see that they are what was trusted: 0.6 s.",
)
PLUGIN_MEMORY_MIB: Final = _limit(
    "PLUGIN_MEMORY_MIB",
    4096,
    "MiB",
    "Of memory for each process of a plugin whose manifest does not say how much it needs.",
)
PLUGIN_OPEN_FILES: Final = _limit(
    "PLUGIN_OPEN_FILES", 4096, "descriptors", "Open at once in one process of a plugin."
)
PLUGIN_PROCESSES: Final = _limit(
    "PLUGIN_PROCESSES",
    8192,
    "processes",
    "And threads, of the user in all, beyond which a plugin cannot make another: the kernel counts "
    "by user, and a desktop has 3000. It ends a fork bomb, and nothing smaller.",
)
PLUGIN_FILE_BYTES: Final = _limit(
    "PLUGIN_FILE_BYTES", 16 * 1024 * MIB, "bytes", "Of one file that a plugin writes."
)
PLUGIN_LEAVING_SECONDS: Final = _limit(
    "PLUGIN_LEAVING_SECONDS",
    1,
    "seconds",
    "For what runs in a plugin of the Python SDK to finish when its host is gone.",
)
PLUGIN_CHECK_SECONDS: Final = _limit(
    "PLUGIN_CHECK_SECONDS", 5, "seconds", "For each answer to `telex plugin check`."
)
PLUGIN_TASKS_AT_ONCE: Final = _limit(
    "PLUGIN_TASKS_AT_ONCE", 8, "tasks", "Of one `telex plugin task` that run at the same time."
)
PLUGIN_TOOLS: Final = _limit(
    "PLUGIN_TOOLS",
    256,
    "tools",
    "Of one plugin that are taken. A language model is told of each with every question.",
)

# Agent: its tools

AGENT_FILE_BYTES: Final = _limit(
    "AGENT_FILE_BYTES",
    10 * MIB,
    "bytes",
    "One file that a tool reads whole, to number its lines and to know its hash.",
)
AGENT_READ_BYTES: Final = _limit(
    "AGENT_READ_BYTES",
    64 * KIB,
    "bytes",
    "Of text in one answer of a tool: what a context window bears. The rest is asked for in turn.",
)
AGENT_READ_LINES: Final = _limit(
    "AGENT_READ_LINES", 2000, "lines", "In one answer of `read`, unless fewer are asked for."
)
AGENT_LINE_CHARS: Final = _limit(
    "AGENT_LINE_CHARS",
    1000,
    "characters",
    "Of one line in a tool's answer; a minified file is one line.",
)
AGENT_LINE_PART_CHARS: Final = _limit(
    "AGENT_LINE_PART_CHARS",
    100_000,
    "characters",
    "Of one long line, where a part of it is asked for.",
)
AGENT_DIFF_LINES: Final = _limit(
    "AGENT_DIFF_LINES", 120, "lines", "Of the difference shown before a file is changed."
)
AGENT_LISTED: Final = _limit(
    "AGENT_LISTED", 1000, "paths", "In one answer of `list`, and matches in one of `search`."
)
AGENT_WALKED: Final = _limit(
    "AGENT_WALKED",
    200_000,
    "entries",
    "Looked at by one `list` or `search` of our own, and for links before a write goes without a "
    "question: a few seconds; a repository has fewer.",
)
AGENT_TODOS: Final = _limit("AGENT_TODOS", 200, "entries", "In one thread's list of things to do.")
AGENT_SHELL_SECONDS: Final = _limit(
    "AGENT_SHELL_SECONDS", 120, "seconds", "For a command, unless another time is asked for."
)
AGENT_SHELL_MOST_SECONDS: Final = _limit(
    "AGENT_SHELL_MOST_SECONDS", 300, "seconds", "The longest time that can be asked for."
)
AGENT_SHELL_GRACE_SECONDS: Final = _limit(
    "AGENT_SHELL_GRACE_SECONDS",
    2,
    "seconds",
    "Between asking a command's processes to end and ending them.",
)
AGENT_SHELL_OUTPUT_BYTES: Final = _limit(
    "AGENT_SHELL_OUTPUT_BYTES",
    10 * MIB,
    "bytes",
    "Of a command's output, both streams together; a command that writes more is ended.",
)
AGENT_EXCERPT_LINES: Final = _limit(
    "AGENT_EXCERPT_LINES",
    160,
    "lines",
    "Of one output stream in an answer: half from its beginning, half from its end.",
)
AGENT_EXCERPT_BYTES: Final = _limit(
    "AGENT_EXCERPT_BYTES", 64 * KIB, "bytes", "Of one output stream in an answer, in the same way."
)
AGENT_COMMAND_PREVIEW_CHARS: Final = _limit(
    "AGENT_COMMAND_PREVIEW_CHARS", 400, "characters", "Of a command, repeated beside its result."
)
AGENT_TOOL_RESULT_BYTES: Final = _limit(
    "AGENT_TOOL_RESULT_BYTES",
    192 * KIB,
    "bytes",
    "Of any tool's answer, a plugin's too: more than two excerpts. The whole is in the cache.",
)
AGENT_CACHED_OUTPUTS: Final = _limit(
    "AGENT_CACHED_OUTPUTS", 500, "files", "Of tool output kept; the oldest leave."
)
AGENT_CACHED_BYTES: Final = _limit(
    "AGENT_CACHED_BYTES", 256 * MIB, "bytes", "Of tool output kept; the oldest leave."
)
AGENT_SKILLS: Final = _limit("AGENT_SKILLS", 200, "skills", "In one catalogue.")
AGENT_SKILLS_BYTES: Final = _limit(
    "AGENT_SKILLS_BYTES", 32 * KIB, "bytes", "Of names, descriptions and paths in one catalogue."
)
AGENT_SKILLS_DIRECTORIES: Final = _limit(
    "AGENT_SKILLS_DIRECTORIES",
    2000,
    "directories",
    "Looked into for skills; a skill may bring a tree of its own.",
)
AGENT_SKILLS_PLACES: Final = _limit(
    "AGENT_SKILLS_PLACES", 64, "catalogues", "Kept by a runtime; the one looked for first leaves."
)
AGENT_FRONTMATTER_BYTES: Final = _limit(
    "AGENT_FRONTMATTER_BYTES",
    8 * KIB,
    "bytes",
    "Of a skill's YAML. A name and a description have 1,088 characters at most.",
)
AGENT_COMMAND_CHARS: Final = _limit(
    "AGENT_COMMAND_CHARS",
    64 * KIB,
    "characters",
    "Of a shell command that is read to be judged; a longer one asks.",
)
AGENT_COMMAND_WORDS: Final = _limit(
    "AGENT_COMMAND_WORDS", 500, "words", "In such a command; each of them may be a path."
)
AGENT_COMMAND_DEPTH: Final = _limit(
    "AGENT_COMMAND_DEPTH", 8, "levels", "Of `$(…)` in each other in such a command."
)
AGENT_COMMAND_PLACES: Final = _limit(
    "AGENT_COMMAND_PLACES", 8, "directories", "That a command with `cd` may be in by its end."
)
AGENT_BOUND_PATHS: Final = _limit(
    "AGENT_BOUND_PATHS",
    10_000,
    "paths",
    "Named by one command that a person is asked about, and looked at again before it runs: half a "
    "second; a command with more is refused.",
)
AGENT_GLOB_NAMES: Final = _limit(
    "AGENT_GLOB_NAMES", 500, "names", "That `*` and `?` may stand for; one with more asks."
)
AGENT_LINK_NAMES: Final = _limit(
    "AGENT_LINK_NAMES",
    20_000,
    "names",
    "Followed in long links to judge one command, a quarter of a second; where there are more, "
    "nobody can say where a path leads.",
)
AGENT_GIT_CONFIG_BYTES: Final = _limit(
    "AGENT_GIT_CONFIG_BYTES",
    MIB,
    "bytes",
    "Of a git configuration that is read before git runs unasked: thousands of branches. A longer "
    "one asks.",
)
AGENT_GIT_INDEX_BYTES: Final = _limit(
    "AGENT_GIT_INDEX_BYTES",
    64 * MIB,
    "bytes",
    "Of a git index that is searched for submodules: half a million files. A longer one asks.",
)
AGENT_GIT_REPOSITORIES: Final = _limit(
    "AGENT_GIT_REPOSITORIES",
    64,
    "repositories",
    "That git may look into from one, by submodules; one with more asks.",
)
AGENT_TEXT_NAMES: Final = _limit(
    "AGENT_TEXT_NAMES",
    2000,
    "names",
    "That the text of a command may hold, looked at as paths; one with more asks.",
)

AGENT_EVENT_BYTES: Final = _limit(
    "AGENT_EVENT_BYTES",
    8 * MIB,
    "bytes",
    "One event with its meta, or one input, question or answer that the agent's store keeps: with "
    "what is put around it, it must fit LINE_BYTES.",
)
STORE_COMMIT_WRITES: Final = _limit(
    "STORE_COMMIT_WRITES",
    1024,
    "writes",
    "To the agent's store that share one commit. More wait for the next, so that the first of them "
    "do not wait for all.",
)
STORE_BUSY_SECONDS: Final = _limit(
    "STORE_BUSY_SECONDS",
    5,
    "seconds",
    "For another process to let go of the agent's store, before whoever writes is told.",
)
STORE_PAGE_BYTES: Final = _limit(
    "STORE_PAGE_BYTES",
    1 * MIB,
    "bytes",
    "Of events read from the agent's store at a time, and the last of them beyond that.",
)
STORE_LOG_BYTES: Final = _limit(
    "STORE_LOG_BYTES",
    64 * MIB,
    "bytes",
    "Of SQLite's write-ahead log that are kept for the next writes; after more it is cut.",
)
STORE_LINE_BYTES: Final = _limit(
    "STORE_LINE_BYTES",
    64 * MIB,
    "bytes",
    "One line of an exported session: a run's input, its text and its meta.",
)
STORE_IMPORT_LINES: Final = _limit(
    "STORE_IMPORT_LINES",
    2000,
    "lines",
    "Of an import in one commit: some 30 ms, so that runs of other processes hardly wait for it.",
)
STORE_IMPORT_BYTES: Final = _limit(
    "STORE_IMPORT_BYTES", 1 * MIB, "bytes", "Of lines in one such commit, and the last beyond that."
)
STORE_OWED_SECONDS: Final = _limit(
    "STORE_OWED_SECONDS",
    2,
    "seconds",
    "Between two tries to store the end of a run that the disk would not keep.",
)
STORE_PROBLEMS: Final = _limit(
    "STORE_PROBLEMS", 100, "problems", "Told by one `telex agent verify`."
)

# Agent: its runs

AGENT_RUNS: Final = _limit(
    "AGENT_RUNS", 32, "runs", "Going on at once in one runtime; a session has one of them."
)
AGENT_EVENTS_AHEAD: Final = _limit(
    "AGENT_EVENTS_AHEAD",
    64,
    "events",
    "Of one run on their way to the disk, while its core goes on; with more, it waits.",
)
AGENT_FEED_ITEMS: Final = _limit(
    "AGENT_FEED_ITEMS",
    1024,
    "notices",
    "Kept for a UI that reads slowly. Beyond it, events are read from the store when it does.",
)
AGENT_FEED_RETRY_SECONDS: Final = _limit(
    "AGENT_FEED_RETRY_SECONDS",
    1,
    "seconds",
    "Before what a UI has not heard yet is read again from a store that could not be read.",
)
AGENT_STEERED: Final = _limit(
    "AGENT_STEERED", 64, "messages", "Said to a run that its core has not looked at yet."
)
AGENT_CANCEL_SECONDS: Final = _limit(
    "AGENT_CANCEL_SECONDS",
    15,
    "seconds",
    "Until a core that does not stop is left behind: more than a command's processes have to end. "
    "Whatever it does then is refused.",
)
