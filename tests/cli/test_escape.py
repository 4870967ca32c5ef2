"""`telex escape`: told or asked, on the terminal whatever stdout is, with codes that mean something."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from escapes.terminals import SILENT, Manners, ran, terminal
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

ESCAPE = ("-m", "telex", "escape")


async def test_a_command_without_wait_is_one_frame_on_the_terminal_and_prints_nothing() -> None:
    async with terminal() as fake:
        code, out, err = await ran(fake, *ESCAPE, "term:title", '{"title": "é"}')
        assert (code, out, err) == (0, "", "")
        frame = await fake.gets(b"term:title")
        assert json.loads(frame) == {"command": "term:title", "data": {"title": "é"}}
        assert frame.isascii()
        assert fake.asked == 0, "whether it understands is not looked at"
        assert fake.restored()


async def test_inside_tmux_it_is_wrapped() -> None:
    async with terminal(Manners(multiplexer="tmux")) as fake:
        assert (await ran(fake, *ESCAPE, "term:bell", TMUX="x"))[0] == 0
        assert json.loads(await fake.gets(b"term:bell")) == {"command": "term:bell"}


async def test_waiting_prints_the_answer_as_one_line_of_json() -> None:
    def report(data: dict[str, Any]) -> dict[str, Any]:
        return {"row": 3, "col": 4, "asked": data}

    async with terminal(None, term_report=report) as fake:
        code, out, err = await ran(fake, *ESCAPE, "--wait", "term:report", '{"what": "cursor"}')
        assert (code, err) == (0, "")
        assert out.count("\n") == 1
        assert json.loads(out) == {"row": 3, "col": 4, "asked": {"what": "cursor"}}
        assert fake.restored()
        assert bytes(fake.shown) == b""


async def test_a_command_refused_by_the_person_exits_with_4_and_prints_the_error_code() -> None:
    def refuse(data: dict[str, Any]) -> None:
        raise RpcError("ECDENIED", "The person said no.")

    async with terminal(None, clip_read=refuse) as fake:
        code, out, err = await ran(fake, *ESCAPE, "--wait", "clip:read")
        assert (code, out, err) == (4, "", "telex: The person said no. (ECDENIED)\n")
        code, _, err = await ran(fake, *ESCAPE, "--wait", "--unchecked", "x:unknown")
        assert code == 3
        assert "ECNOCMD" in err


async def test_a_terminal_that_does_not_speak_it_is_3() -> None:
    async with terminal(Manners(answers=[SILENT])) as fake:
        code, out, err = await ran(fake, *ESCAPE, "--wait", "ping")
        assert (code, out) == (3, "")
        assert err.startswith("telex: the terminal does not speak JSON escapes (no 23198)")
        assert "telex run -- bash" in err
        assert fake.restored()


async def test_no_answer_in_time_is_124() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async with terminal(None, x_never=never) as fake:
        asked = ("--wait", "--unchecked", "--timeout", "0.2", "x:never")
        code, out, err = await ran(fake, *ESCAPE, *asked)
        assert (code, out, err) == (124, "", "telex: x:never: no answer within 0.2 s\n")
        assert fake.restored()


def test_without_a_terminal_it_says_so_and_is_3(telex: Run) -> None:
    import subprocess
    import sys

    for wait in ([], ["--wait"]):
        ran = subprocess.run(
            [sys.executable, *ESCAPE, *wait, "term:bell"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (3, "")
        assert ran.stderr.startswith("telex: no terminal to connect to")


def test_raw_is_the_bytes_on_stdout(telex: Run) -> None:
    ran = telex("escape", "--raw", "progress:set", '{"value": 40}')
    assert ran.returncode == 0
    body = '{"command":"progress:set","data":{"value":40}}'
    assert ran.stdout == f"\x1b]23198;{len(body)};{body}\x07"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["term:title", "{"], "not valid JSON"),
        (["term:title", '{"title": 3}'], "the data of term:title is not valid"),
        (["term:title"], "the data of term:title is not valid"),
        (["term:titel", '{"title": "x"}'], "unknown command term:titel. Did you mean term:title?"),
        (["zzzzz"], "unknown command zzzzz. --unchecked sends it anyway."),
        (
            ["term:title", '{"titel": "x"}'],
            "unknown member `titel` - at `$`; did you mean `title`?",
        ),
        (["--wait", "--raw", "ping"], "--raw excludes --wait"),
        (["--timeout", "0", "ping"], "0.0"),
        ([], "COMMAND"),
    ],
)
def test_invalid_arguments_exit_with_2(telex: Run, args: list[str], said: str) -> None:
    ran = telex("escape", *args)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr


def test_what_telex_does_not_know_is_sent_unchecked(telex: Run) -> None:
    ran = telex("escape", "--raw", "--unchecked", "mine:own", '{"a": 1}')
    assert (ran.returncode, ran.stderr) == (0, "")
    assert '{"command":"mine:own","data":{"a":1}}' in ran.stdout


def test_a_frame_that_no_terminal_surely_takes_is_refused(telex: Run) -> None:
    ran = telex("escape", "--raw", "term:write", json.dumps({"text": "x" * 3000}))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "at most 20" in ran.stderr
