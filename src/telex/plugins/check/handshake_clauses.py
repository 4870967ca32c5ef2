"""Clauses about the start of a plugin: process, handshake, initialize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.plugins import protocol as spec
from telex.plugins.check.bench import INITIALIZE, handshake
from telex.plugins.check.report import ClauseBroken, Clauses, ClauseUntried

if TYPE_CHECKING:
    from telex.plugins.check.bench import Bench

CLAUSES: Final = Clauses()


@CLAUSES.must(
    "start",
    "It can be started.",
    "Make it executable (chmod +x) and check that the interpreter in its first line exists.",
)
async def starts(bench: Bench) -> None:
    async with bench.fresh():
        pass


@CLAUSES.must(
    "handshake",
    "It answers `handshake` with its name, the protocol and the version.",
    "Answer with protocol, protocolVersion and name. Write the length in bytes, end header lines "
    "with CR LF, and flush after every message.",
)
async def shakes_hands(bench: Bench) -> None:
    try:
        async with bench.fresh() as subject:
            bench.introduced = await bench.handshake(subject, spec.PROTOCOL_A)
    except ClauseBroken as first:
        bench.protocol = spec.PROTOCOL_B
        async with bench.fresh() as subject:
            try:
                bench.introduced = await bench.handshake(subject, spec.PROTOCOL_B)
            except ClauseBroken:
                bench.protocol = spec.PROTOCOL_A
                raise first from None


@CLAUSES.must(
    "handshake.protocol",
    "The protocol and version in its answer are those of the request.",
    "Answer with the protocol of the request, or refuse it.",
)
async def answers_with_the_same_protocol(bench: Bench) -> None:
    answered = bench.known().protocol
    if answered != bench.protocol:
        raise ClauseBroken(f"it answered {answered} to a handshake with {bench.protocol}")


@CLAUSES.must(
    "handshake.other-protocol",
    "It refuses another protocol.",
    "Check `protocol` and answer with error -32001 if you do not know it (generation B: -32000).",
)
async def refuses_another_protocol(bench: Bench) -> None:
    bench.known()
    async with bench.fresh() as subject:
        bench.refused = await subject.refusal("handshake", handshake("telex-check"))


@CLAUSES.must(
    "handshake.other-version",
    "It refuses a version it does not speak.",
    "Check `protocolVersion` and answer with error -32001 if it is not 0 (generation B: -32000).",
)
async def refuses_another_version(bench: Bench) -> None:
    bench.known()
    async with bench.fresh() as subject:
        await subject.refusal("handshake", handshake(bench.protocol, 32767))


@CLAUSES.should(
    "handshake.code",
    "It refuses a handshake with error -32001 (generation B: -32000).",
    "Use this code: it tells a host that it may try another handshake.",
)
async def refuses_with_the_code(bench: Bench) -> None:
    if bench.refused is None:
        raise ClauseUntried("it refused no handshake")
    _expect(bench.refused, bench.number(spec.HANDSHAKE))


@CLAUSES.should(
    "handshake.first",
    "A request before the handshake is refused with error -32802.",
    "Remember whether there was a handshake, and answer other requests with -32802 until then.",
)
async def refuses_requests_before_the_handshake(bench: Bench) -> None:
    bench.known()
    async with bench.fresh() as subject:
        code = await subject.refusal("runCommand", {"name" if bench.is_a else "cmd": "telex-check"})
    _expect(code, spec.NOT_INITIALIZED)


@CLAUSES.must(
    "initialize",
    "It answers `initialize` with a result.",
    "Accept `logging` and `config`, both of which may be empty, and answer {}.",
)
async def is_initialised(bench: Bench) -> None:
    _only_a(bench)
    await bench.ready()


@CLAUSES.must(
    "initialize.unknown-members",
    "It tolerates members that it does not know.",
    "Ignore unknown members of params: later versions add some.",
)
async def tolerates_more(bench: Bench) -> None:
    bench.known()
    more = {"telexCheck": {"is": ["new", None, 1.5]}}
    async with bench.fresh() as subject:
        await subject.result("handshake", handshake(bench.protocol) | more)
        if bench.is_a:
            await subject.result("initialize", INITIALIZE | more)
        await subject.alive()


@CLAUSES.must(
    "initialize.null",
    "A null member means absent.",
    "Treat null as absent wherever a member is optional.",
)
async def accepts_null_as_absent(bench: Bench) -> None:
    _only_a(bench)
    async with bench.fresh() as subject:
        await subject.result("handshake", handshake(bench.protocol) | {"capabilities": None})
        await subject.result("initialize", INITIALIZE | {"config": None})


def _only_a(bench: Bench) -> None:
    bench.known()
    if not bench.is_a:
        raise ClauseUntried("generation B has no initialize")


def _expect(code: int, wanted: int) -> None:
    if code != wanted:
        raise ClauseBroken(f"the code was {code} instead of {wanted}")
