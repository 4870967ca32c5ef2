"""The clauses of JSON-RPC and its framing: what is answered, with which id, what is not; bytes cut
anywhere, and what is no frame.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from telex.plugins.check.bench import METHOD_NOT_FOUND, UNKNOWN, frame, message
from telex.plugins.check.report import ClauseBroken, Clauses
from telex.wire.content_length import encode

if TYPE_CHECKING:
    from telex.plugins.check.bench import Bench, Message


CLAUSES: Final = Clauses()
AT_ONCE: Final = 32
"""Requests in flight together: more than a loop that answers one by one ever sees from a person."""
_ECHO: Final = "Put the id of the request into the answer as it came, without converting it."


@CLAUSES.must(
    "method.unknown",
    "A method that it does not know is answered with error -32601.",
    "Answer every request, also those you do not know; the code says that you do not.",
)
async def does_not_know_the_method(bench: Bench) -> None:
    code = await (await bench.ready()).refusal(UNKNOWN)
    if code != METHOD_NOT_FOUND:
        raise ClauseBroken(f"the code was {code}")


@CLAUSES.must(
    "notification.unknown",
    "A notification that it does not know is ignored.",
    "A message without an id is never answered, not even with an error.",
)
async def ignores_notifications(bench: Bench) -> None:
    subject = await bench.ready()
    before = len(subject.said)
    subject.say(UNKNOWN, {"some": "thing"})
    subject.say(UNKNOWN, None, id=None)  # null is as good as omitted
    await subject.alive()
    if len([said for said in subject.said[before:] if "method" not in said]) > 1:
        raise ClauseBroken("it answered a notification")


@CLAUSES.must(
    "response.unknown",
    "A response to something it never asked is ignored.",
    "A message without a method is a response. Ignore it unless its id is of a request of yours.",
)
async def ignores_responses(bench: Bench) -> None:
    subject = await bench.ready()
    before = len(subject.said)
    never = subject.new_id()
    subject.send(frame({"jsonrpc": "2.0", "id": never, "result": {}}))
    await subject.alive()
    if any(said.get("id") == never for said in subject.said[before:]):
        raise ClauseBroken("it answered an answer")


@CLAUSES.must(
    "params.null",
    "`params` may be null, an object, an array, or absent.",
    "Do not look into params before you know that it is an object.",
)
async def takes_any_params(bench: Bench) -> None:
    subject = await bench.ready()
    forms: tuple[Message, ...] = ({"params": None}, {"params": {}}, {"params": []}, {})
    for params in forms:
        asked = subject.new_id()
        subject.send(frame({"jsonrpc": "2.0", "id": asked, "method": UNKNOWN, **params}))
        await subject.answer(asked, f"a request with {params or 'no params'}")


@CLAUSES.must("id.string", "A string may be the id of a request.", _ECHO)
async def takes_string_ids(bench: Bench) -> None:
    await (await bench.ready()).ask(UNKNOWN, id="one")


@CLAUSES.must("id.type", 'The answer has the id of the request: 1 is not "1".', _ECHO)
async def keeps_the_type_of_ids(bench: Bench) -> None:
    subject = await bench.ready()
    for asked in (7_000_001, "7000001", 0, "", "1.0"):
        await subject.ask(UNKNOWN, id=asked)


@CLAUSES.should(
    "id.any",
    "Ids may be large, negative, or hold any character.",
    _ECHO,
)
async def keeps_strange_ids(bench: Bench) -> None:
    subject = await bench.ready()
    for asked in (2**53 - 1, -5, 'a "quoted" \\ id', "ü 漢字 😀", "line\nbreak"):
        await subject.ask(UNKNOWN, id=asked)


@CLAUSES.must(
    "envelope.unknown-members",
    "It tolerates members of the message that it does not know, in any order.",
    "Read the members by name, not by place, and ignore the rest.",
)
async def tolerates_more_in_the_envelope(bench: Bench) -> None:
    subject = await bench.ready()
    inner = {"id": subject.new_id(), "method": "exit", "jsonrpc": "1.0"}
    asked = subject.new_id()
    more = {"trace": [inner], "params": inner, "method": UNKNOWN, "id": asked, "jsonrpc": "2.0"}
    subject.send(frame(more))
    await subject.answer(asked, "a request whose params have an id and a method")


@CLAUSES.must(
    "concurrent",
    "Many requests at once are each answered once.",
    "Write each message whole, under a lock if there are threads, and answer every request.",
)
async def answers_each_once(bench: Bench) -> None:
    subject = await bench.ready()
    ids = [subject.new_id() for _ in range(AT_ONCE)]
    subject.send(b"".join(frame(message(UNKNOWN, id=asked)) for asked in ids))
    for asked in ids:
        await subject.answer(asked, "each of several requests")
    await subject.alive()
    if twice := [asked for asked in ids if subject.answers_to(asked) != 1]:
        raise ClauseBroken(f"{len(twice)} of {AT_ONCE} requests were answered more than once")


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
        raise ClauseBroken("it was not answered")
    if errors[0].get("code") != code:
        raise ClauseBroken(f"the code was {errors[0].get('code')} instead of {code}")
