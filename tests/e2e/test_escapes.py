"""JSON escapes under `telex run`, with real programs and every command."""

from __future__ import annotations

import asyncio
import json
import math
import os
import pty
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from passthrough.person import BASH, TELEX
from passthrough.seat import RUN, frame, seated
from telex.escapes.commands import COMMANDS, lower
from telex.passthrough.question_row import QUIET_SECONDS
from telex.terminal.cells import Size
from telex.terminal.screen import Screen
from telex.wire import json_escape, limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Find = Callable[[str], str]

# Every output command.

EXAMPLES: dict[str, list[Any]] = {
    "clip:write": [{"text": "copied"}],
    "image:delete": [{}, {"id": 7}],
    "image:show": [{"format": "rgb", "width": 1, "height": 1, "data64": "AAAA"}],
    "notify:close": [{"id": "n1"}],
    "notify:show": [{"title": "done", "body": "it is"}, {"title": "t", "urgency": "low"}],
    "progress:set": [{"state": "normal", "value": 40}],
    "shell:command": [{}],
    "shell:done": [{"exitcode": 3}],
    "shell:output": [{}],
    "shell:prompt": [{}],
    "term:altscreen": [{"enabled": True}],
    "term:batch": [{"commands": [{"command": "term:bell"}, {"command": "term:cursorhome"}]}],
    "term:bell": [{}],
    "term:charset": [{"slot": 0, "set": "dec-graphics"}],
    "term:cursorhome": [{}],
    "term:cursorline": [{"n": 2}, {"n": -1}],
    "term:cursormove": [{"x": 3, "y": -1}],
    "term:cursorrestore": [{}],
    "term:cursorsave": [{}],
    "term:cursorset": [{"row": 1, "col": 2}, {"row": 1}, {"col": 2}],
    "term:cursorstyle": [{"shape": "bar", "blink": True}],
    "term:cursorvisible": [{"visible": False}],
    "term:cwd": [{"uri": "file:///tmp"}],
    "term:deletechars": [{"n": 2}],
    "term:deletelines": [{"n": 1}],
    "term:erase": [{"target": "line", "part": "all"}, {"target": "screen", "part": "before"}],
    "term:erasechars": [{"n": 2}],
    "term:hyperlink": [{"uri": "https://example.org/", "text": "here"}],
    "term:index": [{}],
    "term:insertchars": [{"n": 2}],
    "term:insertlines": [{"n": 1}],
    "term:lineattr": [{"kind": "normal"}],
    "term:nextline": [{}],
    "term:palette": [{"fg": "#102030"}, {"reset": ["fg"]}],
    "term:popstyle": [{}],
    "term:pushstyle": [{}],
    "term:repeat": [{"n": 3}],
    "term:reset": [{"kind": "soft"}, {"kind": "hard"}],
    "term:resetstyle": [{}],
    "term:resize": [{"rows": 24, "cols": 80}],
    "term:reverseindex": [{}],
    "term:scroll": [{"n": 1}, {"n": -2}],
    "term:scrollregion": [{"top": 2, "bottom": 3}, {}],
    "term:setmode": [{"mode": "insert", "value": True}, {"mode": "wrap", "value": False}],
    "term:setstyle": [{"color": 31, "bgcolor": "#aaaaaa", "bold": True, "underline": "curly"}],
    "term:shift": [{}],
    "term:sync": [{"enabled": False}],
    "term:tab": [{"n": 2}],
    "term:tabclear": [{}],
    "term:tabset": [{}],
    "term:title": [{"title": "a name"}],
    "term:titlepop": [{}],
    "term:titlepush": [{}],
    "term:window": [{"op": "raise"}],
    "term:write": [{"text": "words"}],
    "var:set": [{"name": "mine", "value": "v"}],
}
UNSEEN = {"clip:write", "image:delete", "notify:close", "notify:show", "progress:set", "var:set"}
"""Commands without an effect on a screen."""

LOWERED = sorted(name for name, command in COMMANDS.items() if command.lower is not None)
CASES = [(name, data) for name in LOWERED for data in EXAMPLES.get(name, [None])]
SETUP = b"\x1bc\x1b[2;3Hfirst\x1b7\x1b[3;5Hsecond\x1b[1;4Hx"
BETWEEN = b"\x1b]77777;\x07"
ALLOWED = '[[rule]]\ncommand = "*"\ndecision = "allow"\n'


