"""A server that nobody thinks about: the first verb starts it, and it never stands in the way."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telex import cli
from telex.__main__ import VERBS
from telex.cli import server
from telex.server import start, verb_client
from telex.wire import limits

if TYPE_CHECKING:
    from conftest import Telex


def status(telex: Telex) -> dict[str, object]:
    found: dict[str, object] = json.loads(telex("server", "status", "--json").stdout)
    return found


def wait_ended(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(process):
        assert select.select([process], [], [], 60)[0]


@pytest.mark.deadline(180)
def test_fifty_first_calls_start_exactly_one_server(telex: Telex) -> None:
    calls = [telex.start("list") for _ in range(50)]
    for call in calls:
        _, err = call.communicate(timeout=120)
        assert call.returncode == 0, err
    assert len(telex.servers()) == 1
    log = Path(telex.environ["TELEX_HOME"], "state", "logs", start.LOG).read_text()
    assert log.count("listening at") == 1


def test_a_server_is_in_a_session_of_its_own_with_the_unix_socket_only(telex: Telex) -> None:
    assert telex("list", SECRET_OF_THE_CALLER="hunter2", TELEX_TREE=":0f.").returncode == 0
    (pid,) = telex.servers()
    assert b"TELEX_TREE" not in Path(f"/proc/{pid}/environ").read_bytes(), "it outlives the tree"
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert b"SECRET_OF_THE_CALLER" not in Path(f"/proc/{pid}/environ").read_bytes()
    descriptors = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)]
    assert descriptors[0] == os.devnull  # the lock is free
    opened = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {one.removeprefix("socket:[").removesuffix("]") for one in opened}
    listening = [line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert not inodes & set(listening)


def test_a_verb_ends_by_its_deadline_when_the_server_is_stopped(
    telex: Telex, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert telex("list").returncode == 0
    (pid,) = telex.servers()
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(verb_client, "ANSWER_SECONDS", 0.5)

    def ends(verb: str) -> None:
        with pytest.raises(verb_client.NoAnswer, match="telex server stop"):
            verb_client.call([verb, "x"], telex.environ)

    with ThreadPoolExecutor(len(VERBS)) as every:
        assert len(list(every.map(ends, VERBS))) == 12
    monkeypatch.setenv("TELEX_HOME", telex.environ["TELEX_HOME"])
    monkeypatch.setattr(server, "STATUS_SECONDS", 0.5)
    assert cli.main(["server", "stop"]) == 0
    assert "killed, because it did not answer" in capsys.readouterr().err
    wait_ended(pid)
    assert telex("list").returncode == 0


def test_a_verb_whose_server_stops_halfway_ends_by_what_was_announced() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(b'{"jsonrpc":"2.0","method":"verb.deadline","params":{"seconds":0.2}}\n')
        with pytest.raises(verb_client.NoAnswer, match=r"within 0\.2 s"):
            verb_client.exchange(ours, b"{}\n", time.monotonic() + 600)
    ours.close()


def test_a_killed_server_leaves_no_socket_in_the_way(telex: Telex) -> None:
    assert telex("list").returncode == 0
    (pid,) = telex.servers()
    os.kill(pid, signal.SIGKILL)
    wait_ended(pid)
    assert telex.socket.exists()
    again = telex("list")
    assert again.returncode == 0, again.stderr
    assert telex.servers() != [pid]


def test_a_newer_telex_replaces_an_idle_server_and_not_one_in_use(
    telex: Telex, tmp_path: Path
) -> None:
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "sitecustomize.py").write_text(
        "import telex.version\ntelex.version.__version__ = '99.0'\n"
    )
    later = {"PYTHONPATH": str(newer)}
    assert telex("open", "--", "cat").returncode == 0
    (old,) = telex.servers()
    held = telex("see", **later)
    assert held.returncode == 1
    assert "and this is telex 99.0; it holds 1 sessions" in held.stderr
    assert "cat" in telex("list", **later).stdout
    assert telex("close", "--all", **later).returncode == 0
    replaced = telex("open", "--", "cat", **later)
    assert replaced.returncode == 0, replaced.stderr
    assert "it held nothing and is replaced" in replaced.stderr
    wait_ended(old)
    (new,) = telex.servers()
    assert "telex 99.0, pid" in telex("server", "status", **later).stdout
    assert telex("see").returncode == 0, "an older telex uses a newer server"
    assert telex.servers() == [new]


def test_a_call_that_is_killed_while_it_starts_the_server_blocks_no_other(telex: Telex) -> None:
    for _ in range(3):
        call = telex.start("list")
        call.kill()
        call.communicate()
    later = telex("list")
    assert later.returncode == 0, later.stderr
    assert len(telex.servers()) == 1


def test_a_server_that_cannot_start_is_explained_with_its_log(telex: Telex) -> None:
    config = Path(telex.environ["TELEX_HOME"], "config.toml")
    config.parent.mkdir(mode=0o700)
    config.write_text("nonsense = [")
    refused = telex("list")
    assert refused.returncode == 5
    assert "the server ended while it started" in refused.stderr
    assert "config.toml" in refused.stderr
    assert telex.servers() == []


def test_status_stop_and_logs(telex: Telex) -> None:
    nothing = telex("server", "status")
    assert nothing.returncode == 5
    assert "any verb starts one" in nothing.stderr
    assert telex("server", "logs").returncode == 1
    assert telex("list").returncode == 0
    (pid,) = telex.servers()
    assert f"pid {pid}" in telex("server", "status").stdout
    assert status(telex)["pid"] == pid
    assert "listening at" in telex("server", "logs").stdout
    stopped = telex("server", "stop")
    assert stopped.returncode == 0
    assert f"pid {pid}" in stopped.stderr
    assert telex.servers() == []
    assert not telex.socket.exists()


def test_an_input_is_that_of_the_process_that_ran_the_verb(telex: Telex) -> None:
    assert telex("do", "open -- cat", "type hello --enter").returncode == 0
    asked = telex("call", "session.inputs", '{"session": "s1"}')
    authors = [one["who"] for one in json.loads(asked.stdout)["inputs"]]
    assert {(who["kind"], who["pid"], who["uid"]) for who in authors} == {
        ("process", os.getpid(), os.getuid())
    }


def test_the_lock_is_waited_for_no_longer_than_the_deadline(telex: Telex) -> None:
    telex.runtime.mkdir(parents=True, mode=0o700)
    lock = start._locked(telex.runtime)
    try:
        with pytest.raises(verb_client.NoAnswer, match="being started or stopped"):
            start.start_server(str(telex.socket), time.monotonic() + 0.2)
    finally:
        os.close(lock)


def test_a_server_that_ends_is_waited_for_before_another_starts(telex: Telex) -> None:
    telex.runtime.mkdir(parents=True, mode=0o700)
    with (telex.runtime / "telex.sock.lock").open("w") as ending:
        fcntl.flock(ending, fcntl.LOCK_EX)
        with pytest.raises(verb_client.NoAnswer, match="being started or stopped"):
            start.start_server(str(telex.socket), time.monotonic() + 0.2)
    assert telex.servers() == []
    assert telex("list").returncode == 0


@pytest.mark.parametrize("accepted", [False, True])
def test_a_call_is_repeated_if_the_server_ends_before_it_accepts_it(accepted: bool) -> None:
    ours, theirs = socket.socketpair()
    deadline = b'{"jsonrpc":"2.0","method":"verb.deadline","params":{"seconds":30}}\n'
    ending = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"It ends.","data":{"kind":"server_ending"}}}\n'
    with theirs, ours:
        theirs.sendall(deadline + ending if accepted else ending)
        until = time.monotonic() + 30
        if accepted:
            assert verb_client.exchange(ours, b"{}\n", until)["stderr"] == "telex: It ends.\n"
        else:
            with pytest.raises(verb_client.NotAccepted):
                verb_client.exchange(ours, b"{}\n", until)


def test_a_server_whose_queue_is_full_is_waited_for_and_can_be_stopped(
    telex: Telex, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert telex("list").returncode == 0
    (pid,) = telex.servers()
    os.kill(pid, signal.SIGSTOP)
    waiting = []
    try:
        while True:
            one = socket.socket(socket.AF_UNIX)
            waiting.append(one)
            one.setblocking(False)
            one.connect(str(telex.socket))
    except BlockingIOError:
        pass
    begin = time.monotonic()
    with pytest.raises(verb_client.NoAnswer):
        verb_client.connected(str(telex.socket), time.monotonic() + 0.3)
    assert time.monotonic() - begin >= 0.25
    monkeypatch.setenv("TELEX_HOME", telex.environ["TELEX_HOME"])
    monkeypatch.setattr(server, "STATUS_SECONDS", 0.2)
    assert cli.main(["server", "status"]) == 124
    assert cli.main(["server", "stop"]) == 0
    assert f"pid {pid}" in capsys.readouterr().err
    for one in waiting:
        one.close()
    wait_ended(pid)
    assert telex("list").returncode == 0


def test_a_server_that_is_stopped_while_it_starts_can_be_ended(
    telex: Telex, monkeypatch: pytest.MonkeyPatch
) -> None:
    telex.runtime.mkdir(parents=True, mode=0o700)
    lock = start._locked(telex.runtime)
    child = subprocess.Popen(["sleep", "600"], pass_fds=[lock])
    os.pwrite(lock, f"{child.pid}\n".encode(), 0)
    os.close(lock)  # the child holds it, as a starting server does
    monkeypatch.setenv("TELEX_HOME", telex.environ["TELEX_HOME"])
    assert start.recorded_server(telex.runtime) == child.pid
    assert cli.main(["server", "stop"]) == 0
    assert child.wait(60) == -signal.SIGKILL
    assert start.recorded_server(telex.runtime) is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["type", b"\xff"], 2, "is not UTF-8"),
        (["press", "-s", "none", "-"], 1, "none"),
        (["open", "x", "--", "cat", "-"], 0, ""),
    ],
)
def test_only_type_paste_and_do_read_standard_input(
    telex: Telex, words: list[str | bytes], code: int, said: str
) -> None:
    """The pipe is never closed: a verb that read it would not end."""
    reading, writing = os.pipe()
    done = subprocess.run(
        [sys.executable, "-m", "telex", *words],
        env=telex.environ,
        cwd=telex.work,
        stdin=reading,
        capture_output=True,
        timeout=60,
        check=False,
    )
    os.close(reading)
    os.close(writing)
    assert done.returncode == code, done.stderr
    assert said in done.stderr.decode()


def test_a_pipe_that_nobody_closes_ends_by_the_deadline(
    telex: Telex, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    before = os.dup(0)
    os.dup2(reading, 0)
    try:
        monkeypatch.setattr(verb_client, "ANSWER_SECONDS", 0.2)
        monkeypatch.setattr(sys, "stdin", os.fdopen(0, closefd=False))
        with pytest.raises(verb_client.NoAnswer, match="standard input did not end"):
            verb_client.call(["do"], telex.environ)
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(verb_client.NotSent, match="standard input is closed"):
            verb_client.call(["type", "-"], telex.environ)
    finally:
        os.dup2(before, 0)
        for fd in (reading, writing, before):
            os.close(fd)


def test_an_endless_standard_input_is_refused(telex: Telex) -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        done = subprocess.run(
            [sys.executable, "-m", "telex", "type", "-"],
            env=telex.environ,
            stdin=endless.stdout,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        endless.kill()
    assert done.returncode == 2
    assert done.stderr == "telex: a verb takes at most 16 MiB; send the text in parts\n"
    assert verb_client.MESSAGE_BYTES == limits.LINE_BYTES


def test_a_verb_works_in_a_directory_that_was_removed(telex: Telex) -> None:
    gone = telex.work / "gone"
    script = f"mkdir {gone}; cd {gone}; rmdir {gone}; {sys.executable} -m telex list"
    done = subprocess.run(
        ["sh", "-c", script], env=telex.environ, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_server_of_another_user_gets_nothing(
    telex: Telex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In /tmp anybody may create the directory of the socket first."""
    telex.runtime.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(telex.socket))
        theirs.listen()
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(verb_client.ForeignServer, match="run by user") as refused:
            verb_client.call(["open", "--", "cat"], telex.environ)
        assert refused.value.exit_code == 4
        connection, _ = theirs.accept()
        with connection:
            assert connection.recv(1) == b""


