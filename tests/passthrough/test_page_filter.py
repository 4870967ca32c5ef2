"""Pages under `telex run`: the question, the person's browser, and an intact screen."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from htty.serving_pages import PROGRAM, PYTHON, SERVER, SETTINGS
from htty.visitor import visiting
from passthrough.person import BASH, TELEX
from passthrough.seat import RUN, printing, seated
from telex.passthrough.page_opener import browser_command
from telex.passthrough.question_row import QUIET_SECONDS
from telex.wire import htty_chunk

if TYPE_CHECKING:
    from pathlib import Path

    from passthrough.seat import Seated

ADDRESS = re.compile(r"http://[a-z0-9-]+\.localhost:[0-9]+/\?telex-code=[\w-]{43}")
ASKED = "wants to show a page in your browser. Open it? (y/n)"


def browser(home: Path) -> str:
    """A browser that writes down the address."""
    script = home / "browser"
    script.write_text('#!/bin/sh\nprintf "%s\\n" "$1" >> "$0.seen"\n')
    script.chmod(0o700)
    return str(script)


async def sent(home: Path, count: int = 1) -> str:
    """Wait for the address of the browser, by polling: it is not our child."""
    seen = home / "browser.seen"
    async with asyncio.timeout(60):
        while not seen.exists() or len(seen.read_text().split()) < count:
            await asyncio.sleep(0.01)
    return seen.read_text().split()[count - 1]


async def says(person: Seated, key: str) -> None:
    """Answer the question on the screen, when a key counts."""
    await person.shows("(y/n)")
    await asyncio.sleep(QUIET_SECONDS + 0.1)
    person.type(key)


def server(home: Path) -> str:
    """Return the server as a command for a shell."""
    (home / "page.py").write_text(SERVER)
    return shlex.join([*PYTHON, str(home / "page.py")])


async def ends(person: Seated) -> None:
    """End the server in a shell, and wait for the prompt."""
    at = len(person.seen)
    person.type("x")
    await person.sees("bye", after=at)
    await person.sees("$ ", after=person.seen.index(b"bye", at))


def audit(home: Path) -> list[dict[str, str]]:
    found = next(home.rglob("escapes.jsonl"))
    return [json.loads(line) for line in found.read_text().splitlines()]


async def test_a_yes_opens_the_page_in_the_browser_while_text_and_keys_still_pass(
    tmp_path: Path,
) -> None:
    async with seated(*RUN, *PROGRAM, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        await person.shows(ASKED)
        assert any('telex: "python' in row for row in person.rows())
        await says(person, "y")
        await person.hides("(y/n)")
        async with visiting(await sent(tmp_path)) as visitor:
            assert (await visitor.get()).text == "session 1"
            person.type("k")
            await person.shows("key b'k'")
            assert (await visitor.get()).text == "session 1"
            person.type("g")
            await person.shows("again")
            assert (await visitor.get()).text == "session 2"
            person.type("x")
            assert await person.leaves() == 0
    assert b"HTTY" not in person.seen
    assert [(line["command"], line["decision"]) for line in audit(tmp_path)] == [
        ("page:open", "allow")
    ]
    assert len((tmp_path / "browser.seen").read_text().split()) == 1


async def test_a_program_of_the_raw_form_is_named_to_the_person(tmp_path: Path) -> None:
    raw = r"printf '\033P+Hraw\033\\%.0s' 1 2 3; echo done; exec sleep 1000"
    async with seated(*RUN, "sh", "-c", raw, home=tmp_path) as person:
        await person.shows("uses the raw form of later HTTY releases")
        await person.shows("done")
        assert person.seen.count(b"raw form") == 1
        assert b"+Hraw" not in person.seen
        person.type("\x03")
        assert await person.leaves() != 0


async def test_a_no_shows_nothing_and_sends_nothing_to_the_program(tmp_path: Path) -> None:
    (tmp_path / "ssh").symlink_to(PYTHON[0])
    argv = (str(tmp_path / "ssh"), *PYTHON[1:], "-c", HEARING)
    async with seated(*RUN, *argv, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        await person.shows(f'telex: "ssh" (not on this machine) {ASKED[:20]}')
        await says(person, "n")
        await person.hides("(y/n)")
        await person.shows('telex: no page is shown: "ssh" continues without it. Ctrl-C ends it;')
        person.type("gk")
        await person.shows("key b'k'")
        assert ASKED not in "".join(person.rows())
        assert person.seen.count(b"no page is shown") == 1, "its next offer is no news"
        person.type("x")
        assert await person.leaves() == 0
    assert b"heard" not in person.seen
    assert not (tmp_path / "browser.seen").exists()
    assert [line["decision"] for line in audit(tmp_path)] == ["deny"]


async def test_always_opens_without_a_question_unless_a_rule_forbids_it(tmp_path: Path) -> None:
    always = ("--open", "always")
    async with seated(*RUN, *always, *PROGRAM, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        async with visiting(await sent(tmp_path)) as visitor:
            assert (await visitor.get()).text == "session 1"
        assert ASKED not in "".join(person.rows())
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\ncommand = "page:*"\ndecision = "deny"\n')
    forbidden = (*always, "--policy", str(rules), *PROGRAM)
    async with seated(*RUN, *forbidden, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        await person.shows("ready")
        person.type("k")
        await person.shows("key")
        person.type("x")
        assert await person.leaves() == 0
    assert audit(tmp_path)[-1]["by"] == "rule 1"
    assert len((tmp_path / "browser.seen").read_text().split()) == 1


async def test_never_shows_the_address_on_a_line_of_its_own(tmp_path: Path) -> None:
    never = ("--open", "never")
    async with seated(*RUN, *never, *PROGRAM, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        url = await address(person)
        async with visiting(url) as visitor:
            assert (await visitor.get()).text == "session 1"
        person.type("k")
        await person.shows("key b'k'")
        assert person.rows()[0].startswith("ready")
        assert person.rows()[1].startswith('telex: "python')
    assert not (tmp_path / "browser.seen").exists()


HEARING = SERVER.replace("answer(binascii", 'print("heard", flush=True); answer(binascii')


@pytest.mark.parametrize("name", ["ssh", "near"])
async def test_with_never_a_program_is_sent_nothing_before_its_address_is_opened(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).symlink_to(PYTHON[0])
    argv = (str(tmp_path / name), *PYTHON[1:], "-c", HEARING)
    async with seated(*RUN, "--open", "never", *argv, home=tmp_path) as person:
        url = await address(person)
        person.type("gk")  # another offer of the same run, without a second notice
        await person.shows("key b'k'")
        assert b"heard" not in person.seen
        async with visiting(url) as visitor:
            assert b"heard" not in person.seen  # an opened link is not a visit yet
            assert (await visitor.get()).text == "session 2"
            person.type("g")
            await person.sees("again", after=person.seen.index(b"heard"))
            await visitor.get(headers={"telex-wait": "1"})
            assert (await visitor.get()).text == "session 3"
    assert person.seen.count(b"offers a page") == 1
    assert b"(y/n)" not in person.seen


async def test_with_never_a_waiting_tab_continues_with_the_next_run(tmp_path: Path) -> None:
    async with seated(*RUN, "--open", "never", *BASH, home=tmp_path) as person:
        await person.shows("$")
        person.type(server(tmp_path) + "\r")
        async with visiting(await address(person)) as visitor:
            assert (await visitor.get()).text == "session 1"
            await ends(person)
            waiting = asyncio.create_task(visitor.get(headers={"telex-wait": "1"}))
            person.type(server(tmp_path) + "\r")
            assert (await waiting).status_code == 200
            assert (await visitor.get()).text == "session 1"


async def test_an_unvisited_page_is_dropped_for_the_next(tmp_path: Path) -> None:
    async with seated(*RUN, "--open", "never", *BASH, home=tmp_path) as person:
        await person.shows("$")
        person.type(server(tmp_path) + "\r")
        first = await address(person)
        await ends(person)
        person.type("clear\r" + server(tmp_path) + " another\r")
        second = await address(person, first)
        with pytest.raises(AssertionError, match="name"):
            async with visiting(first):
                pass
        async with visiting(second) as visitor:
            assert (await visitor.get()).text == "session 1"


async def test_another_program_of_the_same_name_is_another_origin(tmp_path: Path) -> None:
    argv = (*RUN, "--open", "always", *BASH)
    async with seated(*argv, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        await person.shows("$")
        person.type(server(tmp_path) + "\r")
        async with visiting(first := await sent(tmp_path)) as visitor:
            assert (await visitor.get()).text == "session 1"
            await ends(person)
            (tmp_path / "other.py").write_text(SERVER)
            person.type(server(tmp_path).replace("page.py", "other.py") + "\r")
            second = await sent(tmp_path, 2)
            assert urlsplit(second).netloc != urlsplit(first).netloc
            assert (await visitor.get()).status_code == 503
            async with visiting(second) as other:
                assert (await other.get()).text == "session 1"


async def test_a_refused_page_uses_no_page_number(tmp_path: Path) -> None:
    async with seated(*RUN, *BASH, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        await person.shows("$")
        person.type(server(tmp_path) + " refused\r")
        await says(person, "n")
        await person.hides("(y/n)")
        await ends(person)
        person.type(server(tmp_path) + "\r")
        await says(person, "y")
        assert "-1-" in await sent(tmp_path)


async def address(person: Seated, before: str = "") -> str:
    """Return the address on the screen."""
    await person.shows("offers a page: http://")
    while not (found := ADDRESS.search("".join(person.rows()))) or found[0] == before:
        await person.grows(len(person.seen))
    return found[0]


async def test_over_a_full_screen_program_the_address_is_on_the_last_row(tmp_path: Path) -> None:
    drawing = SERVER.replace("begin()\nprint", 'os.write(1, b"\\x1b[?1049hdrawn");begin()\nprint')
    argv = (*RUN, "--open", "never", *PYTHON, "-c", drawing)
    async with seated(*argv, home=tmp_path) as person:
        url = await address(person)
        await person.shows("(n to continue)")
        await asyncio.sleep(QUIET_SECONDS + 0.1)
        person.type("n")
        await person.hides("telex:")
        assert person.rows()[0].startswith("drawn")
        async with visiting(url) as visitor:
            assert (await visitor.get()).text == "session 1"


async def test_a_killed_program_leaves_nothing_at_the_prompt_and_the_next_takes_its_place(
    tmp_path: Path,
) -> None:
    argv = (*RUN, "--open", "always", *BASH)
    async with seated(*argv, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        await person.shows("$")
        person.type(server(tmp_path) + "\r")
        async with visiting(await sent(tmp_path)) as visitor:
            assert (await visitor.get()).text == "session 1"
            polling = asyncio.create_task(poll(visitor))
            pid = int(bytes(person.seen).rpartition(b"ready ")[2].split()[0])
            os.kill(pid, signal.SIGKILL)
            await person.sees("Killed")
            at = len(person.seen)
            await person.asks("echo mar''ked\r", "\rmarked")
            assert await polling == 503
            assert b"HTTY" not in person.seen
            assert b"command not found" not in person.seen
            person.type(server(tmp_path) + "\r")
            await person.sees("ready", after=at)
            await sent(tmp_path, 2)
            assert (await visitor.get()).text == "session 1"


async def poll(visitor: object) -> int:
    """Request like a page, until the gateway reports that the program has exited."""
    while True:
        answer = await visitor.get()  # type: ignore[attr-defined]
        if answer.status_code != 200:
            return int(answer.status_code)
        await asyncio.sleep(0.02)


async def test_a_stopped_program_is_sent_nothing_and_continues_in_the_foreground(
    tmp_path: Path,
) -> None:
    argv = (*RUN, "--open", "always", *BASH)
    async with seated(*argv, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        await person.shows("$")
        person.type(server(tmp_path) + "\r")
        async with visiting(await sent(tmp_path)) as visitor:
            assert (await visitor.get()).text == "session 1"
            person.type("\x1a")
            await person.sees("Stopped")
            asking = asyncio.create_task(visitor.get())
            await person.asks("echo mar''ked\r", "\rmarked")
            assert not asking.done()
            assert b"HTTY" not in person.seen
            person.type("fg\r")
            assert (await asking).text == "session 1"


async def test_a_file_with_chunks_is_shown_without_them_and_asks_nothing(tmp_path: Path) -> None:
    evil = printing(tmp_path / "evil", b"a", htty_chunk.encode(SETTINGS) * 9, b"b\n")
    async with seated(*RUN, *BASH, home=tmp_path) as person:
        await person.shows("$")
        await person.asks(shlex.join(evil) + "\r", "ab")
        await person.asks("echo mar''ked\r", "\rmarked")
        assert b"HTTY" not in person.seen
        assert ASKED not in "".join(person.rows())


async def test_a_broken_connection_is_reported_once_and_the_program_continues(
    tmp_path: Path,
) -> None:
    argv = (*RUN, "--open", "always", *PROGRAM)
    async with seated(*argv, home=tmp_path, BROWSER=browser(tmp_path)) as person:
        await sent(tmp_path)
        person.type("b")
        await person.shows("aborted")
        assert 'telex: the page of "python' in "".join(person.rows())
        person.type("g")
        await person.shows("again")
        person.type("b")
        person.type("k")
        await person.shows("key b'k'")
        assert "".join(person.rows()).count("aborted") == 1
        assert b"\x1bP" not in person.seen


async def test_the_environment_says_that_pages_are_shown(tmp_path: Path) -> None:
    for options, told in (((), "1"), (("--no-escapes",), "none")):
        argv = (*RUN, *options, "sh", "-c", 'echo "[${HTTY-none}]"')
        async with seated(*argv, home=tmp_path, HTTY="7") as person:
            await person.sees(f"[{told}]")
            assert await person.leaves() == 0
    async with seated(*RUN, *TELEX, "detect", "--json", home=tmp_path) as person:
        await person.sees('"htty"')


async def test_without_pages_chunks_are_dropped_without_a_question(tmp_path: Path) -> None:
    script = 'echo "[${HTTY-none}]"; exec "$@"'
    argv = (*RUN, "--no-pages", "sh", "-c", script, "sh", *PROGRAM)
    async with seated(*argv, home=tmp_path, HTTY="7") as person:
        await person.shows("[none]")
        await person.shows("ready")
        person.type("k")
        await person.shows("key")
        assert b"HTTY" not in person.seen
        assert ASKED not in "".join(person.rows())


async def test_eager_sends_first_and_the_gateway_has_the_given_port(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--open", "never", "--gateway-port", str(port), "--htty-eager")
    async with seated(*RUN, *options, *PROGRAM, "wait", home=tmp_path) as person:
        url = await address(person)
        assert f":{port}/" in url
        async with visiting(url) as visitor:
            assert (await visitor.get()).text == "session 1"


async def test_without_a_person_no_page_is_opened_and_a_notice_is_printed(tmp_path: Path) -> None:
    env = {**os.environ, "TELEX_HOME": str(tmp_path), "BROWSER": browser(tmp_path)}
    pipe = asyncio.subprocess.PIPE
    run = await asyncio.create_subprocess_exec(
        *RUN, *PROGRAM, stdin=pipe, stdout=pipe, stderr=pipe, env=env
    )
    assert run.stderr is not None
    said = await asyncio.wait_for(run.stderr.readline(), 10)
    shown, _ = await run.communicate(b"x")
    assert b"there is no person to ask" in said
    assert shown.endswith(b"bye\n")
    assert b"HTTY" not in shown
    assert not (tmp_path / "browser.seen").exists()


def test_a_program_without_a_page_imports_nothing_for_pages(tmp_path: Path) -> None:
    script = (
        "import sys, telex.cli.root as r\n"
        "try: r.main(['run', '--', 'true'], standalone_mode=True)\n"
        "except SystemExit: pass\n"
        "print([m for m in ('h2', 'uvicorn', 'telex.htty.client') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TELEX_HOME": str(tmp_path)},
        check=False,
    )
    assert done.stdout.strip().endswith("[]"), done


def test_the_browser_command_is_chosen_by_the_environment() -> None:
    """`$BROWSER` comes first, and without a display there is no browser."""
    path = os.environ["PATH"]
    assert browser_command("u", {"BROWSER": "nosuch:sh -c %s", "PATH": path}) is not None
    assert browser_command("u", {"BROWSER": "nosuch:sh -c %s", "PATH": path})[1:] == ["-c", "u"]  # type: ignore[index]
    assert browser_command("u", {"BROWSER": "sh", "PATH": path})[1:] == ["u"]  # type: ignore[index]
    assert browser_command("u", {"PATH": path}) is None
    assert browser_command("u", {"SSH_CONNECTION": "x", "DISPLAY": ":0", "PATH": path}) is None


async def test_a_raw_recording_has_the_page_and_a_plain_one_the_screen(tmp_path: Path) -> None:
    for options in (["--raw", "--input"], []):
        cast = tmp_path / f"{len(options)}.cast"
        argv = [*TELEX, "record", *options, str(cast), "--", *PROGRAM]
        (tmp_path / "browser.seen").unlink(missing_ok=True)
        async with seated(*argv, home=tmp_path, BROWSER=browser(tmp_path)) as person:
            await says(person, "y")
            async with visiting(await sent(tmp_path)) as visitor:
                assert (await visitor.get()).text == "session 1"
            person.type("x")
            assert await person.leaves() == 0
        assert b"HTTY" not in person.seen
    assert r"\u001bPHTTY;" in (tmp_path / "2.cast").read_text()
    assert r"\u001bPHTTY;" not in (tmp_path / "0.cast").read_text()
    dumped = subprocess.run(
        [*TELEX, "htty", "dump", str(tmp_path / "2.cast")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "GET / -> 200" in dumped.stdout, dumped
    assert dumped.returncode == 0
