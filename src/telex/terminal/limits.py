"""The maximums of `terminal`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB, limit

TRANSCRIPT_CHARS: Final = limit(
    "TRANSCRIPT_CHARS",
    128 * KIB,
    "characters",
    "What one session remembers of what was printed, unless its creator says otherwise: the spec's "
    "default.",
)
TRANSCRIPT_MARKERS: Final = limit(
    "TRANSCRIPT_MARKERS",
    64,
    "labels",
    "Named places in one transcript; the oldest gives way.",
)
TRANSCRIPT_TAIL_CHARS: Final = limit(
    "TRANSCRIPT_TAIL_CHARS",
    16 * KIB,
    "characters",
    "How much of a transcript a wait looks at and answers with: several screens.",
)
OUTPUT_BYTES: Final = limit(
    "OUTPUT_BYTES",
    16 * KIB,
    "bytes",
    "Terminal output handed on at once. The kernel gives 4 KiB at a time; a few of them together "
    "cost less to look at, and the program prints on meanwhile.",
)
TURN_BYTES: Final = limit(
    "TURN_BYTES",
    64 * KIB,
    "bytes",
    "Output of one terminal taken before all others get a turn.",
)
LIGHT_BYTES: Final = limit(
    "LIGHT_BYTES",
    64 * KIB,
    "bytes",
    "Output of one terminal that is taken as it comes. One that prints more, and goes on with more "
    "than four times as much in a second, waits its turn behind the others that do.",
)
TURN_MILLISECONDS: Final = limit(
    "TURN_MILLISECONDS",
    2,
    "milliseconds",
    "The same by time, for output that is dear to look at.",
)
INPUT_BYTES_QUEUED: Final = limit(
    "INPUT_BYTES_QUEUED",
    1 * MIB,
    "bytes",
    "Input that a program has not read. A large paste fits; more is written piece by piece.",
)
URGENT_BYTES_QUEUED: Final = limit(
    "URGENT_BYTES_QUEUED",
    4 * KIB,
    "bytes",
    "Interrupts and the like that wait before all other input, with room of their own.",
)
WRITE_BYTES: Final = limit(
    "WRITE_BYTES",
    16 * KIB,
    "bytes",
    "Input offered to the kernel at once: about what it takes, and a turn that stays short.",
)
SCROLLBACK_ROWS: Final = limit(
    "SCROLLBACK_ROWS", 10_000, "rows", "Rows kept above a screen: what most terminals keep."
)
SCROLLBACK_BYTES: Final = limit(
    "SCROLLBACK_BYTES",
    24 * MIB,
    "bytes",
    "Memory of one scrollback: 10,000 rows of 240 columns. Wider screens keep fewer rows.",
)
SCROLLBACKS_BYTES: Final = limit(
    "SCROLLBACKS_BYTES",
    28 * MIB,
    "bytes",
    "Memory of all scrollbacks in one process. When they need more, the longest become shorter.",
)
SCROLLBACK_LEAST_BYTES: Final = limit(
    "SCROLLBACK_LEAST_BYTES",
    256 * KIB,
    "bytes",
    "What each may keep, however many there are.",
)
TITLE_CHARS: Final = limit(
    "TITLE_CHARS", 1024, "characters", "A window title: what a program says of itself in one line."
)
REPLY_BYTES: Final = limit(
    "REPLY_BYTES",
    4 * KIB,
    "bytes",
    "What a terminal answers to one read. A program that asks so much wants a flood, not answers.",
)
FRAME_CELLS: Final = limit(
    "FRAME_CELLS",
    65_536,
    "cells",
    "Cells for which the emulator remembers what changed (80 bytes each): some 32 screens that "
    "are being looked at. The others cost 30 us more to look at, and no memory.",
)
MARKS_KEPT: Final = limit(
    "MARKS_KEPT",
    64,
    "marks",
    "Moments of one session that a wait can point back at. A mark is older than that only in a "
    "script that never looks; for it, all is new.",
)
TYPED_CHARS: Final = limit(
    "TYPED_CHARS",
    4 * KIB,
    "characters",
    "Of what was typed, kept to tell its echo from the program's own words.",
)
SCREEN_ESCAPES: Final = limit(
    "SCREEN_ESCAPES",
    256,
    "escapes",
    "Given to a screen at once. As many terminal resets take 3 ms; what is dearer than that is "
    "given in smaller pieces as soon as it is noticed.",
)
MASKED_ABOVE_ROWS: Final = limit(
    "MASKED_ABOVE_ROWS",
    64,
    "rows",
    "Read above the screen when secrets are looked for on it: a private key has about 50.",
)
MATCHER_DEPTH: Final = limit(
    "MATCHER_DEPTH",
    16,
    "levels",
    "Matchers within matchers. People write two or three; each is a call deeper in every look.",
)
MATCHERS: Final = limit(
    "MATCHERS",
    256,
    "matchers",
    "Matchers in one wait. All may be looked at for each output, and each pattern takes memory.",
)
PICTURE_PIXELS: Final = limit(
    "PICTURE_PIXELS",
    64_000_000,
    "pixels",
    "One PNG: 192 MB while it is drawn. A screen of 300x100 at twice its size has 20 million.",
)
INPUT_SECONDS: Final = limit(
    "INPUT_SECONDS",
    20,
    "seconds",
    "How long a long input waits for its program to read, before the rest of it is given up.",
)
FILE_FAILURES: Final = limit(
    "FILE_FAILURES",
    16,
    "failures",
    "Recordings and raw transcripts of one session that failed, told to who subscribes later.",
)
