"""Clauses about the life of a plugin: start, handshake, initialize; shutdown, exit, EOF of its
input, processes left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.plugins import protocol as spec
from telex.plugins.check.bench import (
    INITIALIZE,
    ClauseBroken,
    Clauses,
    ClauseUntried,
    Message,
    expect_code,
    frame,
    handshake,
    message,
)

if TYPE_CHECKING:
    from telex.plugins.check.bench import Bench, CheckedProcess

STARTING: Final = Clauses()


@STARTING.must(
    "start",
    "Make it executable (chmod +x) and check that the interpreter in its first line exists.",
)
async def starts(bench: Bench) -> None:
    """It can be started."""
    async with bench.fresh():
        pass


@STARTING.must(
    "handshake",
    "Answer with protocol, protocolVersion and name. Write the length in bytes, end header lines "
    "with CR LF, and flush after every message.",
)
async def shakes_hands(bench: Bench) -> None:
    """It answers `handshake` with its name, the protocol and the version."""
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


@STARTING.must("handshake.protocol", "Answer with the protocol of the request, or refuse it.")
async def answers_with_the_same_protocol(bench: Bench) -> None:
    """The protocol and version in its answer are those of the request."""
    answered = bench.known().protocol
    if answered != bench.protocol:
        raise ClauseBroken(f"it answered {answered} to a handshake with {bench.protocol}")


@STARTING.must(
    "handshake.other-protocol",
    "Check `protocol` and answer with error -32001 if you do not know it (generation B: -32000).",
)
async def refuses_another_protocol(bench: Bench) -> None:
    """It refuses another protocol."""
    bench.known()
    async with bench.fresh() as subject:
        bench.refused = await subject.refusal("handshake", handshake("telex-check"))


@STARTING.must(
    "handshake.other-version",
    "Check `protocolVersion` and answer with error -32001 if it is not 0 (generation B: -32000).",
)
async def refuses_another_version(bench: Bench) -> None:
    """It refuses a version it does not speak."""
    bench.known()
    async with bench.fresh() as subject:
        await subject.refusal("handshake", handshake(bench.protocol, 32767))


@STARTING.should(
    "handshake.code", "Use this code: it tells a host that it may try another handshake."
)
async def refuses_with_the_code(bench: Bench) -> None:
    """It refuses a handshake with error -32001 (generation B: -32000)."""
    if bench.refused is None:
        raise ClauseUntried("it refused no handshake")
    expect_code(bench.refused, bench.number(spec.HANDSHAKE))


@STARTING.should(
    "handshake.first",
    "Remember whether there was a handshake, and answer other requests with -32802 until then.",
)
async def refuses_requests_before_the_handshake(bench: Bench) -> None:
    """A request before the handshake is refused with error -32802."""
    bench.known()
    async with bench.fresh() as subject:
        code = await subject.refusal("runCommand", {"name" if bench.is_a else "cmd": "telex-check"})
    expect_code(code, spec.NOT_INITIALIZED)


@STARTING.must(
    "initialize", "Accept `logging` and `config`, both of which may be empty, and answer {}."
)
async def is_initialised(bench: Bench) -> None:
    """It answers `initialize` with a result."""
    _only_a(bench)
    await bench.ready()


@STARTING.must(
    "initialize.unknown-members", "Ignore unknown members of params: later versions add some."
)
async def tolerates_more(bench: Bench) -> None:
    """It tolerates members that it does not know."""
    bench.known()
    more = {"telexCheck": {"is": ["new", None, 1.5]}}
    async with bench.fresh() as subject:
        await subject.result("handshake", handshake(bench.protocol) | more)
        if bench.is_a:
            await subject.result("initialize", INITIALIZE | more)
        await subject.alive()


@STARTING.must("initialize.null", "Treat null as absent wherever a member is optional.")
async def accepts_null_as_absent(bench: Bench) -> None:
    """A null member means absent."""
    _only_a(bench)
    async with bench.fresh() as subject:
        await subject.result("handshake", handshake(bench.protocol) | {"capabilities": None})
        await subject.result("initialize", INITIALIZE | {"config": None})


def _only_a(bench: Bench) -> None:
    bench.known()
    if not bench.is_a:
        raise ClauseUntried("generation B has no initialize")


ENDING: Final = Clauses()


@ENDING.must("shutdown", "Finish your work, and answer {}.")
async def shuts_down(bench: Bench) -> None:
    """It answers `shutdown` with a result."""
    async with bench.begun() as subject:
        await _shut_down(subject)


@ENDING.must("shutdown.after", "Answer with error -32803, and do nothing else.")
async def refuses_after_shutdown(bench: Bench) -> None:
    """A request after `shutdown` is refused."""
    async with bench.begun() as subject:
        await _shut_down(subject)
        await subject.refusal("handshake", handshake(bench.protocol))


@ENDING.must("exit", "Exit with code 0, also if a call still runs.")
async def exits(bench: Bench) -> None:
    """It exits with code 0 at `exit` after `shutdown`."""
    async with bench.begun() as subject:
        await _shut_down(subject)
        subject.send_message("exit")
        ended = await subject.exit()
        bench.left = subject.left_behind()
        if ended.code != 0:
            raise ClauseBroken(f"it {ended}")


@ENDING.should("exit.alone", "Exit with code 1, because the plugin was not shut down.")
async def exits_without_shutdown(bench: Bench) -> None:
    """It exits at `exit` without `shutdown`."""
    async with bench.begun() as subject:
        subject.send_message("exit")
        await subject.exit()


@ENDING.must(
    "eof",
    "An empty read is EOF: leave the loop. Otherwise the plugin survives a host that is killed.",
)
async def exits_at_eof(bench: Bench) -> None:
    """It exits when its standard input is at EOF."""
    async with bench.begun() as subject:
        subject.close_input()
        await subject.exit()


@ENDING.should("eof.inside", "An empty read is EOF, also if Content-Length announced more.")
async def exits_at_eof_inside_a_message(bench: Bench) -> None:
    """It exits when its standard input is at EOF inside a message."""
    async with bench.begun() as subject:
        subject.send(frame(message("telex/check", id=1))[:-5])
        subject.close_input()
        await subject.exit()


@ENDING.must("nothing-left", "End and wait for the processes you start.")
async def leaves_nothing(bench: Bench) -> None:
    """It leaves no process behind when it exits."""
    if bench.left is None:
        raise ClauseUntried("it did not exit in the clause `exit`")
    if bench.left:
        raise ClauseBroken(f"{len(bench.left)} were left: {', '.join(map(str, bench.left))}")


@ENDING.must(
    "stdout", "Write text for people to standard error, also the output of your libraries."
)
async def keeps_stdout_clean(bench: Bench) -> None:
    """Its standard output has messages only."""
    bench.known()
    await bench.discard()  # then all its output has been read
    strays = bench.strays
    if strays:
        raise ClauseBroken(f"{len(strays)} pieces of other output, first {strays[0]}")


async def _shut_down(subject: CheckedProcess) -> Message:
    answer = await subject.result("shutdown")
    if answer is False:
        raise ClauseBroken("it answered false")
    return answer if isinstance(answer, dict) else {}