def test_a_relative_home_is_refused_and_nothing_is_created(telex: Telex) -> None:
    refused = telex("list", TELEX_HOME="somewhere")
    assert refused.returncode == 1
    assert "absolute path" in refused.stderr
    assert list(telex.work.iterdir()) == []


@pytest.mark.parametrize("module", ["verb_client", "mcp_relay"])
def test_the_client_of_a_verb_and_the_relay_import_almost_nothing(module: str) -> None:
    """`json`, `re`, `socket` or `typing` would each cost as much as all of it."""
    code = (
        "import sys; before = set(sys.modules)\n"
        f"import telex.__main__, telex.server.{module} as client\n"
        "client.decode_json(client.encode_json({'a': [1, 'b']}))\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    ours = {name for name in done.stdout.split() if name.partition(".")[0] != "telex"}
    assert ours <= {"__future__", "_json", "_socket", "errno", "select", "time"}
    assert "telex.automation.verb_commands" not in done.stdout


def test_a_text_that_is_no_json_is_refused_also_without_the_json_module() -> None:
    """In a new interpreter, because the scanner behaves otherwise once `json` is imported."""
    texts = ["garbage", "{", '"', '{"a"', '{"a":1,}', '{"a":"\\u12"}', "[", "-", ""]
    code = (
        "import sys; from telex.server.verb_client import decode_json\n"
        f"for text in {texts!r}:\n"
        "    try: decode_json(text)\n"
        "    except ValueError: print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["refused"] * len(texts)), done.stderr
