"""The maximums of `escapes`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB, limit

SENT_CONTROL_STRING_BYTES: Final = limit(
    "SENT_CONTROL_STRING_BYTES",
    2 * KIB,
    "bytes",
    "One JSON escape we send until the other side announced more: the smallest OSC buffer of a "
    "terminal in use today.",
)
KEYS_UNREAD_BYTES: Final = limit(
    "KEYS_UNREAD_BYTES",
    64 * KIB,
    "bytes",
    "Typed while a program reads its terminal's answers, and not asked for by the program yet.",
)
URI_BYTES: Final = limit(
    "URI_BYTES", 2 * KIB, "bytes", "A link's or a directory's URI: what terminals keep of one."
)
BATCH_COMMANDS: Final = limit(
    "BATCH_COMMANDS", 1000, "commands", "Terminal commands in one `term:batch`: a full screen's."
)
CLIPBOARD_CHARS: Final = limit(
    "CLIPBOARD_CHARS",
    64 * KIB,
    "characters",
    "A text for the clipboard. Terminals drop longer OSC 52 without a word.",
)
IMAGE_BYTES: Final = limit(
    "IMAGE_BYTES", 4 * MIB, "bytes", "A picture for a terminal, sent at once or in parts."
)
FILE_BYTES: Final = limit(
    "FILE_BYTES", 1024 * MIB, "bytes", "A file between a program and the person, in parts."
)
ESCAPE_REPLIES: Final = limit(
    "ESCAPE_REPLIES",
    5_000,
    "replies a second",
    "To the program on one terminal, by JSON escapes. One that waits for each answer asks less; "
    "past it new requests are ECBUSY, and then not answered at all.",
)
ESCAPE_REPLY_BYTES: Final = limit(
    "ESCAPE_REPLY_BYTES",
    16 * MIB,
    "bytes a second",
    "The same by weight. A stream waits for more; a file of 5 MB is there in a second.",
)
ESCAPE_UNREAD_BYTES: Final = limit(
    "ESCAPE_UNREAD_BYTES",
    64 * KIB,
    "bytes",
    "Replies that a program has not read. Beyond it nothing more is asked successfully: a shell "
    "must not find a million answers, and what a person types must find room.",
)
ESCAPE_TIMEOUT_SECONDS: Final = limit(
    "ESCAPE_TIMEOUT_SECONDS",
    3_600,
    "seconds",
    "The longest timeout that a request of a JSON escape gets. A stream's begins anew each time.",
)
ANSWERS_REMEMBERED: Final = limit(
    "ANSWERS_REMEMBERED",
    256,
    "answers",
    "Of the person, that hold until a program ends. The oldest gives way, and is asked for again.",
)
QUESTIONS_WAITING: Final = limit(
    "QUESTIONS_WAITING",
    8,
    "questions",
    "To the person, behind the one that stands. Whoever asks more wants a yes out of weariness.",
)
QUESTIONS_REFUSED: Final = limit(
    "QUESTIONS_REFUSED",
    3,
    "questions",
    "Of one program in a row, that the person did not answer with yes. Then it is no, unasked, "
    "until they allow it to ask: whoever asks on wants a yes out of weariness.",
)
QUESTIONS_REFUSED_A_MINUTE: Final = limit(
    "QUESTIONS_REFUSED_A_MINUTE",
    9,
    "questions",
    "Of all programs on a terminal. One that becomes another for each question is stopped by this.",
)
QUESTION_SECONDS: Final = limit(
    "QUESTION_SECONDS", 30, "seconds", "How long a question stands. No answer is a no."
)
AUDIT_BYTES: Final = limit(
    "AUDIT_BYTES",
    MIB,
    "bytes",
    "One file of decisions. It and the one before it are kept: some 10,000 of them.",
)
AUDIT_SUMMARY_CHARS: Final = limit(
    "AUDIT_SUMMARY_CHARS", 1024, "characters", "Of what was asked, in a line of the audit."
)
PASTED_BYTES: Final = limit(
    "PASTED_BYTES",
    64 * KIB,
    "bytes",
    "Of what a person pastes, in one event. A longer paste is told in several.",
)
TYPED_SEQUENCE_BYTES: Final = limit(
    "TYPED_SEQUENCE_BYTES",
    256,
    "bytes",
    "One key or report of a person's terminal. What is longer is passed on as it is.",
)
