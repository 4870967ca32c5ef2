"""Clauses about the end of a plugin: shutdown, exit, EOF of its input, processes left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.plugins.check.bench import Message, frame, handshake, message
from telex.plugins.check.report import ClauseBroken, Clauses, ClauseUntried

if TYPE_CHECKING:
    from telex.plugins.check.bench import Bench, CheckedProcess

CLAUSES: Final = Clauses()


@CLAUSES.must(
    "shutdown",
    "It answers `shutdown` with a result.",
    "Finish your work, and answer {}.",
)
async def shuts_down(bench: Bench) -> None:
    async with bench.begun() as subject:
        await _shut_down(subject)


@CLAUSES.must(
    "shutdown.after",
    "A request after `shutdown` is refused.",
    "Answer with error -32803, and do nothing else.",
)
async def refuses_after_shutdown(bench: Bench) -> None:
    async with bench.begun() as subject:
        await _shut_down(subject)
        await subject.refusal("handshake", handshake(bench.protocol))


@CLAUSES.must(
    "exit",
    "It exits with code 0 at `exit` after `shutdown`.",
    "Exit with code 0, also if a call still runs.",
)
async def exits(bench: Bench) -> None:
    async with bench.begun() as subject:
        await _shut_down(subject)
        subject.send_message("exit")
        ended = await subject.exit()
        bench.left = subject.left_behind()
        if ended.code != 0:
            raise ClauseBroken(f"it {ended}")


@CLAUSES.should(
    "exit.alone",
    "It exits at `exit` without `shutdown`.",
    "Exit with code 1, because the plugin was not shut down.",
)
async def exits_without_shutdown(bench: Bench) -> None:
    async with bench.begun() as subject:
        subject.send_message("exit")
        await subject.exit()


@CLAUSES.must(
    "eof",
    "It exits when its standard input is at EOF.",
    "An empty read is EOF: leave the loop. Otherwise the plugin survives a host that is killed.",
)
async def exits_at_eof(bench: Bench) -> None:
    async with bench.begun() as subject:
        subject.close_input()
        await subject.exit()


@CLAUSES.should(
    "eof.inside",
    "It exits when its standard input is at EOF inside a message.",
    "An empty read is EOF, also if Content-Length announced more.",
)
async def exits_at_eof_inside_a_message(bench: Bench) -> None:
    async with bench.begun() as subject:
        subject.send(frame(message("telex/check", id=1))[:-5])
        subject.close_input()
        await subject.exit()


@CLAUSES.must(
    "nothing-left",
    "It leaves no process behind when it exits.",
    "End and wait for the processes you start.",
)
async def leaves_nothing(bench: Bench) -> None:
    if bench.left is None:
        raise ClauseUntried("it did not exit in the clause `exit`")
    if bench.left:
        raise ClauseBroken(f"{len(bench.left)} were left: {', '.join(map(str, bench.left))}")


@CLAUSES.must(
    "stdout",
    "Its standard output has messages only.",
    "Write text for people to standard error, also the output of your libraries.",
)
async def keeps_stdout_clean(bench: Bench) -> None:
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
