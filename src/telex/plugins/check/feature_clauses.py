"""Clauses about the features of a plugin: commands, tasks, tools, cancel, progress, log.

No command, task or tool is run, except the command that the person named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.plugins import protocol as spec
from telex.plugins.check.bench import ClauseBroken, Clauses, ClauseUntried, expect_code
from telex.plugins.handshake import without_nulls

if TYPE_CHECKING:
    from telex.plugins.check.bench import Bench, CheckedProcess, Message

FEATURES: Final = Clauses()
UNKNOWN_NAME: Final = "telex-check"
"""A name that no command, task or tool has."""
_RUN: Final = "name a command that may be run, with --run, to try it"


@FEATURES.must("command.unknown", "Answer with error -32002, or -32001 if you speak generation B.")
async def refuses_unknown_commands(bench: Bench) -> None:
    """An unknown command is refused."""
    await _request_unknown_command(bench)


@FEATURES.should("command.unknown.code", "Use this code, so that a host can show its own message.")
async def refuses_commands_with_the_code(bench: Bench) -> None:
    """An unknown command is refused with error -32002 (generation B: -32001)."""
    if not bench.known().commands:
        raise ClauseUntried("it has no commands")
    expect_code(await _request_unknown_command(bench), bench.number(spec.INVALID_COMMAND))


@FEATURES.must(
    "task.unknown", "Answer `validateTask` and `runTask` with an error for an unknown type."
)
async def refuses_unknown_tasks(bench: Bench) -> None:
    """A task of an unknown type is refused."""
    subject = await bench.ready()
    params = {"type": UNKNOWN_NAME, "taskType": UNKNOWN_NAME, "dir": ".", "config": []}
    await subject.refusal("validateTask", params)
    await subject.refusal("runTask", params)


@FEATURES.must("run", "See the answer, and the plugin's standard error.")
async def runs(bench: Bench) -> None:
    """The command that was named runs."""
    await _run_command(bench, await bench.ready())


@FEATURES.must(
    "progress", "Send $/progress with the request's `progressToken`, and only if it has one."
)
async def sends_progress(bench: Bench) -> None:
    """Its progress notifications have the request's token, and come before the response."""
    bench.can("progress")
    subject = await bench.ready()
    before = len(subject.received)
    await _run_command(bench, subject, token="telex-check-token")
    notices = [one for one in subject.received[before:] if one.get("method") == "$/progress"]
    if not notices:
        raise ClauseUntried(f"{bench.command} sent no progress")
    for notice in notices:
        if _params_as(spec.ProgressNotice, notice).token != "telex-check-token":
            raise ClauseBroken("it sent progress with another token")


@FEATURES.must("progress.unasked", "Send $/progress only if the request has a `progressToken`.")
async def sends_no_progress_without_a_token(bench: Bench) -> None:
    """It sends no progress for a request without a token."""
    bench.can("progress")
    subject = await bench.ready()
    before = len(subject.received)
    await _run_command(bench, subject)
    if any(one.get("method") == "$/progress" for one in subject.received[before:]):
        raise ClauseBroken("it sent progress for a request without a token")


@FEATURES.must(
    "cancel.unknown",
    "$/cancelRequest is a notification: never answer it, and ignore one that comes too late.",
)
async def ignores_late_cancels(bench: Bench) -> None:
    """A cancel of an unknown request is ignored."""
    subject = await bench.ready()
    before = len(subject.received)
    for params in ({"id": 4_000_000}, {}, None):
        subject.send_message("$/cancelRequest", params)
    await subject.alive()
    if sum("method" not in one for one in subject.received[before:]) > 1:
        raise ClauseBroken("it answered a cancel")


@FEATURES.must("cancel", "Stop the work when $/cancelRequest has its id, and answer with -32800.")
async def can_be_cancelled(bench: Bench) -> None:
    """A cancelled request is answered once, and soon, with error -32800."""
    bench.can("cancel")
    subject = await bench.ready()
    await _set_up(bench, subject)
    cancelled = subject.new_id()
    subject.send_message("runCommand", _run_params(bench), id=cancelled)
    subject.send_message("$/cancelRequest", {"id": cancelled})
    answer = await subject.answer(cancelled, "a cancelled command")
    if answer.get("error") is None:
        raise ClauseUntried(f"{bench.command} finished before it could be cancelled")
    expect_code(answer["error"]["code"], spec.CANCELLED)
    await subject.alive()
    if subject.answers_to(cancelled) != 1:
        raise ClauseBroken("it answered more than once")


@FEATURES.must(
    "tools.list",
    'Answer {"tools": [{"name", "description", "inputSchema": {"type": "object", …}}]}.',
)
async def lists_tools(bench: Bench) -> None:
    """`tools/list` returns its tools, each with the schema of an object."""
    bench.can("tools")
    result = await (await bench.ready()).result("tools/list")
    for tool in _converted(spec.ToolsList, result).tools:
        if tool.input_schema is not None and tool.input_schema.get("type") != "object":
            raise ClauseBroken(f"the inputSchema of {tool.name} is not of an object")


@FEATURES.must("tools.unknown", "Answer with error -32602, or with a result that has `isError`.")
async def refuses_unknown_tools(bench: Bench) -> None:
    """An unknown tool is refused."""
    bench.can("tools")
    answer = await (await bench.ready()).request(
        "tools/call", {"name": UNKNOWN_NAME, "arguments": {}}
    )
    result = answer.get("result")
    if answer.get("error") is None and not (isinstance(result, dict) and result.get("isError")):
        raise ClauseBroken("it answered with a result")


@FEATURES.must("log", 'Send {"level": "info", "msg": "…", "fields": {…}} as the params of `log`.')
async def logs(bench: Bench) -> None:
    """Its log records have a level and a text."""
    subject = await bench.ready()
    lines = [one for one in (*bench.received, *subject.received) if one.get("method") == "log"]
    if not lines:
        raise ClauseUntried("it logged nothing")
    for line in lines:
        log = _params_as(spec.Log, line)
        if log.msg is None and log.message is None:
            raise ClauseBroken(f"a line without a text: {line.get('params')}")


async def _request_unknown_command(bench: Bench) -> int:
    subject = await bench.ready()
    if bench.is_a:
        return await subject.refusal("setupCommand", {"name": UNKNOWN_NAME, "args": []})
    return await subject.refusal(
        "runCommand", {"cmd": UNKNOWN_NAME, "config": [], "pluginConfig": []}
    )


async def _set_up(bench: Bench, subject: CheckedProcess) -> None:
    if bench.command is None:
        raise ClauseUntried(_RUN)
    if bench.is_a:
        params = {"name": bench.command, "args": [], "config": bench.defaults()}
        await subject.result("setupCommand", params)


def _run_params(bench: Bench) -> dict[str, Any]:
    if bench.is_a:
        return {"name": bench.command}
    own = bench.defaults(of_plugin=True)
    return {"cmd": bench.command, "config": bench.defaults(), "pluginConfig": own}


async def _run_command(bench: Bench, subject: CheckedProcess, token: str | None = None) -> None:
    await _set_up(bench, subject)
    more = {} if token is None else {"progressToken": token}
    await subject.result("runCommand", _run_params(bench) | more)


def _params_as(kind: type[Any], received: Message) -> Any:
    return _converted(kind, received.get("params"))


def _converted(kind: type[Any], value: object) -> Any:
    try:
        return msgspec.convert(without_nulls(value), kind)
    except msgspec.ValidationError as error:
        raise ClauseBroken(f"it does not have the right form: {error}") from None
