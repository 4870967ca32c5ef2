"""The maximums of `htty`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB, limit

HTTY_READ_BYTES: Final = limit(
    "HTTY_READ_BYTES",
    128 * KIB,
    "bytes",
    "Read of a page's connection in one turn: enough to be fast, little enough that keys and text "
    "have their turn.",
)
HTTY_UNSENT_BYTES: Final = limit(
    "HTTY_UNSENT_BYTES",
    64 * KIB,
    "bytes",
    "Of a page's connection that may wait to be written: text and keys stand in the same queue.",
)
HTTY_UNREAD_BYTES: Final = limit(
    "HTTY_UNREAD_BYTES",
    1 * MIB,
    "bytes",
    "Of a page's connection that came and nobody took. HTTP/2 takes what its windows allow at "
    "once, so that only a flood comes here; beyond it the terminal is not read.",
)
HTTY_CHUNK_BYTES: Final = limit(
    "HTTY_CHUNK_BYTES",
    12 * KIB,
    "bytes",
    "Payload of one chunk that a program prints: in four of `CHUNK_BYTES` it took a fifth longer. "
    "What is typed, or goes through a multiplexer, keeps to those.",
)
HTTY_PAGES: Final = limit(
    "HTTY_PAGES", 64, "pages", "On one terminal, one for each command; then old ones are forgotten."
)
HTTY_BEHIND_BYTES: Final = limit(
    "HTTY_BEHIND_BYTES",
    24 * MIB,
    "bytes",
    "Of a page's connection, come by the terminal and not looked at yet. The windows allow less; "
    "who sends more is broken off.",
)
HTTY_PING_SECONDS: Final = limit(
    "HTTY_PING_SECONDS",
    1,
    "seconds",
    "Between two PINGs to a page's program on another machine, whose end is not seen here, while "
    "something is said to it; and how long one waits for its answer before nothing more is said.",
)
HTTY_PONG_SECONDS: Final = limit(
    "HTTY_PONG_SECONDS",
    10,
    "seconds",
    "For the answer to one. Then the page is taken for gone, and nothing more is typed there.",
)
HTTY_CLOSE_SECONDS: Final = limit(
    "HTTY_CLOSE_SECONDS",
    5,
    "seconds",
    "For exchanges under way to end after GOAWAY.",
)
HTTY_BRIDGE_COMMANDS: Final = limit(
    "HTTY_BRIDGE_COMMANDS",
    64,
    "commands",
    "That `telex htty bridge` runs at once. Each is a program on a terminal; a tool that opens "
    "more connections wants to know that they are refused.",
)
HTTY_STREAM_WINDOW: Final = limit(
    "HTTY_STREAM_WINDOW",
    1 * MIB,
    "bytes",
    "Of one body that its reader has not taken. HTTP/2's own 64 KiB make 1.3 MB/s of a 50 ms link.",
)
HTTY_CONNECTION_WINDOW: Final = limit(
    "HTTY_CONNECTION_WINDOW",
    16 * MIB,
    "bytes",
    "The same of all bodies of a page together.",
)
HTTY_STREAMS: Final = limit(
    "HTTY_STREAMS",
    128,
    "streams",
    "Exchanges of one page at a time. A client of ours queues; the next of another's is refused.",
)
HTTY_FRAME_BYTES: Final = limit(
    "HTTY_FRAME_BYTES",
    64 * KIB,
    "bytes",
    "One HTTP/2 frame, theirs or ours. A longer one is refused by its header, before its body.",
)
HTTY_HEADER_BYTES: Final = limit(
    "HTTY_HEADER_BYTES",
    32 * KIB,
    "bytes",
    "Of all header fields of a request or response: twice what web servers allow.",
)
HTTY_BACKLOG_BYTES: Final = limit(
    "HTTY_BACKLOG_BYTES",
    256 * KIB,
    "bytes",
    "That we owe a peer who does not read. Bodies wait at a quarter of it, so that only what the "
    "peer provoked (acknowledgements) comes near; beyond it nothing of the peer's is read.",
)
HTTY_BUDGET_SECONDS: Final = limit(
    "HTTY_BUDGET_SECONDS", 10, "seconds", "In which a spent budget of the following is full again."
)
HTTY_RESETS: Final = limit(
    "HTTY_RESETS",
    1_000,
    "resets",
    "Of streams, theirs or provoked. Leaving a page with a hundred pictures is a hundred of them.",
)
HTTY_PINGS: Final = limit("HTTY_PINGS", 200, "pings", "Of the peer, and each is answered.")
HTTY_SETTINGS: Final = limit(
    "HTTY_SETTINGS", 50, "frames", "SETTINGS of the peer. One is usual, and each is answered."
)
HTTY_SETTINGS_ENTRIES: Final = limit(
    "HTTY_SETTINGS_ENTRIES",
    64,
    "settings",
    "Of different kinds that a peer may name. There are eight; the library remembers all it hears.",
)
HTTY_EMPTY_FRAMES: Final = limit(
    "HTTY_EMPTY_FRAMES", 1_000, "frames", "DATA without a byte or an end, and responses before one."
)
HTTY_UNKNOWN_FRAMES: Final = limit(
    "HTTY_UNKNOWN_FRAMES", 1_000, "frames", "Priorities and extensions, which are not heeded."
)
HTTY_WINDOW_UPDATES: Final = limit(
    "HTTY_WINDOW_UPDATES",
    100_000,
    "frames",
    "WINDOW_UPDATE of the peer: two for each of our frames at twice the speed of a terminal.",
)
HTTY_STALL_SECONDS: Final = limit(
    "HTTY_STALL_SECONDS",
    120,
    "seconds",
    "That a server waits for a body's next byte, or for room to send one.",
)
HTTY_HEADER_SECONDS: Final = limit(
    "HTTY_HEADER_SECONDS",
    10,
    "seconds",
    "That header fields may take from first frame to last: nothing else can come between.",
)
HTTY_WAITING_REQUESTS: Final = limit(
    "HTTY_WAITING_REQUESTS",
    2_000,
    "requests",
    "Of a page that wait for the program to have room for them. A browser opens six connections "
    "to a page; more than this is a flood, and is told to come back.",
)
HTTY_WAITING_SECONDS: Final = limit(
    "HTTY_WAITING_SECONDS", 30, "seconds", "That such a request waits before it is told so."
)
HTTY_ANSWER_SECONDS: Final = limit(
    "HTTY_ANSWER_SECONDS",
    120,
    "seconds",
    "For a program to begin its answer, since it last took a piece of the request. Web servers "
    "give one minute; an answer that has begun may take for ever.",
)
HTTY_UNREAD_SECONDS: Final = limit(
    "HTTY_UNREAD_SECONDS",
    300,
    "seconds",
    "That a browser may leave an answer unread. A paused video does; it asks again for the rest.",
)
HTTY_SLOW_READERS: Final = limit(
    "HTTY_SLOW_READERS",
    8,
    "answers",
    "Of a page that may be left unread for so long. Each holds a stream's window of the "
    "connection's, and half of that is for those who read.",
)
HTTY_SLOW_READER_SECONDS: Final = limit(
    "HTTY_SLOW_READER_SECONDS", 5, "seconds", "That any further answer may be left unread."
)
HTTY_RETURN_SECONDS: Final = limit(
    "HTTY_RETURN_SECONDS",
    25,
    "seconds",
    "That a page without a program waits in one request for the next program.",
)
HTTY_REFUSAL_BYTES: Final = limit(
    "HTTY_REFUSAL_BYTES",
    64 * KIB,
    "bytes",
    "Of a program's answer to a WebSocket that it does not take. Browsers show none of it.",
)
HTTY_MESSAGE_BYTES: Final = limit(
    "HTTY_MESSAGE_BYTES",
    16 * MIB,
    "bytes",
    "One WebSocket message of a page, which is held whole. As much as uvicorn takes.",
)
HTTY_GRACE_SECONDS: Final = limit(
    "HTTY_GRACE_SECONDS",
    2,
    "seconds",
    "For an app's requests to end by themselves when their page is over, before they are "
    "cancelled; and for the app to shut down.",
)
HTTY_NAMES_LISTED: Final = limit(
    "HTTY_NAMES_LISTED",
    10_000,
    "names",
    "On the page that lists a directory. More is no page to read.",
)
HTTY_UPSTREAM_SECONDS: Final = limit(
    "HTTY_UPSTREAM_SECONDS",
    60,
    "seconds",
    "For the server behind `--to` to begin its answer, once it has the whole request.",
)
HTTY_REQUESTS_RUNNING: Final = limit(
    "HTTY_REQUESTS_RUNNING",
    256,
    "requests",
    "Of one page in an app at once. Streams are limited by HTTP/2; work for those that were reset "
    "is not.",
)
