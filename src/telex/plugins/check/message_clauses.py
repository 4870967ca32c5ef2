"""Clauses about JSON-RPC and its framing: responses and their ids, messages without a response,
messages in pieces, and invalid frames.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from telex.plugins.check.bench import (
    METHOD_NOT_FOUND,
    UNKNOWN,
    ClauseBroken,
    Clauses,
    expect_code,
    frame,
    message,
)
from telex.wire.content_length import encode

if TYPE_CHECKING:
    from telex.plugins.check.bench import Bench, Message


MESSAGES: Final = Clauses()
AT_ONCE: Final = 32
"""Requests in flight together: more than a person ever causes."""
_ECHO: Final = "Copy the id of the request into the response, without converting it."


@MESSAGES.must(
    "method.unknown",
    "Answer every request, also one with an unknown method: this is the code for it.",
)
async def does_not_know_the_method(bench: Bench) -> None:
    """An unknown method is answered with error -32601."""
    expect_code(await (await bench.ready()).refusal(UNKNOWN), METHOD_NOT_FOUND)


@MESSAGES.must(
    "notification.unknown", "A message without an id is never answered, not even with an error."
)
async def ignores_notifications(bench: Bench) -> None:
    """An unknown notification is ignored."""
    subject = await bench.ready()
    before = len(subject.received)
    subject.send_message(UNKNOWN, {"some": "thing"})
    subject.send_message(UNKNOWN, None, id=None)  # null means absent
    await subject.alive()
    if len([one for one in subject.received[before:] if "method" not in one]) > 1:
        raise ClauseBroken("it answered a notification")


@MESSAGES.must(
    "response.unknown",
    "A message without a method is a response. Ignore it unless its id is of a request of yours.",
)
async def ignores_responses(bench: Bench) -> None:
    """A response to a request that it never sent is ignored."""
    subject = await bench.ready()
    before = len(subject.received)
    never = subject.new_id()
    subject.send(frame({"jsonrpc": "2.0", "id": never, "result": {}}))
    await subject.alive()
    if any(one.get("id") == never for one in subject.received[before:]):
        raise ClauseBroken("it answered a response")


@MESSAGES.must("params.null", "Do not read members of params before you know that it is an object.")
async def accepts_any_params(bench: Bench) -> None:
    """`params` may be null, an object, an array, or absent."""
    subject = await bench.ready()
    forms: tuple[Message, ...] = ({"params": None}, {"params": {}}, {"params": []}, {})
    for params in forms:
        sent = subject.new_id()
        subject.send(frame({"jsonrpc": "2.0", "id": sent, "method": UNKNOWN, **params}))
        await subject.answer(sent, f"a request with {params or 'no params'}")


@MESSAGES.must("id.string", _ECHO)
async def accepts_string_ids(bench: Bench) -> None:
    """A string may be the id of a request."""
    await (await bench.ready()).request(UNKNOWN, id="one")


@MESSAGES.must("id.type", _ECHO)
async def keeps_the_type_of_ids(bench: Bench) -> None:
    """The response has the id of the request: 1 is not "1"."""
    subject = await bench.ready()
    for id in (7_000_001, "7000001", 0, "", "1.0"):
        await subject.request(UNKNOWN, id=id)


@MESSAGES.should("id.any", _ECHO)
async def keeps_unusual_ids(bench: Bench) -> None:
    """Ids may be large, negative, or contain any character."""
    subject = await bench.ready()
    for id in (2**53 - 1, -5, 'a "quoted" \\ id', "ü 漢字 😀", "line\nbreak"):
        await subject.request(UNKNOWN, id=id)


@MESSAGES.must(
    "envelope.unknown-members", "Read the members by name, not by position, and ignore the rest."
)
async def tolerates_more_in_the_envelope(bench: Bench) -> None:
    """It tolerates unknown members of the message, in any order."""
    subject = await bench.ready()
    inner = {"id": subject.new_id(), "method": "exit", "jsonrpc": "1.0"}
    sent = subject.new_id()
    more = {"trace": [inner], "params": inner, "method": UNKNOWN, "id": sent, "jsonrpc": "2.0"}
    subject.send(frame(more))
    await subject.answer(sent, "a request whose params have an id and a method")


@MESSAGES.must(
    "concurrent",
    "Write each message at once, under a lock if there are threads, and answer every request.",
)
async def answers_each_once(bench: Bench) -> None:
    """Of many requests at once, each is answered once."""
    subject = await bench.ready()
    ids = [subject.new_id() for _ in range(AT_ONCE)]
    subject.send(b"".join(frame(message(UNKNOWN, id=id)) for id in ids))
    for id in ids:
        await subject.answer(id, "each of several requests")
    await subject.alive()
    if twice := [id for id in ids if subject.answers_to(id) != 1]:
        raise ClauseBroken(f"{len(twice)} of {AT_ONCE} requests were answered more than once")


LARGE: Final = 256 * 1024
"""The 256 KiB of the rule: more than a pipe's buffer, so that no single read returns all of it."""
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
_LENGTH: Final = (
    "Read until you have as many bytes as Content-Length says: one read may return fewer."
)


