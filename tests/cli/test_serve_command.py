"""`telex serve` as a command: its doors, its token, and what it says when one cannot open."""

from __future__ import annotations

import json
import re
import signal
import socket
import stat
from typing import TYPE_CHECKING

import httpx
import pytest

from serving import telex_child
from telex.cli import main

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

TOKEN = "a-token-of-forty-characters-or-more-0123456789"


def serve(
    environ: dict[str, str], work: Path, *options: str, **env: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    return telex_child(environ | env, work, "serve", *options)


def said(child: subprocess.Popen[str]) -> str:
    assert child.stderr
    return child.stderr.readline()


def test_without_a_listener_serve_uses_stdio_and_ends_at_end_of_input(
    environ: dict[str, str], work: Path
) -> None:
    with serve(environ, work) as child:
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.list"})
        out, err = child.communicate(f"{asked}\n", timeout=60)
        assert json.loads(out) == {"jsonrpc": "2.0", "id": 1, "result": {"sessions": []}}
        assert (child.returncode, err) == (0, "")


def test_a_last_line_without_a_newline_is_answered(environ: dict[str, str], work: Path) -> None:
    with serve(environ, work) as child:
        asked = [{"jsonrpc": "2.0", "id": n, "method": "session.list"} for n in range(2)]
        out, _ = child.communicate("\n".join(map(json.dumps, asked)), timeout=10)
        assert [json.loads(line)["id"] for line in out.splitlines()] == [0, 1]
    with serve(environ, work) as child:
        out, _ = child.communicate(json.dumps(asked[0])[:-1], timeout=10)
        assert json.loads(out)["error"]["code"] == -32700


def test_the_socket_without_a_path_is_where_clients_look_first(
    telex: Run, environ: dict[str, str], work: Path
) -> None:
    with serve(environ, work, "--socket") as child:
        path = re.fullmatch(r"telex: listening at unix:(\S+)\n", said(child))
        assert path is not None
        assert path[1].startswith(environ["TELEX_HOME"])
        mode = (work / path[1]).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert mode & 0o777 == 0o600
        assert json.loads(telex("call", "session.list").stdout) == {"sessions": []}
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
        assert not (work / path[1]).exists()


def test_two_servers_at_one_socket_is_a_sentence_for_the_second(
    telex: Run, environ: dict[str, str], work: Path
) -> None:
    with serve(environ, work, "--socket", "a.sock") as child:
        said(child)
        ran = telex("serve", "--socket", "a.sock")
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr.startswith("telex: another server listens at a.sock; use that one")
        assert telex("call", "--to", "unix:a.sock", "session.list").returncode == 0


def test_something_else_at_the_path_is_left_alone(telex: Run, work: Path) -> None:
    (work / "file").write_text("mine")
    ran = telex("serve", "--socket", "file")
    assert ran.returncode == 1
    assert ran.stderr == "telex: file is not a socket; move it away or choose another path\n"
    assert (work / "file").read_text() == "mine"
    ran = telex("serve", "--socket", "x" * 200)
    assert ran.returncode == 1
    assert "choose a shorter one" in ran.stderr


@pytest.mark.parametrize(
    "address", ["8023", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x", "a:-1"]
)
def test_an_invalid_address_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], address: str
) -> None:
    assert main(["serve", "--http", address]) == 2
    said = capsys.readouterr().err
    assert "is not HOST:PORT" in said
    assert said.count("\n") == 1


