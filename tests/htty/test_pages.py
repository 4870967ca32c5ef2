"""Which program a page belongs to, its name, and how many pages are kept."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import httpx
import pytest

from telex.htty import limits
from telex.htty.gateway.pages import PageProgram, Pages, RemotePrograms, program_of

if TYPE_CHECKING:
    from pathlib import Path


async def test_only_the_same_command_has_the_same_page() -> None:
    pages = Pages()
    first = pages.page_for("t1", PageProgram("python", "a"))
    assert pages.page_for("t1", PageProgram("renamed", "a")) is first
    others = [
        pages.page_for("t1", PageProgram("python", "b")),
        pages.page_for("t2", PageProgram("python", "a")),
    ]
    assert len({page.name for page in [first, *others]}) == 3


async def test_a_name_is_not_used_again_for_another_page() -> None:
    pages = Pages()
    first = pages.page_for("t1", PageProgram("python", "a"))
    pages.forget_terminal("t1")
    assert pages.page_for("t2", PageProgram("python", "a")).name != first.name


async def test_the_most_recently_used_page_is_dropped_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_PAGES", 2)
    pages = Pages()
    first, second = [pages.page_for("t1", PageProgram("python", n)) for n in (1, 2)]
    try:
        url = httpx.URL(await pages.url(second))
        assert pages.page_for("t1", PageProgram("python", 1)) is first
        third = pages.page_for("t1", PageProgram("python", 3))
        assert first in pages
        assert third in pages
        assert second not in pages
        async with httpx.AsyncClient(trust_env=False) as client:
            there = url.copy_with(host="127.0.0.1")
            answer = await client.get(there, headers={"host": url.netloc.decode()})
            assert answer.status_code == 403
    finally:
        await pages.close()


def test_a_program_is_identified_by_its_command_and_directory(tmp_path: Path) -> None:
    same = [program_running("one", tmp_path) for _ in range(2)]
    assert same[0] == same[1]
    assert same[0].command in ("sh", "dash", "bash")
    assert program_running("two", tmp_path) != same[0]
    (tmp_path / "inner").mkdir()
    assert program_running("one", tmp_path / "inner") != same[0]


def test_a_remote_program_is_a_new_one_unless_the_previous_one_just_ended() -> None:
    far, ssh = RemotePrograms(), PageProgram("ssh", "ssh host")
    first = far.arrived(ssh, 0)
    far.left(first, 10)
    again = far.arrived(ssh, 10 + limits.HTTY_RETURN_SECONDS)
    assert again == first
    far.left(again, 100)
    other = far.arrived(ssh, 101 + limits.HTTY_RETURN_SECONDS)
    assert other != first
    far.left(first, 0)  # ignored, because it was replaced
    assert far.arrived(ssh, 1000) == other, "it has not left"
    assert far.arrived(PageProgram("ssh", "ssh elsewhere"), 1000) != other


def test_an_unknown_program_equals_no_other() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert program_of(gone.pid, "make").command == "make"
    assert program_of(gone.pid, "make") != program_of(gone.pid, "make")


def program_running(command: str, where: Path) -> PageProgram:
    says = ["sh", "-c", "echo here; read line", *command.split()]
    pipe = subprocess.PIPE
    with subprocess.Popen(says, cwd=where, stdin=pipe, stdout=pipe) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"here\n"  # exec has completed
        try:
            return program_of(running.pid, "unknown")
        finally:
            running.kill()
