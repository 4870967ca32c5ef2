"""The builtin adapters with real programs, through the server: a shell, an interpreter, a pager."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from automating import Client, Serving
from telex.automation import protocol as spec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Driven:
    """An adapter, and the connection that drives it."""

    def __init__(self, client: Client, adapter: str) -> None:
        self.client, self.adapter = client, adapter

    async def turn(self, intent: str, *, wait: str = "wait_turn_matcher", **params: Any) -> Any:
        """Send, wait, and return the state at the end."""
        answer = await self.client.call(
            "adapter.turn",
            adapter=self.adapter,
            send={"intent": intent, "params": params},
            wait={"intent": wait, "timeout_ms": 15_000},
        )
        return answer["state"]

    async def send(self, intent: str, **params: Any) -> Any:
        answer = await self.client.call(
            "adapter.send", adapter=self.adapter, intent=intent, params=params
        )
        return answer["state"]

    async def wait(self, intent: str = "wait_turn_matcher", **params: Any) -> Any:
        answer = await self.client.call(
            "adapter.wait", adapter=self.adapter, intent=intent, params=params, timeout_ms=15_000
        )
        return answer["state"]

    async def refused(self, intent: str, **params: Any) -> str:
        """Return the code of the plugin's refusal."""
        refusal = await self.client.refused(
            "adapter.send", adapter=self.adapter, intent=intent, params=params
        )
        assert refusal.data["plugin"] in refusal.message
        return str(refusal.data["reason"])

    async def screen(self) -> str:
        shown = await self.client.call("adapter.snapshot", adapter=self.adapter, cells="none")
        return str(shown["plain_text"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with a custom prompt."""
    directory = tmp_path / "home"
    directory.mkdir()
    (directory / ".bashrc").write_text("PS1='ann@box:\\W$ '\n")
    return directory


@pytest.fixture
def starting(tmp_path: Path, home: Path) -> Any:
    """Yield an adapter at its first prompt: `async with starting("shell", args=…) as driven:`."""

    @asynccontextmanager
    async def start(plugin: str, env: dict[str, str | None] | None = None, **how: Any) -> Any:
        (tmp_path / "sockets").mkdir()
        serving = Serving("unix, ndjson", tmp_path / "sockets")
        async with serving() as client:
            started = await client.call(
                "adapter.start",
                plugin=plugin,
                cwd=str(home),
                env={"HOME": str(home), **(env or {})},
                **how,
            )
            driven = Driven(client, started["adapter"])
            await driven.wait()
            yield driven

    return start


# bash


async def test_bash_reports_the_exit_code_of_a_command(starting: Any, home: Path) -> None:
    async with starting("shell") as bash:
        state = await bash.turn("run", command="false")
    assert (state["state"], state["rule"]) == ("prompt", "osc133_prompt")
    assert state["last_intent"] == "command_submitted"
    assert state["metadata"]["exit_code"] == 1
    assert state["metadata"]["command"] == "false"
    assert state["metadata"]["prompt"] == "ann@box:~$"
    assert state["metadata"]["cwd"] == str(home)


async def test_every_turn_of_bash_ends_with_its_own_prompt(
    starting: Any, counted: Callable[[int, int], int]
) -> None:
    """The old prompt, still shown when the wait begins, is not taken for the new one."""
    async with starting("shell") as bash:
        for number in range(counted(15, 300)):
            state = await bash.turn("run", command=f"(exit {number % 100})")
            assert state["metadata"]["exit_code"] == number % 100
            assert state["metadata"]["command"] == f"(exit {number % 100})"


async def test_a_long_command_runs_until_it_is_interrupted(starting: Any) -> None:
    async with starting("shell") as bash:
        # The program prints this itself, in the foreground: bash loses an interrupt that comes
        # between its own `echo` and the start of the next command.
        command = "sh -c 'echo begun; exec sleep 100'"
        await bash.send("run", command=command)
        state = await bash.wait("wait_output_matcher", text="begun")
        assert (state["state"], state["metadata"]["command"]) == ("running", command)
        assert await bash.refused("run", command="ls") == "not_at_prompt"
        state = await bash.turn("interrupt")
    assert (state["state"], state["metadata"]["exit_code"]) == ("prompt", 130)


async def test_the_echo_of_a_command_is_not_its_output(starting: Any) -> None:
    async with starting("shell") as bash:
        await bash.send("run", command="sleep 0.3; printf 'do%s\\n' ne # done")
        await bash.wait("wait_output_matcher", text="done")
        assert "\ndone" in await bash.screen()


async def test_an_unfinished_quote_ends_the_wait(starting: Any) -> None:
    async with starting("shell") as bash:
        state = await bash.turn("run", command="echo 'one")
        assert (state["state"], state["rule"]) == ("continuation", "osc133_continuation")
        await bash.send("type", text="two'")
        await bash.send("key", key="enter")
        state = await bash.wait("wait_prompt_matcher")
        assert state["metadata"]["command"] == "echo 'one\ntwo'"
        assert "one\ntwo\n" in await bash.screen()


async def test_several_lines_are_one_command(starting: Any) -> None:
    script = "for name in a b; do\n\techo got $name\n\n\tsleep 0.1\ndone\n(exit 4)"
    async with starting("shell") as bash:
        state = await bash.turn("run", command=script)
        assert state["metadata"]["exit_code"] == 4
        assert "got a\ngot b\n" in await bash.screen()


async def test_a_password_is_answered_and_not_disclosed(starting: Any, home: Path) -> None:
    fake = home / "sudo"
    fake.write_text(
        "read -s -p '[sudo] password for ann: ' word; echo\n"
        "while [ \"$word\" != hunter2 ]; do echo 'Sorry, try again.'\n"
        "read -s -p '[sudo] password for ann: ' word; echo; done; echo granted\n"
    )
    async with starting("shell") as bash:
        assert await bash.refused("answer_password", password="hunter2") == "no_password_prompt"
        state = await bash.turn("run", command="bash sudo")
        assert state["state"] == "password_prompt"
        state = await bash.turn("answer_password", password="wrong-one")
        assert state["state"] == "password_prompt"  # the new prompt, not the old one
        assert "Sorry, try again." in await bash.screen()
        state = await bash.turn("answer_password", password="hunter2")
        assert (state["state"], state["metadata"]["exit_code"]) == ("prompt", 0)
        said = await bash.client.call("adapter.inspect", adapter=bash.adapter, redact=False)
    assert "granted" in said["plain_text"]
    assert "hunter2" not in str(said) + str(state)


async def test_no_password_is_typed_where_it_would_be_shown(starting: Any) -> None:
    async with starting("shell") as bash:
        await bash.send("run", command="read -p 'Password: ' word")
        state = await bash.wait("wait_output_matcher", regex="Password: $")
        assert state["state"] == "running"
        assert await bash.refused("answer_password", password="hunter2") == "no_password_prompt"


async def test_a_line_half_typed_is_not_run_with_another(starting: Any) -> None:
    async with starting("shell") as bash:
        await bash.send("type", text="rm -r")
        state = await bash.wait("wait_output_matcher", regex="rm -r")
        assert state["metadata"]["typed"] == "rm -r"
        assert await bash.refused("run", command="ls") == "line_not_empty"
        await bash.turn("interrupt")
        assert (await bash.turn("run", command="true"))["metadata"]["exit_code"] == 0


async def test_a_line_submitted_by_keys_is_waited_for_too(starting: Any) -> None:
    async with starting("shell") as bash:
        await bash.turn("run", command="true")
        await bash.send("type", text="sleep 0.3; (exit 9)")
        state = await bash.turn("key", key="enter")
    assert state["metadata"]["exit_code"] == 9


async def test_bash_without_marks_is_recognised_by_its_prompt(starting: Any) -> None:
    async with starting("shell", env={"PROMPT_COMMAND": None}) as bash:
        state = await bash.turn("run", command="sleep 0.5; echo over")
        assert (state["state"], state["rule"]) == ("prompt", "prompt_row")
        assert "\nover\n" in await bash.screen()
        assert (await bash.turn("run", command="echo 'open"))["state"] == "continuation"
        assert (await bash.turn("interrupt"))["state"] == "prompt"


@pytest.mark.parametrize("exported", [{}, {"PS1": "(venv) $ ", "PS0": "", "PS2": "> "}])
async def test_programs_of_the_shell_do_not_inherit_the_marks(
    starting: Any, exported: dict[str, str]
) -> None:
    async with starting("shell", env=exported) as bash:
        await bash.turn("run", command="env | grep -c -e ']133;' -e __telex")
        assert "\n0\n" in await bash.screen()
        state = await bash.turn("run", command="bash --norc")
        assert (state["state"], state["rule"]) == ("prompt", "nested_prompt")
        assert (await bash.turn("run", command="exit 7"))["metadata"]["exit_code"] == 7


async def test_the_end_of_the_shell_ends_a_turn(starting: Any) -> None:
    async with starting("shell") as bash:
        state = await bash.turn("run", command="exit 3")
    assert (state["state"], state["rule"]) == ("exited", "exited")


async def test_zsh_is_recognised_by_its_prompt(
    starting: Any, program: Callable[[str], str]
) -> None:
    env = {"PS1": "ann %1~ %# ", "RPS1": "[main]"}
    async with starting("shell", program=program("zsh"), args=["-f"], env=env) as zsh:
        state = await zsh.turn("run", command="sleep 0.5; echo over")
        assert (state["state"], state["rule"]) == ("prompt", "prompt_row")
        assert "\nover\n" in await zsh.screen()
        state = await zsh.turn("run", command="if true; then")
        assert (state["state"], state["metadata"]["prompt"]) == ("continuation", "then>")
        assert (await zsh.turn("interrupt"))["state"] == "prompt"


async def test_zsh_with_marks_in_its_prompt_reports_the_exit_code(
    starting: Any, program: Callable[[str], str]
) -> None:
    marked = "%{\033]133;D;%?\007\033]133;A\007%}ann %# %{\033]133;B\007%}"
    async with starting("shell", program=program("zsh"), args=["-f"], env={"PS1": marked}) as zsh:
        state = await zsh.turn("run", command="sleep 0.3; false")
    assert (state["state"], state["rule"]) == ("prompt", "osc133_prompt")
    assert state["metadata"]["exit_code"] == 1


# python

REPLS = pytest.mark.parametrize("basic", ["1", None], ids=["plain", "by default"])
"""The basic interpreter and, where it exists, the one with its own line editor."""


@REPLS
async def test_python_reports_a_value(starting: Any, basic: str | None) -> None:
    env = {"PYTHON_BASIC_REPL": basic}
    async with starting("python-repl", program=sys.executable, args=["-q"], env=env) as python:
        for number in range(10):
            state = await python.turn("evaluate", code=f"{number}+1")
            assert (state["state"], state["rule"]) == ("prompt", "prompt_row")
            assert state["metadata"]["result"] == f"{number + 1}"
            assert "error" not in state["metadata"]


@REPLS
async def test_python_accepts_a_function_of_several_lines(starting: Any, basic: str | None) -> None:
    code = 'def f(x):\n    text = "say \\"hi\\"\\tö"\n\n    if x:\n\n        return text * x\n'
    env = {"PYTHON_BASIC_REPL": basic}
    async with starting("python-repl", program=sys.executable, args=["-q"], env=env) as python:
        assert (await python.turn("evaluate", code=code))["metadata"]["result"] == ""
        state = await python.turn("evaluate", code="f(1)\n'x'")
        assert state["metadata"]["result"] == "'say \"hi\"\\tö'\n'x'"
        state = await python.turn("evaluate", code="for n in range(2): print(n)")
        assert state["metadata"]["result"] == "0\n1"


@REPLS
async def test_python_reports_an_exception(starting: Any, basic: str | None) -> None:
    env = {"PYTHON_BASIC_REPL": basic}
    async with starting("python-repl", program=sys.executable, args=["-q"], env=env) as python:
        error = (await python.turn("evaluate", code="1/0"))["metadata"]["error"]
        assert error == {"type": "ZeroDivisionError", "message": "division by zero"}
        error = (await python.turn("evaluate", code="x = 1\n\nraise KeyError('a b')"))["metadata"][
            "error"
        ]
        assert error == {"type": "KeyError", "message": "'a b'"}
        error = (await python.turn("evaluate", code="if if\n"))["metadata"]["error"]
        assert error["type"] == "SyntaxError"
        assert "error" not in (await python.turn("evaluate", code="x"))["metadata"]


@REPLS
async def test_an_endless_loop_is_interrupted(starting: Any, basic: str | None) -> None:
    env = {"PYTHON_BASIC_REPL": basic}
    async with starting("python-repl", program=sys.executable, args=["-q"], env=env) as python:
        await python.send("evaluate", code="print('begun')\nwhile True: pass")
        state = await python.wait("wait_output_matcher", text="begun")
        assert state["state"] == "running"
        assert await python.refused("evaluate", code="1") == "not_at_prompt"
        state = await python.turn("interrupt")
    assert state["state"] == "prompt"
    assert state["metadata"]["error"] == {"type": "KeyboardInterrupt", "message": ""}


@REPLS
async def test_input_of_the_code_is_answered(starting: Any, basic: str | None) -> None:
    env = {"PYTHON_BASIC_REPL": basic}
    async with starting("python-repl", program=sys.executable, args=["-q"], env=env) as python:
        assert await python.refused("answer", text="bob") == "no_input_asked"
        state = await python.turn("evaluate", code="name = input('Your name? ')")
        assert (state["state"], state["metadata"]["asked"]) == ("input", "Your name?")
        assert (await python.turn("answer", text="bob"))["state"] == "prompt"
        assert (await python.turn("evaluate", code="name"))["metadata"]["result"] == "'bob'"


async def test_the_debugger_has_its_own_state(starting: Any) -> None:
    async with starting("python-repl", program=sys.executable, args=["-q"]) as python:
        assert (await python.turn("evaluate", code="breakpoint()"))["state"] == "debugger"
        assert (await python.turn("evaluate", code="p 6*7"))["metadata"]["result"] == "42"
        assert await python.refused("evaluate", code="a\nb") == "one_line_only"
        assert (await python.turn("evaluate", code="c"))["state"] == "prompt"
        assert (await python.turn("exit"))["state"] == "exited"


async def test_a_line_typed_by_hand_has_a_result(starting: Any) -> None:
    async with starting("python-repl", program=sys.executable, args=["-q"]) as python:
        await python.turn("evaluate", code="1")
        await python.send("type", text="6 * 7")
        assert (await python.turn("key", key="enter"))["metadata"]["result"] == "42"


async def test_printed_prompts_do_not_end_a_turn(starting: Any) -> None:
    code = "import time\nfor n in range(400): print('>>> f(%d)' % n)\ntime.sleep(0.3); print('the end')"
    async with starting("python-repl", program=sys.executable, args=["-q"]) as python:
        state = await python.turn("evaluate", code=code)
    assert state["metadata"]["result"].endswith("\nthe end")
    assert state["metadata"]["result_truncated"] is True


# less


@pytest.fixture
def poem(home: Path) -> str:
    lines = [f"line {number}" for number in range(1, 101)]
    lines[49] = "(END)"
    (home / "poem.txt").write_text("\n".join(lines) + "\n")
    return "poem.txt"


async def test_less_is_read_searched_and_left(starting: Any, poem: str, program: Any) -> None:
    how = {"program": program("less"), "args": [poem], "rows": 11, "cols": 60}
    async with starting("less", **how) as less:
        state = (await less.client.call("adapter.state", adapter=less.adapter))["state"]
        assert (state["state"], state["metadata"]["file"]) == ("viewing", poem)
        assert (state["metadata"]["first_line"], state["metadata"]["last_line"]) == (1, 10)
        state = await less.turn("search", pattern="^line 7.$")
        assert (state["state"], state["metadata"]["first_line"]) == ("viewing", 70)
        assert (await less.turn("next_match"))["metadata"]["first_line"] == 71
        assert (await less.turn("search", pattern="zebra"))["state"] == "pattern_not_found"
        state = await less.turn("go_to", line=45)
        assert (state["state"], state["metadata"]["first_line"]) == ("viewing", 45)
        assert "(END)" in await less.screen()  # also a line of the text
        state = await less.turn("bottom")
        assert (state["state"], state["metadata"]["last_line"]) == ("at_end", 100)
        assert (await less.turn("page_up"))["state"] == "viewing"
        assert (await less.turn("go_to", percent=0))["metadata"]["first_line"] == 1
        assert (await less.turn("quit"))["state"] == "exited"
        refusal = await less.client.refused("adapter.send", adapter=less.adapter, intent="top")
        assert refusal.code in {spec.SESSION_CLOSED, -32602}


async def test_less_accepts_no_command_while_it_waits_for_other_input(
    starting: Any, poem: str, program: Any
) -> None:
    async with starting("less", program=program("less"), args=[poem]) as less:
        await less.turn("search", pattern="(END)", literal=True)
        assert "(END)" in await less.screen()
        assert await less.refused("go_to", line=1, percent=2) == "bad_params"
        assert await less.refused("search", pattern="a\nb") == "bad_params"
        assert (await less.turn("cancel"))["state"] in {"viewing", "at_end"}