def commanded(name: str, data: Any) -> bytes:
    return frame(json.dumps({"command": name, "data": data}))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return the output for each case, from one program under `telex run`."""
    home = tmp_path_factory.mktemp("home")
    (home / "policy.toml").write_text(ALLOWED)
    parts = [SETUP + BETWEEN + commanded(*case) + BETWEEN for case in CASES]
    (home / "frames").write_bytes(b"".join(parts))
    argv = [*RUN, "--policy", str(home / "policy.toml"), "cat", str(home / "frames")]
    master, slave = pty.openpty()
    got = bytearray()
    environment = {**os.environ, "TELEX_HOME": str(home)}
    with subprocess.Popen(
        argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=environment
    ):
        os.close(slave)
        try:
            while data := os.read(master, 65536):
                got += data
        except OSError:  # no process has it open any more
            os.close(master)
    return bytes(got).split(BETWEEN)[1::2]


@pytest.mark.parametrize(
    ("number", "name", "data"),
    [(number, *case) for number, case in enumerate(CASES)],
    ids=[f"{name}-{json.dumps(data)}" for name, data in CASES],
)
def test_a_command_has_the_effect_of_its_ansi_on_the_persons_terminal(
    shown: list[bytes], number: int, name: str, data: Any
) -> None:
    assert data is not None, f"{name} has no example here"
    assert len(shown) == len(CASES)
    before = after(b"")
    # This terminal does not reply to the probe, so it gets no pictures.
    expected = b"" if name.startswith("image:") else lower(name, data)
    assert after(shown[number]) == after(expected)
    assert shown[number] == expected
    if name in UNSEEN:
        assert after(shown[number])[0] == before[0]


def after(ansi: bytes) -> tuple[list[str], bytes, object]:
    screen = Screen(Size())
    try:
        screen.feed(SETUP + ansi)
        return [row.text for row in screen.rows()], screen.restore(), screen.cursor
    finally:
        screen.close()


# Hostile output.

HOSTILE = b"".join(
    [
        frame('{"command":"ping","rpcid":"touch.pwned"}'),
        frame('{"command":"detect","rpcid":"d"}'),
        frame('{"command":"term:report","rpcid":"r","data":{"what":"cursor"}}'),
        frame('{"command":"term:report","rpcid":"v","data":{"what":"version"}}'),
        frame('{"command":"clip:write","rpcid":"c","data":{"text":"\\u0007touch pwned\\r"}}'),
        frame('{"command":"term:subscribe","rpcid":"s","data":{"events":["event:key"]}}'),
        frame('{"command":"term:subscribe","data":{"events":["event:key","event:mouse"]}}'),
        frame('{"command":"ping","rpcid":"\\r\\ntouch pwned\\r\\n"}'),
        frame('{"command":"; touch pwned;","rpcid":"u"}'),
        frame('{"command":"term:write","data":{"text":"\\rtouch pwned\\r"}}'),
        frame('{"resid":"r","data":"touch pwned\\r"}'),
        json_escape.encode(b'{"resid":"x","data":"\\rtouch pwned\\r"}', json_escape.TO_PROGRAM),
        b"\x1b]23198;7;{not json}\x07\x1b]23198;3;{}\x07\x1b]23198;\x07\x1b]23198;0;\x1b\\",
        b'\x1b]23198;0;{"command":"ping","rpcid":"q","data":1,"data64":"AA=="}\x07',
        b'\x1b]23198;0;{"rpcid":"long","command":"ping","data":"%b"}\x07'
        % (b"touch pwned\r" * (limits.CONTROL_STRING_BYTES // 10)),
        b"\x1b]231\x1b]23198;0;{}\x0798;0;{}\x07\r\x1b[K",  # a frame cannot be assembled from parts
        b"\x1b]23198;0;\xc3\x9c{}\x9c\x07\x1b]23199;0;touch pwned\r\x07",
        frame('{"command":"ping","rpcid":"m"}') * 5000,
        b'\x1b]23198;0;{"command":"ping","rpcid":"open"',
    ]
)


async def test_a_file_full_of_hostile_frames_runs_nothing_and_types_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "hostile").write_bytes(HOSTILE)
    rules = tmp_path / "policy.toml"  # all requests are allowed without a question
    rules.write_text('[[rule]]\ncommand = "term:subscribe"\ndecision = "allow"\n')
    run = (*RUN, "--policy", str(rules))
    async with seated(*run, "--", *BASH, home=tmp_path / "home", HOME=str(tmp_path)) as person:
        await person.sees("$ ")
        await person.asks("cd; cat hostile\r", "$ ")
        person.type("echo still $((6*7))\r")
        await person.shows("still 42")
        await person.asks("echo again $((7*7))\r", "again 49")
        rows = [row for row in person.rows() if row]
        first = rows.index("$ echo still $((6*7))")
        assert rows[first : first + 4] == [
            "$ echo still $((6*7))", "still 42", "$ echo again $((7*7))", "again 49"
        ]  # fmt: skip
        text = "\n".join(rows)
        for word in ("resid", "23198", "23199", "touch", "pwned", "command not found", "{"):
            assert word not in text, text
        assert not (tmp_path / "pwned").exists()
        person.type("exit 3\r")
        assert await person.leaves() == 3
        assert person.restored()


# Programs.


async def test_telex_detect_and_escape_reach_the_telex_run_around_them(tmp_path: Path) -> None:
    telex = " ".join(TELEX)
    script = f"""
{telex} detect --json; echo
{telex} escape term:title '{{"title":"mine"}}'
{telex} escape --wait term:report '{{"what":"cursor"}}'
{telex} escape --unchecked --wait term:nothing; echo "code $?"
"""
    async with seated(*RUN, "bash", "-c", script, home=tmp_path) as person:
        await person.sees("code 3")
        assert await person.leaves() == 0
        assert b'"supported": true, "via": "terminal"' in person.seen
        assert b'"row": ' in person.seen
        assert person.screen.title == "mine"


ESCAPE = """
import os, select, sys, termios, time, tty
tty.setraw(0)
os.write(1, b"ready")
while True:
    key = os.read(0, 1)
    os.write(1, b"%f;" % time.monotonic())
