"""One running plugin: handshakes of both generations, calls both ways, timeouts, cancels, the end."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from automating import alive
from plugins.animals import ZOO, RecordingHost, animal, found, written
from telex.plugins import errors, handshake
from telex.plugins import protocol as spec
from telex.plugins.client import start
from telex.plugins.dialect import NotAnAnswer, PluginDialect, SlidingWindow, answered_id
from telex.plugins.limits import PLUGIN_STDERR_LINE_CHARS
from telex.plugins.plugin_process import StderrLines
from telex.plugins.plugin_settings import COOKIE, Deadlines, plugin_environment
from telex.redaction import MARKER, Redactor
from telex.rpc.messages import Malformed
from telex.rpc.methods import Methods

if TYPE_CHECKING:
    from collections.abc import Callable

CORPUS = Path(__file__).parents[1] / "corpus" / "plugin_v0"
REDACTOR = Redactor()
HANDSHAKES = {one["name"]: one for one in json.loads((CORPUS / "handshakes.json").read_text())}

ECHO = 'speaking.serve(work=lambda m: speaking.write(id=m["id"], result=m.get("params")))\n'


# Handshakes.

RECORDED = """
import base64, json, os
asked, answered = map(base64.b64decode, sys.argv[1:3])
received = b""
while len(received) < len(asked):
    received += os.read(0, len(asked) - len(received))
os.write(1, answered)
rest = []
speaking.serve(
    initialize=lambda m: (rest.append("initialize"), speaking.write(id=m["id"], result={})),
    work=lambda m: speaking.write(id=m["id"], result=[received == asked, received.decode(), *rest]),
)
"""


@pytest.mark.parametrize("name", HANDSHAKES)
async def test_a_recorded_handshake_of_either_generation_is_understood(
    name: str, tmp_path: Path
) -> None:
    one = HANDSHAKES[name]
    manifest = one["manifest"] and msgspec.convert(one["manifest"], spec.PluginManifest)
    plugin = written(tmp_path, RECORDED, manifest)
    host = RecordingHost(arguments=[one["asked"], one["answered"]])
    async with start(plugin, host.settings()) as running:
        same, asked, *initialised = await running.call("work")
        assert same, f"telex said {asked}, and not {base64.b64decode(one['asked']).decode()}"
        assert initialised == (["initialize"] if one["generation"] == "A" else [])
        assert told(running.introduced) == one["introduced"]


def told(said: spec.Introduced) -> dict[str, object]:
    def entries(configs: list[spec.ConfigEntry] | None) -> object:
        return configs and [[entry.key, entry.type] for entry in configs]

    return {
        "name": said.name,
        "protocol": said.protocol,
        "version": said.version,
        "configs": entries(said.configs) or [],
        "commands": [[its.name, entries(its.configs) or []] for its in said.commands or []],
        "tasks": [[its.type, entries(its.configs)] for its in said.tasks or []],
    }


async def test_a_plugin_that_refuses_one_protocol_name_gets_the_other(tmp_path: Path) -> None:
    picky = """
def handshake(m):
    if m["params"]["protocol"] == "reginald":
        speaking.write(id=m["id"], result=speaking.introduction(protocol="reginald"))
    else:
        speaking.write(id=m["id"], error={"code": -32001, "message": "who is rpp?"})
speaking.serve(handshake=handshake)
"""
    async with start(written(tmp_path, picky), RecordingHost().settings()) as plugin:
        assert plugin.introduced.protocol == "reginald"


async def test_a_handshake_with_another_name_than_the_manifest_is_refused(tmp_path: Path) -> None:
    plugin = written(tmp_path, ECHO, spec.PluginManifest("own", "own.py"))
    with pytest.raises(
        errors.PluginHandshakeFailed, match="own calls itself animal in the handshake"
    ):
        await start(plugin, RecordingHost().settings()).begin()


async def test_initialize_sends_the_values_of_the_plugin(tmp_path: Path) -> None:
    keeping = """
