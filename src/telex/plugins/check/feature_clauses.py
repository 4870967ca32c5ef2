"""The clauses of what a plugin gives: commands, tasks, tools, cancel, progress, log.

Nothing is run that could do something, unless the person named a command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.plugins import protocol as spec
from telex.plugins.check.report import ClauseBroken, Clauses, ClauseUntried
from telex.plugins.handshake import without_nulls

if TYPE_CHECKING:
    from telex.plugins.check.bench import Bench, CheckedProcess, Message

CLAUSES: Final = Clauses()
NOBODY: Final = "telex-check"
"""A name that no command, task or tool has."""
_RUN: Final = "name a command that may be run, with --run, to try it"


@CLAUSES.must(
    "command.unknown",
    "A command that it does not have is refused.",
    "Answer with error -32002, or -32001 if you speak generation B.",
)
async def has_no_such_command(bench: Bench) -> None:
    await _ask_for_no_command(bench)


@CLAUSES.should(
    "command.unknown.code",
    "A command that it does not have is refused with error -32002 (generation B: -32001).",
    "Use this code, so that a host can say it in the person's words.",
)
async def refuses_commands_with_the_code(bench: Bench) -> None:
    if not bench.known().commands:
        raise ClauseUntried("it has no commands")
    _expect(await _ask_for_no_command(bench), bench.number(spec.INVALID_COMMAND))


@CLAUSES.must(
    "task.unknown",
    "A task of a type that it does not have is refused.",
    "Answer `validateTask` and `runTask` with an error for a type you do not know.",
)
async def has_no_such_task(bench: Bench) -> None:
    subject = await bench.ready()
    params = {"type": NOBODY, "taskType": NOBODY, "dir": ".", "config": []}
    await subject.refusal("validateTask", params)
    await subject.refusal("runTask", params)


@CLAUSES.must(
    "run",
    "The command that was named runs.",
    "See the answer, and what the plugin wrote to standard error.",
)
async def runs(bench: Bench) -> None:
    await _answer_to_a_run(bench, await bench.ready())


@CLAUSES.must(
    "progress",
    "What it tells of progress is of the request's token, and comes before the answer.",
    "Send $/progress with the request's `progressToken`, and only if it has one.",
)
async def tells_progress(bench: Bench) -> None:
    bench.can("progress")
    subject = await bench.ready()
    before = len(subject.said)
    await _answer_to_a_run(bench, subject, token="telex-check-token")
    told = [said for said in subject.said[before:] if said.get("method") == "$/progress"]
    if not told:
        raise ClauseUntried(f"{bench.command} told no progress")
    for said in told:
        if _as(spec.ProgressNotice, said).token != "telex-check-token":
            raise ClauseBroken("it told of another token")


@CLAUSES.must(
    "progress.unasked",
    "It tells no progress of a request without a token.",
    "Send $/progress only if the request has a `progressToken`.",
)
async def tells_no_progress_unasked(bench: Bench) -> None:
    bench.can("progress")
    subject = await bench.ready()
    before = len(subject.said)
    await _answer_to_a_run(bench, subject)
    if any(said.get("method") == "$/progress" for said in subject.said[before:]):
        raise ClauseBroken("it told progress that nobody asked for")


@CLAUSES.must(
    "cancel.unknown",
    "A cancel of a request that is not there is ignored.",
    "$/cancelRequest is a notification: never answer it, and let it come too late.",
)
async def ignores_late_cancels(bench: Bench) -> None:
    subject = await bench.ready()
    before = len(subject.said)
    for params in ({"id": 4_000_000}, {}, None):
        subject.say("$/cancelRequest", params)
    await subject.alive()
    if sum("method" not in said for said in subject.said[before:]) > 1:
        raise ClauseBroken("it answered a cancel")


@CLAUSES.must(
    "cancel",
    "A cancelled request is answered once, and soon, with error -32800.",
    "End what runs when $/cancelRequest names its id, and answer with -32800.",
)
async def can_be_cancelled(bench: Bench) -> None:
    bench.can("cancel")
    subject = await bench.ready()
    await _set_up(bench, subject)
    cancelled = subject.new_id()
    subject.say("runCommand", _run(bench), id=cancelled)
    subject.say("$/cancelRequest", {"id": cancelled})
    answer = await subject.answer(cancelled, "a cancelled command")
    if answer.get("error") is None:
        raise ClauseUntried(f"{bench.command} was over before it could be cancelled")
    _expect(answer["error"]["code"], spec.CANCELLED)
    await subject.alive()
    if subject.answers_to(cancelled) != 1:
        raise ClauseBroken("it answered more than once")


@CLAUSES.must(
    "tools.list",
    "`tools/list` answers with its tools, each with the schema of an object.",
    'Answer {"tools": [{"name", "description", "inputSchema": {"type": "object", …}}]}.',
)
async def lists_tools(bench: Bench) -> None:
    bench.can("tools")
    said = await (await bench.ready()).result("tools/list")
    for tool in _converted(spec.ToolsList, said).tools:
        if tool.input_schema is not None and tool.input_schema.get("type") != "object":
            raise ClauseBroken(f"the inputSchema of {tool.name} is not of an object")


@CLAUSES.must(
    "tools.unknown",
    "A tool that it does not have is refused.",
    "Answer with error -32602, or with a result that has `isError`.",
)
async def has_no_such_tool(bench: Bench) -> None:
    bench.can("tools")
    answer = await (await bench.ready()).ask("tools/call", {"name": NOBODY, "arguments": {}})
    result = answer.get("result")
    if answer.get("error") is None and not (isinstance(result, dict) and result.get("isError")):
        raise ClauseBroken("it answered with a result")


@CLAUSES.must(
    "log",
    "What it logs has a level and a text.",
    'Send {"level": "info", "msg": "…", "fields": {…}} as the params of `log`.',
)
async def logs(bench: Bench) -> None:
    subject = await bench.ready()
    said = [one for one in (*bench.said, *subject.said) if one.get("method") == "log"]
    if not said:
        raise ClauseUntried("it logged nothing")
    for line in said:
        log = _as(spec.Log, line)
        if log.msg is None and log.message is None:
            raise ClauseBroken(f"a line without a text: {line.get('params')}")


async def _ask_for_no_command(bench: Bench) -> int:
    subject = await bench.ready()
    if bench.is_a:
        return await subject.refusal("setupCommand", {"name": NOBODY, "args": []})
    return await subject.refusal("runCommand", {"cmd": NOBODY, "config": [], "pluginConfig": []})


async def _set_up(bench: Bench, subject: CheckedProcess) -> None:
    if bench.command is None:
        raise ClauseUntried(_RUN)
    if bench.is_a:
        params = {"name": bench.command, "args": [], "config": bench.defaults()}
        await subject.result("setupCommand", params)


def _run(bench: Bench) -> dict[str, Any]:
    if bench.is_a:
        return {"name": bench.command}
    own = bench.defaults(of_plugin=True)
    return {"cmd": bench.command, "config": bench.defaults(), "pluginConfig": own}


async def _answer_to_a_run(bench: Bench, subject: CheckedProcess, token: str | None = None) -> None:
    await _set_up(bench, subject)
    more = {} if token is None else {"progressToken": token}
    await subject.result("runCommand", _run(bench) | more)


def _as(kind: type[Any], said: Message) -> Any:
    return _converted(kind, said.get("params"))


def _converted(kind: type[Any], value: object) -> Any:
    try:
        return msgspec.convert(without_nulls(value), kind)
    except msgspec.ValidationError as error:
        raise ClauseBroken(f"it is not of the right form: {error}") from None


def _expect(code: int, wanted: int) -> None:
    if code != wanted:
        raise ClauseBroken(f"the code was {code} instead of {wanted}")