"""


async def test_an_escape_pressed_alone_is_not_held(tmp_path: Path) -> None:
    """A lone ESC that may begin a reply is held for 25 ms. Without a request on the way no reply
    can come, and one press in less time shows it; a slow machine needs more presses."""
    argv = (sys.executable, "-c", ESCAPE)
    async with seated(*RUN, *argv, home=tmp_path) as person:
        at, took = await person.sees("ready"), math.inf
        while took >= 0.025:
            pressed = time.monotonic()
            person.type("\x1b")
            end = await person.sees(";", after=at)
            took = float(person.seen[at : end - 1]) - pressed
            at = end


LISTENS = """
import asyncio
from telex import escapes

async def main():
    async with escapes.connect() as term:
        where = await term.report("cursor")
        async with term.events("event:mouse", "event:paste") as events:
            print("via", term.via, where.row, end=" ready\\r\\n", flush=True)
            async for event in events:
                print(event.name, event.data, end="\\r\\n", flush=True)
                if event.name == "event:paste":
                    break
    print("left", flush=True)

asyncio.run(main())
"""


async def test_a_program_of_the_library_subscribes_and_gets_the_mouse_and_pastes(
    tmp_path: Path,
) -> None:
    async with seated(*RUN, sys.executable, "-c", LISTENS, home=tmp_path) as person:
        await person.shows("term:subscribe")
        await asyncio.sleep(QUIET_SECONDS + 0.1)
        person.type("y")
        await person.sees("via terminal 1 ready")
        assert b"\x1b[?2004h" in person.seen
        person.type(b"\x1b[<35;7;2M\x1b[200~two\rlines\x1b[201~")
        await person.sees("event:mouse MouseInput(row=2, col=7")
        await person.sees("event:paste PasteEvent(text='two\\rlines')")
        await person.sees("left")
        assert await person.leaves() == 0
        assert not person.screen.bracketed_paste
        assert not person.screen.mouse_tracking


@pytest.mark.parametrize("passthrough", ["on", "off"])
async def test_inside_tmux_the_terminal_around_it_or_the_socket_responds(
    tmp_path: Path, program: Find, passthrough: str
) -> None:
    found = tmp_path / "found"
    config = tmp_path / "tmux.conf"
    config.write_text(f"set -g allow-passthrough {passthrough}\n")
    inner = f"{' '.join(TELEX)} detect --json > {found}"
    tmux = [program("tmux"), "-S", str(tmp_path / "t"), "-f", str(config), "new-session", inner]
    async with seated(*RUN, *tmux, home=tmp_path, TERM="xterm-256color") as person:
        assert await person.leaves() == 0
    answer = json.loads(found.read_text())
    assert answer["supported"]
    assert (
        answer["via"] == "socket" if passthrough == "off" else answer["via"] in ("tmux", "socket")
    )
