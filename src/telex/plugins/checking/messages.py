"""The clauses of JSON-RPC: what is answered, with which id, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.plugins.checking.report import Broken, Clauses
from telex.plugins.checking.subject import METHOD_NOT_FOUND, UNKNOWN, frame, message

if TYPE_CHECKING:
    from telex.plugins.checking.bench import Bench
    from telex.plugins.checking.subject import Message

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
        raise Broken(f"the code was {code}")


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
        raise Broken("it answered a notification")


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
        raise Broken("it answered an answer")


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
        raise Broken(f"{len(twice)} of {AT_ONCE} requests were answered more than once")
