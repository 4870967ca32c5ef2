"""`telex.spawn` and `telex.connect`, with and without an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import telex
from leftovers import children
from serving import Serve, serving
from telex import match
from telex.automation import client, portal, sync
from telex.automation import protocol as spec
from telex.automation.caller import ChunkRouter, LocalCaller, OutputChunk
from telex.automation.portal import OpenedTwice
from telex.processes import proc
from telex.terminal import actions
from telex.terminal.waits import matchers

if TYPE_CHECKING:
    from collections.abc import Iterator

CAT = ("sh", "-c", "echo ready; exec cat")
STUBBORN = ("sh", "-c", "trap '' HUP TERM INT; echo ready; while :; do sleep 0.1; done")


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "telex"]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not threads()


STANDING: set[int] = set()
"""The servers that this module has running for several tests."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    with serving(tmp_path_factory.mktemp("server")) as served:
        STANDING.add(served.process.pid)
        yield served


def alive(pid: int) -> bool:
    return any(process.alive for process in proc.ps_rows("-p", str(pid)))


# What one can do.


@pytest.mark.each_loop
async def test_a_program_is_driven_in_an_event_loop() -> None:
    async with telex.spawn("sh -c 'read a; echo \"<$a>\"; read b; exit 7'") as term:
        mark = await term.type("hello\n")
        found = await term.wait("<hello>", since=mark)
        assert found.evidence["kind"] == "contains_text"
        assert "<hello>" in await term.text()
        await term.press("enter")
        assert await term.wait_exit() == 7


def test_the_same_without_one() -> None:
    with telex.spawn("sh -c 'read a; echo \"<$a>\"; read b; exit 7'") as term:
        mark = term.type("hello\n")
        term.wait("<hello>", since=mark)
        assert "<hello>" in term.text()
        term.press("enter")
        assert term.wait_exit() == 7


async def test_the_same_in_a_running_loop_by_with() -> None:
    with telex.spawn(CAT) as term:
        term.wait("ready")
        assert threads() == ["telex"]


@pytest.mark.parametrize("way", ["unix", "web"])
async def test_the_same_object_drives_a_session_of_a_server(server: Serve, way: str) -> None:
    address = getattr(server, way)
    async with telex.connect(address, token=server.token) as there:
        term = await there.spawn(CAT)
        assert term.id in await there.sessions()
        async with term:
            await term.wait("ready")
            mark = await term.type("abc\n")
            await term.wait("abc", since=mark)
            again = there.terminal(term.id)
            assert await again.text() == await term.text()
        assert term.id not in await there.sessions()


def test_a_server_can_be_used_without_an_event_loop(server: Serve) -> None:
    with telex.connect(server.unix) as there:
        with there.spawn(CAT, rows=5, cols=40) as term:
            term.wait("ready")
            assert there.terminal(term.id).snapshot(cells="none").size == actions.TerminalSize(
                5, 40
            )
        assert there.sessions() == ()
        kept = there.spawn(CAT)
        there.close()
    with telex.connect(server.unix) as there:
        assert there.sessions() == (kept.id,)
        there.terminal(kept.id).close()


def test_every_method_of_a_terminal(tmp_path: Path) -> None:
    cast = tmp_path / "a.cast"
    with telex.spawn(["bash", "--norc", "-i"], env={"PS1": "$ ", "X": "1"}, cwd=tmp_path) as term:
        term.wait("$ ")
        term.record(cast)
        mark = term.paste("echo $X-$PWD\n")
        term.wait(f"1-{tmp_path}", since=mark)
        mark = term.paste("echo 2; echo 3", bracketed=True)
        mark = term.press("enter")
        term.wait(re.compile(r"^3$", re.MULTILINE), since=mark)
        mark = term.act(actions.StreamText(actions.Streamed("sh -c 'echo a$X; cat; echo o$X'\n")))
        term.wait("a1", since=mark)
        mark = term.eof()
        term.wait("o1", since=mark)
        mark = term.type("sh -c 'echo b$X; exec cat'\n")
        term.wait("b1", since=mark)
        mark = term.type("zz\n")
        term.wait("zz\nzz", since=mark)
        mark = term.interrupt()
        term.wait("$ ", since=mark)
        term.record(None)
        assert json.loads(cast.read_text().splitlines()[0])["version"] == 2
        mark = term.type("seq 100\n")
        term.wait("100\n$", since=mark)
        assert "50" in term.scrollback()
        assert "\x1b" in term.transcript(strip=False)
        assert "\x1b" not in term.transcript()
        term.resize(rows=10, cols=40)
        snapshot = term.snapshot()
        assert snapshot.size == actions.TerminalSize(10, 40)
        assert len(snapshot.cells) == 400
        term.type("exec sleep 100\n")
        term.wait(match.printed("exec sleep"))
        term.kill()
        assert term.wait_exit() is None
        assert "exec sleep" in term.text()