def test_a_port_that_is_taken_is_a_sentence(telex: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = telex("serve", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert ran.returncode == 1
    assert ran.stderr.startswith("telex: ")
    assert "internal error" not in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_the_world_is_not_let_in_by_accident(telex: Run) -> None:
    ran = telex("serve", "--http", "0.0.0.0:0")
    assert ran.returncode != 0
    assert "--allow-remote" in ran.stderr
    assert "internal error" not in ran.stderr


def test_a_random_token_is_printed_once(environ: dict[str, str], work: Path) -> None:
    tokens = set()
    for given in ({}, {"TELEX_TOKEN": ""}):
        with serve(environ, work, "--http", ":0", **given) as child:
            url = re.search(r"http://127\.0\.0\.1:\d+/rpc", said(child))
            assert url is not None
            assert said(child).endswith("/rpc/agent\n")
            assert said(child).endswith("/rpc/escapes/SESSION\n")
            assert said(child).endswith("/mcp\n")
            token = re.fullmatch(r"telex: token (\S{40,})\n", said(child))
            assert token is not None
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
            assert (out, child.returncode) == ("", 0)
            assert token[1] not in err
            tokens.add(token[1])
    assert len(tokens) == 2


def test_a_token_from_the_environment_is_not_printed(environ: dict[str, str], work: Path) -> None:
    with serve(environ, work, "--http", "[::1]:0", TELEX_TOKEN=TOKEN) as child:
        for _ in ("automation", "agent", "escapes", "mcp"):
            assert "http://[::1]:" in said(child)
        assert said(child) == "telex: the token is in TELEX_TOKEN\n"
        child.terminate()
        out, err = child.communicate(timeout=60)
        assert TOKEN not in out + err


def test_a_browser_gets_a_page_that_describes_the_server(
    environ: dict[str, str], work: Path
) -> None:
    with serve(environ, work, "--http", ":0", TELEX_TOKEN=TOKEN) as child:
        found = re.search(r"http://127\.0\.0\.1:\d+", said(child))
        assert found is not None
        person, proof = {"accept": "text/html,*/*;q=0.8"}, {"authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=found[0], trust_env=False) as web:
            for path in ("/", "/rpc/automation"):
                page = web.get(path, headers=person)
                assert page.status_code == 401
                assert "telex call --to URL session.list" in page.text
                assert web.get(path).json()["reason"] == "token"
            for path, status, reason in (("/x", 404, "path"), ("/rpc/automation", 405, "method")):
                page = web.get(path, headers=person | proof)
                assert (page.status_code, "<main>" in page.text) == (status, True)
                assert web.get(path, headers=proof).json()["reason"] == reason
        child.terminate()
        child.communicate(timeout=60)


def test_a_weak_token_is_refused_at_start(telex: Run) -> None:
    ran = telex("serve", "--http", "127.0.0.1:0", TELEX_TOKEN="short")
    assert ran.returncode == 1
    assert "TELEX_TOKEN must have" in ran.stderr
    assert "internal error" not in ran.stderr


def test_the_server_continues_when_stdio_ends_beside_another_listener(
    telex: Run, environ: dict[str, str], work: Path
) -> None:
    with serve(environ, work, "--socket", "a.sock", "--stdio") as child:
        said(child)
        assert child.stdin
        child.stdin.close()
        child.stdin = None
        assert telex("call", "--to", "unix:a.sock", "session.list").returncode == 0
        assert child.poll() is None


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_it_runs_without_uvloop_as_with_it(
    telex: Run, environ: dict[str, str], work: Path, tmp_path: Path, loop: str
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    if loop == "asyncio":  # as if it were not installed
        (hidden / "sitecustomize.py").write_text(
            "import importlib.util as u\nfound = u.find_spec\n"
            "u.find_spec = lambda name, *a: None if name == 'uvloop' else found(name, *a)\n"
        )
    with serve(environ, work, "--socket", "a.sock", PYTHONPATH=str(hidden)) as child:
        said(child)
        asked = '{"program": "sh", "args": ["-c", "echo hi; read x"]}'
        to = ("call", "--to", "unix:a.sock")
        assert json.loads(telex(*to, "session.create", asked).stdout) == {"session": "s1"}
        matcher = '{"session": "s1", "matcher": {"type": "contains_text", "value": "hi"}}'
        assert telex(*to, "session.wait", matcher).returncode == 0


# Adapters.


def written(directory: Path, name: str) -> Path:
    """A small plugin on disk."""
    directory.mkdir(parents=True)
    source = 'return {classify = function() return {state = "here", confidence = 1} end}'
    (directory / "main.lua").write_text(source)
    manifest = directory / "manifest.toml"
    manifest.write_text(
        f'name = "{name}"\nkind = "adapter"\nversion = "1"\nruntime = "lua"\n'
        'entrypoint = "main.lua"\npermissions = ["session.spawn", "screen.read"]\n'
    )
    return manifest


def asked(child: subprocess.Popen[str], *requests: tuple[str, dict[str, object]]) -> list[object]:
    """The results, or the errors, of these requests, in their order."""
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        for id, (method, params) in enumerate(requests)
    ]
    out, _ = child.communicate("\n".join(lines) + "\n", timeout=20)
    answers = {(answer := json.loads(line))["id"]: answer for line in out.splitlines()}
    return [answers[id].get("result", answers[id].get("error")) for id in range(len(requests))]


@pytest.mark.parametrize("option", ["--adapter", "--plugin"])
def test_adapters_are_loaded_by_manifest_or_directory(
    environ: dict[str, str], work: Path, option: str
) -> None:
    options = [
        option,
        str(written(work / "one", "one")),
        option,
        str(written(work / "two", "two").parent),
    ]
    with serve(environ, work, "--serial", *options) as child:
        started, listed = asked(
            child, ("adapter.start", {"plugin": "two", "program": "cat"}), ("adapter.list", {})
        )
    assert started["state"]["state"] == "here"
    assert {"one", "two", "shell", "claude-code"} <= {one["name"] for one in listed["plugins"]}


def test_a_persons_own_adapters_are_there_and_bad_ones_get_a_line(
    environ: dict[str, str], work: Path
) -> None:
    places = work.parent / "home" / "data" / "adapters"
    written(places / "mine", "mine")
    written(places / "also", "shell")
    written(places / "broken", "")
    with serve(environ, work) as child:
        lines = [said(child), said(child)]
        (listed,) = asked(child, ("adapter.list", {}))
    assert "mine" in {one["name"] for one in listed["plugins"]}
    assert all(line.startswith("telex: not loaded: ") for line in lines)
    assert "broken" in "".join(lines)
    assert "shell" in "".join(lines)


def test_an_adapter_that_was_named_and_is_no_good_keeps_the_server_from_starting(
    telex: Run, work: Path
) -> None:
    bad = written(work / "bad", "")
    ended = telex("serve", "--adapter", str(bad))
    assert ended.returncode == 1
    assert "name" in ended.stderr
    assert str(bad) in ended.stderr
    ended = telex("serve", "--adapter", str(work / "nowhere"))
    assert ended.returncode == 2
    assert "telex adapter new" in ended.stderr
    ended = telex("serve", "--adapter", str(written(work / "mine", "shell")))
    assert ended.returncode == 1
    assert "shell" in ended.stderr


def test_plugins_may_be_loaded_where_the_server_allows_it(
    environ: dict[str, str], work: Path
) -> None:
    load = ("plugin.load", {"manifest_path": str(written(work / "one", "one"))})
    with serve(environ, work, "--allow-plugin-load") as child:
        assert asked(child, load) == [{"plugin": "one"}]
    with serve(environ, work) as child:
        (refused,) = asked(child, load)
    assert refused["code"] == -32004
