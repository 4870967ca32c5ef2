"""The limits of `htty`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB

HTTY_READ_BYTES: Final = 128 * KIB
"""bytes: Read of a page's connection in one turn: enough to be fast, little enough that keys and
text get their turn."""
HTTY_UNSENT_BYTES: Final = 64 * KIB
"""bytes: Unsent bytes of a page's connection: text and keys wait in the same queue."""
HTTY_UNREAD_BYTES: Final = 1 * MIB
"""bytes: Received and unread bytes of a page's connection. HTTP/2 reads what its windows allow at
once, so only a flood reaches this limit; above it the terminal is not read."""
HTTY_CHUNK_BYTES: Final = 12 * KIB
"""bytes: Payload of one chunk that a program prints: four of `CHUNK_BYTES` took a fifth longer.
Typed chunks, and those through a multiplexer, use `CHUNK_BYTES`."""
HTTY_PAGES: Final = 64
"""pages: On one terminal, one for each command; then the oldest is dropped."""
HTTY_BEHIND_BYTES: Final = 24 * MIB
"""bytes: Bytes of a page's connection that were received by the terminal and not processed yet. The
windows allow less; a program that sends more is disconnected."""
HTTY_PING_SECONDS: Final = 1
"""seconds: Between two PINGs to a page's program on another machine, whose exit cannot be seen
here, while data is sent to it; and how long an unanswered PING may last before sending pauses."""
HTTY_PONG_SECONDS: Final = 10
"""seconds: Deadline for the answer to a PING. Then the page counts as ended, and nothing more is
typed."""
HTTY_CLOSE_SECONDS: Final = 5
"""seconds: How long open streams may take to end after GOAWAY."""
HTTY_BRIDGE_COMMANDS: Final = 64
"""commands: Commands that `telex htty bridge` runs at once. Each is a program on a terminal; a tool
that opens more connections should see them refused."""
HTTY_STREAM_WINDOW: Final = 1 * MIB
"""bytes: Unread bytes of one body. HTTP/2's default of 64 KiB limits a 50 ms link to 1.3 MB/s."""
HTTY_CONNECTION_WINDOW: Final = 16 * MIB
"""bytes: Unread bytes of all bodies of a page together."""
HTTY_STREAMS: Final = 128
"""streams: Open streams of one page. Our client queues further ones; those of other clients are
refused."""
HTTY_FRAME_BYTES: Final = 64 * KIB
"""bytes: One HTTP/2 frame, in either direction. A longer one is refused by its header."""
HTTY_HEADER_BYTES: Final = 32 * KIB
"""bytes: All header fields of a request or response: twice the limit of web servers."""
HTTY_BACKLOG_BYTES: Final = 256 * KIB
"""bytes: Unsent responses to a peer that does not read. Bodies stop at a quarter of it, so only
responses that the peer provoked (acknowledgements) come near; above it the peer is not read."""
HTTY_BUDGET_SECONDS: Final = 10
"""seconds: Time in which a spent budget of the following refills."""
HTTY_RESETS: Final = 1_000
"""resets: Stream resets by the peer, or provoked by it. Leaving a page with a hundred pictures is
100."""
HTTY_PINGS: Final = 200
"""pings: From the peer; each must be answered."""
HTTY_SETTINGS: Final = 50
"""frames: SETTINGS of the peer. One is usual, and each is acknowledged."""
HTTY_SETTINGS_ENTRIES: Final = 64
"""settings: Different settings that a peer may name. There are eight; the library remembers all of
them."""
HTTY_EMPTY_FRAMES: Final = 1_000
"""frames: Empty DATA without END_STREAM, and 1xx responses."""
HTTY_UNKNOWN_FRAMES: Final = 1_000
"""frames: Priorities and extensions, which are ignored."""
HTTY_WINDOW_UPDATES: Final = 100_000
"""frames: WINDOW_UPDATE of the peer: two for each of our frames at twice the speed of a
terminal."""
HTTY_STALL_SECONDS: Final = 120
"""seconds: How long a server waits for a body's next byte, or for room to send one."""
HTTY_HEADER_SECONDS: Final = 10
"""seconds: How long a header block may take from first frame to last: no other frame may come
between."""
HTTY_WAITING_REQUESTS: Final = 2_000
"""requests: Requests of a page that wait because the program has no room. A browser opens six
connections to a page; more than this is a flood, and gets 503."""
HTTY_WAITING_SECONDS: Final = 30
"""seconds: How long such a request waits before it gets 503."""
HTTY_ANSWER_SECONDS: Final = 120
"""seconds: How long a program may take to begin its response, since it last read a piece of the
request. Web servers allow one minute; a response that has begun may take any time."""
HTTY_UNREAD_SECONDS: Final = 300
"""seconds: How long a browser may leave a response unread, as for a paused video; it requests the
rest."""
HTTY_SLOW_READERS: Final = 8
"""answers: Responses of a page that may be unread for so long. Each occupies a stream's window of
the connection's, and half of that is for readers that keep up."""
HTTY_SLOW_READER_SECONDS: Final = 5
"""seconds: How long any further response may be unread."""
HTTY_RETURN_SECONDS: Final = 25
"""seconds: How long a page without a program waits, in one request, for the next program."""
HTTY_REFUSAL_BYTES: Final = 64 * KIB
"""bytes: Size of a program's response to a refused WebSocket. Browsers show none of it."""
HTTY_MESSAGE_BYTES: Final = 16 * MIB
"""bytes: One WebSocket message of a page, which is buffered whole. The same as uvicorn's limit."""
HTTY_GRACE_SECONDS: Final = 2
"""seconds: How long an app's requests may take to end when their page has ended, before they are
cancelled; and how long the app may take to shut down."""
HTTY_NAMES_LISTED: Final = 10_000
"""names: Names on the page that lists a directory. More would not be readable."""
HTTY_UPSTREAM_SECONDS: Final = 60
"""seconds: How long the server behind `--to` may take to begin its response to a whole request."""
HTTY_REQUESTS_RUNNING: Final = 256
"""requests: Requests of one page that run in an app at once. HTTP/2 limits streams, but not the
work for streams that were reset."""