@MESSAGES.must("frame.split", _LENGTH)
async def reads_bytes(bench: Bench) -> None:
    """A message may arrive byte by byte."""
    subject = await bench.ready()
    sent = subject.new_id()
    for byte in frame(message(UNKNOWN, id=sent)):
        subject.send(bytes([byte]))
    await subject.answer(sent, "a message in pieces")


@MESSAGES.must(
    "frame.joined",
    "Keep the bytes that you read after the end of a message: they start the next message.",
)
async def reads_joined(bench: Bench) -> None:
    """Several messages may arrive in one piece."""
    subject = await bench.ready()
    first, second = subject.new_id(), subject.new_id()
    one, two = (frame(message(UNKNOWN, id=id)) for id in (first, second))
    middle = len(one) + 10
    both = one + two
    subject.send(both[:middle])
    subject.send(both[middle:])
    await subject.answer(first, "the first of two messages in one piece")
    await subject.answer(second, "the second of two messages in one piece")


@MESSAGES.must("frame.large", _LENGTH)
async def reads_large(bench: Bench) -> None:
    """A message may have 256 KiB."""
    subject = await bench.ready()
    sent = subject.new_id()
    subject.send_message(UNKNOWN, {"text": "x" * LARGE}, id=sent)
    await subject.answer(sent, "a large message")


@MESSAGES.must("frame.bytes", "Count the bytes after encoding, in both directions.")
async def counts_bytes(bench: Bench) -> None:
    """Content-Length counts bytes, and the content is UTF-8."""
    subject = await bench.ready()
    beyond, after = subject.new_id(), subject.new_id()
    subject.send_message(UNKNOWN, {"text": "ü漢😀" * 100}, id=beyond)
    subject.send_message(UNKNOWN, id=after)
    await subject.answer(beyond, "a message beyond ASCII")
    await subject.answer(after, "the message after one beyond ASCII")


@MESSAGES.must(
    "frame.fields", "Read header lines up to the empty line, and use the line with Content-Length."
)
async def reads_fields(bench: Bench) -> None:
    """Other header fields are tolerated, and names may be in upper or lower case."""
    subject = await bench.ready()
    content = "application/vscode-jsonrpc; charset=utf-8"
    for head in (
        "Content-Type: {type}\r\nContent-Length: {length}\r\n\r\n",
        "Content-Length: {length}\r\nContent-Type: {type}\r\n\r\n",
        "content-length:{length}\r\n\r\n",
    ):
        sent = subject.new_id()
        body = json.dumps(message(UNKNOWN, id=sent)).encode()
        written = head.format(type=content, length=len(body))
        subject.send(written.encode() + body)
        await subject.answer(sent, f"a message whose header begins {written.splitlines()[0]!r}")


@MESSAGES.must("broken.json", "Catch the parser's error; the next frame is not affected.")
async def survives_invalid_json(bench: Bench) -> None:
    """It continues after content that is not JSON."""
    subject = await bench.ready()
    subject.send(encode(b'{"jsonrpc": "2.0", "id": 1, "method": '))
    await subject.alive()


@MESSAGES.should(
    "broken.json.code",
    'Answer {"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": …}}.',
)
async def answers_invalid_json_with_the_code(bench: Bench) -> None:
    """Content that is not JSON is answered with error -32700 and a null id."""
    await _expect_error(bench, b"{not json}", PARSE_ERROR)


@MESSAGES.must(
    "broken.message", "Check that the content is an object with a method before you use it."
)
async def survives_invalid_messages(bench: Bench) -> None:
    """It continues after JSON that is no message."""
    subject = await bench.ready()
    for body in (b"[]", b"42", b'"text"', b"null", b"{}", b'{"jsonrpc":"2.0","id":{},"method":5}'):
        subject.send(encode(body))
    await subject.alive()


@MESSAGES.should("broken.message.code", "Answer with the id if there is one, otherwise with null.")
async def answers_invalid_messages_with_the_code(bench: Bench) -> None:
    """JSON that is no message is answered with error -32600."""
    await _expect_error(bench, b"42", INVALID_REQUEST)


@MESSAGES.should(
    "broken.header",
    "Skip to the next line that begins with Content-Length. (To exit is better than to hang.)",
)
async def survives_a_broken_header(bench: Bench) -> None:
    """It continues after a header without a Content-Length."""
    subject = await bench.ready()
    subject.send(b"X-Telex-Check: 1\r\n\r\n")
    await subject.alive()


async def _expect_error(bench: Bench, body: bytes, code: int) -> None:
    subject = await bench.ready()
    before = len(subject.received)
    subject.send(encode(body))
    await subject.alive()

    def is_error(received: Message) -> bool:
        return received.get("id") is None and isinstance(received.get("error"), dict)

    errors = [received["error"] for received in subject.received[before:] if is_error(received)]
    if not errors:
        raise ClauseBroken("it was not answered")
    expect_code(errors[0].get("code"), code)
