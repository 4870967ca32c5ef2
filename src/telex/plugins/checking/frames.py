"""The clauses of the framing: wherever bytes fall, and what is no frame."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from telex.plugins.checking.report import Broken, Clauses
from telex.plugins.checking.subject import UNKNOWN, frame, message
from telex.wire.content_length import encode

if TYPE_CHECKING:
    from telex.plugins.checking.bench import Bench
    from telex.plugins.checking.subject import Message

CLAUSES: Final = Clauses()
LARGE: Final = 256 * 1024
"""More than a pipe holds, so that no single read can bring it."""
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
_LENGTH: Final = (
    "Read until you have as many bytes as Content-Length says, not what one read brings."
)


@CLAUSES.must("frame.split", "A message may come a byte at a time.", _LENGTH)
async def reads_bytes(bench: Bench) -> None:
    subject = await bench.ready()
    asked = subject.new_id()
    for byte in frame(message(UNKNOWN, id=asked)):
        subject.send(bytes([byte]))
    await subject.answer(asked, "a message that came in pieces")


@CLAUSES.must(
    "frame.joined",
    "Several messages may come in one piece.",
    "Keep what you read beyond the end of a message: it is the beginning of the next.",
)
async def reads_joined(bench: Bench) -> None:
    subject = await bench.ready()
    first, second = subject.new_id(), subject.new_id()
    one, two = (frame(message(UNKNOWN, id=asked)) for asked in (first, second))
    middle = len(one) + 10
    both = one + two
    subject.send(both[:middle])
    subject.send(both[middle:])
    await subject.answer(first, "the first of two messages in one piece")
    await subject.answer(second, "the second of two messages in one piece")


@CLAUSES.must("frame.large", f"A message may have {LARGE // 1024} KiB.", _LENGTH)
async def reads_large(bench: Bench) -> None:
    subject = await bench.ready()
    asked = subject.new_id()
    subject.say(UNKNOWN, {"text": "x" * LARGE}, id=asked)
    await subject.answer(asked, "a large message")


@CLAUSES.must(
    "frame.bytes",
    "Content-Length counts bytes, and the content is UTF-8.",
    "Count the bytes after encoding, on both ways.",
)
async def counts_bytes(bench: Bench) -> None:
    subject = await bench.ready()
    beyond, after = subject.new_id(), subject.new_id()
    subject.say(UNKNOWN, {"text": "ü漢😀" * 100}, id=beyond)
    subject.say(UNKNOWN, id=after)
    await subject.answer(beyond, "a message beyond ASCII")
    await subject.answer(after, "the message after one beyond ASCII")


@CLAUSES.must(
    "frame.fields",
    "Other header fields are tolerated, and names are in any case.",
    "Read header lines up to the empty one, and take the length from the one you know.",
)
async def reads_fields(bench: Bench) -> None:
    subject = await bench.ready()
    content = "application/vscode-jsonrpc; charset=utf-8"
    for head in (
        "Content-Type: {type}\r\nContent-Length: {length}\r\n\r\n",
        "Content-Length: {length}\r\nContent-Type: {type}\r\n\r\n",
        "content-length:{length}\r\n\r\n",
    ):
        asked = subject.new_id()
        body = json.dumps(message(UNKNOWN, id=asked)).encode()
        written = head.format(type=content, length=len(body))
        subject.send(written.encode() + body)
        await subject.answer(asked, f"a message whose header begins {written.splitlines()[0]!r}")


@CLAUSES.must(
    "broken.json",
    "It goes on after content that is not JSON.",
    "Catch the parser's error; the next frame is not affected.",
)
async def survives_what_is_not_json(bench: Bench) -> None:
    subject = await bench.ready()
    subject.send(encode(b'{"jsonrpc": "2.0", "id": 1, "method": '))
    await subject.alive()


@CLAUSES.should(
    "broken.json.code",
    "Content that is not JSON is answered with error -32700 and a null id.",
    'Answer {"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": …}}.',
)
async def says_it_is_not_json(bench: Bench) -> None:
    await _answered(bench, b"{not json}", PARSE_ERROR)


@CLAUSES.must(
    "broken.message",
    "It goes on after JSON that is no message.",
    "Check that it is an object with a method before you use it.",
)
async def survives_what_is_no_message(bench: Bench) -> None:
    subject = await bench.ready()
    for body in (b"[]", b"42", b'"text"', b"null", b"{}", b'{"jsonrpc":"2.0","id":{},"method":5}'):
        subject.send(encode(body))
    await subject.alive()


@CLAUSES.should(
    "broken.message.code",
    "JSON that is no message is answered with error -32600.",
    "Answer with the id if there is one, else with null.",
)
async def says_it_is_no_message(bench: Bench) -> None:
    await _answered(bench, b"42", INVALID_REQUEST)


@CLAUSES.should(
    "broken.header",
    "It goes on after a header without a Content-Length.",
    "Skip to the next line that begins with Content-Length. (Ending is better than hanging.)",
)
async def survives_a_broken_header(bench: Bench) -> None:
    subject = await bench.ready()
    subject.send(b"X-Telex-Check: 1\r\n\r\n")
    await subject.alive()


async def _answered(bench: Bench, body: bytes, code: int) -> None:
    subject = await bench.ready()
    before = len(subject.said)
    subject.send(encode(body))
    await subject.alive()

    def is_error(said: Message) -> bool:
        return said.get("id") is None and isinstance(said.get("error"), dict)

    errors = [said["error"] for said in subject.said[before:] if is_error(said)]
    if not errors:
        raise Broken("it was not answered")
    if errors[0].get("code") != code:
        raise Broken(f"the code was {errors[0].get('code')} instead of {code}")
