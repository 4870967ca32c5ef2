"""The clauses of a plugin's end: shutdown, exit, the end of its input, and what is left."""

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
    "Finish what has to be finished, and answer {}.",
)
async def shuts_down(bench: Bench) -> None:
    async with bench.begun() as subject:
        await _shut_down(subject)


@CLAUSES.must(
    "shutdown.after",
    "A request after `shutdown` is refused.",
    "Answer with error -32803, and do not do it.",
)
async def refuses_after_shutdown(bench: Bench) -> None:
    async with bench.begun() as subject:
        await _shut_down(subject)
        await subject.refusal("handshake", handshake(bench.protocol))


@CLAUSES.must(
    "exit",
    "It ends with code 0 when it hears `exit` after `shutdown`.",
    "End the process with code 0, also if something still runs.",
)
async def exits(bench: Bench) -> None:
    async with bench.begun() as subject:
        await _shut_down(subject)
        subject.say("exit")
        ended = await subject.exit()
        bench.left = subject.left_behind()
        if ended.code != 0:
            raise ClauseBroken(f"it {ended}")


@CLAUSES.should(
    "exit.alone",
    "It ends when it hears `exit` without `shutdown`.",
    "End the process; with code 1, since nothing was finished.",
)
async def exits_without_shutdown(bench: Bench) -> None:
    async with bench.begun() as subject:
        subject.say("exit")
        await subject.exit()


@CLAUSES.must(
    "eof",
    "It ends when its standard input ends.",
    "A read of nothing is the end: leave the loop. Otherwise you live on when the host is killed.",
)
async def ends_with_its_input(bench: Bench) -> None:
    async with bench.begun() as subject:
        subject.close_input()
        await subject.exit()


@CLAUSES.should(
    "eof.inside",
    "It ends when its standard input ends inside a message.",
    "A read of nothing is the end, also where more was announced.",
)
async def ends_inside_a_message(bench: Bench) -> None:
    async with bench.begun() as subject:
        subject.send(frame(message("telex/check", id=1))[:-5])
        subject.close_input()
        await subject.exit()


@CLAUSES.must(
    "nothing-left",
    "No process of its own is left when it has ended.",
    "End and wait for the processes you start.",
)
async def leaves_nothing(bench: Bench) -> None:
    if bench.left is None:
        raise ClauseUntried("it was not seen to end")
    if bench.left:
        raise ClauseBroken(f"{len(bench.left)} were left: {', '.join(map(str, bench.left))}")


@CLAUSES.must(
    "stdout",
    "There is nothing on standard output but messages.",
    "Write what is for people to standard error, also what your libraries print.",
)
async def keeps_stdout_clean(bench: Bench) -> None:
    bench.known()
    await bench.discard()  # all that it said is known then
    strays = bench.strays
    if strays:
        raise ClauseBroken(f"{len(strays)} pieces of something else, first {strays[0]}")


async def _shut_down(subject: CheckedProcess) -> Message:
    answer = await subject.result("shutdown")
    if answer is False:
        raise ClauseBroken("it answered false")
    return answer if isinstance(answer, dict) else {}
