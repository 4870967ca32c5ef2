"""The clauses of a plugin's beginning: start, handshake, initialize."""

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
    "Make it executable (chmod +x) and see that its first line names an interpreter that is there.",
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
            _, bench.introduced = await bench.shake(subject, spec.PROTOCOL_A)
    except ClauseBroken as first:
        bench.protocol = spec.PROTOCOL_B
        async with bench.fresh() as subject:
            try:
                _, bench.introduced = await bench.shake(subject, spec.PROTOCOL_B)
            except ClauseBroken:
                bench.protocol = spec.PROTOCOL_A
                raise first from None


@CLAUSES.must(
    "handshake.protocol",
    "The protocol and version in its answer are those it was asked with.",
    "Answer with the protocol that was asked, or refuse it.",
)
async def says_what_was_asked(bench: Bench) -> None:
    said = bench.known()
    if said.protocol != bench.protocol:
        raise ClauseBroken(f"asked for {bench.protocol}, it said {said.protocol}")


@CLAUSES.must(
    "handshake.other-protocol",
    "It refuses another protocol.",
    "Look at `protocol` and answer with error -32001 if you do not know it (generation B: -32000).",
)
async def refuses_another_protocol(bench: Bench) -> None:
    bench.known()
    async with bench.fresh() as subject:
        bench.refused = await subject.refusal("handshake", handshake("telex-check"))


@CLAUSES.must(
    "handshake.other-version",
    "It refuses a version it does not speak.",
    "Look at `protocolVersion` and answer with error -32001 if it is not 0 (generation B: -32000).",
)
async def refuses_another_version(bench: Bench) -> None:
    bench.known()
    async with bench.fresh() as subject:
        await subject.refusal("handshake", handshake(bench.protocol, 32767))


@CLAUSES.should(
    "handshake.code",
    "It refuses a handshake with error -32001 (generation B: -32000).",
    "Use this code, by which a host knows that it may ask in another way.",
)
async def refuses_with_the_code(bench: Bench) -> None:
    if bench.refused is None:
        raise ClauseUntried("it refused no handshake")
    _expect(bench.refused, bench.number(spec.HANDSHAKE))


@CLAUSES.should(
    "handshake.first",
    "What comes before the handshake is refused with error -32802.",
    "Remember whether there was a handshake, and answer anything else with -32802 until then.",
)
async def wants_the_handshake_first(bench: Bench) -> None:
    bench.known()
    async with bench.fresh() as subject:
        code = await subject.refusal("runCommand", {"name" if bench.is_a else "cmd": "telex-check"})
    _expect(code, spec.NOT_INITIALIZED)


@CLAUSES.must(
    "initialize",
    "It answers `initialize` with a result.",
    "Take `logging` and `config`, both of which may be empty, and answer {}.",
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
    "A member that is null is as good as omitted.",
    "Treat null as absent wherever a member is optional.",
)
async def takes_null_for_nothing(bench: Bench) -> None:
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