def test_a_signal_goes_to_the_program_in_the_foreground() -> None:
    script = 'trap "echo usr" USR1; echo ready; while :; do sleep 0.05; done'
    with telex.spawn(["sh", "-c", script]) as term:
        term.wait("ready")
        term.signal("user1")
        term.wait("usr")


def test_a_program_that_asked_for_the_mouse_is_clicked() -> None:
    script = "stty raw -echo; printf '\\033[?1000h\\033[?1006hready'; head -c 9 | od -c"
    with telex.spawn(["sh", "-c", script]) as term:
        term.wait("ready")
        term.click(2, 4)
        term.wait(match.regex(r"<\s+0\s+;\s+5\s+;\s+3\s+M"))


SECRET = "hunter2secret"
TELLS = ("sh", "-c", f"seq 30; echo password={SECRET}; exec cat")


def shown(term: telex.Terminal, **how: Any) -> list[str]:
    """What each way to read a terminal shows."""
    with term.attach(**how) as output:
        drawn = output.read()
    assert drawn is not None
    return [
        term.text(**how),
        term.transcript(**how),
        term.snapshot(**how).plain_text,
        term.wait("password", **how).transcript_tail,
        drawn.data.decode(),
    ]


def test_in_this_process_the_screen_is_read_as_it_is() -> None:
    with telex.spawn(TELLS) as term:
        term.wait("password")
        assert all(SECRET in text for text in shown(term))
        assert all(SECRET not in text for text in shown(term, redact=True))
        assert len(term.scrollback()) == len(term.scrollback(redact=True))


def test_secrets_are_masked_where_the_session_or_a_server_asks_for_it(server: Serve) -> None:
    here = telex.spawn(TELLS, redact=True)
    with telex.connect(server.unix) as there, there.spawn(TELLS) as far, here as near:
        for term in (near, far):
            term.wait("password")
            assert all(SECRET not in text for text in shown(term))
            assert all(SECRET in text for text in shown(term, redact=False))


def test_what_gets_into_logs_by_itself_is_masked(tmp_path: Path) -> None:
    with telex.spawn(TELLS) as term:
        found = term.wait("password")
        with term.attach() as output:
            chunk = output.read()
        term.record(tmp_path / "a.cast")
        mark = term.type(f"password={SECRET}\n")
        term.wait(re.compile(f"{SECRET}$"), since=mark)
        term.record(None)
        with pytest.raises(telex.TimedOut) as timed_out:
            term.wait(match.regex(f"(?i)PASSWORD={SECRET.upper()} never"), 0.01, redact=False)
        with pytest.raises(telex.SessionClosed) as closed:
            term.eof()
            term.wait("never", redact=False)
        told = [str(one.value) + json.dumps(one.value.data) for one in (timed_out, closed)]
        told += [repr(found), repr(term.snapshot()), repr(chunk), (tmp_path / "a.cast").read_text()]
        assert all("|" in text for text in told[:2])
        assert not [text for text in told if f"password={SECRET}" in text]


def test_a_compiled_pattern_is_found_by_its_flags() -> None:
    with telex.spawn("echo HELLO") as term:
        term.wait(re.compile("hello", re.IGNORECASE))


# What can go wrong.


