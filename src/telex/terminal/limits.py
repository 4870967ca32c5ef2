"""The maximums of `terminal`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB

TRANSCRIPT_CHARS: Final = 128 * KIB
"""characters: Printed text that a session keeps, unless its creator sets another limit: the spec's
default."""
TRANSCRIPT_MARKERS: Final = 64
"""labels: Named places in one transcript; a new one replaces the oldest."""
TRANSCRIPT_TAIL_CHARS: Final = 16 * KIB
"""characters: The end of a transcript that a wait searches and reports: several screens."""
OUTPUT_BYTES: Final = 16 * KIB
"""bytes: Terminal output processed at once. The kernel delivers 4 KiB at a time; several deliveries
together cost less to process, and the program can print in the meantime."""
TURN_BYTES: Final = 64 * KIB
"""bytes: Output of one terminal processed before all others get a turn."""
LIGHT_BYTES: Final = 64 * KIB
"""bytes: Output of one terminal that is processed at once. A terminal that prints more, and
continues with more than four times as much per second, queues with the other busy terminals."""
TURN_MILLISECONDS: Final = 2
"""milliseconds: The same by time, for output that is expensive to process."""
INPUT_BYTES_QUEUED: Final = 1 * MIB
"""bytes: Input that a program has not read. A large paste fits; longer input is written in
pieces."""
URGENT_BYTES_QUEUED: Final = 4 * KIB
"""bytes: Interrupts and similar keys that go before all other input; they have a queue of their
own."""
WRITE_BYTES: Final = 16 * KIB
"""bytes: Input written to the kernel at once: about as much as it accepts, and a short turn."""
BELLS_COUNTED: Final = 65_536
"""bells: Counted of one terminal. Each costs a microsecond, so a flood of them is no longer
counted."""
COPIED_BYTES: Final = 1 * MIB
"""bytes: Kept of a text that a program copies (OSC 52): a hostile program must not fill our
memory."""
LINK_ROWS: Final = 200
"""rows: Rows searched for links at once: each cell with a link is a call."""
SCROLLBACK_ROWS: Final = 10_000
"""rows: Rows kept above a screen: what most terminals keep."""
SCROLLBACK_BYTES: Final = 24 * MIB
"""bytes: Memory of one scrollback: 10,000 rows of 240 columns. Wider screens keep fewer rows."""
SCROLLBACKS_BYTES: Final = 28 * MIB
"""bytes: Memory of all scrollbacks in one process. When they need more, the longest become
shorter."""
SCROLLBACK_LEAST_BYTES: Final = 256 * KIB
"""bytes: The least memory of each scrollback, however many there are."""
TITLE_CHARS: Final = 1024
"""characters: A window title: one line of text set by the program."""
REPLY_BYTES: Final = 4 * KIB
"""bytes: Replies of a terminal to one read. A program that asks for more is flooding."""
FRAME_CELLS: Final = 65_536
"""cells: Cells for which the emulator tracks changes (80 bytes each): about 32 screens that are
being read. Reading any other screen costs 30 us more, and no memory between reads."""
MARKS_KEPT: Final = 64
"""marks: Moments of one session that a `since` can refer to. Only a script that never reads the
screen has an older mark; for an older mark everything is new."""
TYPED_CHARS: Final = 4 * KIB
"""characters: Typed text kept to distinguish its echo from output of the program."""
SCREEN_ESCAPES: Final = 256
"""escapes: Escapes given to a screen at once. 256 terminal resets take 3 ms; when escapes take
longer, smaller pieces follow."""
MASKED_ABOVE_ROWS: Final = 64
"""rows: Rows read above the screen in the search for secrets: a private key has about 50."""
MATCHER_DEPTH: Final = 16
"""levels: Nesting of matchers. People write two or three levels; each is one more call per
check."""
MATCHERS: Final = 256
"""matchers: Matchers in one wait. All may be checked for each output, and each pattern takes
memory."""
PICTURE_PIXELS: Final = 64_000_000
"""pixels: The size of a PNG: 192 MB while it is drawn. A screen of 300x100 at scale 2 has 20
million."""
INPUT_SECONDS: Final = 20
"""seconds: How long a long input waits for its program to read before the rest is dropped."""
FILE_FAILURES: Final = 16
"""failures: Failed recordings and raw transcripts of one session, reported to later subscribers."""
RECORDED_SIDE: Final = 2000
"""cells: Rows or columns of a recorded terminal. A screen of that size takes 32 MB, 8 bytes a
cell."""
COMPARED_CHARS: Final = 32 * KIB
"""characters: Output between two pauses of a recording that is compared character by character, in
about a second; longer output is compared line by line."""
INPUTS_LOGGED: Final = 1024
"""inputs: That a session remembers, each with its time and author. Older ones are dropped."""
INPUT_LOG_CHARS: Final = 64 * KIB
"""characters: The same by the text of the inputs."""
INPUT_TEXT_CHARS: Final = 4 * KIB
"""characters: Remembered of one input. The rest of a large paste is dropped."""
INPUT_ECHO_CHARS: Final = 16 * KIB
"""characters: Output in which a typed line must stand to be remembered, where the program draws it
itself."""
STATUS_ESCAPE_BYTES: Final = 4 * KIB
"""bytes: Kept of an escape sequence with a program's status until it ends: such sequences are
short."""
INPUT_LOOKS: Final = 12
"""looks: At a quiet program, each after twice the time before: 16 seconds in all. There are more
only while a caller waits for a change."""