got = []
entries = [{"key": "colour", "value": "red"}]
speaking.serve(
    handshake=lambda m: speaking.write(id=m["id"], result=speaking.introduction(configs=entries)),
    initialize=lambda m: (got.append(m["params"]), speaking.write(id=m["id"], result={})),
    work=lambda m: speaking.write(id=m["id"], result=got),
)
"""

    def config(plugin: object, said: spec.Introduced) -> list[spec.KeyValue]:
        return [spec.KeyValue(entry.key, "blue") for entry in said.configs or []]

    logging.getLogger("telex.plugins.own").setLevel(logging.WARNING)
    async with start(written(tmp_path, keeping), RecordingHost().settings(config=config)) as plugin:
        (initialized,) = await plugin.call("work")
    assert initialized["config"] == [{"key": "colour", "value": "blue"}]
    assert initialized["logging"] == {"enabled": True, "level": "warn"}


async def test_a_plugin_need_not_have_initialize(tmp_path: Path) -> None:
    bare = 'speaking.serve(initialize=lambda m: speaking.write(id=m["id"], error={"code": -32601, "message": "?"}))'
    async with start(written(tmp_path, bare), RecordingHost().settings()) as plugin:
        assert plugin.introduced.name == "animal"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_any_answer_to_a_handshake_is_understood_or_refused(answer: Any) -> None:
    good = {"protocol": "rpp", "protocolVersion": 0, "name": "x"}
    for tried in (answer, {**good, "commands": answer}, {**good, "configs": [answer]}):
        with contextlib.suppress(handshake.HandshakeNotUnderstood):
            handshake.normalize_handshake(tried, None)


# Calls both ways.


@pytest.mark.parametrize(
    ("answer", "spoilt"),
    [
        ('"id": 1, "result": 1e999, "error": {"code": 1, "message": "x"}', 1),
        ('"id": 1, "error": null', 1),
        ('"id": "1"', "1"),
        ('"id": true', None),
        ('"id": 1, "method": 7', None),
        ('"id": 1, "result": 1, "jsonrpc": "1.0"', 1),
    ],
)
def test_an_invalid_response_fails_its_call(answer: str, spoilt: Any) -> None:
    class Counting:
        on_stray = on_response_without_id = lambda self, what: pytest.fail(what)
        mistakes: ClassVar[list[str]] = []

        def on_mistake(self, what: str) -> None:
            self.mistakes.append(what)

        def on_lost_answer(self, id: int | str | None, what: str) -> None:
            pytest.fail(what)

        def on_request_id(self, id: int | str) -> None:
            pytest.fail(str(id))

    message = PluginDialect(Counting()).decode(f'{{"jsonrpc": "2.0", {answer}}}'.encode())
    assert isinstance(message, Malformed)
    assert message.spoils == spoilt
    assert type(message.spoils) is type(spoilt)
    assert Counting.mistakes


async def test_calls_are_concurrent_and_each_gets_its_own_answer(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    backwards = """
held = []
def work(m):
    held.append(m)
    if len(held) == 10:
        for one in reversed(held):
            speaking.write(id=one["id"], result=one["params"]["n"])
        held.clear()
speaking.serve(work=work)
"""
    async with start(written(tmp_path, backwards), RecordingHost().settings()) as plugin:
        count = counted(100, 10_000)
        calls = (plugin.call("work", {"n": n}) for n in range(count))
        assert await asyncio.gather(*calls) == list(range(count))


async def test_a_plugin_can_call_its_host_during_a_call(tmp_path: Path) -> None:
    asking = """
def work(m):
    for id in (1, "1"):
        speaking.write(id=id, method="host/double", params={"n": 21})
    answers = [speaking.read() for _ in range(2)]
    speaking.write(id=m["id"], result=[[a["id"], a["result"]] for a in answers])
speaking.serve(work=work)
"""
    methods = Methods()

    async def double(params: dict[str, int]) -> int:
        await asyncio.sleep(0)
        return params["n"] * 2

    methods.add("host/double", double)
    async with start(
        written(tmp_path, asking), RecordingHost().settings(methods=methods)
    ) as plugin:
        assert await plugin.call("work") == [[1, 42], ["1", 42]]


async def test_an_error_keeps_its_code_its_redacted_message_and_its_data(
    tmp_path: Path,
) -> None:
    failing = 'speaking.serve(work=lambda m: speaking.write(id=m["id"], error={"code": -32004, "message": "no: password=hunter2222 \\x1b[2J", "data": [1]}))'
    async with start(written(tmp_path, failing), RecordingHost().settings()) as plugin:
        with pytest.raises(errors.PluginErrorReply) as raised:
            await plugin.call("work")
    refused = raised.value
    assert (refused.plugin, refused.method, refused.code, refused.data) == (
        "own",
        "work",
        -32004,
        [1],
    )
    assert "hunter2222" not in str(refused)
    assert "\x1b" not in str(refused)
    assert str(refused).startswith("the plugin own answered work with an error: no: password=")


async def test_an_answer_of_another_type_is_named(tmp_path: Path) -> None:
    async with start(written(tmp_path, ECHO), RecordingHost().settings()) as plugin:
        with pytest.raises(
            errors.PluginBadResult, match="own gave an unexpected answer: work: Expected"
        ):
            await plugin.call("work", {"a": 1}, returns=int)


CANCELLING = """
capabilities = {"cancel": %s, "progress": True}
told = []
speaking.serve(
    handshake=lambda m: speaking.write(id=m["id"], result=speaking.introduction(capabilities=capabilities)),
    work=lambda m: told.append(m["id"]),
    ping=lambda m: speaking.write(id=m["id"], result=told),
    **{"$/cancelRequest": lambda m: told.append(["cancelled", m["params"]["id"]])},
)
"""


@pytest.mark.parametrize("announced", [True, False])
async def test_a_cancel_is_sent_only_to_plugins_with_the_capability(
    announced: bool, tmp_path: Path
) -> None:
    plugin = written(tmp_path, CANCELLING % announced)
    async with start(plugin, RecordingHost().settings()) as running:
        with pytest.raises(errors.PluginTimedOut) as raised:
            await running.call("work", timeout=0.05)
        assert raised.value.code == spec.TIMED_OUT
        asked, *cancelled = await running.call("ping")
        assert cancelled == ([["cancelled", asked]] if announced else [])
        call = asyncio.create_task(running.call("work"))
        await running.call("ping")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        last = (await running.call("ping"))[-1]
        assert isinstance(last, list) is announced


async def test_progress_reaches_its_own_call(tmp_path: Path) -> None:
    working = """