def test_a_wait_that_times_out_shows_the_screen_and_the_nearest_miss() -> None:
    with telex.spawn(["sh", "-c", "echo 'Compilation finished'; sleep 100"]) as term:
        term.wait("finished")
        with pytest.raises(telex.TimedOut) as caught:
            term.wait(match.any_of("Compilation finishes", match.title("x")), 0.1)
    said = str(caught.value)
    first, *lines = said.splitlines()
    assert re.fullmatch(
        r"'Compilation finishes' or the title 'x' did not come within 1\d\d+ ms", first
    )
    assert lines == [
        "  any: 0 of 2 are true",
        "    contains_text: the text is not on the screen",
        "      nearest: row 0 has a similar text: 'Compilation finished'",
        "    title: the program has set no title",
        "the screen:",
        "  | Compilation finished",
    ]
    assert isinstance(caught.value, TimeoutError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == said


def test_in_pytest_the_traceback_of_a_failed_wait_ends_in_the_line_of_the_test(
    tmp_path: Path, server: Serve
) -> None:
    (tmp_path / "test_it.py").write_text(
        f"""
import asyncio, telex

def test_blocking():
    with telex.spawn("cat") as term:
        term.wait("the needle", 0.01)

def test_in_a_loop():
    async def wait():
        async with telex.spawn("cat") as term:
            await term.wait(telex.match.regex("the n.*dle"), 0.01)
    asyncio.run(wait())

def test_on_a_server():
    with telex.connect({server.unix!r}) as there, there.spawn("cat") as term:
        term.wait_exit(0.01)
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    said = ran.stdout
    assert ran.returncode == 1, said
    for frame in ("client.py", "sync.py", "portal.py", "caller.py", "concurrent/futures"):
        assert frame not in said
    ends = re.findall(r"^(\S+):(\d+): TimedOut$", said, re.MULTILINE)
    assert ends == [("test_it.py", "6"), ("test_it.py", "11"), ("test_it.py", "16")]
    summary = said.partition("short test summary info")[2]
    for needle in ("'the needle'", "the pattern 'the n.*dle'", "the end of the program"):
        assert f" - telex.TimedOut: {needle} " in summary


def test_a_wait_on_a_program_that_ends_first_raises_an_error_with_the_screen() -> None:
    with telex.spawn("sh -c 'echo bye; exit 3'") as term:
        with pytest.raises(telex.SessionClosed, match=r"exited with code 3(.|\n)*bye") as caught:
            term.wait("hello")
        assert caught.value.data["child"] == {"state": "exited", "exit_code": 3, "signal": None}
        with pytest.raises(telex.SessionClosed, match="nothing reads"):
            term.type("x")
        assert term.wait_exit() == 3


def test_a_program_that_cannot_start_says_why(tmp_path: Path) -> None:
    for command in ("no-such-program", [str(tmp_path)]):
        with pytest.raises(telex.NotStarted) as caught, telex.spawn(command):
            pass
        assert caught.value.data["program"] in str(caught.value)
    nowhere = telex.spawn("ls", cwd=tmp_path / "nowhere")
    with pytest.raises(telex.NotStarted, match="nowhere"), nowhere:
        pass


def test_an_unknown_keyword_is_a_type_error_with_the_nearest_one(server: Serve) -> None:
    with telex.connect(server.unix) as there, telex.spawn(CAT) as term:
        uses: list[tuple[Any, str]] = [
            (lambda: telex.spawn("ls", row=5), "spawn.. .*'row'; did you mean 'rows'"),
            (lambda: telex.spawn("ls", escapes=True), "'escapes'; there are command, cwd, env"),
            (lambda: term.click(1, 1, buton="left"), "click.. .*'buton'; did you mean 'button'"),
            (lambda: term.record("x", formt=3), "record.. .*'formt'; did you mean 'format'"),
            (lambda: there.spawn("ls", columns=5), "spawn.. .*'columns'; did you mean 'cols'"),
        ]
        for use, says in uses:
            with pytest.raises(TypeError, match=says):
                use()


def test_an_empty_command_is_a_mistake_before_anything_is_started() -> None:
    for command in ("", "  ", []):
        with pytest.raises(ValueError, match="command is empty"):
            telex.spawn(command)


REFUSED: list[Any] = [
    (lambda term: term.press("ctrl_nothing"), "ctrl_nothing"),
    (lambda term: term.wait(match.regex("(")), "regex|pattern"),
    (lambda term: term.wait("x", since="m999"), "m999"),
    (lambda term: term.click(1, 1), "mouse"),
]


@pytest.mark.parametrize(("ask", "says"), REFUSED)
def test_invalid_parameters_are_refused_alike_in_process_and_by_a_server(
    server: Serve, ask: Any, says: str
) -> None:
    with telex.connect(server.unix) as there, telex.spawn(CAT) as here, there.spawn(CAT) as far:
        for term in (here, far):
            with pytest.raises(telex.Refused, match=says):
                ask(term)
            assert term.wait("ready")


def test_a_bad_size_is_refused_before_a_program_is_started() -> None:
    with pytest.raises(ValueError, match="rows"):
        telex.spawn(CAT, rows=0)


async def test_typing_into_a_session_leased_by_another_client_is_not_permitted(
    server: Serve,
) -> None:
    async with (
        telex.connect(server.unix) as one,
        telex.connect(server.unix) as other,
        await one.spawn(CAT) as term,
    ):
        asked = spec.Lease(session=term.id, holder="me")
        await one._caller.call("session.lease", asked, spec.Leased)
        await term.type("x")
        with pytest.raises(telex.NotPermitted, match="me"):
            await other.terminal(term.id).type("x")


def test_an_address_without_a_server_is_a_one_sentence_error(tmp_path: Path) -> None:
    for address, says in [
        (
            f"unix:{tmp_path}/none.sock",
            "no server listens at .*none.sock; start .*: telex serve --socket /.*/none.sock$",
        ),
        (
            f"unix:{tmp_path}/no server.sock",
            "; start a server with: telex serve --socket '/.*/no server.sock'$",
        ),
        (
            "ws://127.0.0.1:9/rpc",
            "no server answers at ws://127.0.0.1:9/rpc; .*telex serve --http 127.0.0.1:9$",
        ),
        ("http://127.0.0.1:9", "ws://127.0.0.1:9/rpc; .*telex serve --http 127.0.0.1:9$"),
        ("http://[::1]:9", r"ws://\[::1\]:9/rpc; .*telex serve --http \[::1\]:9$"),
        (
            "https://127.0.0.1:9/",
            "no server answers at wss://127.0.0.1:9/rpc; .*telex serve --http",
        ),
        ("ws://127.0.0.1:nine/rpc", "is not an address: .*nine"),
        ("http://[::1", "is not an address"),
        ("somewhere", "'somewhere' is not an address; use unix:PATH or ws"),
        ("unix", "'unix' is not an address"),
    ]:
        with (
            pytest.raises(telex.CannotConnect, match=says),
            telex.connect(address, token="t" * 40),
        ):
            pass


def test_a_web_listener_requires_its_token(server: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELEX_TOKEN", raising=False)
    with pytest.raises(telex.CannotConnect, match="TELEX_TOKEN"), telex.connect(server.web):
        pass
    wrong = telex.connect(server.web, token="wrong" * 10)
    with pytest.raises(telex.CannotConnect, match="refused"), wrong:
        pass
    monkeypatch.setenv("TELEX_TOKEN", server.token)
    with telex.connect(server.web) as there:
        there.sessions()


def test_a_killed_server_raises_server_gone_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with serving(tmp_path) as served, telex.connect(served.unix) as there:
        with there.spawn(CAT) as term:
            term.wait("ready")
            served.kill()
            with pytest.raises(telex.ServerGone, match="connection to the server is closed"):
                term.text()
        with pytest.raises(telex.ServerGone):
            there.sessions()


# Its life.


def test_leaving_the_block_ends_the_program_however_stubborn() -> None:
    with telex.spawn(STUBBORN) as term:
        term.wait("ready")
        (pid,) = _children()
    assert not alive(pid)


def test_an_exception_in_the_block_propagates() -> None:
    with pytest.raises(ZeroDivisionError), telex.spawn(CAT) as term:
        term.wait("ready")
        term.type(str(1 / 0))


async def test_an_exception_in_an_async_block_propagates() -> None:
    with pytest.raises(ZeroDivisionError):
        async with telex.spawn(CAT) as term:
            await term.wait("ready")
            await term.type(str(1 / 0))


async def test_a_cancelled_block_ends_its_program() -> None:
    began: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        async with telex.spawn(CAT) as term:
            await term.wait("ready")
            began.set_result(_children().pop())
            await term.wait("never")

    task = asyncio.create_task(work())
    pid = await began
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


async def test_a_block_that_is_cancelled_while_it_ends_ends_its_program() -> None:
    term = await telex.spawn(STUBBORN)
    await term.wait("ready")
    (pid,) = _children()
    closing = asyncio.create_task(term.close())
    await asyncio.sleep(0.05)  # into the ladder, which waits for the stubborn
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not alive(pid)


def test_closing_is_idempotent_and_then_it_is_closed() -> None:
    with telex.spawn(CAT) as term:
        term.close()
        term.close()
        with pytest.raises(telex.SessionClosed, match="was closed"):
            term.text()
    with pytest.raises(telex.SessionClosed, match="was closed"):
        term.text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(telex.SessionClosed, match="block has ended"):
            term.type("x")


async def test_an_async_terminal_is_closed_once_too() -> None:
    async with telex.spawn(CAT) as term:
        await term.close()
        with pytest.raises(telex.SessionClosed, match="was closed"):
            await term.text()
    await term.close()


async def test_leaving_a_session_that_is_already_closed_is_no_error(server: Serve) -> None:
    async with telex.connect(server.unix) as there:
        async with await there.spawn(CAT) as term:
            await there.terminal(term.id).close()
        with pytest.raises(telex.Refused, match="unknown session"):
            await there.terminal("s999").close()


def test_one_opening_is_for_one_block() -> None:
    opening = telex.spawn(CAT)
    with opening as term:
        with pytest.raises(OpenedTwice, match="make a new one"), opening:
            pass
        term.wait("ready")
    with pytest.raises(OpenedTwice), opening:
        pass


def test_blocks_stand_in_one_another() -> None:
    with telex.spawn(CAT) as outer, telex.spawn(CAT) as inner:
        mark = outer.type(f"{inner.wait('ready').snapshot.plain_text.strip()} twice\n")
        outer.wait("ready twice", since=mark)
        assert len(threads()) == 2


async def test_awaited_without_a_block_it_is_the_callers_to_close() -> None:
    term = await telex.spawn(CAT)
    await term.wait("ready")
    await term.close()


async def test_a_terminal_that_was_not_closed_warns_and_its_program_is_ended() -> None:
    forgotten = [await telex.spawn(CAT).__aenter__()]
    caller = forgotten[0]._caller
    assert isinstance(caller, LocalCaller)
    session = caller.session(forgotten[0].id)
    ended = asyncio.get_running_loop().create_future()
    close = caller.close

    async def closing() -> None:
        await close()
        ended.set_result(None)

    caller.close = closing  # type: ignore[method-assign]  # to see its end
    with pytest.warns(ResourceWarning, match="not closed"):
        forgotten.clear()
    await ended
    assert session.closed


def test_a_program_that_ends_at_once_is_read_to_its_end() -> None:
    for _ in range(5):
        with telex.spawn("echo done") as term:
            assert term.wait_exit() == 0
            assert term.text().startswith("done")


def test_a_wait_in_another_thread_ends_with_the_block() -> None:
    told: list[BaseException] = []

    def waiting() -> None:
        try:
            term.wait("never")
        except telex.SessionClosed as closed:
            told.append(closed)

    with telex.spawn(CAT) as term:
        term.wait("ready")
        thread = threading.Thread(target=waiting)
        thread.start()
        term.type("x")
    thread.join(60)
    assert len(told) == 1


@pytest.mark.counted
def test_many_are_spawned_at_once_in_threads(counted: Any) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(2):
                with telex.spawn(["sh", "-c", f"read x; echo $x-{number}"]) as term:
                    term.type("a\n")
                    term.wait(f"a-{number}")
        except BaseException as error:  # noqa: BLE001  told below, in the test's own thread
            failures.append(error)

    many = [threading.Thread(target=work, args=(n,)) for n in range(counted(12, 60))]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    assert not failures


@pytest.mark.parametrize("where", ["wait", "start", "close"])
def test_ctrl_c_ends_a_blocking_wait_and_its_program(where: str, tmp_path: Path) -> None:
    """In a process of its own, as the interrupt is the main thread's."""
    script = {
        "wait": "term.wait('ready'); print(pid(), flush=True); term.wait('never')",
        "close": "term.wait('ready'); print(pid(), flush=True)",
        "start": "pass",
    }[where]
    program = f"""
import sys, threading, telex
from pathlib import Path
from telex.processes import guardian
def pid():
    found = set()
    for path in Path("/proc/self/task").glob("*/children"):
        found.update(int(pid) for pid in path.read_text().split())
    return (found - guardian.pids()).pop()
if {where == "start"}:
    from telex.automation import client
    real = client._started
    async def slow(*args, **how):
        import asyncio
        term = await real(*args, **how)
        print(pid(), flush=True)
        await asyncio.sleep(0.3)
        return term
    client._started = slow
try:
    with telex.spawn({STUBBORN!r}) as term:
        {script}
except KeyboardInterrupt:
    left = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
    print("interrupted", left, flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        pid = int(child.stdout.readline())
        if where == "close":
            time.sleep(0.1)  # into the ladder, which waits for the stubborn
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted []\n"
        assert not alive(pid), "the program is ended before the block is left"
        child.stdin.close()
        assert child.wait(60) == 0


# Its shape.


def _public(kind: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (client.AsyncTerminal, sync.Terminal),
        (telex.AsyncAttachment, telex.Attachment),
        (client.AsyncServer, sync.Server),
    ],
)
def test_the_blocking_twin_has_the_same_methods(there: type, here: type) -> None:
    ours, theirs = _public(here), _public(there)
    assert list(ours) == list(theirs)
    for name, method in theirs.items():
        mine, other = inspect.signature(ours[name]), inspect.signature(method)
        assert mine.parameters == other.parameters, name
        assert mine.return_annotation == other.return_annotation.replace("Async", ""), name
        assert not inspect.iscoroutinefunction(ours[name])
        assert ours[name].__doc__ == _without_await(method.__doc__), name
    assert here.__doc__ == _without_await(there.__doc__)


def _without_await(text: str | None) -> str:
    assert text, "every public method says what it does"
    for word in ("await ", "async ", "Async"):
        text = text.replace(word, "")
    return text


def test_the_names_in_telex_are_public_and_print_with_their_public_module() -> None:
    assert dir(telex) == sorted(telex.__all__)
    for name in telex.__all__:
        assert getattr(telex, name) is not None
    for module in (telex.agent, telex.escapes, telex.htty, telex.match, telex.plugins):
        assert sorted(dir(module)) == sorted(module.__all__), module
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and not issubclass(value, msgspec.Struct):
                assert value.__module__.startswith(("telex.rpc.errors", module.__name__)), value
                assert value.__module__.count(".") <= 2, f"{value} prints where it is defined"
    shown = traceback.format_exception_only(telex.TimedOut("no", {}))
    assert shown == ["telex.TimedOut: no\n"]
    for name in ("Terminal", "AsyncTerminal", "Server", "AsyncServer", "Adapted", "AsyncAdapted"):
        assert repr(getattr(telex, name)) == f"<class 'telex.{name}'>"
    error = telex.TimedOut("no", {"a": 1})
    assert pickle.loads(pickle.dumps(error)).data == {"a": 1}


# `attach`.


@pytest.mark.parametrize("way", ["here", "unix", "web"])
async def test_attaching_sends_the_screen_first_then_the_output_then_the_last_screen(
    server: Serve, way: str
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        script = ["sh", "-c", "printf before; read a; printf after; read b; exit 3"]
        if way == "here":
            term = await stack.enter_async_context(telex.spawn(script))
        else:
            there = telex.connect(getattr(server, way), token=server.token)
            connected = await stack.enter_async_context(there)
            term = await stack.enter_async_context(await connected.spawn(script))
        await term.wait("before")
        async with term.attach() as output:
            first = await output.read()
            assert first is not None
            assert first.reset
            assert b"before" in first.data
            await output.write("\N{LATIN SMALL LETTER E WITH ACUTE}".encode()[:1])
            await output.write("\N{LATIN SMALL LETTER E WITH ACUTE}".encode()[1:] + b"\n")
            seen = b""
            async for chunk in output:
                seen = chunk.data if chunk.reset else seen + chunk.data
                if b"after" in seen:
                    break
            assert "\N{LATIN SMALL LETTER E WITH ACUTE}" in await term.text()
            await output.resize(rows=10, cols=30)
            await output.write(b"\n")
            resets = [chunk.reset async for chunk in output]
            assert resets[-1], "the last chunk draws the final screen"
            assert (output.exit_code, output.exit_signal) == (3, None)
            assert await output.read() is None
        assert (await term.snapshot(cells="none")).size == actions.TerminalSize(10, 30)


def test_a_blocking_attachment_is_iterated_and_takes_much_more_than_its_credit() -> None:
    count = 50_000
    with telex.spawn(["sh", "-c", f"read go; seq {count}"]) as term, term.attach(credit=64) as out:
        out.write(b"\n")
        seen = b"".join(chunk.data for chunk in out)
        assert str(count).encode() in seen
        assert out.exit_code == 0


async def test_an_attachment_that_is_closed_ends_and_the_program_continues() -> None:
    async with telex.spawn(CAT) as term:
        async with term.attach() as output:
            await output.read()
        assert await output.read() is None
        mark = await term.type("still here\n")
        await term.wait("still here", since=mark)
        async with term.attach() as output:
            chunk = await output.read()
            assert chunk is not None
            assert b"still here" in chunk.data


async def test_an_attachment_raises_when_its_session_is_closed_or_its_server_ends(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as served:
        async with telex.connect(served.unix) as there:
            term = await there.spawn(CAT)
            async with term.attach() as output:
                await output.read()
                await there.terminal(term.id).close()
                with pytest.raises(telex.SessionClosed):
                    while True:
                        await output.read()
            term = await there.spawn(CAT)
            async with term.attach() as output:
                await output.read()
                served.process.terminate()
                with pytest.raises(telex.ServerGone):
                    while True:
                        await output.read()


def test_importing_telex_costs_nothing() -> None:
    heavy = "asyncio msgspec pyghostty re2 click starlette websockets telex.terminal telex.match"
    script = (
        "import sys, telex; "
        f"print([m for m in {heavy.split()} if m in sys.modules]); "
        "telex.spawn; "
        "print([m for m in ('pyghostty', 'starlette', 'websockets', 'click') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n[]\n"


def test_every_public_name_is_there_and_no_other() -> None:
    assert {*telex._MODULES, *telex._PACKAGES, "__version__"} == set(telex.__all__)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = telex.nothing_of_the_kind


def _children() -> set[int]:
    return children() - STANDING


# Mistakes with attachments and with what `spawn` returns.


@pytest.mark.parametrize("way", ["here", "unix"])
async def test_every_read_after_the_session_was_closed_raises(server: Serve, way: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        if way == "here":
            term = await stack.enter_async_context(telex.spawn(CAT))
        else:
            connected = await stack.enter_async_context(telex.connect(server.unix))
            term = await connected.spawn(CAT)
        output = await term.attach().__aenter__()
        await output.read()
        await term.close()
        for _ in range(3):
            with pytest.raises(telex.SessionClosed):
                while True:
                    await output.read()
        await output.close()
        await output.close()
        with pytest.raises(telex.SessionClosed, match="attachment was closed"):
            await output.write(b"x")


async def test_a_read_that_is_cancelled_at_the_exit_loses_neither_the_screen_nor_the_end(
    server: Serve,
) -> None:
    async with telex.connect(server.unix) as there:
        term = await there.spawn(["sh", "-c", "read go; printf LAST; exit 4"])
        async with term, term.attach() as output:
            await output.read()
            await output.write(b"\n")
            await term.wait_exit()
            chunks: list[telex.OutputChunk] = []
            for steps in itertools.count():
                reading = asyncio.create_task(output.read())
                for _ in range(steps):  # cancel it at every point it can be cancelled at
                    await asyncio.sleep(0)
                if not reading.done():
                    reading.cancel()
                await asyncio.wait({reading})
                if reading.cancelled():
                    continue
                if (chunk := reading.result()) is None:
                    break
                chunks.append(chunk)
            assert b"LAST" in chunks[-1].data
            assert chunks[-1].reset
            assert output.exit_code == 4


async def test_cancelling_the_entry_of_an_attachment_detaches_it(server: Serve) -> None:
    async with telex.connect(server.unix) as there:
        term = await there.spawn(CAT)
        for steps in range(8):
            entering = asyncio.create_task(term.attach().__aenter__())
            for _ in range(steps):
                await asyncio.sleep(0)
            entering.cancel()
            await asyncio.wait({entering})
            if not entering.cancelled():  # the answer came before the cancel
                await entering.result().close()
        async with term.attach() as output:
            assert await output.read() is not None
            async with asyncio.timeout(60):  # requests on one connection are answered in order
                while len(there._caller.chunks._queues) > 1:
                    await there.sessions()
        await term.close()


async def test_chunks_are_kept_for_an_expected_attachment_and_dropped_after_its_end() -> None:
    chunks, chunk = ChunkRouter(), OutputChunk(b"x")
    with chunks.expected():
        chunks.put("a1", chunk)
        queue = chunks.queue("a1")
    chunks.put("a1", chunk)
    assert queue.qsize() == 2
    chunks.forget("a1")
    chunks.put("a1", chunk)  # it was on the way when the attachment ended
    with chunks.expected():
        assert chunks.queue("a1").empty()


async def test_using_an_attachment_wrongly_is_refused_with_a_sentence() -> None:
    async with telex.spawn(CAT) as term:
        output = term.attach()
        assert repr(output) == f"<AsyncAttachment of {term.id}, not entered>"
        with pytest.raises(RuntimeError, match=r"write `with term\.attach"):
            await output.read()
        async with output:
            assert repr(output) == f"<AsyncAttachment of {term.id}, open>"
            with pytest.raises(OpenedTwice, match="call attach"):
                async with output:
                    pass
        assert await output.read() is None


def test_a_press_needs_a_key() -> None:
    with telex.spawn(CAT) as term:
        assert repr(term) == f"<Terminal {term.id}>"
        with pytest.raises(ValueError, match="at least one key"):
            term.press()


def test_using_a_program_before_it_is_opened_says_how_to_open_it() -> None:
    for opening, how in OPENINGS:
        with pytest.raises(AttributeError) as caught:
            opening.wait("ready")
        name = how.split()[-1].rstrip(":`")
        assert f"is not open: write {how} (or `async with`) and use `{name}.wait`" in str(
            caught.value
        )
        assert "to be opened by `with`" in repr(opening)
        assert not hasattr(opening, "_repr_html_")  # asked by a notebook, not by a person


OPENINGS: list[tuple[Any, str]] = [
    (telex.spawn("ls"), '`with telex.spawn("ls") as term:`'),
    (telex.spawn(CAT), '`with telex.spawn("sh …") as term:`'),
    (telex.connect("unix:"), '`with telex.connect("unix:") as server:`'),
    (telex.adapt("shell"), '`with telex.adapt("shell") as adapted:`'),
    (telex.escapes.connect(), "`with telex.escapes.connect() as term:`"),
    (telex.agent.spawn(), "`with telex.agent.spawn() as agent:`"),
]


def test_using_an_attachment_before_it_is_opened_says_how_to_open_it() -> None:
    with telex.spawn(CAT) as term:
        output = term.attach()
        uses: list[Any] = [
            output.read,
            lambda: output.write(b"x"),
            lambda: output.resize(rows=5, cols=5),
        ]
        for use in uses:
            with pytest.raises(RuntimeError, match=r"write `with term\.attach"):
                use()


def test_a_blocking_call_in_the_loop_of_its_own_client_is_refused() -> None:
    with telex.spawn(CAT) as term:

        async def nested() -> str:
            return term.text()

        with pytest.raises(RuntimeError, match="would wait for itself"):
            term._run(nested())


def test_a_task_that_ignores_its_cancellation_does_not_block_the_end_of_the_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(portal, "CLOSE_SECONDS", 0.2)
    released = threading.Event()
    tasks: list[asyncio.Task[None]] = []

    async def stubborn() -> None:
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.to_thread(released.wait)

    async def begin() -> None:
        tasks.append(asyncio.create_task(stubborn()))

    opened = portal.Portal()
    opened.run(begin())
    with pytest.warns(RuntimeWarning, match="ignores its cancellation"):
        opened.close()
    released.set()
    opened._thread.join(60)


# Waits for what is not a text.


async def test_idleness_absence_and_change_are_waited_for() -> None:
    script = r"stty -echo; printf loading; read x; printf '\rready  '; read x; printf '\r\033[1mready'; read x"
    async with telex.spawn(["sh", "-c", script]) as term:
        await term.wait("loading")
        await term.wait_idle(0.01)
        with pytest.raises(telex.TimedOut, match="the absence of 'loading' did not come"):
            await term.wait_gone("loading", 0.01)
        mark = await term.press("enter")
        await term.wait_gone("loading")
        await term.wait_gone(re.compile("load.ng"))
        await term.wait_change(since=mark)
        screen = await term.snapshot(cells="none")
        with pytest.raises(telex.TimedOut, match=r"a change of the screen did not come"):
            await term.wait_change(0.01, since=screen.sequence)
        waiting = asyncio.create_task(term.wait_change())
        await asyncio.sleep(0)
        mark = await term.type("\n")
        await term.wait_change(since=mark)  # the text is the same, and bold
        await waiting
        with pytest.raises(telex.SessionClosed):
            later = await term.type("\n")
            await term.wait_exit()
            await term.wait_change(since=(await term.snapshot()).sequence)
        assert later


async def test_a_change_needs_a_moment_to_compare_with() -> None:
    async with telex.spawn(CAT) as term:
        with pytest.raises(telex.Refused, match="moment is missing; use the latest mark"):
            await term.wait(matchers.ScreenChanged())


# State that is not in the cells.


STATE = (
    r"stty -echo; printf '\033]2;a title\007\007\007\033]52;c;cGFzc3dvcmQ9aHVudGVyMnNlY3JldA==\007"
    r"\033]4;1;rgb:12/34/56\007see \033]8;;https://example.com/a\033\\the 日 link\033]8;;\033\\.'"
    r"; exec cat"
)


@pytest.mark.parametrize("there", [False, True])
def test_title_bell_clipboard_links_and_palette_are_read(there: bool, server: Serve) -> None:
    def use(term: telex.Terminal, copied: str) -> None:
        term.wait("link.")
        assert term.title() == "a title"
        assert term.bell() == 2
        assert copied in (term.clipboard() or "")
        (link,) = term.links()
        assert (link.row, link.col, link.width) == (0, 4, 11)
        assert (link.text, link.uri) == ("the 日 link", "https://example.com/a")
        palette = term.palette()
        assert palette.colours[1] == "#123456"
        assert (len(palette.colours), palette.foreground[0]) == (256, "#")
        assert "hunter2" not in f"{link!r}{term.clipboard(redact=True)}"

    if there:
        with telex.connect(server.unix) as far, far.spawn(["sh", "-c", STATE]) as term:
            use(term, "password=[REDACTED]")
            assert term.clipboard(redact=False) == "password=hunter2secret"
    else:
        with telex.spawn(["sh", "-c", STATE]) as term:
            use(term, "password=hunter2secret")


COPIES = (
    r"stty -echo; printf '\033]52;c;'; head -c 1500000 /dev/zero | tr '\0' x | base64 -w0;"
    r"printf '\007full '; read line; printf '\033]52;c;\007empty'; exec cat"
)


def test_a_cut_copy_is_a_warning_and_a_cleared_clipboard_is_empty() -> None:
    with telex.spawn(["sh", "-c", COPIES]) as term:
        term.wait("full")
        with pytest.warns(UserWarning, match="copied more than 1 MiB; this is the beginning"):
            assert term.clipboard() == "x" * 1024 * 1024
        term.type("\n")
        term.wait("empty")
        assert term.clipboard() == ""


def test_a_program_that_set_nothing_has_nothing() -> None:
    with telex.spawn(CAT) as term:
        term.wait("ready")
        assert (term.title(), term.bell(), term.clipboard(), term.links()) == (None, 0, None, ())


DESCRIBED = [
    name
    for name in telex.__all__
    if name.removeprefix("Async") in ("Terminal", "Server", "Attachment", "Locator", "Adapted")
]


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_method_has_a_docstring_with_all_its_parameters(name: str) -> None:
    missing = []
    for method, function in inspect.getmembers(getattr(telex, name), inspect.isfunction):
        if method.startswith("_"):
            continue
        parameters = [one for one in inspect.signature(function).parameters if one != "self"]
        described = re.findall(r"^    (\w+): ", inspect.getdoc(function) or "", re.MULTILINE)
        missing += [f"{method}: {one}" for one in parameters if one not in described]
        missing += [] if function.__doc__ else [f"{method}: no docstring"]
    assert not missing


def test_there_are_blocking_and_asyncio_classes_to_look_at() -> None:
    assert len(DESCRIBED) == 10
