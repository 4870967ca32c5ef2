"""Ctrl-Z in a real shell, typed by a person."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from passthrough.person import BASH, TELEX, at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

RUN = shlex.join([*TELEX, "run", "--"])


async def test_a_stopped_program_gives_the_shell_its_prompt_and_continues_with_fg() -> None:
    async with at_terminal(*BASH) as person:
        await person.sees("$ ")
        person.type(f"{RUN} cat\r")
        await person.takes_keys()
        await person.asks("one\r", "one\r\none\r\n")
        at = await person.asks("\x1a", "Stopped")
        await person.sees("$ ", after=at)
        await person.asks("echo $((6*7))\r", "42")
        at = await person.asks("fg\r", "cat\r\n")
        await person.asks("two\r", "two\r\ntwo\r\n")
        await person.asks("\x04", "$ ")
        await person.asks("echo =$?=\r", "=0=")
        person.type("exit\r")
        assert await person.leaves() == 0


async def test_vim_stops_and_continues(program: Callable[[str], str], tmp_path: Path) -> None:
    vim, file = program("vim"), tmp_path / "notes"
    async with at_terminal(*BASH, TERM="xterm-256color") as person:
        await person.sees("$ ")
        person.type(f"{RUN} {vim} -u NONE {file}\r")
        await person.sees("\x1b[?1049h")
        await person.asks("ihello\x1b", "hello")
        at = await person.asks("\x1a", "Stopped")
        assert b"\x1b[?1049l" in person.seen[:at]
        await person.asks("echo $((6*7))\r", "42")
        await person.asks("fg\r", "hello")
        person.type("oworld\x1b:wq\r")
        at = await person.sees("\x1b[?1049l", after=at)
        await person.sees("$ ", after=at)
        await person.asks("echo =$?=\r", "=0=")
        person.type("exit\r")
        assert await person.leaves() == 0
    assert file.read_text() == "hello\nworld\n"


async def test_telex_stopped_from_outside_takes_the_terminal_again_when_continued() -> None:
    async with at_terminal(*BASH) as person:
        await person.sees("$ ")
        person.type(f"{RUN} cat\r")
        await person.takes_keys()
        await person.asks("one\r", "one\r\none\r\n")
        os.kill(child_of(person.pid), signal.SIGSTOP)
        await person.sees("Stopped")
        await person.asks("echo $((6*7))\r", "42")
        await person.asks("fg\r", "cat\r\n")
        await person.takes_keys()
        await person.asks("two\r", "two\r\ntwo\r\n")


async def test_a_program_killed_while_stopped_is_reported_when_continued() -> None:
    async with at_terminal(*BASH) as person:
        await person.sees("$ ")
        person.type(f"{RUN} sh -c 'echo =$$=; exec cat'\r")
        end = await person.sees("=\r\n", after=await person.sees("exec cat'"))
        program = int(person.seen[:end].split(b"=")[-2])
        await person.asks("\x1a", "Stopped")
        os.kill(program, signal.SIGKILL)
        at = await person.asks("fg\r", "exec cat'")
        await person.sees("$ ", after=at)
        await person.asks("echo =$?=\r", "=137=")


async def test_without_a_shell_a_stop_has_no_effect() -> None:
    async with at_terminal(*TELEX, "run", "--", "cat") as person:
        await person.takes_keys()
        await person.asks("one\r", "one\r\none\r\n")
        person.type("\x1a")
        await person.asks("two\r", "two\r\ntwo\r\n")


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