def work(m):
    token = m["params"].get("progressToken")
    for done in (1, 2):
        speaking.write(method="$/progress", params={"token": token, "done": done, "total": 2, "message": None})
    speaking.write(method="$/progress", params={"token": "somebody else's"})
    speaking.write(method="$/progress", params={"token": []})
    speaking.write(id=m["id"], result=token)
said = speaking.introduction(capabilities={"progress": True})
speaking.serve(handshake=lambda m: speaking.write(id=m["id"], result=said), work=work)
"""
    async with start(written(tmp_path, working), RecordingHost().settings()) as plugin:
        one: list[spec.ProgressNotice] = []
        two: list[spec.ProgressNotice] = []
        tokens = await asyncio.gather(
            plugin.call("work", spec.RunCommand(name="x"), on_progress=one.append),
            plugin.call("work", {"name": "x"}, on_progress=two.append),
            plugin.call("work", {"name": "x"}),
        )
    assert tokens == [1, 2, None]
    assert [(step.token, step.done, step.total) for step in one] == [(1, 1, 2), (1, 2, 2)]
    assert [step.token for step in two] == [2, 2]


async def test_no_token_is_sent_to_a_plugin_without_progress(tmp_path: Path) -> None:
    async with start(written(tmp_path, ECHO), RecordingHost().settings()) as plugin:
        assert await plugin.call("work", {"n": 1}, on_progress=print) == {"n": 1}


# Notifications and standard error.


async def test_log_notifications_of_both_generations_go_to_the_plugins_logger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = """
def work(m):
    for params in (
        {"level": "warn", "msg": "from A", "fields": {"n": 1, "key": "token=abcdefgh12345678"}},
        {"time": "2025-01-01T00:00:00Z", "level": "ERROR", "message": "from B", "source": None,
         "attrs": [{"key": "n", "value": 2}, {"key": "group", "value": [{"key": "deep", "value": 3}]}]},
        {"level": "trace", "msg": "too fine"}, {"level": None, "msg": "no level"}, {"msg": 7}, None,
    ):
        speaking.write(method="log", params=params)
    speaking.write(id=m["id"], result=None)
speaking.serve(work=work)
"""
    with caplog.at_level(logging.DEBUG, "telex.plugins.own"):
        async with start(written(tmp_path, logs), RecordingHost().settings()) as plugin:
            await plugin.call("work")
    lines = [
        (r.levelname, r.getMessage(), r.fields) for r in caplog.records if hasattr(r, "fields")
    ]
    assert [line[:2] for line in lines[:2]] == [("WARNING", "from A"), ("ERROR", "from B")]
    assert lines[0][2]["n"] == 1
    assert "abcdefgh12345678" not in str(lines[0][2])
    assert lines[1][2] == {"n": 2, "group": {"deep": 3}}
    assert [line[1] for line in lines[2:]] == ["no level", ""]


async def test_standard_error_is_shown_by_name_without_secrets_or_control_characters(
    tmp_path: Path,
) -> None:
    noisy = """
def work(m):
    sys.stderr.write("one\\r\\ntwo \\x1b[31mred\\n-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkq\\n-----END PRIVATE KEY-----\\n")
    sys.stderr.buffer.write(b"not \\xff utf-8\\nno newline")
    sys.stderr.flush()
    speaking.write(id=m["id"], result=None)
