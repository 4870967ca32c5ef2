"""`telex call`: one request, its answer as JSON, its refusal as a sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from serving import Serve, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    with serving(tmp_path_factory.mktemp("server")) as one:
        yield one


@pytest.fixture
def call(telex: Run, served: Serve) -> Run:
    def ask(method: str, params: object = None, **env: str) -> CompletedProcess[str]:
        given = [] if params is None else [json.dumps(params)]
        return telex("call", "--to", served.unix, method, *given, **env)

    return ask


@pytest.fixture
def session(call: Run) -> Iterator[Callable[..., str]]:
    ids: list[str] = []

    def create(*argv: str) -> str:
        ran = call("session.create", {"program": argv[0], "args": argv[1:]})
        assert (ran.returncode, ran.stderr) == (0, "")
        ids.append(json.loads(ran.stdout)["session"])
        return ids[-1]

    yield create
    for id in ids:
        assert json.loads(call("session.close", {"session": id}).stdout) == {"closed": True}


def test_a_session_outlives_the_call_that_made_it(call: Run, session: Callable[..., str]) -> None:
    id = session("sh", "-c", "read x; echo got $x; read y")
    call("session.input", {"session": id, "action": {"type": "text", "value": "it\n"}})
    matcher = {"type": "contains_text", "value": "got it"}
    ran = call("session.wait", {"session": id, "matcher": matcher, "cells": "none"})
    assert ran.returncode == 0
    assert json.loads(ran.stdout)["matched"] is True
    assert ran.stdout.count("\n") == 1, "one line, for whoever reads lines"


def test_a_wait_that_times_out_exits_with_124_and_prints_the_screen(
    call: Run, session: Callable[..., str]
) -> None:
    id = session("sh", "-c", "echo here; read x")
    matcher = {"type": "contains_text", "value": "never"}
    ran = call("session.wait", {"session": id, "matcher": matcher, "timeout_ms": 200})
    assert (ran.returncode, ran.stdout) == (124, "")
    sentence, _, data = ran.stderr.partition("\n")
    assert sentence.startswith("telex: 'never' did not come within 2")
    assert json.loads(data)["screen_tail"].startswith("here")


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_the_answer_is_json_whatever_stands_on_the_screen(
    call: Run, session: Callable[..., str], locale: str
) -> None:
    odd = "a\u00a0b\u200bc\u00add\u202ee\U000e0001fé\U0001f600"
    id = session("sh", "-c", f"printf '{odd}'; read x")
    call("session.wait", {"session": id, "matcher": {"type": "contains_text", "value": "d"}})
    settings = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = call("session.transcript", {"session": id}, **settings)
    assert json.loads(ran.stdout)["text"] == odd
    assert "\u202e" not in ran.stdout


def test_escape_sequences_of_a_program_do_not_reach_the_terminal(
    on_terminal: Run, served: Serve, session: Callable[..., str]
) -> None:
    id = session("sh", "-c", "printf '\\033]2;evil\\033\\\\\\302\\2335n'; echo ok; read x")
    asked = json.dumps({"session": id, "matcher": {"type": "contains_text", "value": "ok"}})
    on_terminal("call", "--to", served.unix, "session.wait", asked)
    ran = on_terminal("call", "--to", served.unix, "session.transcript", f'{{"session": "{id}"}}')
    assert "\x1b" not in ran.stdout
    assert "\x9b" not in ran.stdout
    assert '\n  "text":' in ran.stdout, "on a terminal it is for a person"


@pytest.mark.parametrize(
    ("method", "params", "says"),
    [
        ("nothing.here", None, "no such method"),
        ("session.crate", {}, "no such method. Did you mean session.create? (-32601)"),
        ("session.snapshot", {"session": "s999"}, "unknown session: s999"),
        ("session.snapshot", {}, "session"),
        ("session.create", {"program": "no-such-program"}, "no-such-program"),
    ],
)
def test_a_refusal_is_one_sentence_and_1(call: Run, method: str, params: object, says: str) -> None:
    ran = call(method, params)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert says in ran.stderr.splitlines()[0]
    assert ran.stderr.startswith("telex: ")


def test_after_an_unknown_method_the_command_that_lists_them_does(call: Run) -> None:
    _, hint = call("session.crate").stderr.splitlines()
    assert hint == "telex: `telex call server.capabilities` lists every method"
    listed = json.loads(call(hint.split("`")[1].split()[-1]).stdout)
    assert "session.create" in listed["methods"]


@pytest.mark.parametrize("bad", ["{", "nothing", "3", '"x"', "null", "[" * 100_000])
def test_parameters_that_are_not_a_json_object_are_a_usage_error(telex: Run, bad: str) -> None:
    ran = telex("call", "session.list", bad)
    assert ran.returncode == 2
    assert "internal" not in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_parameters_come_from_stdin(served: Serve, environ: dict[str, str]) -> None:
    for given, code in [(b'{"program": ""}', 1), (b"{}", 1), (b"\xff", 2), (b"", 2)]:
        ran = subprocess.run(
            [sys.executable, "-m", "telex", "call", "--to", served.unix, "session.create", "-"],
            input=given,
            env=environ,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == code, ran.stderr


def test_by_the_web_with_a_token(telex: Run, served: Serve) -> None:
    for address in (served.web, f"{served.web}/", f"{served.web.replace('http', 'ws')}/rpc"):
        ran = telex("call", "--to", address, "session.list", TELEX_TOKEN=served.token)
        assert (ran.returncode, json.loads(ran.stdout)) == (0, {"sessions": []})
    ran = telex("call", "--to", served.web, "session.list")
    assert ran.returncode == 1
    assert "TELEX_TOKEN" in ran.stderr
    ran = telex("call", "--to", served.web, "session.list", TELEX_TOKEN="wrong" * 9)
    assert ran.returncode == 4
    assert "refused" in ran.stderr
    assert "wrong" not in ran.stderr


def test_an_address_without_a_server_is_a_one_sentence_error(telex: Run) -> None:
    for address, code, says in (
        ("unix:", 5, "telex serve --socket\n"),
        ("unix:none.sock", 5, "telex serve --socket none.sock\n"),
        ("ws://127.0.0.1:9/rpc", 5, "telex serve --http 127.0.0.1:9\n"),
        ("nonsense", 1, "use unix:PATH or ws://HOST:PORT/rpc\n"),
    ):
        ran = telex("call", "--to", address, "session.list", TELEX_TOKEN="t" * 40)
        assert (ran.returncode, ran.stdout) == (code, "")
        assert ran.stderr.endswith(says)
        assert ran.stderr.count("\n") == 1, ran.stderr
        assert ran.stderr.startswith("telex: ")
        assert "internal" not in ran.stderr


def test_ctrl_c_ends_a_wait_quietly(
    served: Serve, environ: dict[str, str], session: Callable[..., str]
) -> None:
    id = session("cat")
    asked = {"session": id, "matcher": {"type": "title", "value": "x"}, "wait_id": "w"}
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "telex", "call", "--to", served.unix),
            *("session.wait", json.dumps(asked)),
        ],
        env=environ | {"TELEX_TRACE": "rpc"},
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr
        assert "session.wait" in child.stderr.readline(), "it has asked"
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(60) == 130
        assert "Traceback" not in child.stderr.read()
