"""The maximums of `escapes`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB

SENT_CONTROL_STRING_BYTES: Final = 2 * KIB
"""bytes: One JSON escape that we send before the peer has announced a larger limit: the smallest
OSC buffer of a terminal in use today."""
KEYS_UNREAD_BYTES: Final = 64 * KIB
"""bytes: Keys that arrived while a program uses `telex.escapes`, and that it has not read yet."""
URI_BYTES: Final = 2 * KIB
"""bytes: The URI of a link or a directory: as much as terminals store."""
BATCH_COMMANDS: Final = 1000
"""commands: Commands in one `term:batch`: enough for a full screen."""
CLIPBOARD_CHARS: Final = 64 * KIB
"""characters: A text for the clipboard. Terminals drop a longer OSC 52 without an error."""
IMAGE_BYTES: Final = 4 * MIB
"""bytes: A picture for a terminal, sent at once or in parts."""
FILE_BYTES: Final = 1024 * MIB
"""bytes: A file between a program and the person, in parts."""
ESCAPE_REPLIES: Final = 5_000
"""replies a second: To the program on one terminal, by JSON escapes. A program that waits for each
reply sends fewer requests. Beyond it new requests get ECBUSY, and then no reply at all."""
ESCAPE_REPLY_BYTES: Final = 16 * MIB
"""bytes a second: The same in bytes. A stream waits until it may continue; a file of 5 MB takes a
second."""
ESCAPE_UNREAD_BYTES: Final = 64 * KIB
"""bytes: Replies that a program has not read. Beyond it new requests are refused: a shell must not
read a million replies, and there must be room for the person's keys."""
ESCAPE_TIMEOUT_SECONDS: Final = 3_600
"""seconds: The longest timeout of a JSON escape request. In a stream, each part restarts the
timeout."""
ANSWERS_REMEMBERED: Final = 256
"""answers: Answers of the person that are valid until a program exits. The oldest is dropped first,
and the person is then asked again."""
QUESTIONS_WAITING: Final = 8
"""questions: Questions to the person that wait behind the one on the screen. More of them only try
to get a yes by annoyance."""
QUESTIONS_REFUSED: Final = 3
"""questions: Questions of one program in a row that the person did not answer with yes. Further
requests are denied without a question, until the person lets the program ask again: it would only
try to get a yes by annoyance."""
QUESTIONS_REFUSED_A_MINUTE: Final = 9
"""questions: Refused questions of all programs on a terminal. It stops a program that starts
another program for each question."""
QUESTION_SECONDS: Final = 30
"""seconds: How long a question is shown. No answer counts as no."""
AUDIT_BYTES: Final = MIB
"""bytes: One audit file. It and the previous one are kept: about 10,000 decisions."""
AUDIT_SUMMARY_CHARS: Final = 1024
"""characters: The summary of a request in a line of the audit."""
PASTED_BYTES: Final = 64 * KIB
"""bytes: Pasted text in one event. A longer paste is sent as several events."""
TYPED_SEQUENCE_BYTES: Final = 256
"""bytes: One key or report of a person's terminal. A longer sequence is passed on unchanged."""