speaking.serve(work=work)
"""
    host = RecordingHost()
    async with start(written(tmp_path, noisy), host.settings()) as plugin:
        await plugin.call("work")
    assert host.lines[:2] == ["[own] one", r"[own] two \x1b[31mred"]
    assert host.lines[-2:] == [r"[own] not \xff utf-8", "[own] no newline"]
    assert "MIIEvQIBADANBgkq" not in "".join(host.lines)


@given(st.lists(st.binary(max_size=40)), st.integers(min_value=0, max_value=3))
def test_lines_are_the_same_wherever_the_reads_fall(pieces: list[bytes], long: int) -> None:
    data = b"\n".join(pieces) + b"y" * (long * PLUGIN_STDERR_LINE_CHARS // 2)
    whole, split = StderrLines(REDACTOR), StderrLines(REDACTOR)
    expected = [*whole.feed(data), *whole.eof()]
    cuts = range(0, len(data), max(1, len(data) // 7))
    got = [line for at in cuts for line in split.feed(data[at : at + max(1, len(data) // 7)])]
    assert got + split.eof() == expected
    assert all(len(line) < PLUGIN_STDERR_LINE_CHARS * 4 + 100 for line in expected)


def test_extra_patterns_are_redacted_on_each_line() -> None:
    lines = StderrLines(Redactor(("hidden-literal",), (r"case-[0-9]+",)))
    (one,) = lines.feed(b"case-4711 and hidden-literal\n")
    assert one == f"{MARKER} and {MARKER}"


# Start and end.


async def test_a_plugin_has_its_own_session_and_a_small_environment(
    tmp_path: Path,
) -> None:
    looking = """
import os
speaking.serve(work=lambda m: speaking.write(id=m["id"], result=[os.getsid(0), os.getpid(), dict(os.environ)]))
"""
    needs = spec.Needs(env=["WANTED"])
    manifest = spec.PluginManifest("animal", "own.py", needs=needs)
    ours = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C",
        "WANTED": "1",
        "AWS_SECRET_ACCESS_KEY": "x",
        "TELEX_TOKEN": "x",
    }
    async with start(
        written(tmp_path, looking, manifest), RecordingHost().settings(environ=ours)
    ) as plugin:
        session, pid, its = await plugin.call("work")
    assert session == pid
    assert {name for name in its if name not in ("TELEX_TREE", "PWD")} == {
        "PATH",
        "LC_ALL",
        "WANTED",
        "PYTHONDONTWRITEBYTECODE",
        COOKIE,
    }
    assert plugin_environment(plugin.found, ours)[COOKIE] != its[COOKIE]


async def test_a_missing_executable_raises_plugin_not_started(tmp_path: Path) -> None:
    missing = start(
        found(tmp_path / "missing"),
        RecordingHost(arguments=()).settings(command=lambda f: [str(f.executable)]),
    )
    with pytest.raises(
        errors.PluginNotStarted, match="the plugin missing did not start: there is no program"
    ):
        await missing.begin()
    assert missing.end_reason is not None


async def test_a_refused_plugin_is_not_started() -> None:
    for bad in (
        replace(animal("never_answers"), problem="it is writable by others"),
        replace(animal("never_answers"), trusted=False),
    ):
        with pytest.raises(errors.PluginNotStarted, match="the plugin never_answers is not run: "):
            await start(bad, RecordingHost().settings()).begin()


async def test_a_start_that_is_cancelled_leaves_nothing() -> None:
    plugin = start(
        animal("never_answers_the_handshake"), RecordingHost(deadlines=Deadlines(term=1)).settings()
    )
    starting = asyncio.create_task(plugin.begin())
    await asyncio.sleep(0.05)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert plugin.end_reason == "the plugin never_answers_the_handshake was closed by its host"


async def test_cancelling_close_still_ends_the_plugin(tmp_path: Path) -> None:
    plugin = start(written(tmp_path, ECHO), RecordingHost().settings())
    await plugin.begin()
    closing = asyncio.create_task(plugin.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await plugin.wait_ended()
    assert not plugin.failed


async def test_cancelling_close_kills_the_plugin_and_still_waits() -> None:
    long = Deadlines(shutdown=60, exit=60, stdin=60, term=60)
    plugin = start(animal("hangs_at_shutdown"), RecordingHost(deadlines=long).settings())
    await plugin.begin()
    closing = asyncio.create_task(plugin.close())
    while not plugin.ended:
        await asyncio.sleep(0)
    for _ in range(2):
        closing.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await closing
    async with asyncio.timeout(60):
        await plugin.wait_ended()
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert f"plugin {plugin.name}" not in names


@pytest.mark.parametrize(
    ("begins", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":"\\ud800', 7),
        (b'Content-Length: 9\r\n\r\n{"id" : "a", "result": {"id": 3', "a"),
        (b'{"result": {"id": 3, "method": "x"}, "id": 8}', 8),
        (b'{"result": {"id": 3', None),
        (b'{"id": null, "error": 1', None),
        (b"0000000", None),
        (b'[{"id": 5}]', 5),
        (b'{"text": "\\"id\\": 4", "id', None),
    ],
)
def test_the_id_of_an_unreadable_response_is_found_in_its_first_bytes(
    begins: bytes, id: Any
) -> None:
    assert answered_id(begins) == id
    with pytest.raises(NotAnAnswer):
        answered_id(b'{"method": "log", "params": {"id": 1, "text": "' + begins)


def test_a_time_in_a_message_is_rounded() -> None:
    times = (0.299964, 299.9999, 0.1, 0.0042, 1.5)
    assert [errors.seconds(time) for time in times] == [
        "0.3 s",
        "300 s",
        "0.1 s",
        "0.004 s",
        "1.5 s",
    ]


async def test_shutdown_and_exit_are_sent_before_signals(tmp_path: Path) -> None:
    leaving = """
def told(m):
    print(m["method"], m.get("params"), file=sys.stderr, flush=True)
    if "id" in m:
        speaking.write(id=m["id"], result=None)
    else:
        sys.exit(7)
speaking.serve(shutdown=told, exit=told)
"""
    host = RecordingHost(deadlines=Deadlines())
    async with start(written(tmp_path, leaving), host.settings()) as plugin:
        call = asyncio.create_task(plugin.call("ping"))
        await call
    assert host.lines == ["[own] shutdown None", "[own] exit None"]
    with pytest.raises(errors.PluginEnded, match="the plugin own was closed by its host"):
        await plugin.call("ping")


async def test_output_after_a_plugin_closed_its_input_is_read(tmp_path: Path) -> None:
    last = """
import os, time
def work(m):
    os.close(0)
    time.sleep(0.05)  # so that the closed input is noticed before the output is read
    speaking.write(id=m["id"], result="x" * 200_000)
    os._exit(0)
speaking.serve(work=work)
"""
    async with start(written(tmp_path, last), RecordingHost().settings()) as plugin:
        assert len(await plugin.call("work", returns=str)) == 200_000


async def test_the_last_line_of_standard_error_is_read_before_the_end_is_reported(
    tmp_path: Path,
) -> None:
    last = """
import os, time
def work(m):
    os.close(1)
    time.sleep(0.05)  # so that the closed pipe is noticed before the line
    os.write(2, b"no disk\\n\\n")
    os._exit(4)
speaking.serve(work=work)
"""
    async with start(
        written(tmp_path, last), RecordingHost(deadlines=Deadlines()).settings()
    ) as plugin:
        with pytest.raises(errors.PluginEnded) as raised:
            await plugin.call("work")
    assert str(raised.value) == "the plugin own exited with code 4; its last words: no disk"


@pytest.mark.each_loop
async def test_calls_work_on_either_event_loop(tmp_path: Path) -> None:
    async with start(written(tmp_path, ECHO), RecordingHost().settings()) as plugin:
        assert await plugin.call("work", {"n": 1}) == {"n": 1}


HOST = """
import asyncio, sys
sys.path[:0] = {path!r}
from plugins.animals import RecordingHost, animal
from telex.plugins.dialect import PluginDialect
from telex.plugins.client import start
async def main():
    async with start(animal("forks_grandchildren"), RecordingHost().settings()) as plugin:
        print(*await plugin.call("work"), flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_nothing_is_left_when_the_host_is_killed() -> None:
    paths = [str(ZOO.parents[1])]
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST.format(path=paths), stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout is not None
    pids = [int(pid) for pid in (await host.stdout.readline()).split()]
    assert [alive(pid) for pid in pids] == [True, True]
    host.send_signal(signal.SIGKILL)
    await host.wait()
    async with asyncio.timeout(60):
        while any(alive(pid) for pid in pids):
            await asyncio.sleep(0.05)


def test_a_window_forgets_old_events() -> None:
    window = SlidingWindow(3, 10)
    assert not any(window.add(now) for now in (0.0, 6.0, 12.0, 18.0, 24.0))
    assert window.add(29.0) is False
    assert window.add(30.0) is True
    assert window.full_until(31.0) == 34.0
    assert window.full_until(34.0) is None
    assert window.count(34.0) == 2
